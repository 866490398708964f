package dev.outbox4j.benchmarks;

import dev.outbox4j.benchmarks.spi.Numbers;
import java.io.IOException;
import java.sql.SQLException;
import java.util.List;
import java.util.Map;

/**
 * A backlog that never ends, and beside it messages whose transactions stay open for up to 30 s
 * after publishing: how old the oldest of them becomes after its commit.
 */
final class LateCommitsLane implements Lane {
  private static final int ROUNDS = 3;
  private static final int LONGEST_HOLD_SECONDS = 30;
  private static final int PER_SECOND = 4;
  private static final String CELL =
      "late commits, transactions open for up to %d s, backlog of %d";
  private static final int DEPTH = 20_000;

  @Override
  public String name() {
    return "late-commits";
  }

  @Override
  public void run(Run run) throws SQLException {
    int depth = Settings.numbers("rows", Integer.toString(DEPTH)).get(0);
    int seconds = Settings.number("seconds", 120);
    int hold = Settings.number("hold", LONGEST_HOLD_SECONDS);
    for (int round = 0; round < Math.min(ROUNDS, Settings.rounds()) && !run.over(); round++) {
      run.turn(
          cell(hold, depth),
          round,
          Roster.asked(List.of(Roster.OURS)),
          (entrant, database) -> late(run, entrant, database, depth, seconds, hold));
    }
  }

  static String cell(int hold, int depth) {
    return CELL.formatted(hold, depth);
  }

  private static Numbers late(
      Run run, Entrant entrant, String database, int depth, int seconds, int hold)
      throws IOException, SQLException {
    try (ContestantJvm jvm = run.start(entrant, database)) {
      jvm.perform("prepare");
      try (Watch watch = new Watch(run.server(), database)) {
        Numbers numbers =
            jvm.perform("late 256 %d %d %d %d".formatted(depth, seconds, PER_SECOND, hold));
        watch.read(numbers, Parts.value(numbers, "messages"));
        return sound(numbers, depth);
      }
    }
  }

  /** Where the backlog was nearly gone for a moment, it has not measured what it is for. */
  static Numbers sound(Numbers numbers, int depth) throws IOException {
    if (Parts.value(numbers, "backlog_least") < depth / 2.0) {
      throw new IOException("the backlog did not last: " + numbers);
    }
    return numbers;
  }

  @Override
  public void figures(Results results, Map<String, Figure> figures) {
    results
        .greatest(cell(LONGEST_HOLD_SECONDS, DEPTH), Roster.OURS.label(), "age_after_commit_max_ms")
        .ifPresent(value -> figures.put("late_commit_worst_age_ms", value));
  }
}
