package dev.outbox4j.job;

import dev.outbox4j.timer.TimerAlert;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Optional;

/**
 * The alert rules of job queues: functions of samples, without state, clock and I/O. The same rules
 * are shipped for Prometheus, see {@code docs/job-queues.md}.
 *
 * @param ratioFactor by how much the share of dead letters of the last 15 minutes must exceed that
 *     of the baseline, 1 or more
 * @param leastOutcomes how many jobs must have ended in the 15 minutes, at least 1
 * @param oldest how long a message must have been due, more than zero
 * @param risingSamples in how many samples, the last included, the oldest message must have become
 *     older each time; at least 2
 * @param withoutSuccess after how long without a completed job, more than zero
 */
public record JobAlerts(
    double ratioFactor,
    int leastOutcomes,
    Duration oldest,
    int risingSamples,
    Duration withoutSuccess) {

  /**
   * Checks the limits.
   *
   * @throws IllegalArgumentException if one is out of range
   */
  public JobAlerts {
    if (!(ratioFactor >= 1) || Double.isInfinite(ratioFactor)) {
      throw new IllegalArgumentException(
          "ratioFactor is " + ratioFactor + "; it must be 1 or more");
    }
    Ranges.require("leastOutcomes", leastOutcomes, 1, Integer.MAX_VALUE);
    requirePositive("oldest", oldest);
    Ranges.require("risingSamples", risingSamples, 2, Integer.MAX_VALUE);
    requirePositive("withoutSuccess", withoutSuccess);
  }

  private static void requirePositive(String what, Duration value) {
    Objects.requireNonNull(value, what);
    if (value.isNegative() || value.isZero()) {
      throw new IllegalArgumentException(what + " is " + value + "; it must be more than zero");
    }
  }

  /**
   * {@return the default: 3 times the baseline of at least 20 outcomes, 24 hours and rising over 3
   * samples, 36 hours}
   */
  public static JobAlerts standard() {
    return new JobAlerts(3, 20, Duration.ofHours(24), 3, Duration.ofHours(36));
  }

  /**
   * Applies all rules.
   *
   * @param samples the first one first, best some minutes apart; the last one is now
   * @param timers what is wrong with timers that enqueue jobs, of which the missed ones count
   * @return the alerts; empty if there is no sample and no missed timer
   */
  public List<JobAlert> of(List<JobSample> samples, List<TimerAlert> timers) {
    List<JobAlert> alerts = new ArrayList<>();
    if (!samples.isEmpty()) {
      JobSample last = samples.get(samples.size() - 1);
      deadLetterRatio(last).ifPresent(alerts::add);
      oldestRising(samples).ifPresent(alerts::add);
      noSuccess(last).ifPresent(alerts::add);
    }
    alerts.addAll(missedTimers(timers));
    return List.copyOf(alerts);
  }

  /**
   * Tells whether more than usual of what ended lately are dead letters. Where no job ended in the
   * time of the baseline, or none badly, a single dead letter among enough outcomes is more.
   *
   * @param sample the sample
   * @return the alert, if the rule holds
   */
  public Optional<JobAlert> deadLetterRatio(JobSample sample) {
    JobSample.Outcomes recent = sample.recent();
    double usual = sample.baseline().deadLetterRatio();
    if (recent.total() < leastOutcomes || recent.deadLetterRatio() <= ratioFactor * usual) {
      return Optional.empty();
    }
    return Optional.of(
        new JobAlert(
            JobAlert.Rule.DEAD_LETTER_RATIO,
            "%d of %d jobs of the last 15 min are dead letters, before it was %s"
                .formatted(recent.deadLettered(), recent.total(), percent(usual))));
  }

  private static String percent(double share) {
    return Math.round(share * 10_000) / 100.0 + " %";
  }

  /**
   * Tells whether a message has been due for long, and longer at each of the last samples.
   *
   * @param samples the first one first
   * @return the alert, if the rule holds
   */
  public Optional<JobAlert> oldestRising(List<JobSample> samples) {
    if (samples.size() < risingSamples) {
      return Optional.empty();
    }
    List<Duration> ages =
        samples.subList(samples.size() - risingSamples, samples.size()).stream()
            .flatMap(sample -> sample.oldest().stream())
            .toList();
    if (ages.size() < risingSamples
        || ages.get(ages.size() - 1).compareTo(oldest) <= 0
        || !isRising(ages)) {
      return Optional.empty();
    }
    return Optional.of(
        new JobAlert(
            JobAlert.Rule.OLDEST_RISING,
            "the oldest message has been due for %s, and longer at each of %d looks"
                .formatted(ages.get(ages.size() - 1), risingSamples)));
  }

  private static boolean isRising(List<Duration> ages) {
    for (int i = 1; i < ages.size(); i++) {
      if (ages.get(i).compareTo(ages.get(i - 1)) <= 0) {
        return false;
      }
    }
    return true;
  }

  /**
   * Tells whether no job was completed for long: since the last one, or since the queue is known to
   * have had jobs that were due. A queue that never had one is silent.
   *
   * @param sample the sample
   * @return the alert, if the rule holds
   */
  public Optional<JobAlert> noSuccess(JobSample sample) {
    Optional<Instant> from = sample.lastSuccess().or(sample::since);
    return from.map(instant -> Duration.between(instant, sample.at()))
        .filter(lasting -> lasting.compareTo(withoutSuccess) > 0)
        .map(
            lasting ->
                new JobAlert(JobAlert.Rule.NO_SUCCESS, "no job was completed for " + lasting));
  }

  /**
   * Returns an alert for each timer that has missed an instant.
   *
   * @param timers what is wrong with timers, of {@code TimersHealth} or {@code TimerControl}
   * @return the alerts
   */
  public static List<JobAlert> missedTimers(List<TimerAlert> timers) {
    return timers.stream()
        .filter(alert -> alert.rule() == TimerAlert.Rule.MISSED)
        .map(
            alert ->
                new JobAlert(
                    JobAlert.Rule.MISSED_TIMER,
                    "timer %s has missed an instant since %s"
                        .formatted(alert.timer(), alert.since())))
        .toList();
  }
}
