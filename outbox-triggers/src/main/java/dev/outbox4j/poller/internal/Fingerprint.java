package dev.outbox4j.poller.internal;

import dev.outbox4j.poller.Poller;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;

/** The parts of a definition and of its source that may not change unnoticed. */
final class Fingerprint {
  private Fingerprint() {}

  static Map<String, String> of(Poller poller, SourceDescription source) {
    Map<String, String> parts = new LinkedHashMap<>();
    parts.put("database", fact(source, "database"));
    parts.put("source", fact(source, "source"));
    poller.source().sql().ifPresent(sql -> parts.put("query", sql));
    parts.put("key", fact(source, "key"));
    parts.put("key types", fact(source, "key types"));
    parts.put("cursor", poller.cursor().column());
    parts.put("cursor type", fact(source, "cursor type"));
    parts.put(
        "cursor kind",
        poller.cursor().kind().name()
            + poller.cursor().offset().map(offset -> ", at offset " + offset).orElse("")
            + (poller.cursor().writersNeverOverlap() ? ", writers never overlap" : ""));
    parts.put("nulls", poller.cursor().nulls().name());
    parts.put("columns", poller.columns().isEmpty() ? "all" : String.join(", ", poller.columns()));
    parts.put("condition", poller.condition().orElse("none"));
    parts.put("values of the condition", values(poller.values()));
    parts.put("deletes", source.facts().getOrDefault("deletes", poller.deletes().toString()));
    return parts;
  }

  private static String fact(SourceDescription source, String name) {
    return source.facts().getOrDefault(name, "");
  }

  /** They may be secret, so only their hash is on record. */
  private static String values(List<Object> values) {
    if (values.isEmpty()) {
      return "none";
    }
    List<String> texts = new ArrayList<>();
    values.forEach(
        value -> {
          texts.add(value.getClass().getSimpleName());
          texts.add(value.toString());
        });
    return Hashes.of(texts);
  }

  /** Which parts differ, each with both values; values of a condition are hashes. */
  static List<String> differences(Map<String, String> onRecord, Map<String, String> here) {
    TreeSet<String> names = new TreeSet<>(onRecord.keySet());
    names.addAll(here.keySet());
    return names.stream()
        .filter(name -> !text(onRecord, name).equals(text(here, name)))
        .map(
            name ->
                "%s, which is '%s' on record and '%s' here"
                    .formatted(name, text(onRecord, name), text(here, name)))
        .toList();
  }

  private static String text(Map<String, String> parts, String name) {
    return parts.getOrDefault(name, "none");
  }
}
