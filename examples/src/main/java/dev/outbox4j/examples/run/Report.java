package dev.outbox4j.examples.run;

import java.io.PrintStream;
import java.sql.Array;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;

/**
 * What a reconciliation found.
 *
 * @param lines a line for each rule
 * @param notes what is worth knowing and no fault
 */
public record Report(List<Line> lines, List<String> notes) {

  /** Copies the lists. */
  public Report {
    lines = List.copyOf(lines);
    notes = List.copyOf(notes);
  }

  /**
   * One rule.
   *
   * @param what the rule in words
   * @param checked how many things it is about
   * @param wrong how many of them break it
   * @param examples some of these
   */
  public record Line(String what, long checked, long wrong, List<String> examples) {

    /** Copies the list. */
    public Line {
      examples = List.copyOf(examples);
    }

    /**
     * Asks a database.
     *
     * @param connection to it
     * @param what the rule in words
     * @param sql gives how many are checked, how many are wrong, and an array of some of these
     * @return the line
     * @throws SQLException if the statement fails
     */
    public static Line of(Connection connection, String what, String sql) throws SQLException {
      try (Statement statement = connection.createStatement();
          ResultSet row = statement.executeQuery(sql)) {
        row.next();
        Array examples = row.getArray(3);
        return new Line(
            what,
            row.getLong(1),
            row.getLong(2),
            examples == null ? List.of() : List.of((String[]) examples.getArray()));
      }
    }

    /** {@return whether nothing breaks it} */
    public boolean holds() {
      return wrong == 0;
    }
  }

  /** {@return whether every rule holds} */
  public boolean holds() {
    return lines.stream().allMatch(Line::holds);
  }

  /**
   * Prints a line for each rule, then the notes.
   *
   * @param out where to
   */
  public void print(PrintStream out) {
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
