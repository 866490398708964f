package dev.outbox4j.benchmarks;

import dev.outbox4j.benchmarks.spi.Numbers;
import java.io.IOException;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

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

  /** So many writers have a figure. */
  private static final int FIGURE = 32;

  /** How the subscribers of the queue are meanwhile. */
  private enum Subscribers {
    NONE,
    /** One in a process of its own works off what is published. */
    AWAKE,
    /** One says so all the time, and a session listens. */
    ASLEEP
  }

  private record Case(Entrant entrant, Subscribers subscribers) {}

  private static final Entrant NEVER = ours("NEVER", "outbox4j NEVER");
  private static final Entrant AUTO = ours("AUTO", "outbox4j AUTO awake");

  @Override
  public String name() {
    return "publish";
  }

  @Override
  public void run(Run run) throws SQLException {
    List<Case> cases = cases();
    for (int round = 0; round < Settings.rounds() && !run.over(); round++) {
      int current = round;
      run.turn(
          BATCH,
          round,
          Roster.asked(List.of(Roster.INSERT, Roster.OURS, NEVER)),
          (entrant, database) ->
              publish(
                  run,
                  new Case(entrant, Subscribers.NONE),
                  database,
                  "1 100 256 %d alone".formatted(Settings.number("seconds", 10))));
      for (int delay : Settings.numbers("commit_delay", Settings.given("url") ? "0" : "0,1000")) {
        for (int writers : Settings.numbers("writers", "1,8,32")) {
          boolean minor = writers < FIGURE;
          if (minor && (delay > 0 || !Settings.minor(round)) && !Settings.given("writers")) {
            continue;
          }
          String cell = WRITERS.formatted(writers, writers == 1 ? "" : "s", delay);
          boolean gates = delay == 0 && !minor && Settings.minor(round);
          List<Entrant> entrants =
              Roster.asked(
                  cases.stream()
                      .map(Case::entrant)
                      .filter(entrant -> gates || !entrant.label().contains("gate"))
                      .toList());
          setCommitDelay(run, delay);
          try {
            run.turn(
                cell,
                current,
                entrants,
                (entrant, database) ->
                    publish(
                        run,
                        caseOf(cases, entrant),
                        database,
                        "%d 1 256 %d business".formatted(writers, seconds(writers, entrant))));
          } finally {
            setCommitDelay(run, 0);
          }
        }
      }
    }
  }

  /** Many writers on few processors are uneven, so what figures are drawn of is given longer. */
  private static int seconds(int writers, Entrant entrant) {
    boolean figure = writers == FIGURE && List.of(NEVER, AUTO).contains(entrant);
    return Settings.number("seconds", figure ? 12 : 4);
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

  private static Case caseOf(List<Case> cases, Entrant entrant) {
    return cases.stream().filter(c -> c.entrant().equals(entrant)).findFirst().orElseThrow();
  }

  private static List<Case> cases() {
    List<Case> cases = new ArrayList<>();
    cases.add(new Case(NEVER, Subscribers.AWAKE));
    cases.add(new Case(AUTO, Subscribers.AWAKE));
    cases.add(new Case(ours("AUTO", "outbox4j AUTO asleep"), Subscribers.ASLEEP));
    cases.add(new Case(ours("ALWAYS", "outbox4j ALWAYS"), Subscribers.AWAKE));
    cases.add(new Case(gate("never", "raw-insert"), Subscribers.AWAKE));
    cases.add(new Case(gate("advisory", "raw-insert, advisory gate awake"), Subscribers.AWAKE));
    cases.add(new Case(gate("sleepers", "raw-insert, sleepers gate awake"), Subscribers.AWAKE));
    cases.add(new Case(gate("advisory", "raw-insert, advisory gate asleep"), Subscribers.ASLEEP));
    cases.add(new Case(gate("sleepers", "raw-insert, sleepers gate asleep"), Subscribers.ASLEEP));
    cases.add(new Case(gate("always", "raw-insert, always"), Subscribers.AWAKE));
    return cases;
  }

  private static Entrant ours(String mode, String label) {
    return Roster.OURS.called(label).with("notify", mode);
  }

  private static Entrant gate(String gate, String label) {
    return Roster.INSERT.called(label).with("gate", gate);
  }

  private static Numbers publish(Run run, Case what, String database, String how)
      throws IOException, SQLException {
    try (ContestantJvm jvm = run.start(what.entrant(), database);
        Connection sleeper = run.server().connect(database);
        Statement statement = sleeper.createStatement()) {
      jvm.perform("prepare");
      statement.execute("listen outbox_outbox");
      if (what.subscribers() == Subscribers.ASLEEP) {
        statement.execute(
            "insert into outbox_sleepers values ('bench', 'sleeper', now() + interval '1 day')");
        statement.execute("select pg_advisory_lock(7, hashtext('bench'))");
      }
      statement.execute("vacuum analyze outbox_sleepers");
      String task = "publish " + how;
      try (Watch watch = new Watch(run.server(), database)) {
        Numbers numbers =
            what.subscribers() == Subscribers.AWAKE
                ? whileConsuming(run, database, jvm, task)
                : jvm.perform(task);
        return watch.read(numbers, numbers.values().getOrDefault("messages_with_warm_up", 1.0));
      }
    }
  }

  private static Numbers whileConsuming(
      Run run, String database, ContestantJvm publisher, String task) throws IOException {
    try (ContestantJvm subscriber = run.start(Roster.OURS, database)) {
      subscriber.perform("consume");
      Numbers numbers = publisher.perform(task);
      subscriber.perform("rest");
      return numbers;
    }
  }

  @Override
  public void figures(Results results, Map<String, Double> figures) {
    results
        .ratio(BATCH, Roster.OURS.label(), BATCH, Roster.INSERT.label(), "rate")
        .ifPresent(value -> figures.put("publish_100_vs_insert", value));
    for (int delay : List.of(0, 1000)) {
      String cell = WRITERS.formatted(FIGURE, "s", delay);
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
