package dev.outbox4j.examples.chaos;

import dev.outbox4j.examples.chaos.Fault.Disturbance;
import dev.outbox4j.examples.chaos.FaultyProxy.Way;
import dev.outbox4j.examples.chaos.FaultyProxy.Weather;
import java.io.IOException;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.Random;
import javax.sql.DataSource;

/** Does a fault, heals it, and measures how long the fleet takes to be well again. */
final class FaultRunner {
  /** Whose rows show that they are handled elsewhere: the others wait, fail or hang. */
  private static final String PROMPT_KINDS = "('NORMAL', 'SLOW')";

  private final Setup setup;
  private final DataSource direct;
  private final Fleet fleet;
  private final Ledger ledger;
  private final Watch watch;
  private final Report report;
  private final Random random;

  FaultRunner(Setup setup, Fleet fleet, Ledger ledger, Watch watch, Report report, Random random) {
    this.setup = setup;
    this.direct = setup.server().direct();
    this.fleet = fleet;
    this.ledger = ledger;
    this.watch = watch;
    this.report = report;
    this.random = random;
  }

  /** What faults are done to. */
  record Setup(
      Server server,
      FaultyProxy network,
      FaultyProxy listenNetwork,
      Duration lease,
      Duration deadLetterOutage,
      int rate) {}

  void run(Fault fault) throws IOException, InterruptedException, SQLException {
    long begun = System.nanoTime();
    double recovery =
        fault.network().isPresent()
            ? disturb(setup.network(), fault.network().get())
            : runOther(fault);
    report.fault(fault, recovery, (System.nanoTime() - begun) / 1e9);
  }

  private double runOther(Fault fault) throws IOException, InterruptedException, SQLException {
    return switch (fault) {
      case KILL_SUBSCRIBER -> killSubscriber();
      case KILL_PUBLISHER -> killPublisher();
      case FREEZE_SUBSCRIBER -> freezeSubscriber();
      case ROLLING_RESTART -> rollingRestart();
      case DEAD_POOL -> deadPool();
      case TERMINATE_CONNECTIONS -> terminateConnections();
      case CRASH_SERVER -> crashServer();
      case CUT_LISTEN -> disturb(setup.listenNetwork(), new Disturbance(Weather.CUT, Way.BOTH, 4));
      case BLACK_HOLE_LISTEN ->
          disturb(setup.listenNetwork(), new Disturbance(Weather.BLACK_HOLE, Way.BOTH, 8));
      case DROP_DEAD_LETTERS ->
          schema(
              "alter table outbox_dlq rename to outbox_dlq_away",
              "alter table outbox_dlq_away rename to outbox_dlq");
      case ALTER_DEAD_LETTERS ->
          schema(
              "alter table outbox_dlq rename column failure_reason to why",
              "alter table outbox_dlq rename column why to failure_reason");
      case BROKEN_DEAD_LETTERS ->
          new DeadLetterOutage(direct, fleet, ledger, watch, report, setup.rate())
              .last(setup.deadLetterOutage());
      case DROP_COLUMN ->
          schema(
              "alter table outbox rename column lease_until to lease_away",
              "alter table outbox rename column lease_away to lease_until");
      default -> throw new AssertionError(fault);
    };
  }

  private double killSubscriber() throws IOException, InterruptedException, SQLException {
    int slot = random.nextInt(fleet.size());
    String victim = fleet.subscriber(slot).name();
    String held = "leased_by like '" + victim + "/%'";
    ledger.killed(victim);
    List<String> rows = freezeWithRows(fleet.subscriber(slot), held);
    fleet.subscriber(slot).kill();
    long killed = System.nanoTime();
    double recovery =
        watch.until(
            () ->
                Database.number(
                        direct,
                        "select count(*) from outbox where "
                            + held
                            + " or id = any(?::bigint[]) and type in "
                            + PROMPT_KINDS,
                        "{" + String.join(",", rows) + "}")
                    == 0,
            "the rows of " + victim + " to be handled elsewhere",
            killed);
    report.recoveryAfterKill(recovery);
    fleet.startSubscriber(slot);
    return recovery;
  }

  /** Stops a process at a moment at which it holds rows, if there is one soon. */
  private List<String> freezeWithRows(Worker victim, String held)
      throws IOException, InterruptedException, SQLException {
    for (int tries = 1; true; tries++) {
      victim.signal("STOP");
      List<String> rows = Database.texts(direct, "select id::text from outbox where " + held);
      if (!rows.isEmpty() || tries == 100) {
        return rows;
      }
      victim.signal("CONT");
      Watch.pause(Duration.ofMillis(20));
    }
  }

  private double killPublisher() throws IOException, InterruptedException {
    int slot = random.nextInt(fleet.publisherCount());
    fleet.publisher(slot).kill();
    fleet.startPublisher(slot);
    return watch.untilHandled();
  }

  private double freezeSubscriber() throws IOException, InterruptedException {
    Worker victim = fleet.subscriber(random.nextInt(fleet.size()));
    victim.signal("STOP");
    Watch.pause(setup.lease().plusSeconds(2));
    victim.signal("CONT");
    return watch.untilHandled();
  }

  private double rollingRestart() throws IOException, InterruptedException, SQLException {
    String begun = watch.now();
    for (int slot = 0; slot < fleet.size(); slot++) {
      String name = fleet.subscriber(slot).name();
      fleet.stopSubscriber(slot);
      long left =
          Database.number(
              direct, "select count(*) from outbox where leased_by like '" + name + "/%'");
      if (left > 0) {
        report.breach(name + " left " + left + " rows under its lease after a graceful stop");
      }
      fleet.startSubscriber(slot);
    }
    double recovery = watch.untilHandled();
    long twice = ledger.handledTwiceSince(begun);
    if (twice > 0) {
      report.breach(twice + " messages were handled twice in a rolling restart");
    }
    return recovery;
  }

  private double deadPool() throws IOException {
    fleet.orderSubscribers(Orders.DEAD_POOL);
    Watch.pause(Duration.ofSeconds(4));
    fleet.orderSubscribers(Orders.SOUND_POOL);
    return watch.untilHandled();
  }

  private double terminateConnections() throws SQLException {
    for (int i = 0; i < 5; i++) {
      Database.number(
          direct,
          """
          select count(pg_terminate_backend(pid)) from (
            select pid from pg_stat_activity
            where application_name ~ '^s[0-9][.]|^publisher-|^outbox4j-listen'
            order by random() limit 4) x""");
      Watch.pause(Duration.ofSeconds(1));
    }
    return watch.untilHandled();
  }

  private double crashServer() throws IOException, InterruptedException {
    setup.server().crash();
    Watch.pause(Duration.ofSeconds(random.nextInt(3)));
    setup.server().startAgain();
    double recovery = watch.untilHandled();
    report.recoveryAfterServer(recovery);
    return recovery;
  }

  private double disturb(FaultyProxy where, Disturbance how) {
    where.turn(how.weather(), how.way());
    Watch.pause(Duration.ofSeconds(how.seconds()));
    where.turn(Weather.FINE, Way.BOTH);
    return watch.untilHandled();
  }

  private double schema(String breaks, String mends) throws SQLException {
    Database.update(direct, breaks);
    try {
      Watch.pause(Duration.ofSeconds(4));
    } finally {
      Database.update(direct, mends);
    }
    return watch.untilHandled();
  }
}
