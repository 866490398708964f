package dev.outbox4j.benchmarks;

import dev.outbox4j.benchmarks.spi.Numbers;
import java.io.IOException;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * One message at a time to a subscriber with nothing to do, from the call of commit to the start of
 * the handler; by LISTEN source, and by polling. Then messages at random intervals around the
 * moment at which it falls asleep.
 */
final class IdleLane implements Lane {
  private static final String IDLE = "idle latency, one message every 20 to 60 ms";
  private static final String WAKE = "wake-up, one message every 0 to 6 ms, poll 10 s";

  @Override
  public String name() {
    return "idle";
  }

  private static Entrant by(String listen) {
    return Roster.OURS.called("outbox4j by " + listen).with("listen", listen);
  }

  @Override
  public void run(Run run) throws SQLException {
    int messages = Settings.number("messages", 500);
    int around = Settings.number("around", Settings.given("messages") ? messages : 20_000);
    List<Entrant> entrants = new ArrayList<>();
    entrants.add(Roster.NOTIFY);
    entrants.add(by("r2dbc"));
    entrants.add(by("ng"));
    entrants.add(by("pgjdbc"));
    entrants.add(by("none").called("outbox4j polling, at most 100 ms").with("pollMillis", "100"));
    for (int round = 0; round < Settings.rounds() && !run.over(); round++) {
      int current = round;
      run.turn(
          IDLE,
          round,
          Roster.asked(
              entrants.stream()
                  .filter(
                      entrant ->
                          Settings.minor(current)
                              || !entrant.label().matches(".*(pgjdbc|polling).*"))
                  .toList()),
          (entrant, database) -> idle(run, entrant, database, messages, 20, 60));
      run.turn(
          WAKE,
          round,
          Roster.asked(List.of(by("r2dbc"))),
          (entrant, database) -> idle(run, entrant, database, around, 0, 6));
    }
  }

  private static Numbers idle(
      Run run, Entrant entrant, String database, int messages, int minGap, int maxGap)
      throws IOException, SQLException {
    try (ContestantJvm jvm = run.start(entrant, database)) {
      jvm.perform("prepare");
      jvm.perform("idle 256 1500 0 6");
      try (Watch watch = new Watch(run.server(), database)) {
        Numbers numbers = jvm.perform("idle 256 %d %d %d".formatted(messages, minGap, maxGap));
        return watch.read(numbers, messages);
      }
    }
  }

  @Override
  public void figures(Results results, Map<String, Double> figures) {
    results
        .ratio(IDLE, "outbox4j by r2dbc", IDLE, Roster.NOTIFY.label(), "latency_p50_ms")
        .ifPresent(value -> figures.put("idle_p50_vs_notify", value));
    results
        .ratio(IDLE, "outbox4j by ng", IDLE, Roster.NOTIFY.label(), "latency_p50_ms")
        .ifPresent(value -> figures.put("idle_p50_vs_notify_ng", value));
    results
        .median(IDLE, "outbox4j by r2dbc", "latency_p99_ms")
        .ifPresent(value -> figures.put("idle_p99_ms", value));
    results
        .median(IDLE, "outbox4j by ng", "latency_p99_ms")
        .ifPresent(value -> figures.put("idle_p99_ms_ng", value));
    results
        .median(WAKE, "outbox4j by r2dbc", "latency_p99_ms")
        .ifPresent(value -> figures.put("wake_p99_ms", value));
    results
        .median(WAKE, "outbox4j by r2dbc", "latency_max_ms")
        .ifPresent(value -> figures.put("wake_max_ms", value));
  }
}
