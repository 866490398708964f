package dev.outbox4j.benchmarks;

import dev.outbox4j.benchmarks.DrainLane.Drain;
import java.sql.SQLException;
import java.util.List;
import java.util.Map;

/** Ordered queues beside rows that are leased one by one: without keys, with many and with one. */
final class OrderedLane implements Lane {
  private static final Entrant UNORDERED = Roster.OURS;
  private static final Entrant NO_KEYS = ordered("no keys", "0");
  private static final Entrant KEYS = ordered("1,000 keys", "1000");
  private static final Entrant BLOCKED =
      ordered("1,000 keys and a blocked one", "1000").with("blocked", "100000");
  private static final Entrant ONE_KEY = ordered("one key", "1");

  private static Entrant ordered(String what, String keys) {
    return Entrant.ours()
        .called("outbox4j-ordered, " + what)
        .with("ordered", "1")
        .with("keys", keys);
  }

  private static String cell(int rows, int processes) {
    return "ordered %d x 256 B, %d process%s"
        .formatted(rows, processes, processes == 1 ? "" : "es");
  }

  @Override
  public String name() {
    return "ordered";
  }

  @Override
  public void run(Run run) throws SQLException {
    int rows = Settings.numbers("rows", "1m").get(0);
    for (int round = 0; round < Settings.rounds() && !run.over(); round++) {
      for (int processes : Settings.numbers("processes", "1,2,4")) {
        List<Entrant> entrants =
            switch (processes) {
              case 1 -> List.of(UNORDERED, NO_KEYS, KEYS, BLOCKED);
              case 2 -> List.of(UNORDERED, NO_KEYS, KEYS);
              default -> List.of(KEYS);
            };
        run.turn(
            cell(rows, processes),
            round,
            Roster.asked(entrants),
            (entrant, database) ->
                new Drain(run, entrant, database).measure(rows, 256, processes, false));
      }
      run.turn(
          cell(rows / 10, 1),
          round,
          Roster.asked(List.of(ONE_KEY)),
          (entrant, database) ->
              new Drain(run, entrant, database).measure(rows / 10, 256, 1, false));
    }
  }

  @Override
  public void figures(Results results, Map<String, Figure> figures) {
    String one = cell(1_000_000, 1);
    results
        .ratio(one, KEYS.label(), one, UNORDERED.label(), "rate")
        .ifPresent(value -> figures.put("ordered_vs_unordered", value));
    results
        .ratio(one, NO_KEYS.label(), one, UNORDERED.label(), "rate")
        .ifPresent(value -> figures.put("ordered_no_keys_vs_unordered", value));
    results
        .ratio(one, BLOCKED.label(), one, KEYS.label(), "rate")
        .ifPresent(value -> figures.put("blocked_key_vs_none", value));
    String two = cell(1_000_000, 2);
    results
        .ratio(two, KEYS.label(), one, KEYS.label(), "rate")
        .ifPresent(value -> figures.put("ordered_2_processes_vs_1", value));
    results
        .ratio(cell(1_000_000, 4), KEYS.label(), one, KEYS.label(), "rate")
        .ifPresent(value -> figures.put("ordered_4_processes_vs_1", value));
    results
        .median(one, KEYS.label(), "wal_bytes_per_message")
        .ifPresent(value -> figures.put("ordered_wal_bytes", value));
    results
        .median(cell(100_000, 1), ONE_KEY.label(), "rate")
        .ifPresent(value -> figures.put("hot_key_per_second", value));
  }
}
