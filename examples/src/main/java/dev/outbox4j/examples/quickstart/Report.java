package dev.outbox4j.examples.quickstart;

import java.io.PrintStream;
import java.util.List;

/**
 * What the reconciliation found.
 *
 * @param lines a line for each rule
 * @param notes what is worth knowing and no fault
 */
record Report(List<Line> lines, List<String> notes) {

  /**
   * One rule.
   *
   * @param what the rule in words
   * @param checked how many orders it is about, or instants of the heartbeat
   * @param wrong how many of them break it
   * @param examples some of these
   */
  record Line(String what, long checked, long wrong, List<String> examples) {
    boolean holds() {
      return wrong == 0;
    }
  }

  /** {@return whether every rule holds} */
  boolean holds() {
    return lines.stream().allMatch(Line::holds);
  }

  void print(PrintStream out) {
    out.printf("%-72s %8s %8s%n", "", "checked", "wrong");
    for (Line line : lines) {
      out.printf(
          "%-72s %8d %8d  %s%n",
          line.what(), line.checked(), line.wrong(), line.holds() ? "ok" : "WRONG");
      if (!line.holds()) {
        out.printf("    such as %s%n", String.join(", ", line.examples()));
      }
    }
    notes.forEach(note -> out.printf("%s%n", note));
  }
}
