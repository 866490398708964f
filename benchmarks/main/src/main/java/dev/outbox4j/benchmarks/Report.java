package dev.outbox4j.benchmarks;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.outbox4j.benchmarks.spi.Numbers;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDate;
import java.time.ZoneOffset;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Writes figures and cells as JSON and Markdown. What a run did not measure stays as an earlier run
 * left it.
 */
final class Report {
  private final Map<String, String> serverSettings;
  private final String commit = commitAt(Settings.home());

  Report(Map<String, String> serverSettings) {
    this.serverSettings = serverSettings;
  }

  static Map<String, String> machine() throws IOException {
    Map<String, String> machine = new LinkedHashMap<>();
    machine.put("processors", Integer.toString(Runtime.getRuntime().availableProcessors()));
    machine.put("processor", line(Path.of("/proc/cpuinfo"), "model name"));
    machine.put("memory", line(Path.of("/proc/meminfo"), "MemTotal"));
    machine.put("os", System.getProperty("os.name") + " " + System.getProperty("os.version"));
    machine.put("java", System.getProperty("java.vm.version"));
    return machine;
  }

  private static String line(Path file, String key) throws IOException {
    if (!Files.isReadable(file)) {
      return "unknown";
    }
    return Files.readAllLines(file).stream()
        .filter(line -> line.startsWith(key))
        .map(line -> line.substring(line.indexOf(':') + 1).trim())
        .findFirst()
        .orElse("unknown");
  }

  /** With a mark if files were changed since; as much as is known. */
  static String commitAt(Path folder) {
    try {
      Process git =
          new ProcessBuilder("git", "describe", "--always", "--dirty", "--abbrev=12")
              .directory(folder.toFile())
              .redirectError(ProcessBuilder.Redirect.DISCARD)
              .start();
      String name = new String(git.getInputStream().readAllBytes(), StandardCharsets.UTF_8).strip();
      return name.isEmpty() ? "unknown" : name;
    } catch (IOException e) { // no git here
      return "unknown";
    }
  }

  /** Returns the commit that is measured. */
  String commit() {
    return commit;
  }

  Map<String, String> serverSettings() {
    return serverSettings;
  }

  void print(Run run, Map<String, Figure> figures) {
    StringBuilder text = new StringBuilder("\n");
    run.results()
        .cells()
        .forEach(
            (cell, labels) ->
                text.append(cell).append("\n\n").append(Markdown.table(cell(labels))).append('\n'));
    run.failures()
        .forEach(
            (what, why) ->
                text.append("FAILED ").append(what).append(": ").append(why).append('\n'));
    figures.forEach(
        (name, figure) -> text.append(name).append(" = ").append(figure.text()).append('\n'));
    run.progress("%s", text);
  }

  void write(Path file, String lane, Run run, Map<String, Figure> figures) throws IOException {
    ObjectNode root = Json.read(file);
    ObjectNode about = root.withObjectProperty("about");
    ObjectNode intervals = root.withObjectProperty("intervals");
    ObjectNode before = intervals.deepCopy();
    JsonNode aboutBefore = about.path(lane).deepCopy();
    about
        .path(lane)
        .path("figures")
        .forEach(
            figure -> {
              root.remove(figure.asText());
              intervals.remove(figure.asText());
            });
    figures.forEach(
        (name, figure) -> {
          root.put(name, figure.rounded());
          ObjectNode interval =
              intervals
                  .putObject(name)
                  .put("low", figure.roundedLow())
                  .put("high", figure.roundedHigh())
                  .put("rounds", figure.rounds())
                  .put("coverage_percent", figure.coverage());
          if (before.has(name)) {
            interval.set("before", before(before.path(name), aboutBefore));
          }
        });
    root.put("samples", Samples.beside(file).getFileName().toString());
    // what once was about all lanes together
    about.properties().removeIf(entry -> !entry.getValue().has("date"));
    ObjectNode cells = root.withObjectProperty("cells");
    about.path(lane).path("cells").forEach(cell -> cells.remove(cell.asText()));
    about.set(lane, about(run, figures.keySet()));
    ObjectNode contracts = root.withObjectProperty("contracts");
    run.contracts().forEach(contracts::put);
    ObjectNode settings = root.withObjectProperty("settings");
    run.entrants()
        .forEach(
            (label, entrant) -> settings.set(label, Json.MAPPER.valueToTree(entrant.options())));
    run.results().cells().forEach((cell, labels) -> cells.set(cell, cell(labels)));
    Files.createDirectories(file.toAbsolutePath().getParent());
    Json.MAPPER.writeValue(file.toFile(), root);
    Samples.write(Samples.beside(file), lane, about.path(lane), run.results());
    writePage(file);
  }

  /** What the run before said, when, and of which commit. */
  private static ObjectNode before(JsonNode interval, JsonNode about) {
    ObjectNode before = interval.<ObjectNode>deepCopy().retain("low", "high");
    for (String what : List.of("date", "commit")) {
      if (about.has(what)) {
        before.set(what, about.path(what));
      }
    }
    return before;
  }

  /** Writes the page and its pictures anew from the figures that are kept. */
  static void writePage(Path file) throws IOException {
    ObjectNode root = Json.read(file);
    Path page = sibling(file, ".md");
    Charts.write(page, root);
    Files.writeString(
        page, Markdown.within(Files.exists(page) ? Files.readString(page) : "", root));
  }

  /** A file of the same name with another end. */
  static Path sibling(Path file, String end) {
    String name = file.getFileName().toString();
    int dot = name.lastIndexOf('.');
    return file.resolveSibling((dot < 0 ? name : name.substring(0, dot)) + end);
  }

  private ObjectNode about(Run run, Set<String> figures) throws IOException {
    ObjectNode about = Json.MAPPER.createObjectNode();
    about.put("date", LocalDate.now(ZoneOffset.UTC).toString());
    about.put("commit", commit);
    about.set("machine", Json.MAPPER.valueToTree(machine()));
    about.set("server", Json.MAPPER.valueToTree(serverSettings));
    about.put("client_heap", Settings.text("heap", "512m"));
    ObjectNode versions = about.putObject("versions");
    for (Entrant entrant : run.entrants().values()) {
      versions.set(entrant.module(), Json.MAPPER.valueToTree(Versions.of(entrant.module())));
    }
    ArrayNode cells = about.putArray("cells");
    run.results().cells().keySet().forEach(cells::add);
    ArrayNode names = about.putArray("figures");
    figures.forEach(names::add);
    if (!run.amiss().isEmpty()) {
      about.put("amiss", String.join("; ", run.amiss()));
    }
    return about;
  }

  private ObjectNode cell(Map<String, List<Numbers>> labels) {
    ObjectNode cell = Json.MAPPER.createObjectNode();
    labels.forEach(
        (label, rounds) -> {
          ObjectNode contestant = cell.putObject(label);
          for (String metric : Samples.metrics(rounds)) {
            Spread.of(rounds, metric)
                .ifPresent(
                    spread ->
                        contestant
                            .putObject(metric)
                            .put("median", spread.median())
                            .put("min", spread.min())
                            .put("max", spread.max())
                            .put("rounds", spread.rounds()));
          }
        });
    return cell;
  }
}
