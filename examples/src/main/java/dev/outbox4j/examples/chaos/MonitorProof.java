package dev.outbox4j.examples.chaos;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.examples.chaos.MonitorLedger.Hit;
import dev.outbox4j.migrations.MonitorMigrations;
import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.monitor.Json;
import dev.outbox4j.monitor.MonitorAnswer;
import dev.outbox4j.monitor.MonitorControl;
import dev.outbox4j.monitor.MonitorStart;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import java.io.IOException;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.OptionalInt;
import java.util.Random;

/**
 * Shows what is promised of monitors at size: many instances wait and are checked at once, people
 * do to some of them whatever people do, the processes that check them are killed and frozen, and
 * the server's own record tells what was committed, told and ended when. Exits non-zero for any
 * breach. {@code docs/operations/fault-harness.md} has its options.
 */
public final class MonitorProof {
  private static final Duration LEASE = Duration.ofSeconds(5);
  private static final Duration LONGEST_OVERSHOOT = Duration.ofSeconds(1);
  private static final Duration AFTER_THE_LEASE = Duration.ofSeconds(2);
  private static final Duration FREEZE = Duration.ofSeconds(8);
  private static final Duration LONG_FREEZE = Duration.ofSeconds(70);
  private static final Duration LONGEST_WAKE = Duration.ofSeconds(30);
  private static final Duration LONGEST_ABSENCE = Duration.ofSeconds(3);
  private static final Duration LONGEST_WITHOUT_END = Duration.ofSeconds(60);
  private static final int SHORTEST_LIFE = 30;
  private static final int LONGEST_LIFE = 240;
  private static final int LEAST_CHECKS = 5;
  private static final int MOST_CHECKS = 40;
  private static final int STARTED_AT_ONCE = 100;
  private static final double LEAST_ALIVE = 0.95;
  private static final int ONE_OF_SO_MANY_NEVER_MET = 3;

  private final Report report = new Report();
  private final Path directory;
  private final Server server;
  private final MonitorLedger ledger;
  private final Random random;
  private final Duration slack;
  private final long seconds;
  private final int instances;
  private final ProofProcesses processes;
  private final FrozenCommit frozenCommit;
  private volatile long number; // committed
  private boolean killedInOvertime;
  private int frozenSlot = -1;
  private long frozenAt;

  private MonitorProof(Path directory, Server server, long seed) {
    this.directory = directory;
    this.server = server;
    this.ledger = new MonitorLedger(server.direct());
    this.random = new Random(seed);
    this.slack = Duration.ofSeconds(Long.parseLong(Options.property("slack", "0")));
    this.seconds = Long.parseLong(Options.property("seconds", "600"));
    this.instances = Integer.parseInt(Options.property("instances", "10000"));
    this.processes =
        new ProofProcesses(
            Integer.parseInt(Options.property("processes", "4")),
            directory,
            MonitorNode.class,
            (name, slot) ->
                List.of(
                    name, server.ports(), Long.toString(LEASE.toSeconds()), directory.toString()),
            report);
    this.frozenCommit = new FrozenCommit(server.direct(), ledger, processes);
  }

  /** Takes no arguments. */
  public static void main(String[] arguments)
      throws IOException, InterruptedException, SQLException {
    ProofProcesses.prove(
        "monitor",
        (directory, server, seed) -> new MonitorProof(directory, server, seed).run(seed));
  }

