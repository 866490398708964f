package dev.outbox4j.timer.internal;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.timer.CatchUp;
import dev.outbox4j.timer.Cause;
import dev.outbox4j.timer.OverlapPolicy;
import dev.outbox4j.timer.Schedule;
import dev.outbox4j.timer.Timer;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

class TickPlannerTest {
  private static final Duration A_MINUTE = Duration.ofMinutes(1);
  private static final Timer HOURLY = Timer.of("t", Schedule.cron("0 0 * * * *"));
  private static final Timer OF_SECONDS =
      Timer.of("t", Schedule.every(Duration.ofSeconds(1))).keepState(true);

  @Test
  void anInstantIsOnTimeUpToTheThresholdAndLateAfterIt() {
    Timer timer = HOURLY.catchUp(CatchUp.NONE).onTime(Duration.ofSeconds(60));
    TimerRecord record = TimerRecord.first(timer, null, at("10:30"));

    assertThat(TestPlans.runs(TickPlanner.plan(timer, record, at("11:01"))))
        .containsExactly("SCHEDULED 11:00 BEGINS");
    TickPlan late = TickPlanner.plan(timer, record, at("11:01").plusNanos(1));
    assertThat(TestPlans.runs(late)).isEmpty();
    assertThat(late.notRun()).isEqualTo(1);
  }

  @Test
  void anInstantIsWithinTheWindowUpToItsLength() {
    Timer timer = HOURLY.catchUpWindow(Duration.ofMinutes(30));
    TimerRecord record = TimerRecord.first(timer, null, at("10:30"));

    assertThat(TestPlans.runs(TickPlanner.plan(timer, record, at("11:30"))))
        .containsExactly("CATCH_UP 11:00 BEGINS for 1 since 11:00");
    assertThat(TestPlans.runs(TickPlanner.plan(timer, record, at("11:30").plusNanos(1)))).isEmpty();
  }

  @Test
  void aTimerThatNeverRanAndWasDownAtItsFirstInstantCatchesItUp() {
    TimerRecord record = TimerRecord.first(HOURLY, null, at("10:59"));

    assertThat(TestPlans.runs(TickPlanner.plan(HOURLY, record, at("11:59"))))
        .containsExactly("CATCH_UP 11:00 BEGINS for 1 since 11:00");
  }

  /** Old and new nodes run at once in a deployment. */
  @Test
  void theLimitIsThatOfTheNodeThatRegisteredLast() {
    TimerRecord limited = TimerRecord.first(HOURLY.limitedTo(5), null, at("10:59"));
    TickPlan byOld = TickPlanner.plan(HOURLY, limited, at("11:00"));
    assertThat(byOld.runsLeft()).isEqualTo(4);
    assertThat(byOld.next()).contains(at("12:00"));

    TimerRecord unlimited = TimerRecord.first(HOURLY, null, at("10:59"));
    TickPlan withLimit = TickPlanner.plan(HOURLY.limitedTo(5), unlimited, at("11:00"));
    assertThat(TestPlans.runs(withLimit)).containsExactly("SCHEDULED 11:00 BEGINS");
    assertThat(withLimit.next()).contains(at("12:00"));
  }

  @Test
  void aTimerWithoutStateCatchesNothingUp() {
    Timer timer = HOURLY.keepState(false).catchUp(CatchUp.ALL);
    TimerRecord record = TimerRecord.first(timer, null, at("10:59"));

    assertThat(TestPlans.runs(TickPlanner.plan(timer, record, at("13:30")))).isEmpty();
  }

  @Test
  void missedInstantsAndOneOnTimeAreTwoRuns() {
    TimerRecord record = TimerRecord.first(HOURLY, null, at("10:30"));

    assertThat(TestPlans.runs(TickPlanner.plan(HOURLY, record, at("13:00"))))
        .containsExactly("CATCH_UP 12:00 BEGINS for 2 since 11:00", "SCHEDULED 13:00 WAITS");
  }

  @Test
  void aDeploymentAsksOnceAndSoDoesTheNextOne() {
    Timer timer = HOURLY.runOnStartup();
    TimerRecord first = TimerRecord.first(timer, "v1", at("10:30"));
    TimerRecord made = after(first, TickPlanner.plan(timer, first, at("10:31")));

    assertThat(TestPlans.runs(TickPlanner.plan(timer, first, at("10:31"))))
        .containsExactly("STARTUP 10:30 BEGINS");
    assertThat(made.startup()).isNull();
    assertThat(made.registered(timer, "v1", at("10:32")).startup()).isNull();
    assertThat(made.registered(timer, "v2", at("10:32")).startup()).isEqualTo(at("10:32"));
    assertThat(made.registered(HOURLY, "v2", at("10:32")).startup()).isNull();
  }

