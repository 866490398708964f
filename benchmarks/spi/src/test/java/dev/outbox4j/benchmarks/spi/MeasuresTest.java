package dev.outbox4j.benchmarks.spi;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.entry;
import static org.assertj.core.api.Assertions.within;

import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** What the figures are made of. */
class MeasuresTest {

  @Test
  void percentilesAreValuesThatWereMeasured() {
    Latencies latencies = new Latencies(1_000);
    for (int i = 100; i >= 1; i--) {
      latencies.record(i * 1_000_000L);
    }
    assertThat(latencies.summary(new Numbers(), "latency").values())
        .containsEntry("latency_p50_ms", 50.0)
        .containsEntry("latency_p95_ms", 95.0)
        .containsEntry("latency_p99_ms", 99.0)
        .containsEntry("latency_max_ms", 100.0);
  }

  @Test
  void percentilesOfAHistogramAreAtMostTwoPercentTooHigh() {
    Histogram histogram = new Histogram();
    for (int i = 100; i >= 1; i--) {
      histogram.record(i * 1_000_000L);
    }
    assertThat(histogram.percentile(0.50)).isBetween(50.0, 51.0);
    assertThat(histogram.percentile(0.99)).isBetween(99.0, 101.0);
    assertThat(new Histogram().percentile(0.5)).isNaN();
  }

  @Test
  void timersHaveTheirInstantsApartOrTogether() {
    Beats spread = new Beats(1000, Duration.ofSeconds(1), true);
    assertThat(spread.offset(0)).isZero();
    assertThat(spread.offset(999)).isEqualTo(Duration.ofMillis(999));
    Instant instant = Instant.ofEpochSecond(1_700_000_000, 7_000_000);
    assertThat(spread.next(7, instant.minusNanos(1))).isEqualTo(instant);
    assertThat(spread.next(7, instant)).isEqualTo(instant.plusSeconds(1));
    assertThat(spread.next(7, instant.plusNanos(1))).isEqualTo(instant.plusSeconds(1));
    Beats together = new Beats(1000, Duration.ofSeconds(1), false);
    assertThat(together.offset(999)).isZero();
    assertThat(together.next(999, instant)).isEqualTo(Instant.ofEpochSecond(1_700_000_001));
  }

  @Test
  void instantsThatAreLeftOutAreCountedAndThoseThatComeAgain() {
    TimerTask.Stretch stretch = new TimerTask.Stretch(10);
    stretch.add(2_000_000, 1);
    stretch.add(1_000_000, 4);
    stretch.add(-1_000_000, 1);
    stretch.add(3_000_000, 0);
    assertThat(stretch.summary(new Numbers()).values())
        .contains(
            entry("lateness_p50_ms", 1.0),
            entry("lateness_max_ms", 3.0),
            entry("early", 1.0),
            entry("repeated", 1.0),
            entry("left_out", 3.0));
  }

  @Test
  void ratesOfWholeWindowsAreComparedWithTheOneThatWasAskedFor() {
    double[] arrivals = {100, 101, 102, 103, 110, 111, 119, 120, 129.9};
    assertThat(RedriveTask.evenness(arrivals, 10, 2, new Numbers()).values())
        .containsOnly(entry("slowest_10s_vs_asked", 0.15), entry("fastest_10s_vs_asked", 0.2));
    double[] ofLess = {100, 109.9};
    assertThat(RedriveTask.evenness(ofLess, 10, 2, new Numbers()).values()).isEmpty();
    assertThat(RedriveTask.evenness(new double[0], 10, 2, new Numbers()).values()).isEmpty();
  }

  @Test
  void lagIsTheAgeOfTheOldestThatIsCommittedAndNotHandled() {
    LagSamples lags = new LagSamples(10);
    lags.sample(Double.NaN, 1_000_000);
    lags.sample(0, 1_000_000); // nothing is committed
    lags.committed(1, 2_000_000);
    lags.committed(0, 4_000_000);
    lags.sample(9_000_000, 10_000_000); // 8 ms are right
    lags.handled(1);
    lags.sample(6_000_000, 10_000_000); // right
    lags.handled(0);
    lags.sample(1_000_000, 10_000_000); // nothing is left
    lags.committed(3, 10_000_000);
    lags.sample(4_000_000, 16_000_000); // 6 ms are right
    assertThat(lags.summary(new Numbers()).values())
        .contains(
            entry("lag_samples", 5.0),
            entry("lag_unknown", 1.0),
            entry("lag_mean_ms", 4.0),
            entry("lag_error_share", 0.2));
  }

  @Test
  void slopeIsThatOfTheStraightLine() {
    BacklogSlope slope = new BacklogSlope();
    for (int second = 0; second < 10; second++) {
      slope.sample(second, 7 + 3 * second);
    }
    assertThat(slope.perSecond()).isCloseTo(3, within(1e-9));
    assertThat(slope.max()).isEqualTo(34);
  }

  @Test
  void slopeOfABacklogThatOnlySwingsIsNone() {
    BacklogSlope slope = new BacklogSlope();
    for (int sample = 0; sample < 1_000; sample++) {
      slope.sample(sample / 10.0, sample % 2 == 0 ? 0 : 100);
    }
    assertThat(slope.perSecond()).isCloseTo(0, within(0.05));
  }