  private boolean run(long seed) throws IOException, InterruptedException, SQLException {
    report.about(server, seed, slack);
    report.figure("seconds", seconds);
    report.figure("processes", processes.size());
    report.figure("instances_at_once", instances);
    report.figure("lease_s", LEASE.toSeconds());
    OutboxMigrations.standard().migrate(server.direct());
    MonitorMigrations.of("public", "outbox").migrate(server.direct());
    ledger.create();
    try (HikariDataSource pool = Database.pool(server.ports(), 2, "starts", false)) {
      PostgresOutbox outbox = PostgresOutbox.on(pool, OutboxTable.named("outbox"));
      MonitorControl control = MonitorControl.of(outbox, MonitorNode.APPLICATION);
      processes.startAll();
      topUp(pool, control);
      awaitFirstChecks();
      MonitorPeople people =
          new MonitorPeople(server.ports(), ledger, seed, () -> number, instances);
      people.begin();
      try {
        strike(pool, control);
      } finally {
        people.end().ifPresent(why -> report.breach("people had to stop: " + why));
      }
      report.mustBeZero("stuck", awaitEnds());
    } finally {
      processes.killAll();
    }
    judge();
    return report.conclude();
  }

  /** Kills and freezes, and starts as many instances as have ended. */
  private void strike(HikariDataSource pool, MonitorControl control)
      throws IOException, InterruptedException, SQLException {
    long begun = System.nanoTime();
    long until = begun + Duration.ofSeconds(seconds).toNanos();
    long next = begun;
    int killed = 0;
    int frozen = 0;
    long held = 0;
    int looks = 0;
    long alive = 0;
    while (System.nanoTime() < until) {
      alive += topUp(pool, control);
      looks++;
      boolean well = ledger.alive() >= instances;
      freezeOrThaw(well && System.nanoTime() - begun > (until - begun) / 3);
      boolean kills = killed <= frozen;
      OptionalInt victim =
          System.nanoTime() - next >= 0 && well ? victim(kills) : OptionalInt.empty();
      if (victim.isPresent()) {
        int slot = victim.getAsInt();
        Worker process = processes.get(slot);
        long at = RunLog.now();
        process.signal("STOP"); // so that it has what it has when it is written down
        held += ledger.hit(process.name(), kills, at);
        if (kills) {
          killedInOvertime |= ledger.inOvertimeOf(process.name()) > 0;
          Report.say("kill %s".formatted(process.name()));
          process.kill();
          killed++;
          Watch.pause(Duration.ofMillis(random.nextInt((int) LONGEST_ABSENCE.toMillis())));
          processes.start(slot);
        } else {
          Report.say("freeze %s".formatted(process.name()));
          Watch.pause(FREEZE);
          process.signal("CONT");
          frozen++;
        }
        next = System.nanoTime() + Duration.ofMillis(5_000 + random.nextInt(10_000)).toNanos();
      }
      Watch.pause(Duration.ofMillis(500));
    }
    thaw();
    report.requireSome("processes_killed", killed);
    report.requireSome("processes_frozen", frozen);
    report.requireSome("messages_of_the_killed_and_frozen", held);
    long average = alive / Math.max(1, looks);
    report.figure("instances_alive_on_average", average);
    if (average < instances * LEAST_ALIVE) {
      report.breach("on average %d instances were alive, of %d".formatted(average, instances));
    }
  }

  /** One goes on at least, whatever stands still. */
  private boolean mayBeHit(int slot) {
    return frozenSlot < 0 || (slot != frozenSlot && processes.size() > 2);
  }

  /**
   * A process that has messages in hand, since to hit another would show nothing; the first that is
   * killed is one in which a check goes on past the expiry. Of few instances there may be none now.
   */
  private OptionalInt victim(boolean kills) throws SQLException {
    int first = random.nextInt(processes.size());
    for (int i = 0; i < processes.size(); i++) {
      int slot = (first + i) % processes.size();
      String name = processes.get(slot).name();
      boolean inOvertime = kills && !killedInOvertime;
      if (mayBeHit(slot) && (inOvertime ? ledger.inOvertimeOf(name) : ledger.inHandOf(name)) > 0) {
        return OptionalInt.of(slot);
      }
    }
    return OptionalInt.empty();
  }

