package dev.outbox4j.timer.internal;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.timer.CatchUp;
import dev.outbox4j.timer.Schedule;
import dev.outbox4j.timer.Timer;
import dev.outbox4j.timer.TimerAlert;
import dev.outbox4j.timer.TimerAlert.Rule;
import dev.outbox4j.timer.TimerStatus;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** What somebody is told to look at, to the limit of each rule and beyond. */
class AlertsTest {
  private static final Instant NOON = Instant.parse("2026-03-02T12:00:00Z");
  private static final Duration HOUR = Duration.ofHours(1);
  private static final Timer HOURLY = Timer.of("hourly", Schedule.every(HOUR));

  /** A status in which nothing is wrong, registered three hours ago. */
  private static final class Status {
    private String schedule = Instants.description(HOURLY);
    private @Nullable Instant due = NOON.plus(HOUR);
    private TimerStatus.@Nullable Started oldestStarted;
    private @Nullable Instant lastSuccess;
    private @Nullable Instant lastInstant = NOON;
    private Instant countsFrom = NOON.minus(HOUR.multipliedBy(3));
    private TimerStatus.@Nullable Pause pause;
    private long waiting;
    private OptionalLong runsLeft = OptionalLong.empty();

    private Status withoutDue() {
      due = null;
      return this;
    }

    private Status paused() {
      pause = new TimerStatus.Pause(NOON, "ann", "no paper");
      return withoutDue();
    }

    private TimerStatus at(Instant now) {
      Instant registered = NOON.minus(HOUR.multipliedBy(3));
      Duration overdue =
          due == null || due.isAfter(now) ? Duration.ZERO : Duration.between(due, now);
      return new TimerStatus(
          "hourly",
          schedule,
          registered,
          Optional.ofNullable(due),
          overdue,
          Optional.ofNullable(pause),
          0,
          waiting,
          oldestStarted == null ? 0 : 1,
          Optional.ofNullable(oldestStarted),
          Optional.ofNullable(lastSuccess),
          Duration.between(lastSuccess == null ? registered : lastSuccess, now),
          Optional.ofNullable(lastInstant),
          countsFrom,
          runsLeft,
          now);
    }
  }

  private static List<TimerAlert> ask(Timer timer, Status status, Instant now) {
    return Alerts.of(List.of(timer), List.of(status.at(now)), now);
  }

  private static TimerAlert alert(Rule rule, Instant since, Duration lasting) {
    return alert(rule, since, lasting, 0);
  }

  private static TimerAlert alert(Rule rule, Instant since, Duration lasting, int instants) {
    return new TimerAlert(rule, "hourly", since, lasting, Optional.empty(), instants);
  }

  @Test
  void nothingIsToldOfWhatIsWell() {
    assertThat(ask(HOURLY, new Status(), NOON.plus(HOUR))).isEmpty();
    assertThat(ask(HOURLY.withoutBackfill(), new Status(), NOON.plus(HOUR))).isEmpty();
  }

  @Test
  void whatNobodyDecidesOnForMoreThanAMinuteIsOverdue() {
    Status status = new Status();
    Instant due = NOON.plus(HOUR);

    assertThat(ask(HOURLY, status, due.plusSeconds(60))).isEmpty();
    assertThat(ask(HOURLY, status, due.plusSeconds(61)))
        .containsExactly(alert(Rule.OVERDUE, due, Duration.ofSeconds(61), 1));
  }

  @Test
  void overdueInstantsAreCountedUpToALimit() {
    Status status = new Status();
    Instant due = NOON.plus(HOUR);

    assertThat(ask(HOURLY, status, due.plus(HOUR.multipliedBy(2))))
        .containsExactly(alert(Rule.OVERDUE, due, HOUR.multipliedBy(2), 3));
    assertThat(ask(HOURLY, status, due.plus(Duration.ofDays(100))))
        .extracting(TimerAlert::instants)
        .containsExactly(TimerAlert.MOST_INSTANTS);
    status.schedule = "every PT24H";
    assertThat(ask(HOURLY, status, due.plus(HOUR)))
        .as("of another schedule nobody can tell")
        .containsExactly(alert(Rule.OVERDUE, due, HOUR, 0));
  }

