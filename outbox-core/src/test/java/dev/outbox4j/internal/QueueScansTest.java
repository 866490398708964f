package dev.outbox4j.internal;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** When the head of a queue is looked at again. */
class QueueScansTest {
  private static final Duration CHEAP = Duration.ofMillis(1);
  private static final Duration DEAR = Duration.ofMillis(100);

  private QueueScans scans = new QueueScans(List.of("orders"));
  private long now = 1;

  @BeforeEach
  void beginWithACheapOne() {
    emptySweep(CHEAP);
  }

  @Test
  void cheapSweepsOfADrainedQueueFollowOneAnother() {
    emptySweep(CHEAP);

    assertThat(scans.untilSweep(now)).isZero();
  }

  @Test
  void theFirstSweepOfAColdProcessPutsOffNoOther() {
    scans = new QueueScans(List.of("orders"));
    emptySweep(DEAR);

    assertThat(scans.untilSweep(now)).isZero();
  }

  @Test
  void aSingleDearSweepPutsOffNoOther() {
    emptySweep(DEAR);

    assertThat(scans.untilSweep(now)).isZero();
  }

  @Test
  void sweepsThatAreDearAgainAndAgainTakeATwentiethOfTheTime() {
    emptySweep(DEAR);
    emptySweep(DEAR);

    assertThat(scans.untilSweep(now)).isEqualTo(DEAR.multipliedBy(20).toNanos());
  }

  @Test
  void costsThatGrowCountAsTheyAre() {
    emptySweep(DEAR);
    emptySweep(DEAR);
    now += scans.untilSweep(now);
    emptySweep(DEAR.multipliedBy(2));

    assertThat(scans.untilSweep(now)).isEqualTo(DEAR.multipliedBy(2 * 20).toNanos());
  }

  @Test
  void noPauseIsLongerThanTenSeconds() {
    emptySweep(Duration.ofSeconds(3));
    emptySweep(Duration.ofSeconds(3));

    assertThat(scans.untilSweep(now)).isEqualTo(Duration.ofSeconds(10).toNanos());
  }

  @Test
  void aCheapSweepEndsThePauses() {
    emptySweep(DEAR);
    emptySweep(DEAR);
    now += scans.untilSweep(now);
    emptySweep(CHEAP);
    emptySweep(DEAR);

    assertThat(scans.untilSweep(now)).isZero();
  }

  private void emptySweep(Duration cost) {
    assertThat(scans.next(now)).allSatisfy(scan -> assertThat(scan.above()).isNull());
    assertThat(scans.lookedAboveOnly()).isFalse();
    long sentAt = now;
    now += cost.toNanos();
    scans.claimed(List.of(), false, sentAt, now);
  }
}
