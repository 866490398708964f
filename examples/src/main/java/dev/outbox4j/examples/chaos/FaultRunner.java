package dev.outbox4j.examples.chaos;

import dev.outbox4j.examples.chaos.FaultyProxy.Weather;
import java.io.IOException;
import java.sql.SQLException;
import java.time.Duration;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import javax.sql.DataSource;

/** Does a fault, heals it, and measures how long the fleet takes to be well again. */
final class FaultRunner {
  private static final long LONGEST_RECOVERY_SECONDS = 90;

  private final Fleet fleet;
  private final Server server;
  private final FaultyProxy proxy;
  private final FaultyProxy listenProxy;
  private final DataSource direct;
  private final Ledger ledger;
  private final Report report;
  private final Duration lease;
  private final Random random;

  FaultRunner(Setup setup, Fleet fleet, Ledger ledger, Report report, Random random) {
    this.fleet = fleet;
    this.server = setup.server();
    this.proxy = setup.proxy();
    this.listenProxy = setup.listenProxy();
    this.direct = setup.server().direct();
    this.ledger = ledger;
    this.report = report;
    this.lease = setup.lease();
    this.random = random;
  }

  /** What faults are done to. */
  record Setup(Server server, FaultyProxy proxy, FaultyProxy listenProxy, Duration lease) {}

  void run(Fault fault) throws IOException, InterruptedException, SQLException {
    long begun = System.nanoTime();
    double recovery =
        switch (fault) {
          case KILL_SUBSCRIBER -> killSubscriber();
          case KILL_PUBLISHER -> killPublisher();
          case FREEZE_SUBSCRIBER -> freezeSubscriber();
          case TERMINATE_CONNECTIONS -> terminateConnections();
          case CRASH_SERVER -> crashServer();
          case CUT_NETWORK -> weather(proxy, Weather.CUT, 3);
          case BLACK_HOLE_NETWORK -> weather(proxy, Weather.BLACK_HOLE, 8);
          case SLOW_NETWORK -> weather(proxy, Weather.SLOW, 5);
          case BLACK_HOLE_LISTEN -> weather(listenProxy, Weather.BLACK_HOLE, 8);
          case DROP_DEAD_LETTERS ->
              schema(
                  "alter table outbox_dlq rename to outbox_dlq_away",
                  "alter table outbox_dlq_away rename to outbox_dlq");
          case ALTER_DEAD_LETTERS ->
              schema(
                  "alter table outbox_dlq rename column failure_reason to why",
                  "alter table outbox_dlq rename column why to failure_reason");
          case DROP_COLUMN ->
              schema(
                  "alter table outbox rename column lease_until to lease_away",
                  "alter table outbox rename column lease_away to lease_until");
          case ROLLING_RESTART -> rollingRestart();
        };
    report.fault(fault, recovery, (System.nanoTime() - begun) / 1e9);
  }

  private double killSubscriber() throws IOException, InterruptedException, SQLException {
    int slot = random.nextInt(fleet.size());
    String victim = fleet.subscriber(slot).name();
    fleet.subscriber(slot).kill();
    long killed = System.nanoTime();
    await(
        () -> number("select count(*) from outbox where leased_by like '" + victim + "/%'") == 0,
        "rows of " + victim);
    double recovery = secondsSince(killed);
    report.recoveryAfterKill(recovery);
    fleet.startSubscriber(slot);
    return recovery;
  }

  private double killPublisher() throws IOException, InterruptedException {
    int slot = random.nextInt(fleet.publisherCount());
    fleet.publisher(slot).kill();
    fleet.startPublisher(slot);
    return awaitHandling();
  }

  private double freezeSubscriber() throws IOException, InterruptedException {
    Worker victim = fleet.subscriber(random.nextInt(fleet.size()));
    victim.signal("STOP");
    pause(lease.plusSeconds(2));
    victim.signal("CONT");
    return awaitHandling();
  }

  private double terminateConnections() throws SQLException {
    for (int i = 0; i < 5; i++) {
      Database.number(
          direct,
          """
          select count(pg_terminate_backend(pid)) from (
            select pid from pg_stat_activity
            where application_name ~ '^s[0-9][.]' or application_name = 'outbox4j-listen'
            order by random() limit 3) x""");
      pause(Duration.ofSeconds(1));
    }
    return awaitHandling();
  }

  private double crashServer() throws IOException, InterruptedException {
    server.crash();
    pause(Duration.ofSeconds(random.nextInt(3)));
    server.startAgain();
    double recovery = awaitHandling();
    report.recoveryAfterServer(recovery);
    return recovery;
  }

  private double weather(FaultyProxy where, Weather weather, int seconds) {
    where.turn(weather);
    pause(Duration.ofSeconds(seconds));
    where.turn(Weather.FINE);
    return awaitHandling();
  }

  private double schema(String breaks, String mends) throws SQLException {
    Database.update(direct, breaks);
    try {
      pause(Duration.ofSeconds(4));
    } finally {
      Database.update(direct, mends);
    }
    return awaitHandling();
  }

  private double rollingRestart() throws IOException, InterruptedException, SQLException {
    String begun = Database.texts(direct, "select clock_timestamp()::text").get(0);
    for (int slot = 0; slot < fleet.size(); slot++) {
      String name = fleet.subscriber(slot).name();
      fleet.stopSubscriber(slot);
      if (number("select count(*) from outbox where leased_by like '" + name + "/%'") > 0) {
        report.breach(name + " left rows under its lease after a graceful stop");
      }
      fleet.startSubscriber(slot);
    }
    double recovery = awaitHandling();
    long twice = ledger.duplicatesSince(begun);
    if (twice > 0) {
      report.breach(twice + " messages were handled twice in a rolling restart");
    }
    return recovery;
  }

  /** Waits until a message is handled after now, and returns how long that took. */
  private double awaitHandling() {
    long begun = System.nanoTime();
    String healed = "";
    while (healed.isEmpty()) {
      try {
        healed = Database.texts(direct, "select clock_timestamp()::text").get(0);
      } catch (SQLException serverIsDown) {
        pause(Duration.ofMillis(50));
      }
    }
    String since = healed;
    await(
        () ->
            number(
                    "select count(*) from (select from handled where at > '"
                        + since
                        + "' limit 1) x")
                > 0,
        "a message to be handled");
    return secondsSince(begun);
  }

  private void await(BooleanSupplier condition, String what) {
    long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(LONGEST_RECOVERY_SECONDS);
    while (!condition.getAsBoolean()) {
      if (System.nanoTime() > until) {
        report.breach("waited " + LONGEST_RECOVERY_SECONDS + " s for " + what);
        return;
      }
      pause(Duration.ofMillis(50));
    }
  }

  private long number(String sql) {
    try {
      return Database.number(direct, sql);
    } catch (SQLException serverIsDown) {
      return -1;
    }
  }

  private static double secondsSince(long begun) {
    return (System.nanoTime() - begun) / 1e9;
  }

  static void pause(Duration time) {
    long until = System.nanoTime() + time.toNanos();
    for (long left = time.toNanos(); left > 0; left = until - System.nanoTime()) {
      LockSupport.parkNanos(left);
    }
  }
}
