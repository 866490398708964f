package dev.outbox4j.benchmarks;

import java.util.List;

/** Who takes part. */
final class Roster {
  static final Entrant TWIN = Entrant.raw("raw-lease-twin");
  static final Entrant BARE_DELETE = Entrant.raw("raw-bare-delete");
  static final Entrant NOTIFY = Entrant.raw("raw-notify");
  static final Entrant INSERT = Entrant.raw("raw-insert");

  /** Everything as it comes. */
  static final Entrant OURS = Entrant.ours();

  /** With settings for throughput. */
  static final Entrant TUNED =
      Entrant.ours().called("outbox4j-tuned").with("batchSize", "1000").with("workers", "4");

  /** As it comes, with little memory. */
  static final Entrant SMALL_HEAP =
      Entrant.ours().called("outbox4j-heap-128m").with("heap", "128m");

  static final List<Entrant> SHAPES =
      List.of(Entrant.raw("raw-indexed-lease"), Entrant.raw("raw-visibility-time"));

  /** The fastest of the peers by far. */
  private static final Entrant BEST_PEER = Entrant.peer("peers", "db-scheduler-lock-and-fetch");

  /** What figures are drawn of. */
  private static final List<Entrant> FIGURES = List.of(TWIN, OURS, TUNED, BEST_PEER);

  static final List<Entrant> PEERS =
      List.of(
          BEST_PEER,
          Entrant.peer("peers", "db-scheduler-fetch"),
          Entrant.peer("peers", "transaction-outbox"),
          Entrant.peer("peers", "jobrunr"),
          Entrant.peer("peers-spring", "namastack-outbox"),
          Entrant.peer("peers-spring", "spring-modulith"),
          Entrant.peer("peers-dbos", "dbos-transact"));

  private Roster() {}

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

  /** Whether it is measured in a round: in each if a figure is drawn of it. */
  static boolean takesPart(Entrant entrant, int round) {
    return FIGURES.contains(entrant) || Settings.minor(round);
  }

  static boolean isPeer(Entrant entrant) {
    return !entrant.module().equals("main");
  }

  /** Whether it may be stopped at its time limit: it is here for its rate alone. */
  static boolean mayBeStopped(Entrant entrant) {
    return isPeer(entrant) || SHAPES.contains(entrant);
  }
}