  /** Once in a run a process stands still for long in the middle of a commit, beside the others. */
  private void freezeOrThaw(boolean mayFreeze)
      throws IOException, InterruptedException, SQLException {
    if (frozenAt == 0 && mayFreeze) {
      frozenSlot = frozenCommit.tryOnce().orElse(-1);
      if (frozenSlot >= 0) {
        frozenAt = System.nanoTime();
        Report.say("freeze %s in its commit".formatted(processes.get(frozenSlot).name()));
      }
    } else if (frozenSlot >= 0 && System.nanoTime() - frozenAt > LONG_FREEZE.toNanos()) {
      thaw();
    }
  }

  private void thaw() throws IOException, InterruptedException {
    if (frozenSlot >= 0) {
      processes.get(frozenSlot).signal("CONT");
      frozenSlot = -1;
      Duration frozen = Duration.ofNanos(System.nanoTime() - frozenAt);
      report.figure("frozen_in_a_commit_for_s", seconds(frozen));
    }
  }

  /** Returns how many were alive. */
  private long topUp(HikariDataSource pool, MonitorControl control) throws SQLException {
    long alive = ledger.alive();
    for (long missing = instances - alive; missing > 0; missing -= STARTED_AT_ONCE) {
      long last = number + Math.min(STARTED_AT_ONCE, missing);
      try (Connection connection = pool.getConnection()) {
        connection.setAutoCommit(false);
        for (long id = number + 1; id <= last; id++) {
          control.start(connection, start(id));
        }
        connection.commit();
        connection.setAutoCommit(true);
      }
      number = last;
    }
    return alive;
  }

  private MonitorStart start(long id) {
    boolean neverMet = random.nextInt(ONE_OF_SO_MANY_NEVER_MET) == 0;
    int met = neverMet ? 0 : random.nextInt(LEAST_CHECKS, MOST_CHECKS + 1);
    int life = neverMet ? random.nextInt(SHORTEST_LIFE, LONGEST_LIFE + 1) : 2 * 11 * MOST_CHECKS;
    return MonitorStart.of(MonitorNode.TYPE, Json.of(Integer.toString(met)))
        .id(Long.toString(id))
        .firstCheckIn(Duration.ofMillis(random.nextInt(10_000)))
        .expiresAfter(Duration.ofSeconds(life));
  }

  /** Processes that have just started are slow, and all that is there is due at once. */
  private void awaitFirstChecks() throws SQLException {
    long until = System.nanoTime() + LONGEST_WITHOUT_END.toNanos();
    while (ledger.notChecked() > 0 && System.nanoTime() < until) {
      Watch.pause(Duration.ofMillis(500));
    }
    report.mustBeZero("not_checked_before_the_first_fault", ledger.notChecked());
  }

  /** All end by themselves; returns how many have not. */
  private long awaitEnds() throws SQLException {
    long alive = ledger.alive();
    long until = System.nanoTime() + LONGEST_WITHOUT_END.toNanos();
    while (alive > 0 && System.nanoTime() < until) {
      Watch.pause(Duration.ofMillis(500));
      long now = ledger.alive();
      if (now < alive) {
        until = System.nanoTime() + LONGEST_WITHOUT_END.toNanos();
      }
      alive = now;
    }
    return alive;
  }

