package dev.outbox4j.examples.docs;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.job.JobAlert;
import dev.outbox4j.job.JobAlerts;
import dev.outbox4j.job.JobSample;
import dev.outbox4j.job.JobSample.Outcomes;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The alert rules for Prometheus say what {@link JobAlerts} says. */
class JobAlertRulesTest {
  private static final Path RULES = Path.of("..", "docs", "operations", "job-queue-alerts.yml");
  private static final JobAlerts STANDARD = JobAlerts.standard();
  private static final Instant NOW = Instant.parse("2026-11-30T12:00:00Z");

  private static boolean holds(String alert, Map<String, Double> values) throws IOException {
    Matcher rule =
        Pattern.compile("- alert: " + alert + "\\n {8}expr: (?:>-\\n)?(.*\\n(?: {10}.*\\n)*)")
            .matcher(Files.readString(RULES));
    assertThat(rule.find()).as("the rule %s", alert).isTrue();
    return PromQlOfOneQueue.holds(rule.group(1).strip().replaceAll("\\s+", " "), values);
  }

  private static JobSample sample(
      Outcomes recent,
      Outcomes baseline,
      Optional<Duration> oldest,
      Optional<Instant> lastSuccess,
      Optional<Instant> since) {
    return new JobSample(NOW, recent, baseline, oldest, lastSuccess, since);
  }

  private static void put(Map<String, Double> values, String series, @Nullable Long value) {
    if (value != null) {
      values.put(series, value.doubleValue());
    }
  }

  private static long zeroIfNone(@Nullable Long count) {
    return count == null ? 0 : count;
  }

  /** Empty is no series. */
  @ParameterizedTest
  @CsvSource({
    "17, 3, 95, 5, false", // exactly 3 times
    "16, 4, 95, 5, true",
    "15, 4, 95, 5, false", // 19 jobs
    "0, 20, 0, 0, true",
    "0, 20, , , true",
    ", 20, , , true",
    ", 20, , 0, true",
    "19, 1, 0, 0, true",
    "19, 1, , , true",
    "19, 1, 1000, 0, true",
    "19, 1, 1000, , true",
    "20, 0, 0, 0, false",
    "20, , 1000, 0, false",
    "20, , , , false",
    "0, 20, 0, 10, false", // all of them, before as well
    ", 20, , 10, false",
    "0, 1000, 1, 1, false",
    "0, 0, 95, 5, false",
    ", , 95, 5, false"
  })
  void deadLetterRatio(
      @Nullable Long completed,
      @Nullable Long dead,
      @Nullable Long before,
      @Nullable Long deadBefore,
      boolean alert)
      throws IOException {
    Map<String, Double> values = new HashMap<>();
    put(values, "increase(outbox_acked_total[15m])", completed);
    put(values, "increase(outbox_dlq_written_total[15m])", dead);
    put(values, "increase(outbox_acked_total[1d] offset 15m)", before);
    put(values, "increase(outbox_dlq_written_total[1d] offset 15m)", deadBefore);
    JobSample sample =
        sample(
            new Outcomes(zeroIfNone(completed), zeroIfNone(dead)),
            new Outcomes(zeroIfNone(before), zeroIfNone(deadBefore)),
            Optional.empty(),
            Optional.of(NOW),
            Optional.of(NOW));

    assertThat(STANDARD.deadLetterRatio(sample).isPresent()).isEqualTo(alert);
    assertThat(holds("JobQueueDeadLetterRatio", values)).isEqualTo(alert);
  }

  /** Seconds ten and five minutes ago, and now; empty is that nothing was due. */
  @ParameterizedTest
  @CsvSource({
    "85200, 85800, 86401, true",
    "85200, 85800, 86400, false", // exactly a day
    "90000, 90300, 90600, true",
    "90000, 90600, 90600, false",
    "90600, 90000, 91200, false",
    ", 90300, 90600, false",
    "90000, , 90600, false",
    "90000, 90300, , false",
    ", , 90600, false"
  })
  void oldestRising(@Nullable Long first, @Nullable Long second, @Nullable Long last, boolean alert)
      throws IOException {
    List<JobSample> samples =
        Stream.of(
                Optional.ofNullable(first), Optional.ofNullable(second), Optional.ofNullable(last))
            .map(
                age ->
                    sample(
                        Outcomes.NONE,
                        Outcomes.NONE,
                        age.map(Duration::ofSeconds),
                        Optional.of(NOW),
                        Optional.of(NOW)))
            .toList();
    String series = "outbox_depth_oldest_due_seconds";
    for (boolean shown : new boolean[] {true, false}) { // it is shown as 0 for an hour
      Map<String, Double> values = new HashMap<>();
      put(values, series + " offset 10m", shown ? Long.valueOf(zeroIfNone(first)) : first);
      put(values, series + " offset 5m", shown ? Long.valueOf(zeroIfNone(second)) : second);
      put(values, series, shown ? Long.valueOf(zeroIfNone(last)) : last);
      assertThat(holds("JobQueueOldestRising", values)).isEqualTo(alert);
    }
    assertThat(STANDARD.oldestRising(samples).isPresent()).isEqualTo(alert);
  }

