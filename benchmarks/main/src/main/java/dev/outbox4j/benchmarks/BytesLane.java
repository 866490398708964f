package dev.outbox4j.benchmarks;

import dev.outbox4j.benchmarks.ours.Outbox4j;
import dev.outbox4j.benchmarks.spi.Numbers;
import java.io.IOException;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;

/**
 * A backlog of large payloads, many times what the heap holds, drained as it comes. Whoever does
 * not get through fails, and its numbers are in the failure.
 */
final class BytesLane implements Lane {
  private static final int BYTES = 200_000;
  private static final int ROUNDS = 2;

  private static final List<Entrant> HEAPS = List.of(heap("256m"), heap("128m"));

  private static Entrant heap(String heap) {
    return Roster.OURS
        .called("outbox4j-heap-" + heap)
        .with("heap", heap)
        .with(ContestantJvm.COUNT_OUT_OF_MEMORY, "true");
  }

  @Override
  public String name() {
    return "bytes";
  }

  @Override
  public void run(Run run) throws SQLException {
    for (int round = 0; round < Math.min(ROUNDS, Settings.rounds()) && !run.over(); round++) {
      for (int rows : Settings.numbers("rows", "20k")) {
        run.turn(
            "bytes, %d x %d B".formatted(rows, BYTES),
            round,
            Roster.asked(HEAPS),
            (entrant, database) -> drain(run, entrant, database, rows));
      }
    }
  }

  private static Numbers drain(Run run, Entrant entrant, String database, int rows)
      throws IOException, SQLException {
    // who loads them is not who drains them: it needs its memory to itself, and may end in any way
    try (ContestantJvm loader = run.start(Roster.OURS, database)) {
      loader.perform("prepare");
      loader.perform("load 0 " + rows + " " + BYTES);
    }
    try (ContestantJvm jvm = run.start(entrant, database);
        Watch watch = new Watch(run.server(), database)) {
      Numbers numbers =
          jvm.perform(
              "drain 0 %d %d plain alone".formatted(rows, Settings.number("drain.seconds", 600)));
      watch.read(numbers, Parts.value(numbers, "messages"));
      left(run, database, numbers);
      numbers
          .with("seconds_to_drain", Parts.value(numbers, "seconds"))
          .with("out_of_memory_errors", jvm.outOfMemoryErrors());
      return sound(numbers);
    }
  }

  /** Every message must have come and gone, and nobody have run out of memory. */
  static Numbers sound(Numbers numbers) throws IOException {
    if (Parts.value(numbers, "rows_left") > 0 || Parts.value(numbers, "out_of_memory_errors") > 0) {
      throw new IOException("not drained, or out of memory: " + numbers);
    }
    return numbers;
  }

  /** After the subscriber has stopped. */
  private static void left(Run run, String database, Numbers into) throws SQLException {
    try (Connection connection = run.server().connect(database);
        Statement statement = connection.createStatement();
        ResultSet row = statement.executeQuery(Outbox4j.ROWS_AND_LEASED)) {
      row.next();
      into.with("rows_left", row.getLong(1)).with("rows_leased", row.getLong(2));
    }
  }
}
