package dev.outbox4j.examples.chaos;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.examples.chaos.Ledger.Kind;
import dev.outbox4j.migrations.OrderedMigrations;
import dev.outbox4j.migrations.OutboxMigrations;
import java.io.IOException;
import java.nio.file.Path;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/**
 * Shows the order of keys at size: processes share an ordered queue, some messages fail, processes
 * are killed and replaced at random, and the ledger tells what ran after what. Exits non-zero for
 * any breach. {@code docs/operations/fault-harness.md} has its options.
 */
public final class OrderProof {
  /** The others are of the harness. */
  static final List<Kind> KINDS = List.of(Kind.NORMAL, Kind.FLAKY, Kind.SLOW);

  private static final Duration LEASE = Duration.ofSeconds(5);
  private static final Duration AFTER_THE_LEASE = Duration.ofSeconds(2);
  private static final Duration LONGEST_ABSENCE = Duration.ofSeconds(3);
  private static final Duration LONGEST_WITHOUT_EFFECT = Duration.ofSeconds(60);
  private static final Duration LOOK_AGAIN = Duration.ofMillis(50);
  private static final long LONGEST_STOP_SECONDS = 30;
  private static final int ONE_OF_SO_MANY_STOPS = 4;
  static final int PUBLISHERS = 2;

  private final Size size;
  private final Report report = new Report();
  private final Random random;
  private final Path directory;
  private final Server server;
  private final Ledger ledger;
  private final OrderLedger order;
  private final ProofProcesses processes;

  /** How much is done; each end of a process is a kill, but for one of four. */
  private record Size(
      int processes, int keys, long messages, int rate, int ends, long seed, Duration slack) {
    static Size given(long seed) {
      return new Size(
          number("processes", 8),
          number("keys", 1_000),
          Long.parseLong(Options.property("messages", "1000000")),
          number("rate", 1_000_000),
          number("ends", 30),
          seed,
          Duration.ofSeconds(number("slack", 0)));
    }

    private static int number(String option, int usual) {
      return Integer.parseInt(Options.property(option, Integer.toString(usual)));
    }
  }

  private OrderProof(Size size, Path directory, Server server) {
    this.size = size;
    this.random = new Random(size.seed());
    this.directory = directory;
    this.server = server;
    this.ledger = new Ledger(server.direct());
    this.order = new OrderLedger(server.direct());
    this.processes =
        new ProofProcesses(
            size.processes(),
            directory,
            OrderlyProcess.class,
            (name, slot) ->
                List.of(
                    name, server.ports(), Long.toString(LEASE.toSeconds()), directory.toString()),
            report);
  }

  /** Takes no arguments. */
  public static void main(String[] arguments)
      throws IOException, InterruptedException, SQLException {
    ProofProcesses.prove(
        "order",
        (directory, server, seed) -> new OrderProof(Size.given(seed), directory, server).run());
  }

  private boolean run() throws IOException, InterruptedException, SQLException {
    report.about(server, size.seed(), size.slack());
    report.figure("lease_s", LEASE.toSeconds());
    OutboxMigrations.standard().migrate(server.direct());
    OrderedMigrations.of("public", "outbox", Subscriber.ORDERED_QUEUE).migrate(server.direct());
    new LedgerSchema(server.direct(), LEASE).create();
    order.create();
    try (Pulse pulse = new Pulse(Database.at(server.ports()), ledger)) {
      pulse.start();
      handleAll();
      report.figure("stalls_of_the_machine", pulse.stalls());
      report.figure("longest_stall_s", Report.round(pulse.longest().toMillis() / 1e3));
    } finally {
      processes.killAll();
    }
    order.load(directory);
    judge();
    return report.conclude();
  }

  private void handleAll() throws IOException, InterruptedException, SQLException {
    processes.startAll();
    long begun = System.nanoTime();
    try (HikariDataSource pool = Database.pool(server.ports(), PUBLISHERS, "publishers", false)) {
      List<OrderedPublisher> publishers = new ArrayList<>();
      for (int i = 0; i < PUBLISHERS; i++) {
        publishers.add(
            new OrderedPublisher(
                pool,
                directory,
                i,
                (int) share(size.keys(), i),
                share(size.messages(), i),
                (double) size.rate() / PUBLISHERS,
                random));
      }
      publishers.forEach(OrderedPublisher::start);
      endSome();
      for (OrderedPublisher publisher : publishers) {
        publisher.join();
        publisher.failure().ifPresent(failure -> report.breach("publishing failed: " + failure));
      }
    }
    report.mustBeZero("stuck_rows", unsettled());
    double seconds = (System.nanoTime() - begun) / 1e9;
    report.figure("seconds", Report.round(seconds));
    report.figure("effects_per_second", Math.round(effects() / seconds));
    for (int slot = 0; slot < processes.size(); slot++) {
      stop(processes.get(slot));
    }
  }

  /** All shares together are the whole. */
  private static long share(long whole, int publisher) {
    return whole * (publisher + 1) / PUBLISHERS - whole * publisher / PUBLISHERS;
  }