  /**
   * Hours ago.
   *
   * @param success the last job was completed; empty is never
   * @param seen the first message was handled, well or not; empty is never
   * @param due the oldest message that waits has been due
   */
  @ParameterizedTest
  @CsvSource({
    "35, 100, , false",
    "37, 100, , true",
    "37, 37, , true",
    "1, 1, , false",
    "1, 100, 50, false",
    ", 35, , false", // a new queue, of which no job was completed
    ", 37, , true",
    ", 2, 2, false",
    ", 2, 37, true",
    ", , 35, false", // nobody has handled anything
    ", , 37, true",
    ", , , false" // never had a job
  })
  void noSuccess(@Nullable Long success, @Nullable Long seen, @Nullable Long due, boolean alert)
      throws IOException {
    Map<String, Double> values = new HashMap<>();
    if (seen != null) {
      values.put("increase(outbox_acked_total[36h])", success != null && success <= 36 ? 1.0 : 0);
    }
    if (seen != null && seen > 36) {
      values.put("max_over_time(outbox_acked_total[132h] offset 36h)", success == null ? 0.0 : 1);
    }
    values.put("outbox_depth_oldest_due_seconds", zeroIfNone(due) * 3_600.0);
    Optional<Instant> since =
        Stream.of(Optional.ofNullable(seen), Optional.ofNullable(due))
            .flatMap(Optional::stream)
            .map(hours -> NOW.minus(Duration.ofHours(hours)))
            .min(Instant::compareTo);
    JobSample sample =
        sample(
            Outcomes.NONE,
            Outcomes.NONE,
            Optional.empty(),
            Optional.ofNullable(success).map(hours -> NOW.minus(Duration.ofHours(hours))),
            since);

    assertThat(STANDARD.noSuccess(sample).isPresent()).isEqualTo(alert);
    assertThat(holds("JobQueueNoSuccess", values)).isEqualTo(alert);
  }

  /**
   * A counter appears with the first message that is handled. If that was completed before the
   * counter was read first, it never increases, and yet a job was completed.
   *
   * @param read the counter of a process that began less than 36 h ago
   */
  @ParameterizedTest
  @CsvSource({"1, false", "0, true"})
  void noSuccessThoughTheCounterBeganWithOne(double read, boolean alert) throws IOException {
    Map<String, Double> values = new HashMap<>();
    values.put("increase(outbox_acked_total[36h])", 0.0);
    values.put("max_over_time(outbox_acked_total[36h])", read);
    values.put("outbox_depth_oldest_due_seconds", 50 * 3_600.0);
    JobSample sample =
        sample(
            Outcomes.NONE,
            Outcomes.NONE,
            Optional.empty(),
            read > 0 ? Optional.of(NOW.minus(Duration.ofHours(1))) : Optional.empty(),
            Optional.of(NOW.minus(Duration.ofHours(50))));

    assertThat(STANDARD.noSuccess(sample).isPresent()).isEqualTo(alert);
    assertThat(holds("JobQueueNoSuccess", values)).isEqualTo(alert);
    values.put("max_over_time(outbox_acked_total[132h] offset 36h)", read); // began before
    assertThat(holds("JobQueueNoSuccess", values)).isTrue();
  }

  @ParameterizedTest
  @CsvSource({"0, false", "1, true", ", false"})
  void missedTimer(@Nullable Long missed, boolean alert) throws IOException {
    Map<String, Double> values = new HashMap<>();
    put(values, "outbox_timer_alerts{rule=\"missed\"}", missed);

    assertThat(holds("JobQueueMissedTimer", values)).isEqualTo(alert);
  }

  @ParameterizedTest
  @CsvSource({
    "DEAD_LETTER_RATIO, JobQueueDeadLetterRatio",
    "OLDEST_RISING, JobQueueOldestRising",
    "MISSED_TIMER, JobQueueMissedTimer",
    "NO_SUCCESS, JobQueueNoSuccess"
  })
  void eachRuleIsShipped(JobAlert.Rule rule, String alert) throws IOException {
    assertThat(JobAlert.Rule.values()).hasSize(4).contains(rule);
    assertThat(Files.readString(RULES)).contains("- alert: " + alert + "\n");
  }
}
