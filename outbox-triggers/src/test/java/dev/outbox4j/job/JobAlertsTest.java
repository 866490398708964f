package dev.outbox4j.job;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.outbox4j.job.JobSample.Outcomes;
import dev.outbox4j.timer.TimerAlert;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class JobAlertsTest {
  private static final JobAlerts RULES = JobAlerts.standard();
  private static final Instant NOW = Instant.parse("2026-11-30T12:00:00Z");
  private static final Duration DAY = Duration.ofDays(1);

  private static JobSample outcomes(long completed, long dead, long before, long deadBefore) {
    return new JobSample(
        NOW,
        new Outcomes(completed, dead),
        new Outcomes(before, deadBefore),
        Optional.empty(),
        Optional.of(NOW),
        Optional.of(NOW));
  }

  private static JobSample oldest(@Nullable Duration age) {
    return new JobSample(
        NOW,
        Outcomes.NONE,
        Outcomes.NONE,
        Optional.ofNullable(age),
        Optional.of(NOW),
        Optional.of(NOW));
  }

  private static JobSample success(@Nullable Instant last, @Nullable Instant since) {
    return new JobSample(
        NOW,
        Outcomes.NONE,
        Outcomes.NONE,
        Optional.empty(),
        Optional.ofNullable(last),
        Optional.ofNullable(since));
  }

  @ParameterizedTest
  @CsvSource({
    "17, 3, 95, 5, false", // exactly 3 times
    "16, 4, 95, 5, true",
    "15, 4, 95, 5, false", // 19 outcomes
    "0, 20, 0, 0, true",
    "19, 1, 0, 0, true", // there was no dead letter before
    "19, 1, 1000, 0, true",
    "20, 0, 0, 0, false",
    "20, 0, 1000, 0, false",
    "0, 1000, 1, 1, false", // all of them, after half of them
    "0, 0, 95, 5, false"
  })
  void moreThanThreeTimesTheBaselineOfAtLeastTwentyOutcomes(
      long completed, long dead, long before, long deadBefore, boolean alert) {
    JobSample sample = outcomes(completed, dead, before, deadBefore);
    assertThat(RULES.deadLetterRatio(sample).isPresent()).isEqualTo(alert);
    assertThat(RULES.of(List.of(sample), List.of()))
        .extracting(JobAlert::rule)
        .isEqualTo(alert ? List.of(JobAlert.Rule.DEAD_LETTER_RATIO) : List.of());
  }

  @Test
  void saysWhatWasObserved() {
    assertThat(RULES.deadLetterRatio(outcomes(16, 4, 95, 5)).orElseThrow().detail())
        .isEqualTo("4 of 20 jobs of the last 15 min are dead letters, before it was 5.0 %");
  }

  private static boolean isRising(long... minutesBeyondADay) {
    List<JobSample> samples =
        IntStream.range(0, minutesBeyondADay.length)
            .mapToObj(i -> oldest(DAY.plusMinutes(minutesBeyondADay[i])))
            .toList();
    return RULES.oldestRising(samples).isPresent();
  }

  @Test
  void olderThanADayAndRisingOverThreeSamples() {
    assertThat(isRising(-10, -5, 1)).isTrue();
    assertThat(isRising(-10, -5, 0)).isFalse(); // exactly a day
    assertThat(isRising(1, 2, 3)).isTrue();
    assertThat(isRising(1, 3, 3)).isFalse();
    assertThat(isRising(3, 2, 4)).isFalse();
    assertThat(isRising(9, 1, 2, 3)).isTrue(); // the last three
    assertThat(isRising(1, 2)).isFalse();
    assertThat(RULES.oldestRising(List.of(oldest(DAY), oldest(null), oldest(DAY.plusHours(1)))))
        .isEmpty();
    assertThat(RULES.oldestRising(List.of())).isEmpty();
  }

  @Test
  void noSuccessForMoreThanThirtySixHours() {
    Instant limit = NOW.minus(Duration.ofHours(36));
    assertThat(RULES.noSuccess(success(limit, null))).isEmpty();
    assertThat(RULES.noSuccess(success(limit.minusMillis(1), null))).isPresent();
    assertThat(RULES.noSuccess(success(limit, limit.minus(DAY)))).isEmpty();
    assertThat(RULES.noSuccess(success(null, limit))).isEmpty();
    assertThat(RULES.noSuccess(success(null, limit.minusMillis(1)))).isPresent();
    assertThat(RULES.noSuccess(success(null, null))).isEmpty(); // never had a job
  }

  @Test
  void aMissedTimerIsOneAndOtherAlertsOfTimersAreNot() {
    List<TimerAlert> timers =
        List.of(
            new TimerAlert(
                TimerAlert.Rule.MISSED, "nightly", NOW, Duration.ofHours(1), Optional.empty(), 1),
            new TimerAlert(
                TimerAlert.Rule.HUNG, "hourly", NOW, Duration.ofHours(1), Optional.empty(), 0));
    assertThat(RULES.of(List.of(), timers))
        .containsExactly(
            new JobAlert(
                JobAlert.Rule.MISSED_TIMER,
                "timer nightly has missed an instant since 2026-11-30T12:00:00Z"));
  }

  @Test
  void refusesLimitsOutOfRange() {
    assertThatThrownBy(() -> new JobAlerts(0.9, 20, DAY, 3, DAY))
        .hasMessage("ratioFactor is 0.9; it must be 1 or more");
    assertThatThrownBy(() -> new JobAlerts(3, 0, DAY, 3, DAY)).hasMessageContaining("is 0; it");
    assertThatThrownBy(() -> new JobAlerts(3, 20, Duration.ZERO, 3, DAY))
        .hasMessage("oldest is PT0S; it must be more than zero");
    assertThatThrownBy(() -> new JobAlerts(3, 20, DAY, 1, DAY))
        .hasMessageContaining("risingSamples is 1; it must be 2 to");
    assertThatThrownBy(() -> new JobAlerts(3, 20, DAY, 3, DAY.negated()))
        .hasMessageContaining("withoutSuccess is PT-24H");
    assertThatThrownBy(() -> new Outcomes(-1, 0)).hasMessageContaining("completed is -1");
  }
}