  @Test
  void onlyInstantsFromItsStartToItsEndCount() {
    Timer timer = HOURLY.startingAt(at("12:00")).endingAt(at("13:00")).catchUp(CatchUp.ALL);
    TimerRecord record = TimerRecord.first(timer, null, at("10:30"));

    TickPlan before = TickPlanner.plan(timer, record, at("11:30"));
    assertThat(TestPlans.runs(before)).isEmpty();
    assertThat(before.next()).contains(at("12:00"));
    TickPlan after = TickPlanner.plan(timer, record, at("15:30"));
    assertThat(TestPlans.runs(after))
        .containsExactly(
            "CATCH_UP 12:00 BEGINS for 1 since 12:00", "CATCH_UP 13:00 WAITS for 1 since 13:00");
    assertThat(after.next()).isEmpty();
  }

  @Test
  void aLimitCountsRunsAndNotInstantsThatAreSkipped() {
    Timer timer = HOURLY.limitedTo(2).overlap(OverlapPolicy.SKIP);
    SimulatedTimer simulated = new SimulatedTimer(timer, at("09:59"), Duration.ofMinutes(90));

    simulated.runUntil(at("15:00"));

    assertThat(simulated.events())
        .containsExactly(
            "10:00 begins 10:00",
            "11:00 skips 11:00",
            "11:30 ends 10:00",
            "12:00 begins 12:00",
            "13:30 ends 12:00");
    assertThat(simulated.record().runsLeft()).isZero();
    assertThat(simulated.record().registered(timer, null, at("15:00")).runsLeft()).isZero();
    assertThat(simulated.record().registered(timer.limitedTo(5), null, at("15:00")).runsLeft())
        .isEqualTo(5);
  }

  @Test
  void aRunThatIsReplacedWhileItWaitsDoesNotCountForTheLimit() {
    SimulatedTimer simulated =
        new SimulatedTimer(
            HOURLY.limitedTo(2).overlap(OverlapPolicy.CANCEL_OTHER),
            at("09:59"),
            Duration.ofMinutes(150));

    simulated.runUntil(at("16:00"));

    assertThat(simulated.events().stream().filter(event -> event.contains("begins")))
        .containsExactly("10:00 begins 10:00", "12:30 begins 11:00");
  }

  @Test
  void aPausedTimerDecidesNoInstantAndBeginsOnlyWhatSomebodyAskedFor() {
    SimulatedTimer simulated = new SimulatedTimer(HOURLY, at("09:59"), Duration.ofMinutes(30));
    simulated.add(at("09:00"), Cause.BACKFILL);
    simulated.add(at("09:59"), Cause.MANUAL);
    simulated.pause(true);

    simulated.tick(at("12:00"));

    assertThat(simulated.events()).containsExactly("12:00 begins 09:59");
    assertThat(simulated.record().cursor()).isEqualTo(at("09:59"));
  }

  @Test
  void whatSomebodyAskedForWaitsItsTurnAndIsNotSkipped() {
    SimulatedTimer simulated =
        new SimulatedTimer(HOURLY.overlap(OverlapPolicy.SKIP), at("09:59"), Duration.ofMinutes(90));
    simulated.add(at("05:00"), Cause.BACKFILL);
    simulated.add(at("06:00"), Cause.BACKFILL);
    simulated.add(at("09:30"), Cause.MANUAL);

    simulated.runUntil(at("14:30"));

    assertThat(simulated.events())
        .containsExactly(
            "10:00 begins 05:00",
            "10:00 skips 10:00",
            "11:00 skips 11:00",
            "11:30 ends 05:00",
            "11:30 begins 06:00",
            "12:00 skips 12:00",
            "13:00 ends 06:00",
            "13:00 begins 09:30",
            "13:00 skips 13:00",
            "14:00 skips 14:00",
            "14:30 ends 09:30");
  }

  @Test
  void whatSomebodyAskedForWaitsOnWhereAnInstantTakesItsPlace() {
    for (OverlapPolicy policy :
        List.of(OverlapPolicy.TERMINATE_OTHER, OverlapPolicy.CANCEL_OTHER)) {
      Timer timer = HOURLY.overlap(policy).limitedTo(5);
      SimulatedTimer simulated = new SimulatedTimer(timer, at("09:59"), Duration.ofMinutes(30));
      simulated.add(at("09:30"), Cause.MANUAL);

      simulated.runUntil(at("10:30"));

      assertThat(simulated.events())
          .as(policy.name())
          .containsExactly("10:00 begins 10:00", "10:30 ends 10:00", "10:30 begins 09:30");
      assertThat(simulated.record().runsLeft()).isEqualTo(4);
    }
  }

