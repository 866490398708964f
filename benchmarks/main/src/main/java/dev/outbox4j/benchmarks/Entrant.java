package dev.outbox4j.benchmarks;

import java.util.Collections;
import java.util.Map;
import java.util.TreeMap;

/**
 * A contestant with its settings, as it appears in a table.
 *
 * @param label how it is called in tables
 * @param module the benchmark module that holds it
 * @param contestant its name there
 * @param options its settings
 */
record Entrant(String label, String module, String contestant, Map<String, String> options) {
  Entrant {
    options = Collections.unmodifiableMap(new TreeMap<>(options));
  }

  static Entrant raw(String name) {
    return new Entrant(name, "main", name, Map.of());
  }

  static Entrant ours() {
    return new Entrant("outbox4j", "main", "outbox4j", Map.of());
  }

  static Entrant peer(String module, String name) {
    return new Entrant(name, module, name, Map.of());
  }

  Entrant called(String label) {
    return new Entrant(label, module, contestant, options);
  }

  Entrant with(String option, String value) {
    Map<String, String> more = new TreeMap<>(options);
    more.put(option, value);
    return new Entrant(label, module, contestant, more);
  }
}