  @Test
  void aRunThatLastsLongerThanItsLimitHangs() {
    TimerStatus.Started run = new TimerStatus.Started(17, NOON.minusSeconds(5), NOON);
    Status status = new Status();
    status.oldestStarted = run;
    status.due = NOON.plus(Duration.ofDays(1));

    assertThat(ask(HOURLY, status, NOON.plus(HOUR))).isEmpty();
    assertThat(ask(HOURLY, status, NOON.plus(HOUR).plusMillis(1)))
        .containsExactly(
            new TimerAlert(Rule.HUNG, "hourly", NOON, HOUR.plusMillis(1), Optional.of(run), 0));
    assertThat(
            ask(HOURLY.alertWhenRunningFor(Duration.ofMinutes(5)), status, NOON.plusSeconds(301)))
        .extracting(TimerAlert::rule)
        .containsExactly(Rule.HUNG);
  }

  @Test
  void anInstantWithoutARunIsMissedAfterItsGrace() {
    Timer timer = HOURLY.alertWhenMissedFor(Duration.ofMinutes(10));
    Status status = new Status();
    status.due = NOON.plus(Duration.ofDays(1)); // it was decided, and not run
    Instant missed = NOON.plus(HOUR);

    assertThat(ask(timer, status, missed.plus(Duration.ofMinutes(10)))).isEmpty();
    assertThat(ask(timer, status, missed.plus(Duration.ofMinutes(11))))
        .containsExactly(alert(Rule.MISSED, missed, Duration.ofMinutes(11), 1));
    assertThat(ask(timer, status, missed.plus(HOUR.multipliedBy(2))))
        .as("the last instant is within its grace")
        .containsExactly(alert(Rule.MISSED, missed, HOUR.multipliedBy(2), 2));
    assertThat(ask(timer.jitter(Duration.ofMinutes(2)), status, missed.plusSeconds(11 * 60)))
        .isEmpty();
    status.lastInstant = missed;
    assertThat(ask(timer, status, missed.plus(Duration.ofMinutes(11)))).isEmpty();
  }

  @Test
  void whatHasAnotherScheduleOnRecordIsNotMissed() {
    Timer timer = HOURLY.alertWhenMissedFor(Duration.ZERO);
    Status status = new Status();
    status.due = NOON.plus(Duration.ofDays(1));
    status.schedule = "every PT24H";

    assertThat(ask(timer, status, NOON.plus(Duration.ofHours(5)))).isEmpty();
  }

  @Test
  void withoutAnyRunInstantsCountFromTheRegistrationOrTheResume() {
    Timer timer = HOURLY.alertWhenMissedFor(Duration.ZERO);
    Status status = new Status();
    status.lastInstant = null;
    status.due = NOON.plus(Duration.ofDays(1));

    assertThat(ask(timer, status, NOON))
        .containsExactly(
            alert(Rule.MISSED, NOON.minus(HOUR.multipliedBy(2)), HOUR.multipliedBy(2), 2));
    status.countsFrom = NOON.minusSeconds(1);
    assertThat(ask(timer, status, NOON)).isEmpty();
    assertThat(ask(timer, status, NOON.plusMillis(1)))
        .containsExactly(alert(Rule.MISSED, NOON, Duration.ofMillis(1), 1));
  }

  @Test
  void whatIsPausedIsNeitherOverdueNorMissed() {
    Timer timer = HOURLY.alertWhenMissedFor(Duration.ZERO).alertWithoutSuccessFor(HOUR);

    assertThat(ask(timer, new Status().paused(), NOON.plus(Duration.ofDays(2))))
        .extracting(TimerAlert::rule)
        .containsExactly(Rule.NO_SUCCESS);
  }

