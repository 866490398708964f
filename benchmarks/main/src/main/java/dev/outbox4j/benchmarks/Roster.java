package dev.outbox4j.benchmarks;

import java.util.List;
import java.util.Map;

/** Who takes part. */
final class Roster {
  static final Entrant TWIN = Entrant.raw("raw-lease-twin");
  static final Entrant BARE_DELETE = Entrant.raw("raw-bare-delete");
  static final Entrant NOTIFY = Entrant.raw("raw-notify");
  static final Entrant INSERT = Entrant.raw("raw-insert");

  /** Everything as it comes. */
  static final Entrant OURS = Entrant.ours();

  /** As it comes, beside the tables of all optional features, of which it uses none. */
  static final Entrant BESIDE_UNUSED_TABLES =
      Entrant.ours().called("outbox4j beside unused tables").with("features", "1");

  /** As it comes, with little memory. */
  static final Entrant SMALL_HEAP =
      Entrant.ours().called("outbox4j-heap-128m").with("heap", "128m");

  /** Of these the fastest counts. */
  static final List<Entrant> BEST_RAW =
      List.of(best("2000", "1"), best("5000", "1"), best("2000", "2"));

  static final List<Entrant> SHAPES =
      List.of(
          Entrant.raw("raw-indexed-lease"),
          Entrant.raw("raw-indexed-lease-by-branches"),
          Entrant.raw("raw-visibility-time"));

  /** What figures are drawn of, beside the best by hand and the best peer. */
  private static final List<Entrant> FIGURES = List.of(TWIN, OURS);

  /**
   * With settings that follow what each says of many messages; the fastest by far with the threads
   * and limits of its own measurements. Of these the fastest counts.
   */
  static final List<Entrant> PEERS =
      List.of(
          dbScheduler("lock-and-fetch", "20", "4.0", "20.0"),
          dbScheduler("lock-and-fetch", "50", "0.5", "4.0"),
          dbScheduler("lock-and-fetch", "100", "2.0", "6.0"),
          dbScheduler("fetch", "100", "2.0", "6.0"),
          Entrant.peer("peers", "transaction-outbox")
              .with("threads", "16")
              .with("queued", "16384")
              .with("flushMillis", "5"),
          Entrant.peer("peers", "jobrunr").with("threads", "16").with("pollMillis", "5000"),
          Entrant.peer("peers-spring", "namastack-outbox")
              .with("threads", "16")
              .with("batchSize", "1000")
              .with("pollMillis", "50"),
          Entrant.peer("peers-spring", "spring-modulith")
              .with("threads", "16")
              .with("batchSize", "1000")
              .with("maxInFlight", "2000")
              .with("pollMillis", "10"),
          Entrant.peer("peers-dbos", "dbos-transact")
              .with("threads", "200")
              .with("connections", "20")
              .with("pollMillis", "20"));

  /** Timers, everything as it comes. */
  static final Entrant TIMERS = new Entrant("outbox4j-timers", "main", "outbox4j-timers", Map.of());

  /** With as many threads as others have. */
  static final Entrant TIMERS_OF_20_WORKERS =
      TIMERS.called("outbox4j-timers, 20 workers").with("workers", "20");

  /** Publishes the messages of runs, and handles none. */
  static final Entrant TICKS =
      TIMERS.called("outbox4j-timers, ticks alone").with("handled", "false");

  /**
   * Schedulers beside our timers. One that polls does so every 10 ms, so that its lateness is not
   * just the interval.
   */
  static final List<Entrant> TIMER_PEERS =
      List.of(
          recurring("lock-and-fetch", "4.0", "20.0"),
          recurring("fetch", "0.5", "3.0"),
          Entrant.peer("peers", "quartz").with("threads", "50").with("batch", "50"));

  /** A table poller, by a sequence. */
  static final Entrant POLLERS =
      new Entrant("outbox4j-pollers", "main", "outbox4j-pollers", Map.of());

  /** By what else a cursor is kept. */
  static final List<Entrant> OTHER_POLLERS =
      List.of(
          POLLERS.called("outbox4j-pollers, by time").with("cursor", "time"),
          POLLERS.called("outbox4j-pollers, by transaction id").with("cursor", "transaction"));

  /** Puts dead letters back, with a pool. */
  static final Entrant REDRIVE =
      new Entrant("outbox4j-redrive", "main", "outbox4j-redrive", Map.of());

  /** With a new connection each time that it needs one. */
  static final Entrant REDRIVE_WITHOUT_POOL =
      REDRIVE.called("outbox4j-redrive, no pool").with("pool", "0");

  private Roster() {}

  private static Entrant best(String rows, String pairs) {
    return Entrant.raw("raw-best")
        .called("raw-best, claims of %s, %s at a time".formatted(rows, pairs))
        .with("claim", rows)
        .with("pairs", pairs);
  }

  private static Entrant dbScheduler(String way, String threads, String lower, String upper) {
    return Entrant.peer("peers", "db-scheduler-" + way)
        .called("db-scheduler-%s, %s threads".formatted(way, threads))
        .with("threads", threads)
        .with("lowerLimit", lower)
        .with("upperLimit", upper)
        .with("pollMillis", "100");
  }

  private static Entrant recurring(String way, String lower, String upper) {
    return Entrant.peer("peers", "db-scheduler-recurring")
        .called("db-scheduler-recurring, " + way)
        .with("polling", way)
        .with("threads", "20")
        .with("lowerLimit", lower)
        .with("upperLimit", upper)
        .with("pollMillis", "10");
  }

  /** Keeps those that the property {@code contestants} names, by any part of their labels. */
  static List<Entrant> asked(List<Entrant> all) {
    if (!Settings.given("contestants")) {
      return all;
    }
    List<String> parts = Settings.list("contestants", "");
    return all.stream()
        .filter(entrant -> parts.stream().anyMatch(part -> entrant.label().contains(part)))
        .toList();
  }

  /** In which rounds of a drain it is measured. */
  static Rounds rounds(Entrant entrant) {
    if (FIGURES.contains(entrant) || BEST_RAW.contains(entrant)) {
      return Rounds.ALL;
    }
    return Rounds.FIRST;
  }

  static boolean isPeer(Entrant entrant) {
    return !entrant.module().equals("main") && !entrant.module().equals(ClassPath.BASELINE);
  }

  /** Whether it may be stopped at its time limit: it is here for its rate alone. */
  static boolean mayBeStopped(Entrant entrant) {
    return isPeer(entrant) || SHAPES.contains(entrant);
  }
}