  @Test
  void thoseWhoShareTheTimeHaveHalfOfItEachAndNeverTheSame() {
    long from = Share.ONE.begin(1_700_000_000_123L);
    assertThat(from).isBetween(1_700_000_000_123L, 1_700_000_001_123L);
    int ones = 0;
    for (long millis = from; millis < from + 24_000; millis++) {
      assertThat(Share.THROUGHOUT.mine(millis)).isTrue();
      assertThat(Share.ONE.mine(millis)).isNotEqualTo(Share.OTHER.mine(millis));
      ones += Share.ONE.mine(millis) ? 1 : 0;
    }
    assertThat(ones).isEqualTo(12_000);
    assertThat(Share.ONE.awaitTurn(System.currentTimeMillis() - 1)).isFalse();
    long stretch = System.currentTimeMillis() / 500; // one of them has to wait for another
    assertThat(Share.ONE.awaitTurn(Long.MAX_VALUE)).isTrue();
    assertThat(Share.OTHER.awaitTurn(Long.MAX_VALUE)).isTrue();
    assertThat(System.currentTimeMillis() / 500).isGreaterThan(stretch);
  }

  @Test
  void numbersSurviveTheirLine() {
    Numbers numbers = new Numbers().with("rate", 12.5).with("messages", 3);
    assertThat(Numbers.parse(numbers.toString()).values()).isEqualTo(numbers.values());
  }

  @Test
  void payloadsCarryTheirSequence() {
    assertThat(Payloads.sequence(Payloads.of(42, 256))).isEqualTo(42);
    assertThat(Payloads.of(1, 4096)).hasSize(4096).isNotEqualTo(Payloads.of(2, 4096));
  }

  @Test
  void sinkCountsEachMessageOnceAndRepeatsApart() throws InterruptedException {
    CountingSink sink = new CountingSink(100, 3, false, false, sequence -> {});
    sink.handle(Payloads.of(99, 8)); // not of this run
    sink.handle(Payloads.of(100, 8));
    sink.handle(Payloads.of(100, 8));
    sink.handle(Payloads.of(101, 8));
    assertThat(sink.finished()).isEqualTo(2);
    assertThat(sink.repeated()).isEqualTo(1);
    assertThat(sink.await(0)).isFalse();
    sink.handle(Payloads.of(102, 8));
    assertThat(sink.await(0)).isTrue();
  }

  @Test
  void sinkTellsWhichMessagesHaveComeHoweverOften() {
    CountingSink sink = new CountingSink(100, 20, false, false, sequence -> {});
    for (long sequence : new long[] {99, 100, 107, 108, 108, 119, 120}) {
      sink.handle(Payloads.of(sequence, 8));
    }
    assertThat(sink.seen().stream()).containsExactly(0, 7, 8, 19);
  }

  @Test
  void sinkThatWaitsForAcksIsNotDoneBefore() throws InterruptedException {
    CountingSink sink = new CountingSink(0, 2, false, true, sequence -> {});
    sink.handle(Payloads.of(0, 8));
    sink.handle(Payloads.of(1, 8));
    assertThat(sink.finished()).isZero();
    sink.acked(2);
    assertThat(sink.await(0)).isTrue();
  }

  @Test
  void oneInTenFailsTwiceAndOneInAHundredForGood() {
    CountingSink sink = new CountingSink(0, 1_000, true, false, sequence -> {});
    int retries = 0;
    int rejects = 0;
    for (int message = 0; message < 1_000; message++) {
      Verdict verdict = sink.handle(Payloads.of(message, 8));
      while (verdict == Verdict.RETRY) {
        retries++;
        verdict = sink.handle(Payloads.of(message, 8));
      }
      rejects += verdict == Verdict.REJECT ? 1 : 0;
    }
    assertThat(retries).isEqualTo(200);
    assertThat(rejects).isEqualTo(10);
    assertThat(sink.finished()).isEqualTo(1_000);
    assertThat(sink.repeated()).isZero();
  }

  @Test
  void whatAHerdDidIsCountedFromTheEndOfTheWarmUpAndByMessage() {
    HerdCounts before = new HerdCounts(List.of(900L, 100L), 500, 100, 2_000, 700);
    HerdCounts after = new HerdCounts(List.of(950L, 250L), 600, 150, 2_300, 720);
    assertThat(after.handled() - before.handled()).isEqualTo(200);
    assertThat(after.since(before, new Numbers()).values())
        .containsEntry("notifications_per_message", 0.5)
        .containsEntry("wakes_by_name_per_message", 0.25)
        .containsEntry("claims_per_message", 1.5)
        .containsEntry("empty_claims_per_message", 0.1)
        .containsEntry("busiest_share", 0.75);
  }

  @Test
  void notificationIsByNameIfItsPayloadBeginsWithTheMark() {
    assertThat(Notifications.isByName("\u0001bench-1")).isTrue();
    assertThat(Notifications.isByName("bench")).isFalse();
    assertThat(Notifications.isByName("bench\u0001")).isFalse();
    assertThat(Notifications.isByName("")).isFalse();
  }

  @Test
  void messagesOfATransactionHaveItsInstantAndTransactionsAnEvenPace() {
    PacedWriters.Load singly = new PacedWriters.Load(0, 1_000, 8, 250, 1);
    assertThat(singly.instant(0)).isZero();
    assertThat(singly.instant(1)).isEqualTo(4_000_000);
    assertThat(singly.instant(250)).isEqualTo(1_000_000_000);
    PacedWriters.Load batches = new PacedWriters.Load(0, 1_000, 8, 5_000, 5);
    assertThat(batches.instant(4)).isZero();
    assertThat(batches.instant(5)).isEqualTo(1_000_000);
    assertThat(batches.instant(9)).isEqualTo(1_000_000);
  }

  @Test
  void settingIsAddedToACopy() {
    Bench bench = new Bench("url", "user", "password", Map.of("queue", "a"));
    assertThat(bench.with("name", "b").options())
        .containsOnly(entry("queue", "a"), entry("name", "b"));
    assertThat(bench.options()).containsOnly(entry("queue", "a"));
  }
}