  /** Nothing is decided any more until one of those that wait has begun. */
  @Test
  void instantsAreMissedWhileAsManyRunsWaitAsMay() {
    Timer timer = HOURLY.catchUp(CatchUp.ALL).alertWhenMissedFor(Duration.ofMinutes(10));
    Status status = new Status().withoutDue();
    status.waiting = 1_000;
    Instant missed = NOON.plus(HOUR);

    assertThat(ask(timer, status, missed.plus(Duration.ofMinutes(10)))).isEmpty();
    assertThat(ask(timer, status, missed.plus(HOUR)))
        .containsExactly(alert(Rule.MISSED, missed, HOUR, 1));
    assertThat(ask(timer, status.paused(), missed.plus(HOUR))).isEmpty();
  }

  @Test
  void theLastInstantOfAllIsMissedThoughNothingIsDueAnyMore() {
    Instant last = NOON.plus(HOUR);
    Timer timer =
        HOURLY
            .endingAt(last.plus(Duration.ofMinutes(30)))
            .catchUp(CatchUp.NONE)
            .alertWhenMissedFor(Duration.ofMinutes(10));
    Status status = new Status().withoutDue();
    status.schedule = Instants.description(timer);
    Duration threeDays = Duration.ofDays(3);

    assertThat(ask(timer, status, last.plus(Duration.ofMinutes(10)))).isEmpty();
    assertThat(ask(timer, status, last.plus(threeDays)))
        .as("none comes after the end")
        .containsExactly(alert(Rule.MISSED, last, threeDays, 1));
    status.lastInstant = last;
    assertThat(ask(timer, status, last.plus(threeDays))).isEmpty();
  }

  @Test
  void aTimerThatHasUsedUpItsRunsMissesNone() {
    Timer timer = HOURLY.alertWhenMissedFor(Duration.ZERO).limitedTo(3);
    Status status = new Status().withoutDue();
    status.runsLeft = OptionalLong.of(0);

    assertThat(ask(timer, status, NOON.plus(Duration.ofDays(2)))).isEmpty();
    status.runsLeft = OptionalLong.of(1);
    assertThat(ask(timer, status, NOON.plus(HOUR.multipliedBy(3))))
        .as("no more than there are runs for")
        .containsExactly(alert(Rule.MISSED, NOON.plus(HOUR), HOUR.multipliedBy(2), 1));
  }

  @Test
  void noSuccessForStrictlyLongerThanTheLimitIsTold() {
    Timer timer = HOURLY.alertWithoutSuccessFor(HOUR);
    Status status = new Status();
    status.due = NOON.plus(Duration.ofDays(1));
    status.lastSuccess = NOON;

    assertThat(ask(timer, status, NOON.plus(HOUR))).isEmpty();
    assertThat(ask(timer, status, NOON.plus(HOUR).plusMillis(1)))
        .containsExactly(alert(Rule.NO_SUCCESS, NOON, HOUR.plusMillis(1)));
    status.lastSuccess = null;
    assertThat(ask(timer, status, NOON))
        .containsExactly(
            alert(Rule.NO_SUCCESS, NOON.minus(HOUR.multipliedBy(3)), HOUR.multipliedBy(3)));
  }

  @Test
  void whatWasNeverPutOnRecordIsTold() {
    assertThat(Alerts.of(List.of(HOURLY), List.of(), NOON))
        .containsExactly(alert(Rule.NOT_ON_RECORD, NOON, Duration.ZERO));
  }

  @Test
  void aScheduleThatThrowsIsTold() {
    Schedule broken =
        new Schedule() {
          @Override
          public Optional<Instant> next(Instant after) {
            throw new IllegalStateException("no calendar");
          }

          @Override
          public String description() {
            return "broken";
          }
        };
    Timer timer = Timer.of("hourly", broken).alertWhenMissedFor(HOUR);

    Status status = new Status();
    status.schedule = "broken";

    assertThat(ask(timer, status, NOON))
        .containsExactly(alert(Rule.SCHEDULE_FAILS, NOON, Duration.ZERO));
    Instant later = NOON.plus(HOUR.multipliedBy(3));
    assertThat(ask(timer, status, later))
        .containsExactly(
            alert(Rule.OVERDUE, NOON.plus(HOUR), HOUR.multipliedBy(2)),
            alert(Rule.SCHEDULE_FAILS, later, Duration.ZERO));
  }
}