  /** Ends processes one after the other, evenly over the run, and starts each again a bit later. */
  private void endSome() throws IOException, InterruptedException, SQLException {
    int kills = 0;
    int stops = 0;
    int orphaned = 0;
    for (int end = 1; end <= size.ends(); end++) {
      long effects = size.messages() * end / (size.ends() + 1);
      if (!awaitEffects(effects)) {
        report.breach("no effect came for " + LONGEST_WITHOUT_EFFECT.toSeconds() + " s");
        break;
      }
      int slot = random.nextInt(processes.size());
      Worker process = processes.get(slot);
      if (!process.alive()) {
        report.breach(process.name() + " died");
      } else if (end % ONE_OF_SO_MANY_STOPS == 0) {
        Report.say("%s stops %s".formatted(now(), process.name()));
        stop(process);
        stops++;
      } else {
        String from = now();
        Report.say("%s kills %s".formatted(from, process.name()));
        process.kill();
        ledger.hit(Fault.KILL_SUBSCRIBER.label(), process.name(), from, now());
        orphaned += order.orphan(process.name());
        kills += process.killed() ? 1 : 0;
      }
      Watch.pause(Duration.ofMillis(random.nextInt((int) LONGEST_ABSENCE.toMillis())));
      processes.start(slot);
      Report.say("%s starts %s".formatted(now(), processes.get(slot).name()));
    }
    report.figure("rate", size.rate());
    report.figure("processes", processes.size());
    report.figure("processes_killed", kills);
    report.figure("buckets_of_the_killed", orphaned);
    report.figure("processes_stopped", stops);
    report.figure("processes_joined", processes.started() - processes.size());
    if (orphaned == 0) {
      report.breach("no process was killed that owned a bucket");
    }
  }

  private void stop(Worker process) throws IOException, InterruptedException {
    while (process.health().isEmpty() && process.alive()) { // it has nothing yet to stop by
      Watch.pause(LOOK_AGAIN);
    }
    if (process.stop(LONGEST_STOP_SECONDS).isEmpty()) {
      report.breach(process.name() + " did not come to its end");
    }
  }

  private String now() throws SQLException {
    return Database.texts(server.direct(), "select clock_timestamp()::text").get(0);
  }

  private long effects() throws IOException {
    return RunLog.count(directory, RunLog.DONE);
  }

  private boolean awaitEffects(long wanted) throws IOException {
    long most = effects();
    long until = System.nanoTime() + LONGEST_WITHOUT_EFFECT.toNanos();
    while (most < wanted && System.nanoTime() < until) {
      Watch.pause(LOOK_AGAIN);
      long now = effects();
      if (now > most) {
        most = now;
        until = System.nanoTime() + LONGEST_WITHOUT_EFFECT.toNanos();
      }
    }
    return most >= wanted;
  }

  private long unsettled() throws SQLException {
    long left = ledger.unsettled();
    long until = System.nanoTime() + LONGEST_WITHOUT_EFFECT.toNanos();
    while (left > 0 && System.nanoTime() < until) {
      Watch.pause(Duration.ofMillis(200));
      long now = ledger.unsettled();
      if (now < left) {
        until = System.nanoTime() + LONGEST_WITHOUT_EFFECT.toNanos();
      }
      left = now;
    }
    return left;
  }

  private void judge() throws SQLException {
    Database.update(server.direct(), "analyze");
    long messages = ledger.committed();
    report.figure("messages", messages);
    report.figure("keys", order.keys());
    report.figure("kinds", ledger.kinds());
    report.figure("failed_runs", order.failedRuns());
    if (messages < size.messages()) {
      report.breach("only " + messages + " messages were published");
    }
    report.mustBeZero("lost", ledger.lost());
    report.mustBeZero("dead_letters", ledger.deadLetters());
    report.mustBeZero("handled_after_rollback", ledger.handledAfterRollback());
    report.mustBeZero("stale_acks", ledger.staleAcks());
    report.mustBeZero("overtaken", ledger.overtaken());
    report.mustBeZero("acks_out_of_turn", ledger.acksOutOfTurn());
    report.mustBeZero("out_of_turn", order.outOfTurn());
    report.mustBeZero("beside_one_of_their_key", order.besideAnother());
    report.figure("repeated_after_a_kill", order.repeated());
    Duration standstill = order.longestStandstill(Subscriber.RETRY_DELAY);
    Duration limit = LEASE.plus(AFTER_THE_LEASE).plus(size.slack());
    report.figure("limit_of_standstill_s", limit.toSeconds());
    report.figure("longest_standstill_s", Report.round(standstill.toMillis() / 1e3));
    report.figure(
        "standstills_longer_than_the_lease",
        order.standstillsLongerThan(LEASE, Subscriber.RETRY_DELAY));
    if (standstill.compareTo(limit) > 0) {
      report.breach("a key stood still for longer than " + limit.toSeconds() + " s");
      order.worstStandstills(Subscriber.RETRY_DELAY).forEach(Report::say);
    }
  }
}
