package dev.outbox4j.examples.chaos;

import dev.outbox4j.migrations.OutboxMigrations;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/**
 * Runs the fault harness and exits non-zero for any breach. Options are system properties: {@code
 * chaos.seconds} (default 60), {@code chaos.rate} messages a second (default 1500), {@code
 * chaos.faults} (names of {@link Fault}, separated by commas; default all), {@code chaos.seed},
 * {@code chaos.report} (a file for the figures as JSON).
 */
public final class Chaos {
  private static final Duration LEASE = Duration.ofSeconds(5);
  private static final Duration BETWEEN_FAULTS = Duration.ofSeconds(1);

  private Chaos() {}

  /** Takes no arguments. */
  public static void main(String[] arguments)
      throws IOException, InterruptedException, SQLException {
    long seconds = Long.getLong("chaos.seconds", 60);
    long seed = Long.getLong("chaos.seed", System.nanoTime());
    Path directory = Files.createTempDirectory("outbox-chaos");
    Report.say("fault harness: %d s, seed %d, logs in %s".formatted(seconds, seed, directory));
    Report report = new Report();
    try (Server server = new Server(directory);
        FaultyProxy proxy = new FaultyProxy(server.port());
        FaultyProxy listenProxy = new FaultyProxy(server.port());
        Pooler pooler = Pooler.startIfInstalled(directory, proxy.port())) {
      OutboxMigrations.standard().migrate(server.direct());
      Ledger ledger = new Ledger(server.direct());
      ledger.create();
      Fleet fleet =
          new Fleet(
              directory,
              proxy.port(),
              listenProxy.port(),
              pooler == null ? 0 : pooler.port(),
              LEASE.toSeconds(),
              Integer.getInteger("chaos.rate", 1_500));
      report.figure("clock_skew", Fleet.clocksCanBeFaked() ? "+-600 s" : "libfaketime not found");
      report.figure(
          "pooler", pooler == null ? "PgBouncer not found" : "PgBouncer, transaction mode");
      try {
        fleet.start();
        FaultRunner runner =
            new FaultRunner(
                new FaultRunner.Setup(server, proxy, listenProxy, LEASE),
                fleet,
                ledger,
                report,
                new Random(seed));
        run(runner, fleet, ledger, report, seconds, new Random(seed));
        settle(fleet, ledger, server.direct(), pooler, report);
      } finally {
        fleet.killAll();
      }
      judge(ledger, report, seconds);
    }
    String file = System.getProperty("chaos.report", "");
    if (!file.isBlank()) {
      report.write(Path.of(file));
    }
    report.print();
    System.exit(report.clean() ? 0 : 1);
  }

  private static void run(
      FaultRunner runner, Fleet fleet, Ledger ledger, Report report, long seconds, Random random)
      throws IOException, InterruptedException, SQLException {
    List<Fault> faults = chosen();
    List<Fault> round = new ArrayList<>();
    long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds);
    FaultRunner.pause(Duration.ofSeconds(5));
    while (System.nanoTime() < until) {
      if (round.isEmpty()) { // each fault once, in random order, then again
        round.addAll(faults);
        java.util.Collections.shuffle(round, random);
      }
      runner.run(round.remove(0));
      List<String> dead = fleet.deadSubscribers();
      if (!dead.isEmpty()) {
        report.breach("subscribers died: " + dead);
      }
      FaultRunner.pause(BETWEEN_FAULTS);
      Report.say(
          "%6d s left, %d committed, %d in the outbox"
              .formatted(
                  Math.max(0, TimeUnit.NANOSECONDS.toSeconds(until - System.nanoTime())),
                  ledger.committed(),
                  ledger.unsettled()));
    }
  }

  private static List<Fault> chosen() {
    String names = System.getProperty("chaos.faults", "");
    return names.isBlank()
        ? List.of(Fault.values())
        : Arrays.stream(names.split(",")).map(Fault::named).toList();
  }

  /** Ends the publishing, lets the subscribers empty the outbox, and stops them gracefully. */
  private static void settle(
      Fleet fleet, Ledger ledger, DataSource direct, @Nullable Pooler pooler, Report report)
      throws IOException, InterruptedException, SQLException {
    fleet.stopPublishers();
    long until = System.nanoTime() + TimeUnit.MINUTES.toNanos(5);
    while (ledger.unsettled() > 0 && System.nanoTime() < until) {
      FaultRunner.pause(Duration.ofMillis(200));
    }
    report.mustBeZero("stuck_rows", ledger.unsettled());
    report.mustBeZero("dead_subscribers", fleet.deadSubscribers().size());
    for (int slot = 0; slot < fleet.size(); slot++) {
      fleet.stopSubscriber(slot);
    }
    fleet.problems().forEach(report::breach);
    if (pooler != null) {
      pooler.close(); // it keeps server connections of its own
    }
    long patience =
        System.nanoTime() + TimeUnit.SECONDS.toNanos(5); // the server notices a closed socket
    while (connections(direct) > 0 && System.nanoTime() < patience) {
      FaultRunner.pause(Duration.ofMillis(100));
    }
    report.mustBeZero("leaked_connections", connections(direct));
  }

  private static long connections(DataSource direct) throws SQLException {
    return Database.number(
        direct,
        "select count(*) from pg_stat_activity where application_name ~ '^s[0-9][.]'"
            + " or application_name = 'outbox4j-listen'");
  }

  private static void judge(Ledger ledger, Report report, long seconds) throws SQLException {
    report.figure("minutes", Report.round(seconds / 60.0));
    report.figure("messages", ledger.committed());
    report.mustBeZero("lost", ledger.lost());
    report.mustBeZero("handled_after_rollback", ledger.handledAfterRollback());
    report.mustBeZero("stale_acks", ledger.staleAcks());
    report.mustBeZero("poison_not_dead_lettered", ledger.poisonNotDeadLettered());
    report.mustBeZero("healthy_dead_lettered", ledger.healthyDeadLettered());
    report.mustBeZero("handled_early", ledger.early());
    report.figure("duplicates", ledger.duplicates());
    report.figure("duplicates_after_lease", ledger.duplicatesAfterLease());
    report.figure("duplicates_after_unheard_effect", ledger.duplicatesAfterUnheardEffect());
    report.mustBeZero("unexplained_duplicates", ledger.unexplainedDuplicates());
    report.figure("lease_s", LEASE.toSeconds());
    report.figure("worst_recovery_after_kill_s", Report.round(report.worstAfterKill()));
    report.figure("worst_recovery_after_server_s", Report.round(report.worstAfterServer()));
    if (report.worstAfterKill() > LEASE.toSeconds() + 2) {
      report.breach("a killed subscriber's rows waited longer than the lease and 2 s");
    }
  }
}
