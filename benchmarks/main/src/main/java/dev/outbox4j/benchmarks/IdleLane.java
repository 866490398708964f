package dev.outbox4j.benchmarks;

import dev.outbox4j.benchmarks.spi.Numbers;
import java.io.IOException;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * One message at a time to a subscriber with nothing to do, from the call of commit to the start of
 * the handler. Who listens polls every 10 s only, so that no poll makes up for a notification that
 * is not sent.
 */
final class IdleLane implements Lane {
  /** With pauses, too: whoever is busy polls, and notifications would be left cold. */
  private static final String WARM_UP = "idle 256 0 1500 14 18 0 0";

  private static final String IDLE = "idle latency, one message every 20 to 60 ms";
  private static final String POLLING = "idle latency by polling, one message every 150 to 400 ms";
  private static final String WAKE = "wake-up, 150 to 250 ms after a burst";
  private static final String AROUND = "falling asleep, 0 to 250 ms after a burst";

  private static final int SUBSCRIBERS = 12;

  /** The first messages of a process that are not recorded. */
  private static final int UNRECORDED = 20;

  /** With claims of two rows this makes a subscriber take back that it sleeps. */
  private static final int BURST = 20;

  static final Entrant WOKEN = bursts(by("r2dbc"));

  /** Shows that the lane would notice: nobody is told, so messages wait for the poll. */
  private static final Entrant CONTROL =
      bursts(by("r2dbc")).called("outbox4j NEVER, as a control").with("notify", "NEVER");

  @Override
  public String name() {
    return "idle";
  }

  static Entrant by(String listen) {
    return Roster.OURS
        .called("outbox4j by " + listen)
        .with("listen", listen)
        .with("minPollMillis", "10000")
        .with("pollMillis", "10000");
  }

  private static Entrant bursts(Entrant entrant) {
    return entrant
        .called(entrant.label() + ", claims of 2")
        .with("batchSize", "2")
        .with("heap", "128m");
  }

  @Override
  public void run(Run run) throws SQLException {
    int messages = Settings.number("messages", 500);
    int around = Settings.number("around", Settings.given("messages") ? messages : 25_000);
    // none of all the rounds together may wait for the poll
    int aroundEachTime = ceilDiv(around, Settings.rounds() * SUBSCRIBERS);
    List<Entrant> entrants =
        Roster.asked(List.of(Roster.NOTIFY, by("r2dbc"), by("ng"), by("pgjdbc")));
    Entrant polling =
        Roster.OURS
            .called("outbox4j polling, at most 100 ms")
            .with("listen", "none")
            .with("pollMillis", "100");
    for (int round = 0; round < Settings.rounds() && !run.over(); round++) {
      run.turn(
          IDLE, round, entrants, (entrant, database) -> oneByOne(run, entrant, database, messages));
      run.turn(
          POLLING,
          round,
          Roster.asked(List.of(polling)),
          (entrant, database) ->
              idle(run, entrant, database, Math.max(1, messages / 5), "150 400 0 0"));
      run.turn(
          WAKE,
          round,
          Roster.asked(List.of(WOKEN)),
          (entrant, database) -> afterBursts(run, entrant, database, Math.max(1, messages / 2)));
      run.turn(
          AROUND,
          round,
          Roster.asked(List.of(WOKEN, CONTROL)),
          (entrant, database) ->
              entrant.equals(CONTROL)
                  ? around(run, entrant, database, 0, 3)
                  : around(run, entrant, database, UNRECORDED, aroundEachTime));
    }
  }

  /** Messages with pauses between them, to one that has nothing else to do. */
  static Numbers oneByOne(Run run, Entrant entrant, String database, int messages)
      throws IOException, SQLException {
    return idle(run, entrant, database, messages, "20 60 0 0");
  }

  /** Each a while after many others. */
  static Numbers afterBursts(Run run, Entrant entrant, String database, int messages)
      throws IOException, SQLException {
    return idle(run, entrant, database, messages, "150 250 " + BURST + " 0");
  }

  private static int ceilDiv(int dividend, int divisor) {
    return (dividend + divisor - 1) / divisor;
  }

  private static Numbers idle(
      Run run, Entrant entrant, String database, int messages, String rhythm)
      throws IOException, SQLException {
    try (ContestantJvm jvm = run.start(entrant, database)) {
      jvm.perform("prepare");
      jvm.perform(WARM_UP);
      try (Watch watch = new Watch(run.server(), database)) {
        Numbers numbers = jvm.perform("idle 256 %d %d %s".formatted(UNRECORDED, messages, rhythm));
        return watch.read(numbers, Parts.value(numbers, "messages"));
      }
    }
  }

  /**
   * Some subscribers at a time, each with a queue and a process of its own. A subscriber says that
   * it sleeps some 20 ms after the burst, and polls shortly until some 100 ms after it at least.
   * Every second message's transaction is held open for up to 30 ms, one in twenty for up to 300:
   * it may publish before the former and commit long after the latter. Were they more, subscribers
   * would not get to sleep at all, since each minds the transactions of all.
   */
  private static Numbers around(
      Run run, Entrant entrant, String database, int unrecorded, int recorded)
      throws IOException, SQLException {
    String task = "idle 256 %d %d 0 250 %d 30".formatted(unrecorded, recorded, BURST);
    List<ContestantJvm> jvms = new ArrayList<>();
    try {
      for (int i = 0; i < SUBSCRIBERS; i++) {
        jvms.add(run.start(entrant.with("queue", "bench" + i), database));
      }
      jvms.get(0).perform("prepare");
      try (Watch watch = new Watch(run.server(), database)) {
        jvms.forEach(jvm -> jvm.send(task));
        List<Numbers> parts = new ArrayList<>();
        for (ContestantJvm jvm : jvms) {
          parts.add(jvm.receive(task));
        }
        Numbers together =
            Parts.costs(parts)
                .with("rate", Parts.sum(parts, "rate"))
                .with("missing", Parts.sum(parts, "missing"));
        for (String percentile : List.of("p50", "p95", "p99", "max")) {
          String metric = "latency_" + percentile + "_ms";
          together.with(metric, Parts.max(parts, metric)); // of whoever fared worst
        }
        return watch.read(together, Parts.sum(parts, "messages"));
      }
    } finally {
      jvms.forEach(ContestantJvm::close);
    }
  }

  @Override
  public void figures(Results results, Map<String, Figure> figures) {
    String notify = Roster.NOTIFY.label();
    for (String listen : List.of("r2dbc", "ng", "pgjdbc")) {
      String suffix = listen.equals("r2dbc") ? "" : "_" + listen;
      results
          .ratio(IDLE, by(listen).label(), IDLE, notify, "latency_p50_ms")
          .ifPresent(value -> figures.put("idle_p50_vs_notify" + suffix, value));
      results
          .median(IDLE, by(listen).label(), "latency_p50_ms")
          .ifPresent(value -> figures.put("idle_p50_ms" + suffix, value));
      results
          .median(IDLE, by(listen).label(), "latency_p99_ms")
          .ifPresent(value -> figures.put("idle_p99_ms" + suffix, value));
    }
    results
        .median(WAKE, WOKEN.label(), "latency_p99_ms")
        .ifPresent(value -> figures.put("wake_p99_ms", value));
    results
        .greatest(AROUND, WOKEN.label(), "latency_max_ms")
        .ifPresent(value -> figures.put("wake_max_ms", value));
  }
}
