package dev.outbox4j.examples.chaos;

import dev.outbox4j.examples.chaos.Fault.Disturbance;
import dev.outbox4j.examples.chaos.Fault.Hits;
import dev.outbox4j.examples.chaos.FaultyProxy.Way;
import dev.outbox4j.examples.chaos.FaultyProxy.Weather;
import dev.outbox4j.examples.chaos.Watch.Since;
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

  private static final Duration TIME_TO_HOLD_ROWS = Duration.ofSeconds(20);

  private final Setup setup;
  private final DataSource direct;
  private final Fleet fleet;
  private final Ledger ledger;
  private final LedgerSchema schema;
  private final Watch watch;
  private final Report report;
  private final Random random;

  FaultRunner(Setup setup, Fleet fleet, Ledger ledger, Watch watch, Report report, Random random) {
    this.setup = setup;
    this.direct = setup.server().direct();
    this.fleet = fleet;
    this.ledger = ledger;
    this.schema = setup.schema();
    this.watch = watch;
    this.report = report;
    this.random = random;
  }

  /** What faults are done to. */
  record Setup(
      Server server,
      FaultyProxy network,
      FaultyProxy listenNetwork,
      LedgerSchema schema,
      Duration lease,
      Duration deadLetterOutage,
      int rate) {}

  /** How something is broken or mended. */
  private interface Step {
    void take() throws SQLException;
  }

  void run(Fault fault) throws IOException, InterruptedException, SQLException {
    long begun = System.nanoTime();
    String from = watch.now();
    Recovery recovery =
        fault.network().isPresent()
            ? disturb(setup.network(), fault.network().get())
            : runOther(fault);
    if (fault.hits() == Hits.ALL) {
      ledger.hit(fault.label(), null, from, watch.now());
    }
    report.fault(fault, recovery, (System.nanoTime() - begun) / 1e9);
  }

  private Recovery runOther(Fault fault) throws IOException, InterruptedException, SQLException {
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
      case DROP_DEAD_LETTERS -> breakSchema(schema::dropDeadLetters, schema::createDeadLetters);
      case ALTER_DEAD_LETTERS ->
          breakSchema(
              () -> Database.update(direct, "alter table outbox_dlq drop column last_exception"),
              () ->
                  Database.update(direct, "alter table outbox_dlq add column last_exception text"));
      case BROKEN_DEAD_LETTERS ->
          new DeadLetterOutage(fleet, ledger, schema, watch, report, setup.rate())
              .last(setup.deadLetterOutage());
      case DROP_COLUMN -> breakSchema(schema::dropLeases, schema::addLeases);
      default -> throw new AssertionError(fault);
    };
  }

  private Recovery killSubscriber() throws IOException, InterruptedException, SQLException {
    String from = watch.now();
    int slot = slotThatHoldsRows();
    String victim = fleet.subscriber(slot).name();
    String held = heldBy(victim);
    List<String> rows = freezeWithRows(fleet.subscriber(slot), held);
    fleet.subscriber(slot).kill();
    Since killed = watch.since();
    report.rowsHeldAtKill(rows.size());
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
    ledger.hit(Fault.KILL_SUBSCRIBER.label(), victim, from, watch.now());
    fleet.startSubscriber(slot);
    return new Recovery(recovery, watch.untilAllAreWell(watch.since()));
  }

  private static String heldBy(String subscriber) {
    return "leased_by like '" + subscriber + "/%'";
  }

  /** Who is in reserve may hold none for long, so a process is chosen that holds some just now. */
  private int slotThatHoldsRows() throws InterruptedException, SQLException {
    long until = System.nanoTime() + TIME_TO_HOLD_ROWS.toNanos();
    int slot;
    do {
      slot = random.nextInt(fleet.size());
      String held = heldBy(fleet.subscriber(slot).name());
      if (!Database.texts(direct, "select id::text from outbox where " + held).isEmpty()) {
        return slot;
      }
      Watch.pause(Duration.ofMillis(20));
    } while (System.nanoTime() < until);
    return slot;
  }

  /** Stops a process at a moment at which it holds rows: to kill it at another proves nothing. */
  private List<String> freezeWithRows(Worker victim, String held)
      throws IOException, InterruptedException, SQLException {
    long until = System.nanoTime() + TIME_TO_HOLD_ROWS.toNanos();
    while (true) {
      victim.signal("STOP");
      List<String> rows = Database.texts(direct, "select id::text from outbox where " + held);
      if (!rows.isEmpty()) {
        return rows;
      }
      if (System.nanoTime() > until) {
        report.breach(victim.name() + " held no row in " + TIME_TO_HOLD_ROWS.toSeconds() + " s");
        return rows;
      }
      victim.signal("CONT");
      Watch.pause(Duration.ofMillis(20));
    }
  }

  private Recovery killPublisher() throws IOException, InterruptedException {
    int slot = random.nextInt(fleet.publisherCount());
    fleet.publisher(slot).kill();
    Since killed = watch.since();
    long first = fleet.startPublisher(slot);
    double recovery = watch.untilHandled(killed);
    watch.until(
        () ->
            Database.number(
                    direct,
                    "select count(*) from committed where no between ? and ?",
                    first,
                    first + Publisher.INCARNATION - 1)
                > 0,
        "the new publisher to publish",
        killed);
    return new Recovery(recovery, watch.untilAllAreWell(killed));
  }

  private Recovery freezeSubscriber() throws IOException, InterruptedException, SQLException {
    Worker victim = fleet.subscriber(random.nextInt(fleet.size()));
    String from = watch.now();
    victim.signal("STOP");
    Watch.pause(setup.lease().plusSeconds(2));
    victim.signal("CONT");
    Recovery recovery = recovery();
    ledger.hit(Fault.FREEZE_SUBSCRIBER.label(), victim.name(), from, watch.now());
    return recovery;
  }

  private Recovery rollingRestart() throws IOException, InterruptedException, SQLException {
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
    Recovery recovery = recovery();
    long twice = ledger.handledTwiceSince(begun);
    if (twice > 0) {
      report.breach(twice + " messages were handled twice in a rolling restart");
    }
    return recovery;
  }

  private Recovery deadPool() throws IOException {
    fleet.orderSubscribers(Orders.DEAD_POOL);
    Watch.pause(Duration.ofSeconds(4));
    fleet.orderSubscribers(Orders.SOUND_POOL);
    return recovery();
  }

  private Recovery terminateConnections() throws SQLException {
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
    return recovery();
  }

  private Recovery crashServer() throws IOException, InterruptedException {
    setup.server().crash();
    Watch.pause(Duration.ofSeconds(random.nextInt(3)));
    setup.server().startAgain();
    Recovery recovery = recovery();
    report.recoveryAfterServer(recovery.seconds());
    return recovery;
  }

  private Recovery disturb(FaultyProxy where, Disturbance how) {
    where.turn(how.weather(), how.way());
    Watch.pause(Duration.ofSeconds(how.seconds()));
    where.turn(Weather.FINE, Way.BOTH);
    return recovery();
  }

  private Recovery breakSchema(Step breaks, Step mends) throws SQLException {
    breaks.take();
    try {
      Watch.pause(Duration.ofSeconds(4));
    } finally {
      mends.take();
    }
    return recovery();
  }

  private Recovery recovery() {
    Since healed = watch.since();
    return new Recovery(watch.untilHandled(healed), watch.untilAllAreWell(healed));
  }
}
