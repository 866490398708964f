package dev.outbox4j.examples.chaos;

import dev.outbox4j.examples.chaos.FaultyProxy.Way;
import dev.outbox4j.examples.chaos.FaultyProxy.Weather;
import dev.outbox4j.migrations.LockMigrations;
import dev.outbox4j.migrations.OutboxMigrations;
import java.io.IOException;
import java.nio.file.Path;
import java.sql.SQLException;
import java.time.Duration;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Random;

/**
 * Shows that a lock has one holder: threads of several processes want it, whoever has it is killed,
 * frozen or cut off, and the server's log tells who held it when. Exits non-zero for any breach.
 * {@code docs/operations/fault-harness.md} has its options.
 */
public final class LockProof {
  private static final Duration PERIOD = Duration.ofSeconds(15);
  private static final Duration AFTER_THE_PERIOD = Duration.ofSeconds(2);
  private static final Duration FREEZE = Duration.ofSeconds(20);
  private static final Duration BRIEF_CUT = Duration.ofSeconds(3);
  private static final Duration LONGEST_ABSENCE = Duration.ofSeconds(3);
  private static final Duration LOOK_AGAIN = Duration.ofMillis(50);

  private enum Blow {
    KILL,
    FREEZE,
    CUT_FOR_LONG,
    CUT_BRIEFLY
  }

  private final int threads;
  private final long seconds;
  private final Duration slack;
  private final Random random;
  private final Report report = new Report();
  private final Path directory;
  private final Server server;
  private final LockLedger ledger;
  private final ProofProcesses processes;
  private final FaultyProxy[] networks;
  private final Map<Blow, Integer> blows = new EnumMap<>(Blow.class);

  private LockProof(Path directory, Server server, long seed) throws IOException {
    this.directory = directory;
    this.server = server;
    this.ledger = new LockLedger(server.direct());
    this.random = new Random(seed);
    int count = Integer.parseInt(Options.property("processes", "10"));
    this.threads = Integer.parseInt(Options.property("threads", "10"));
    this.seconds = Long.parseLong(Options.property("seconds", "600"));
    this.slack = Duration.ofSeconds(Long.parseLong(Options.property("slack", "0")));
    this.networks = new FaultyProxy[count];
    for (int i = 0; i < count; i++) {
      networks[i] = new FaultyProxy(server::port);
    }
    this.processes =
        new ProofProcesses(
            count,
            directory,
            LockContender.class,
            (name, slot) ->
                List.of(
                    name,
                    Integer.toString(networks[slot].port()),
                    directory.toString(),
                    Integer.toString(threads)),
            report);
  }

  /** Takes no arguments. */
  public static void main(String[] arguments)
      throws IOException, InterruptedException, SQLException {
    ProofProcesses.prove(
        "lock", (directory, server, seed) -> new LockProof(directory, server, seed).run(seed));
  }

  private boolean run(long seed) throws IOException, InterruptedException, SQLException {
    report.about(server, seed, slack);
    report.figure("seconds", seconds);
    report.figure("processes", processes.size());
    report.figure("contenders", processes.size() * threads);
    report.figure("period_s", PERIOD.toSeconds());
    OutboxMigrations.standard().migrate(server.direct());
    LockMigrations.of("public", "outbox").migrate(server.direct());
    ledger.create();
    try {
      processes.startAll();
      strike();
    } finally {
      processes.killAll();
      for (FaultyProxy network : networks) {
        network.close();
      }
    }
    ledger.load(directory);
    judge();
    return report.conclude();
  }

  /** Deals blows to whoever has the lock, one after the other, all in turn. */
  private void strike() throws IOException, InterruptedException, SQLException {
    long until = System.nanoTime() + Duration.ofSeconds(seconds).toNanos();
    List<Blow> all = List.of(Blow.values());
    for (int i = 0; System.nanoTime() < until; i++) {
      Watch.pause(Duration.ofMillis(1_000 + random.nextInt(4_000)));
      int slot = freezeHolder();
      Blow blow = all.get(i % all.size());
      Report.say("%s %s".formatted(blow, processes.get(slot).name()));
      deal(blow, slot);
      blows.merge(blow, 1, Integer::sum);
    }
  }

  /** Freezes the process that has the lock, so that it has it still when the blow comes. */
  private int freezeHolder() throws IOException, InterruptedException, SQLException {
    while (true) {
      String holder = ledger.holder();
      if (!holder.isEmpty()) {
        // of a name, p, the slot, and how many were started
        int slot = Integer.parseInt(holder.substring(1, holder.indexOf('.')));
        processes.get(slot).signal("STOP");
        if (ledger.holder().equals(holder) && processes.get(slot).name().equals(holder)) {
          return slot;
        }
        processes.get(slot).signal("CONT");
      }
      Watch.pause(LOOK_AGAIN);
    }
  }

  private void deal(Blow blow, int slot) throws IOException, InterruptedException {
    Worker process = processes.get(slot);
    FaultyProxy network = networks[slot];
    switch (blow) {
      case KILL -> {
        process.kill();
        Watch.pause(Duration.ofMillis(random.nextInt((int) LONGEST_ABSENCE.toMillis())));
        processes.start(slot);
      }
      case FREEZE -> {
        Watch.pause(FREEZE);
        process.signal("CONT");
      }
      case CUT_FOR_LONG -> {
        network.turn(Weather.BLACK_HOLE, Way.BOTH);
        process.signal("CONT");
        Watch.pause(FREEZE);
        network.heal();
      }
      case CUT_BRIEFLY -> {
        network.turn(Weather.CUT, Way.BOTH);
        process.signal("CONT");
        Watch.pause(BRIEF_CUT);
        network.heal();
      }
    }
  }

  private void judge() throws SQLException {
    Database.update(server.direct(), "create index on held (acquired, until)");
    Database.update(server.direct(), "analyze");
    for (Blow blow : Blow.values()) {
      report.figure(blow.name().toLowerCase(Locale.ROOT), blows.getOrDefault(blow, 0));
    }
    report.requireSome("acquisitions", ledger.acquisitions());
    report.requireSome("held_for_longer_than_a_period", ledger.renewed());
    report.figure("times_believed", ledger.beliefs());
    report.figure("guarded_writes", ledger.writes());
    report.requireSome("late_writes_refused", ledger.refused());
    report.mustBeZero("two_holders", ledger.twoHolders());
    report.mustBeZero("tokens_not_growing", ledger.tokensNotGrowing());
    report.mustBeZero("beliefs_beside_another", ledger.beliefsBesideAnother());
    report.mustBeZero("beliefs_without_the_lock", ledger.beliefsWithoutTheLock());
    report.mustBeZero("writes_out_of_turn", ledger.writesOutOfTurn());
    report.mustBeZero("lost_writes", ledger.lostWrites());
    Duration vacancy = ledger.longestVacancy();
    report.figure("longest_vacancy_s", Report.round(vacancy.toMillis() / 1e3));
    if (vacancy.compareTo(AFTER_THE_PERIOD.plus(slack)) > 0) {
      report.breach("nobody took the lock for longer than 2 s after its period");
    }
  }
}
