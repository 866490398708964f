package dev.outbox4j.internal;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.Payload;
import dev.outbox4j.spi.ClaimRequest.Range;
import dev.outbox4j.spi.ClaimResult;
import dev.outbox4j.spi.ClaimedRow;
import dev.outbox4j.spi.History;
import dev.outbox4j.spi.LeaseRef;
import dev.outbox4j.spi.ScanBound;
import dev.outbox4j.spi.StoredMessage;
import java.time.Duration;
import java.time.Instant;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** When the head of a queue is looked at again. */
class QueueScanTest {
  private static final Instant SERVER = Instant.parse("2026-01-01T00:00:00Z");
  private static final Duration CHEAP = Duration.ofMillis(1);
  private static final Duration DEAR = Duration.ofMillis(100);

  private QueueScan scan = new QueueScan(Duration.ofSeconds(15));
  private long now = 1;

  @BeforeEach
  void beginWithACheapOne() {
    emptySweep(CHEAP);
  }

  @Test
  void cheapSweepsOfADrainedQueueFollowOneAnother() {
    emptySweep(CHEAP);

    assertThat(scan.untilSweep(now)).isZero();
  }

  @Test
  void theFirstSweepOfAColdProcessPutsOffNoOther() {
    scan = new QueueScan(Duration.ofSeconds(15));
    emptySweep(DEAR);

    assertThat(scan.untilSweep(now)).isZero();
  }

  @Test
  void aSingleDearSweepPutsOffNoOther() {
    emptySweep(DEAR);

    assertThat(scan.untilSweep(now)).isZero();
  }

  @Test
  void sweepsThatAreDearAgainAndAgainTakeATwentiethOfTheTime() {
    emptySweep(DEAR);
    emptySweep(DEAR);

    assertThat(scan.untilSweep(now)).isEqualTo(DEAR.multipliedBy(20).toNanos());
  }

  @Test
  void costsThatGrowCountAsTheyAre() {
    emptySweep(DEAR);
    emptySweep(DEAR);
    now += scan.untilSweep(now);
    emptySweep(DEAR.multipliedBy(2));

    assertThat(scan.untilSweep(now)).isEqualTo(DEAR.multipliedBy(2 * 20).toNanos());
  }

  @Test
  void noPauseIsLongerThanTwentySeconds() {
    emptySweep(Duration.ofSeconds(3));
    emptySweep(Duration.ofSeconds(3));

    assertThat(scan.untilSweep(now)).isEqualTo(Duration.ofSeconds(20).toNanos());
  }

  @Test
  void aCheapSweepEndsThePauses() {
    emptySweep(DEAR);
    emptySweep(DEAR);
    now += scan.untilSweep(now);
    emptySweep(CHEAP);
    emptySweep(DEAR);

    assertThat(scan.untilSweep(now)).isZero();
  }

  @Test
  void aSweepThatTheServerEndedIsFollowedByClaimsAboveAndByOneSliceAtATime() {
    QueueScan.Plan sweep = scan.next(now, false);
    assertThat(sweep).isEqualTo(new QueueScan.Plan(Range.ALL, QueueScan.SWEEP_LIMIT));
    assertThat(timedOut(QueueScan.SWEEP_LIMIT)).as("expected").isTrue();

    Range clock = empty(CHEAP); // learns the server's time, above every row
    assertThat(clock.above().availableAt()).isAfter(SERVER.plusSeconds(1_000_000));
    ScanBound recent = new ScanBound(SERVER.minusSeconds(10), Long.MAX_VALUE);
    ScanBound aMinuteBelow = new ScanBound(recent.availableAt().minusSeconds(60), Long.MAX_VALUE);
    assertThat(empty(CHEAP)).as("the youngest").isEqualTo(new Range(aMinuteBelow, recent));
    for (int i = 0; i < 5; i++) {
      assertThat(empty(CHEAP)).isEqualTo(new Range(recent, null));
    }
    now += TimeUnit.SECONDS.toNanos(8);
    assertThat(empty(CHEAP)).as("and again").isEqualTo(new Range(aMinuteBelow, recent));
    assertThat(empty(CHEAP)).isEqualTo(new Range(recent, null));
    Range slice = empty(CHEAP);
    assertThat(slice.upTo()).isEqualTo(recent);
    assertThat(slice.above()).isEqualTo(aMinuteBelow);
    assertThat(scan.untilSweep(now)).as("something else is due first").isZero();
    now += TimeUnit.SECONDS.toNanos(60);
    assertThat(empty(CHEAP))
        .as("a claim above between two slices, however late")
        .isEqualTo(new Range(recent, null));
    assertThat(List.of(emptySlice().upTo(), emptySlice().upTo()))
        .as("the youngest again, and the next slice goes on below")
        .containsExactlyInAnyOrder(recent, slice.above());
  }

  @Test
  void whoIsInReserveTakesASliceOnlyNowAndThen() {
    scan.next(now, true);
    timedOut(QueueScan.SWEEP_LIMIT);
    empty(CHEAP);
    int slices = 0;
    for (int i = 0; i < 60; i++) { // a minute of polls
      now += 1_000_000_000L;
      slices += scan.next(now, true).range().upTo() != null ? 1 : 0;
      scan.claimed(new ClaimResult(List.of(), false, null, SERVER, Set.of()), now, now + 1_000_000);
    }
    assertThat(slices).isBetween(8, 15);
  }

