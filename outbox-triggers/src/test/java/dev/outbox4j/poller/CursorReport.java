package dev.outbox4j.poller;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.LocalDate;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * The record of a run that takes long, as JSON, which is written after each part: a run that was
 * ended goes on where it was, if it is of the same commit.
 */
final class CursorReport {
  private static final ObjectMapper JSON =
      new ObjectMapper().enable(SerializationFeature.INDENT_OUTPUT);

  private final Path file;
  private final Map<String, Object> about = new LinkedHashMap<>();
  private final List<Object> parts = new ArrayList<>();
  private final Set<String> done = new HashSet<>();

  CursorReport(Path file, String postgres, int rows) throws IOException, InterruptedException {
    this.file = file;
    about.put("commit", commit());
    about.put("java", System.getProperty("java.runtime.version"));
    about.put("postgresql", postgres);
    about.put("processors", Runtime.getRuntime().availableProcessors());
    about.put("rows", rows);
    if (Files.exists(file)) {
      JsonNode before = JSON.readTree(file.toFile());
      if (about.entrySet().stream()
          .allMatch(
              each -> each.getValue().toString().equals(before.path(each.getKey()).asText()))) {
        before.path("parts").forEach(this::keep);
      }
    }
  }

  private void keep(JsonNode part) {
    parts.add(part);
    done.add(key(part.path("cursor").asText(), part.path("batch").asInt()));
  }

  private static String key(String cursor, int batch) {
    return cursor + " " + batch;
  }

  /** With what Git says of changes. */
  private static String commit() throws IOException, InterruptedException {
    Process git =
        new ProcessBuilder("git", "describe", "--always", "--dirty", "--abbrev=12")
            .redirectError(ProcessBuilder.Redirect.DISCARD)
            .start();
    String said = new String(git.getInputStream().readAllBytes(), StandardCharsets.UTF_8).strip();
    return git.waitFor() == 0 ? said : "unknown";
  }

  boolean has(String cursor, int batch) {
    return done.contains(key(cursor, batch));
  }

  /** Adds what was shown of a type of cursor by a size of batches. */
  void add(String cursor, int batch, int versions, int ticks, Duration took) throws IOException {
    Map<String, Object> part = new LinkedHashMap<>();
    part.put("cursor", cursor);
    part.put("batch", batch);
    part.put("versions", versions);
    part.put("ticks", ticks);
    part.put("seconds", took.toSeconds());
    part.put("date", LocalDate.now(ZoneOffset.UTC).toString());
    parts.add(part);
    done.add(key(cursor, batch));
    write(false);
  }

  /** All of it was done. */
  void complete() throws IOException {
    write(true);
  }

  private void write(boolean complete) throws IOException {
    Map<String, Object> all = new LinkedHashMap<>(about);
    all.put("complete", complete);
    all.put("parts", parts);
    JSON.writeValue(file.toFile(), all);
  }
}
