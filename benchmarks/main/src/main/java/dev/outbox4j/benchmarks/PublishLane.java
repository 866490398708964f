package dev.outbox4j.benchmarks;

import dev.outbox4j.benchmarks.ours.Outbox4j;
import dev.outbox4j.benchmarks.spi.Numbers;
import java.io.IOException;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/**
 * Publishing alone: one writer in batches of 100 against the bare insert, and concurrent business
 * transactions, of an order and a message each, with every notify mode. {@code -Dcommit_delay=1000}
 * imitates a slower disk; both are measured by default, but only without on a server of one's own,
 * whose settings are not changed.
 */
final class PublishLane implements Lane {
  private static final String BATCH = "publish batches of 100, 1 writer";
  private static final String WRITERS =
      "publish business transactions, %d writer%s, commit_delay %d";

  private static final String ALTERNATING =
      "publish business transactions, 32 writers, alternating every half second, commit_delay %d";

  private static final String BESIDE_EIGHT =
      "publish business transactions, 32 writers, alternating every half second, 8 subscribers";

  private static final int MOST_WRITERS = 32;

  private static final Entrant NEVER = ours("NEVER", "outbox4j NEVER");
  private static final Entrant AUTO = ours("AUTO", "outbox4j AUTO awake");

  /** While a subscriber in a process of its own works off what is published. */
  private static final List<Entrant> AWAKE =
      List.of(
          NEVER,
          AUTO,
          ours("ALWAYS", "outbox4j ALWAYS"),
          gate("never", "raw-insert"),
          gate("always", "raw-insert, always"),
          gate("advisory", "raw-insert, advisory gate awake"),
          gate("sleepers", "raw-insert, sleepers gate awake"));

  /** While one says that it sleeps all the time, and a session listens. */
  private static final List<Entrant> ASLEEP =
      List.of(
          ours("AUTO", "outbox4j AUTO asleep"),
          gate("advisory", "raw-insert, advisory gate asleep"),
          gate("sleepers", "raw-insert, sleepers gate asleep"));

  private static Entrant ours(String mode, String label) {
    return Roster.OURS.called(label).with("notify", mode);
  }

  private static Entrant gate(String gate, String label) {
    return Roster.INSERT.called(label).with("gate", gate);
  }

  @Override
  public String name() {
    return "publish";
  }

  @Override
  public void run(Run run) throws SQLException {
    for (int round = 0; round < Settings.rounds() && !run.over(); round++) {
      run.turn(
          BATCH,
          round,
          Roster.asked(List.of(Roster.INSERT, Roster.OURS, NEVER)),
          (entrant, database) -> batches(run, entrant, database));
      for (int delay : Settings.numbers("commit_delay", Settings.given("url") ? "0" : "0,1000")) {
        setCommitDelay(run, delay);
        try {
          alternating(run, round, ALTERNATING.formatted(delay), 1);
          if (delay == 0) {
            alternating(run, round, BESIDE_EIGHT, 8);
          }
          for (int writers : Settings.numbers("writers", "1,8,32")) {
            if (asked(round, delay, writers)) {
              concurrent(run, round, writers, delay);
            }
          }
        } finally {
          setCommitDelay(run, 0);
        }
      }
    }
  }

  private static boolean asked(int round, int delay, int writers) {
    return Settings.given("writers")
        || (Rounds.FIRST.include(round) && (delay == 0 || writers == MOST_WRITERS));
  }

  /** Two publishers beside subscribers in one process, by turns of half a second. */
  private static void alternating(Run run, int round, String cell, int subscribers)
      throws SQLException {
    List<Entrant> pair = Roster.asked(List.of(NEVER, AUTO));
    if (pair.size() < 2 || !Settings.numbers("writers", "32").contains(MOST_WRITERS)) {
      return;
    }
    run.session(
        cell,
        round,
        database ->
            run.atOnce(
                cell,
                round,
                pair,
                database,
                (entrants, same) -> both(run, entrants, same, subscribers)));
  }

  private static List<Numbers> both(
      Run run, List<Entrant> entrants, String database, int subscribers)
      throws IOException, SQLException {
    int seconds = Settings.number("seconds", 24);
    try (ContestantJvm subscriber = run.start(Roster.OURS, database);
        ContestantJvm one = run.start(entrants.get(0), database);
        ContestantJvm other = run.start(entrants.get(1), database)) {
      subscriber.perform("prepare");
      subscriber.perform("consume " + subscribers);
      String task = "publish %d 1 256 5 %d business ".formatted(MOST_WRITERS, seconds);
      one.send(task + "one");
      other.send(task + "other");
      List<Numbers> numbers = List.of(one.receive(task), other.receive(task));
      requireAwake(subscriber.perform("rest"), numbers);
      return numbers;
    }
  }

  /** It must have kept up: one that slept or failed would have left the machine to the others. */
  private static void requireAwake(Numbers subscriber, List<Numbers> publishers)
      throws IOException {
    double handled = subscriber.values().getOrDefault("handled", 0.0);
    double published =
        publishers.stream()
            .mapToDouble(numbers -> numbers.values().getOrDefault("messages_with_warm_up", 0.0))
            .sum();
    if (handled < 0.9 * published) {
      throw new IOException(
          "the subscriber handled only %.0f of %.0f messages".formatted(handled, published));
    }
  }