  @Test
  void slicesThatTakeTooLongBecomeNarrowerAndNoneIsLeftOut() {
    scan.next(now, false);
    timedOut(QueueScan.SWEEP_LIMIT);
    empty(CHEAP);
    now += scan.untilSweep(now);
    Range wide = scan.next(now, false).range();
    assertThat(timedOut(Duration.ofMillis(250))).isTrue();
    Range narrow = nextSlice().range();
    assertThat(narrow.upTo()).isEqualTo(wide.upTo());
    assertThat(narrow.above()).isGreaterThan(wide.above());
  }

  @Test
  void aPassOverAllSlicesComesToItsEndAndCheapPassesEndTheSlicing() {
    scan.next(now, false);
    timedOut(QueueScan.SWEEP_LIMIT);
    empty(CHEAP);
    for (int i = 0; i < 100 && scan.sliced(); i++) {
      now += scan.untilSweep(now);
      empty(CHEAP);
    }
    assertThat(scan.sliced()).isFalse();
    empty(CHEAP); // above the bound, as after each slice
    now += scan.untilSweep(now);
    assertThat(scan.next(now, false).range()).isEqualTo(Range.ALL);
  }

  @Test
  void aQueueThatIsNeverDrainedIsSweptOnceASecondAllTheSame() {
    int sweeps = 0;
    for (int i = 0; i < 500; i++) { // five seconds of full claims
      now += 9_000_000L;
      sweeps += claim(CHEAP, true).equals(Range.ALL) ? 1 : 0;
    }
    assertThat(sweeps).isBetween(4, 6);
  }

  @Test
  void aSliceThatFoundMoreGoesOnWhereItEnded() {
    scan.next(now, false);
    timedOut(QueueScan.SWEEP_LIMIT);
    empty(CHEAP);
    now += scan.untilSweep(now);
    ScanBound last = new ScanBound(SERVER.minusSeconds(30), 7);
    Range slice = claim(CHEAP, true, last);
    assertThat(empty(CHEAP).upTo()).as("a claim above between").isNull();
    assertThat(empty(CHEAP)).isEqualTo(new Range(last, slice.upTo()));
  }

  @Test
  void aSweepThatFoundMoreGoesOnWhereItEndedAndBeginsAnewAfterASecond() {
    ScanBound last = new ScanBound(SERVER.minusSeconds(30), 7);
    assertThat(claim(CHEAP, true, last)).isEqualTo(Range.ALL);
    assertThat(empty(CHEAP)).as("a claim above between").isNotEqualTo(Range.ALL);
    ScanBound later = new ScanBound(SERVER.minusSeconds(20), 9);
    assertThat(claim(CHEAP, true, later)).isEqualTo(new Range(last, null));
    assertThat(scan.lookedAtAPart()).isTrue();
    assertThat(empty(CHEAP)).as("a claim above between").isNotEqualTo(new Range(later, null));
    now += 1_000_000_000L;
    assertThat(claim(CHEAP, true, last)).isEqualTo(Range.ALL);
  }

  @Test
  void aSweepThatGoesOnKeepsNoClaimAboveWaitingThoughThatFindsMoreAsWell() {
    claim(CHEAP, true, new ScanBound(SERVER.minusSeconds(30), 1));
    int above = 0;
    for (int i = 0; i < 100; i++) {
      now += 20_000_000;
      above += scan.next(now, false).timeLimit() == null ? 1 : 0; // sweeps have one
      claim(CHEAP, true, new ScanBound(SERVER.minusSeconds(20), i + 2L));
    }
    assertThat(above).isGreaterThan(90);
  }

  @Test
  void aSweepThatFoundAllIsFollowedByOneFromTheBeginningBeforeTheQueueRests() {
    claim(CHEAP, true, new ScanBound(SERVER.minusSeconds(30), 7));
    empty(CHEAP);
    empty(CHEAP);
    assertThat(scan.lookedAtAPart()).isTrue();
    assertThat(scan.untilSweep(now)).isZero();
    emptySweep(CHEAP);
  }

  /** Takes the claim above the bound that lies between. */
  private QueueScan.Plan nextSlice() {
    for (int i = 0; i < 3; i++) {
      now += scan.untilSweep(now);
      QueueScan.Plan plan = scan.next(now, false);
      if (plan.range().upTo() != null) {
        return plan;
      }
      scan.claimed(new ClaimResult(List.of(), false, null, SERVER, Set.of()), now, now);
    }
    throw new AssertionError("no slice follows");
  }

  private Range emptySlice() {
    Range range = nextSlice().range();
    now += CHEAP.toNanos();
    scan.claimed(
        new ClaimResult(List.of(), false, null, SERVER, Set.of()), now - CHEAP.toNanos(), now);
    return range;
  }

  private void emptySweep(Duration cost) {
    assertThat(empty(cost)).isEqualTo(Range.ALL);
    assertThat(scan.lookedAtAPart()).isFalse();
  }

  private Range empty(Duration cost) {
    return claim(cost, false);
  }

  private Range claim(Duration cost, boolean full, ScanBound... found) {
    Range range = scan.next(now, false).range();
    long sentAt = now;
    now += cost.toNanos();
    List<ClaimedRow> rows = Arrays.stream(found).map(QueueScanTest::row).toList();
    scan.claimed(new ClaimResult(rows, full, null, SERVER, Set.of()), sentAt, now);
    return range;
  }

  private static ClaimedRow row(ScanBound place) {
    return new ClaimedRow(
        new LeaseRef("orders", place.id(), 1),
        new StoredMessage(
            "t", null, null, Payload.ofText("x"), Map.of(), SERVER, place.availableAt()),
        new History(1, 0, Duration.ZERO, Duration.ZERO));
  }

  private boolean timedOut(Duration after) {
    long sentAt = now;
    now += after.toNanos();
    return scan.timedOut(sentAt, now);
  }
}
