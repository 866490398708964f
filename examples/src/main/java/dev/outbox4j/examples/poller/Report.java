package dev.outbox4j.examples.poller;

import java.io.PrintStream;
import java.util.List;

/**
 * What a reconciliation found.
 *
 * @param lines a line for each rule
 * @param counts how many versions there are, and what became of them
 */
record Report(List<Line> lines, String counts) {

  /**
   * One rule.
   *
   * @param what the rule in words
   * @param checked how many versions or rows it is about
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
    out.printf("%-60s %8s %8s%n", "", "checked", "wrong");
    for (Line line : lines) {
      out.printf(
          "%-60s %8d %8d  %s%n",
          line.what(), line.checked(), line.wrong(), line.holds() ? "ok" : "WRONG");
      if (!line.holds()) {
        out.printf("    such as %s%n", String.join(", ", line.examples()));
      }
    }
    out.printf("%s%n", counts);
  }
}