  private void judge() throws IOException, SQLException {
    ledger.take(LongChecks.read(directory));
    ledger.index();
    report.figure("instances", ledger.started());
    report.requireSome("checks_committed", ledger.commits());
    report.figure("checks_run", RunLog.count(directory, RunLog.DONE));
    report.requireSome("checks_failed", RunLog.count(directory, RunLog.FAILED));
    report.requireSome("conditions_met", ledger.ended("completed", "condition_met"));
    report.requireSome("expired", ledger.ended("completed", "expired"));
    report.requireSome("expired_in_a_check", ledger.expiredInACheck());
    report.requireSome("expired_in_a_check_of_the_killed", ledger.expiredInACheckOfTheKilled());
    report.figure("cut_off", ledger.cutOff());
    report.figure(
        "longest_begin_behind_the_expiry_s", seconds(ledger.longestBeginBehindTheExpiry()));
    report.mustBeZero("failed", ledger.ended("failed", ""));
    report.mustBeZero("committed_twice", ledger.committedTwice());
    report.mustBeZero("left_out", ledger.leftOut());
    report.mustBeZero("not_of_their_check", ledger.notOfTheirCheck());
    report.mustBeZero("checked_early", ledger.checkedEarly());
    ledger.recordsOfTheEarly().forEach(Report::say);
    report.mustBeZero("expired_early", ledger.expiredEarly());
    report.mustBeZero("vanished", number - ledger.started());
    report.mustBeZero("ended_twice", ledger.endedTwice());
    report.mustBeZero("committed_after_the_end", ledger.committedAfterTheEnd());
    report.mustBeZero("conditions_untold", ledger.untold());
    report.mustBeZero("told_too_often", ledger.toldTooOften());
    judgeAnswers();
    report.figure("delay_p50_s", seconds(ledger.delayOf(0.5)));
    report.figure("delay_p99_s", seconds(ledger.delayOf(0.99)));
    boundOvershoot("longest_overshoot_s", Hit.NONE, LONGEST_OVERSHOOT);
    boundOvershoot("longest_overshoot_of_the_killed_s", Hit.KILLED, LONGEST_OVERSHOOT);
    // transactions of theirs may stand open for as long as a lease
    Duration ofFrozen = LEASE.plus(AFTER_THE_LEASE);
    boundOvershoot("longest_overshoot_of_the_frozen_s", Hit.FROZEN, ofFrozen);
    bound("longest_overshoot_beside_people_s", ledger.longestOvershootOfThoseOfPeople(), ofFrozen);
    report.figure("longest_delay_s", seconds(ledger.longestDelay(false)));
    report.figure("longest_delay_of_the_killed_and_frozen_s", seconds(ledger.longestDelay(true)));
  }

  /** Of what people did. */
  private void judgeAnswers() throws SQLException {
    report.requireSome("frozen_in_a_commit", frozenAt == 0 ? 0 : 1);
    for (MonitorPeople.Verb verb : MonitorPeople.Verb.values()) {
      report.requireSome("done_" + verb.label(), ledger.deeds(verb, MonitorAnswer.DONE.name()));
    }
    report.figure("answers_of_the_ended", ledger.deeds(MonitorAnswer.FINISHED.name()));
    report.figure("calls_refused_for_locks", ledger.deeds(MonitorPeople.REFUSED));
    report.requireSome("events_seen", ledger.eventsSeen());
    report.mustBeZero("answers_that_were_wrong", ledger.answersThatWereWrong());
    report.mustBeZero("answers_of_another_state", ledger.answersOfAnotherState());
    report.mustBeZero("events_seen_twice", ledger.eventsSeenTwice());
    report.mustBeZero("events_unseen", ledger.eventsUnseen());
    report.mustBeZero("events_of_nobody", ledger.eventsOfNobody());
    report.mustBeZero("checked_while_suspended", ledger.checkedWhileSuspended());
    Duration longestWake = LONGEST_WAKE.plus(slack);
    report.mustBeZero("wakes_in_vain", ledger.wakesInVain(longestWake));
    ledger.recordsOfTheWokenInVain(longestWake).forEach(Report::say);
  }

  private void boundOvershoot(String figure, Hit hit, Duration limit) throws SQLException {
    if (!bound(figure, ledger.longestOvershoot(hit), limit)) {
      ledger.recordsOfTheLate(hit).forEach(Report::say);
    }
  }

  /** Returns whether it holds. */
  private boolean bound(String figure, Duration value, Duration limit) {
    report.figure(figure, seconds(value));
    boolean holds = value.compareTo(limit.plus(slack)) <= 0;
    if (!holds) {
      report.breach("%s is %s; the limit is %s".formatted(figure, value, limit.plus(slack)));
    }
    return holds;
  }

  private static double seconds(Duration time) {
    return Report.round(time.toMillis() / 1e3);
  }
}
