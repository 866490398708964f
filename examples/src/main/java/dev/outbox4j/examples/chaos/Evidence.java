package dev.outbox4j.examples.chaos;

import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * What shows that a fault happened, from what it did it to. A fault of which a sign is missing
 * proves nothing, so that is a breach.
 */
final class Evidence {
  private final Map<String, Long> signs = new LinkedHashMap<>();
  private final Map<String, Long> countersigns = new LinkedHashMap<>();

  /** Adds a sign: the fault happened only if there is at least one. */
  Evidence sign(String name, long count) {
    signs.merge(name, count, Long::sum);
    return this;
  }

  /** Adds a countersign: the fault happened only if there is none. */
  Evidence countersign(String name, long count) {
    countersigns.merge(name, count, Long::sum);
    return this;
  }

  /** Adds all of another one's, each name with a word before it. */
  Evidence add(String before, Evidence other) {
    other.signs.forEach((name, count) -> sign(before + name, count));
    other.countersigns.forEach((name, count) -> countersign(before + name, count));
    return this;
  }

  /** Says what is missing; nothing if the fault happened. */
  List<String> gaps() {
    List<String> gaps = new ArrayList<>();
    if (signs.isEmpty()) {
      gaps.add("nothing was looked for");
    }
    signs.forEach(
        (name, count) -> {
          if (count == 0) {
            gaps.add(name + " is 0");
          }
        });
    countersigns.forEach(
        (name, count) -> {
          if (count != 0) {
            gaps.add(name + " is " + count);
          }
        });
    return gaps;
  }

  /** All counts by name, for the report. */
  Map<String, Long> counts() {
    Map<String, Long> all = new LinkedHashMap<>(signs);
    all.putAll(countersigns);
    return Collections.unmodifiableMap(all);
  }
}
