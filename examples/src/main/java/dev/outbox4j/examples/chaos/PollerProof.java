package dev.outbox4j.examples.chaos;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.migrations.PollerMigrations;
import dev.outbox4j.poller.PollerControl;
import dev.outbox4j.poller.PollerStatus;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import java.io.IOException;
import java.nio.file.Path;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.Random;

/**
 * Shows what is promised of table pollers: transactions overlap and commit late, one stays open for
 * a minute, processes that follow the table are killed and frozen, and a ledger tells what was
 * committed, handled and moved by whom. Exits non-zero for any breach. {@code
 * docs/operations/fault-harness.md} has its options.
 */
public final class PollerProof {
  private static final Duration LEASE = Duration.ofSeconds(3);
  private static final Duration AFTER_THE_LEASE = Duration.ofSeconds(1);
  private static final Duration FREEZE = Duration.ofSeconds(8);
  private static final Duration LONGEST_ABSENCE = Duration.ofSeconds(3);
  private static final Duration LONGEST_WITHOUT_EFFECT = Duration.ofSeconds(60);
  private static final Duration LONG_TRANSACTION = Duration.ofSeconds(60);

  /** A short run has one of a part of it, so that there are some. */
  private static final int LEAST_LONG_TRANSACTIONS = 4;

  /** What the lag may tell less, as it is refreshed by a tick. */
  private static final Duration REFRESHED = Duration.ofSeconds(1);

  private static final Duration LONGEST_WAIT_FOR_A_HANDLER = Duration.ofSeconds(10);
  private static final Duration LOOK_AGAIN = Duration.ofMillis(20);
  private static final Duration BETWEEN_LOOKS = Duration.ofMillis(250);

  private final Report report = new Report();
  private final Server server;
  private final PollerLedger ledger;
  private final Random random;
  private final Duration slack;
  private final long seconds;
  private final Duration longTime;
  private final ProofProcesses processes;
  private long hits;
  private int killed;
  private int frozen;
  private long held;
  private long sessionsLeft;

  private PollerProof(Path directory, Server server, long seed) {
    this.server = server;
    this.ledger = new PollerLedger(server.direct());
    this.random = new Random(seed);
    this.slack = Duration.ofSeconds(Long.parseLong(Options.property("slack", "0")));
    this.seconds = Long.parseLong(Options.property("seconds", "600"));
    long part = seconds / LEAST_LONG_TRANSACTIONS;
    this.longTime = Duration.ofSeconds(Math.min(LONG_TRANSACTION.toSeconds(), part));
    this.processes =
        new ProofProcesses(
            Integer.parseInt(Options.property("processes", "3")),
            directory,
            PollingNode.class,
            (name, slot) -> List.of(name, server.ports(), Long.toString(LEASE.toSeconds())),
            report);
  }

  /** Takes no arguments. */
  public static void main(String[] arguments)
      throws IOException, InterruptedException, SQLException {
    ProofProcesses.prove(
        "poller", (directory, server, seed) -> new PollerProof(directory, server, seed).run(seed));
  }

  private boolean run(long seed) throws IOException, InterruptedException, SQLException {
    report.about(server, seed, slack);
    report.figure("seconds", seconds);
    report.figure("processes", processes.size());
    report.figure("lease_s", LEASE.toSeconds());
    report.figure("long_transaction_s", longTime.toSeconds());
    OutboxMigrations.standard().migrate(server.direct());
    PollerMigrations.of("public", "outbox").migrate(server.direct());
    ledger.create();
    try (HikariDataSource pool = Database.pool(server.ports(), 2, "looks", false);
        ChangeWriters writers = new ChangeWriters(server.ports(), ledger, seed, longTime)) {
      PostgresOutbox outbox = PostgresOutbox.on(pool, OutboxTable.named("outbox"));
      processes.startAll();
      writers.start();
      strike(PollerControl.of(outbox, PollingNode.APPLICATION), writers);
      writers.stop(report);
      report.requireSome("transactions_committed", writers.committed());
      report.requireSome("transactions_rolled_back", writers.rolledBack());
      report.mustBeZero("lost", awaitAll());
    } finally {
      processes.killAll();
    }
    judge();
    return report.conclude();
  }

  /** Kills and freezes whoever has a lease, in turn, and looks whether delays can be seen. */
  private void strike(PollerControl control, ChangeWriters writers)
      throws IOException, InterruptedException, SQLException {
    long until = System.nanoTime() + Duration.ofSeconds(seconds).toNanos();
    long next = System.nanoTime() + Duration.ofSeconds(5).toNanos();
    while (System.nanoTime() < until) {
      lookForDelays(control, writers);
      if (System.nanoTime() - next >= 0) {
        int slot = freezeHolder();
        Worker process = processes.get(slot);
        boolean kills = killed <= frozen;
        long no = ++hits;
        held += ledger.hit(no, process.name(), !kills);
        Report.say("%s %s".formatted(kills ? "kill" : "freeze", process.name()));
        if (kills) {
          process.kill();
          ledger.hitIsOver(no);
          killed++;
          pause(control, writers, Duration.ofMillis(random.nextInt(millis(LONGEST_ABSENCE))));
          processes.start(slot);
        } else {
          pause(control, writers, limit());
          sessionsLeft += ledger.sessionsLeft(); // the frozen one has its socket open still
          pause(control, writers, FREEZE.minus(LEASE).minus(AFTER_THE_LEASE));
          process.signal("CONT");
          ledger.hitIsOver(no);
          frozen++;
        }
        next = System.nanoTime() + Duration.ofMillis(3_000 + random.nextInt(6_000)).toNanos();
      }
      Watch.pause(BETWEEN_LOOKS);
    }
    pause(control, writers, limit()); // for the last one, too
  }