  /** Of 25,000 missed seconds. */
  @Test
  void manyMissedInstantsAreCountedInSeveralTicksAndRunOnce() {
    TimerRecord record = TimerRecord.first(OF_SECONDS, null, at("01:00"));
    Instant now = at("01:00").plusSeconds(25_000);
    List<TickPlan> plans = new ArrayList<>();
    do {
      TickPlan plan = TickPlanner.plan(OF_SECONDS, record, now);
      record = after(record, plan);
      plans.add(plan);
    } while (plans.get(plans.size() - 1).next().equals(Optional.of(now)));

    List<PlannedRun> caughtUp =
        plans.stream()
            .flatMap(plan -> plan.runs().added().stream())
            .filter(run -> run.cause() == Cause.CATCH_UP)
            .toList();
    assertThat(plans).hasSize(3);
    assertThat(caughtUp).hasSize(1);
    Instant latest = now.minus(A_MINUTE).minusSeconds(1);
    assertThat(caughtUp.get(0).missed())
        .isEqualTo(new Missed(at("01:00").plusSeconds(1), latest, 25_000 - 61));
    assertThat(plans.stream().mapToLong(TickPlan::notRun).sum()).isZero();
  }

  /** Of 2,500 missed minutes, with runs that end at once. */
  @Test
  void ofAllThatWereMissedAtMostAThousandWaitAndNoneIsLost() {
    Timer timer =
        Timer.of("t", Schedule.every(A_MINUTE)).catchUp(CatchUp.ALL).onTime(Duration.ZERO);
    Instant registered = at("00:00").minus(Duration.ofDays(2));
    Instant now = registered.plus(A_MINUTE.multipliedBy(2_500)).plusSeconds(30);
    TimerRecord record = TimerRecord.first(timer, null, registered);
    List<Instant> begun = new ArrayList<>();
    int most = 0;
    do {
      TickPlan plan = TickPlanner.plan(timer, record, now);
      record = after(record, plan);
      most = Math.max(most, record.open().size());
      record.open().stream().filter(OpenRun::begun).map(OpenRun::instant).forEach(begun::add);
      record = ended(record);
    } while (!record.open().isEmpty());

    assertThat(begun)
        .isEqualTo(
            IntStream.rangeClosed(1, 2_500)
                .mapToObj(nth -> registered.plus(A_MINUTE.multipliedBy(nth)))
                .toList());
    assertThat(most).isEqualTo(TickPlanner.MOST_WAITING + 1);
  }

  @Test
  void aClockThatWasSetBackMovesNothingBack() {
    TimerRecord record = TimerRecord.first(HOURLY, null, at("12:00"));

    TickPlan plan = TickPlanner.plan(HOURLY, record, at("09:30"));

    assertThat(plan.cursor()).isEqualTo(at("12:00"));
    assertThat(plan.runs().added()).isEmpty();
    assertThat(plan.next()).contains(at("13:00"));
    TimerRecord changed =
        record.registered(Timer.of("t", Schedule.cron("0 30 * * * *")), null, at("09:30"));
    assertThat(changed.cursor()).isEqualTo(at("12:00"));
  }

  private static TimerRecord after(TimerRecord record, TickPlan plan) {
    long[] id = {record.open().stream().mapToLong(OpenRun::id).max().orElse(0)};
    List<OpenRun> open =
        Stream.concat(
                record.open().stream()
                    .map(
                        run ->
                            plan.runs().begun().contains(run.id())
                                ? new OpenRun(run.id(), run.instant(), run.cause(), "", true)
                                : run),
                plan.runs().added().stream()
                    .filter(run -> run.fate() != PlannedRun.Fate.SKIPPED)
                    .map(
                        run ->
                            new OpenRun(
                                ++id[0],
                                run.instant(),
                                run.cause(),
                                "",
                                run.fate() == PlannedRun.Fate.BEGINS)))
            .toList();
    return Changed.from(record).by(plan).open(open).record();
  }

  private static TimerRecord ended(TimerRecord record) {
    return Changed.from(record)
        .open(record.open().stream().filter(run -> !run.begun()).toList())
        .record();
  }

  private static Instant at(String time) {
    return Instant.parse("2026-11-24T" + time + ":00Z");
  }
}