  private static void concurrent(Run run, int round, int writers, int delay) throws SQLException {
    String cell = WRITERS.formatted(writers, writers == 1 ? "" : "s", delay);
    boolean raw = writers == MOST_WRITERS;
    int seconds = Settings.number("seconds", 4);
    run.session(
        cell,
        round,
        database -> {
          try (ContestantJvm subscriber = run.start(Roster.OURS, database);
              Publishers publishers = new Publishers(run, database)) {
            subscriber.perform("prepare");
            subscriber.perform("consume");
            // one that does not notify leaves a subscriber asleep for as long as 10 s at first, and
            // has the machine to itself meanwhile: after the turn that does not count it is awake
            run.turnInSession(
                cell,
                round,
                entrants(AWAKE, raw),
                database,
                (entrant, same) ->
                    business(run, publishers.of(entrant), same, writers, 1, seconds));
            subscriber.perform("rest");
          }
        });
    run.turn(
        cell,
        round,
        entrants(ASLEEP, raw),
        (entrant, database) -> asleep(run, entrant, database, writers, seconds));
  }

  private static List<Entrant> entrants(List<Entrant> all, boolean raw) {
    Stream<Entrant> some =
        all.stream().filter(entrant -> raw || !entrant.label().startsWith("raw"));
    return Roster.asked(some.toList());
  }

  private static void setCommitDelay(Run run, int micros) throws SQLException {
    if (!Settings.given("url")) {
      run.server().execute("postgres", "alter system set commit_delay = " + micros);
      // a delay that waits for five others would not be a slow disk's
      run.server()
          .execute("postgres", "alter system set commit_siblings = " + (micros == 0 ? 5 : 0));
      run.server().execute("postgres", "select pg_reload_conf()");
    }
  }

  private static Numbers batches(Run run, Entrant entrant, String database)
      throws IOException, SQLException {
    try (ContestantJvm jvm = run.start(entrant, database)) {
      jvm.perform("prepare");
      return publish(
          run,
          jvm,
          database,
          "1 100 256 3 %d alone throughout".formatted(Settings.number("seconds", 10)));
    }
  }

  private static Numbers asleep(Run run, Entrant entrant, String database, int writers, int seconds)
      throws IOException, SQLException {
    try (ContestantJvm jvm = run.start(entrant, database);
        Connection sleeper = run.server().connect(database);
        Statement statement = sleeper.createStatement()) {
      jvm.perform("prepare");
      statement.execute("listen " + Outbox4j.CHANNEL);
      statement.execute(Outbox4j.FALL_ASLEEP_FOR_A_DAY);
      statement.execute("select pg_advisory_lock(7, hashtext('bench'))");
      return business(run, jvm, database, writers, 5, seconds);
    }
  }

  private static Numbers business(
      Run run, ContestantJvm jvm, String database, int writers, int warmUp, int seconds)
      throws IOException, SQLException {
    return publish(
        run,
        jvm,
        database,
        "%d 1 256 %d %d business throughout".formatted(writers, warmUp, seconds));
  }

  private static Numbers publish(Run run, ContestantJvm jvm, String database, String how)
      throws IOException, SQLException {
    try (Watch watch = new Watch(run.server(), database, Outbox4j.CHANNEL)) {
      Numbers numbers = jvm.perform("publish " + how);
      return watch.read(numbers, numbers.values().getOrDefault("messages_with_warm_up", 1.0));
    }
  }

  /** The processes of those who publish on one database. */
  private static final class Publishers implements AutoCloseable {
    private final Run run;
    private final String database;
    private final Map<Entrant, ContestantJvm> processes = new HashMap<>();

    Publishers(Run run, String database) {
      this.run = run;
      this.database = database;
    }

    ContestantJvm of(Entrant entrant) throws IOException {
      ContestantJvm process = processes.get(entrant);
      if (process == null) {
        process = run.start(entrant, database);
        processes.put(entrant, process);
      }
      return process;
    }

    @Override
    public void close() {
      processes.values().forEach(ContestantJvm::close);
    }
  }

  @Override
  public void figures(Results results, Map<String, Figure> figures) {
    results
        .ratio(BATCH, Roster.OURS.label(), BATCH, Roster.INSERT.label(), "rate")
        .ifPresent(value -> figures.put("publish_100_vs_insert", value));
    results
        .ratio(BESIDE_EIGHT, AUTO.label(), BESIDE_EIGHT, NEVER.label(), "rate")
        .ifPresent(value -> figures.put("auto_vs_never_8_subscribers", value));
    for (int delay : List.of(0, 1000)) {
      String cell = ALTERNATING.formatted(delay);
      results
          .ratio(cell, AUTO.label(), cell, NEVER.label(), "rate")
          .ifPresent(
              value ->
                  figures.put(
                      "auto_vs_never_32_writers" + (delay == 0 ? "" : "_commit_delay_1000"),
                      value));
    }
  }
}