  private static int millis(Duration time) {
    return (int) time.toMillis();
  }

  private Duration limit() {
    return LEASE.plus(AFTER_THE_LEASE).plus(slack);
  }

  private void pause(PollerControl control, ChangeWriters writers, Duration time) {
    long until = System.nanoTime() + time.toNanos();
    while (System.nanoTime() < until) {
      lookForDelays(control, writers);
      Watch.pause(BETWEEN_LOOKS);
    }
  }

  /**
   * Freezes a process that has a lease, so that it has it still when the blow comes; one that runs
   * a handler under it, if such a one is found in time.
   */
  private int freezeHolder() throws IOException, InterruptedException, SQLException {
    long until = System.nanoTime() + LONGEST_WAIT_FOR_A_HANDLER.toNanos();
    while (true) {
      boolean handling = System.nanoTime() < until;
      String holder = ledger.holder(handling);
      if (!holder.isEmpty()) {
        // of a name, p, the slot, and how many were started
        int slot = Integer.parseInt(holder.substring(1, holder.indexOf('.')));
        processes.get(slot).signal("STOP");
        if (ledger.holds(holder, handling) && processes.get(slot).name().equals(holder)) {
          return slot;
        }
        processes.get(slot).signal("CONT");
      }
      Watch.pause(LOOK_AGAIN);
    }
  }

  /**
   * While a transaction stays open, each poller has to say that rows wait, for whom, and how long.
   */
  private void lookForDelays(PollerControl control, ChangeWriters writers) {
    long no = writers.longNumber();
    Duration open = writers.longFor();
    if (no == 0 || open.compareTo(REFRESHED.multipliedBy(2)) < 0) {
      return;
    }
    for (PollerStatus status : control.pollers()) {
      boolean tellsWhom =
          status.heldBack().filter(words -> words.contains(ChangeWriters.LONG)).isPresent();
      boolean tellsHowLong =
          status.lag().filter(lag -> lag.plus(REFRESHED).compareTo(open) >= 0).isPresent();
      if (tellsWhom && tellsHowLong) {
        try {
          ledger.seesDelay(no, status.name());
        } catch (SQLException e) {
          throw new IllegalStateException(e);
        }
      }
    }
  }

  /** Returns of how many rows the latest version was not handled. */
  private long awaitAll() throws SQLException {
    long left = ledger.lost();
    long until = System.nanoTime() + LONGEST_WITHOUT_EFFECT.toNanos();
    while (left > 0 && System.nanoTime() < until) {
      Watch.pause(Duration.ofSeconds(1));
      long now = ledger.lost();
      if (now < left) {
        until = System.nanoTime() + LONGEST_WITHOUT_EFFECT.toNanos();
      }
      left = now;
    }
    return left;
  }

  private void judge() throws SQLException {
    Database.update(server.direct(), "analyze");
    report.requireSome("processes_killed", killed);
    report.requireSome("processes_frozen", frozen);
    report.requireSome("leases_of_the_killed_and_frozen", held);
    report.requireSome("frozen_ones_told", ledger.told());
    report.requireSome("handlers_of_the_frozen_replaced", ledger.handlersReplaced());
    report.mustBeZero("replaced_and_not_told", ledger.replacedAndNotTold(limit()));
    report.requireSome("versions_committed", ledger.written());
    report.requireSome("committed_out_of_order", ledger.committedOutOfOrder());
    report.requireSome("versions_handled", ledger.effects());
    report.requireSome("long_transactions", ledger.longWrites());
    report.figure("delivered_twice", ledger.deliveredTwice());
    report.mustBeZero("delivered_twice_without_fault", ledger.deliveredTwiceWithoutFault());
    report.mustBeZero("repeated_transactions", ledger.repeatedTransactions());
    report.mustBeZero("handled_after_rollback", ledger.handledAfterRollback());
    report.mustBeZero("late_commits", ledger.lateCommits());
    report.mustBeZero("handover_too_late", ledger.handoversTooLate(limit()));
    report.figure("longest_handover_s", Report.round(ledger.longestHandover().toMillis() / 1e3));
    report.mustBeZero("sessions_of_the_frozen_left", sessionsLeft);
    report.mustBeZero("delays_not_visible", ledger.delaysNotVisible());
  }
}
