package dev.outbox4j.internal.claim;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.internal.state.EngineParts;
import dev.outbox4j.spi.ClaimRequest.Range;
import dev.outbox4j.spi.ClaimResult;
import dev.outbox4j.spi.ClaimedRow;
import dev.outbox4j.spi.ScanBound;
import java.time.Duration;
import java.time.Instant;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** When the head of a queue is looked at again. */
class QueueScanTest {
  private static final Instant SERVER = EngineParts.SERVER;
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
    scan = new QueueScan(Duration.ofSeconds(15));
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
  void aBacklogAboveTheBoundIsNotLeftToSlicesBecauseASweepTookTooLong() {
    ScanBound last = aBacklogOfFiveMinutesIsWorkedOff();
    assertThat(scan.next(now, false).range()).as("a sweep").isEqualTo(Range.ALL);
    timedOut(QueueScan.SWEEP_LIMIT);
    empty(CHEAP); // learns the server's time

    assertThat(scan.next(now, false))
        .as("not for long, as there may be dead rows above, too")
        .isEqualTo(new QueueScan.Plan(new Range(last, null), QueueScan.SWEEP_LIMIT, true));
    ScanBound next = later(-250);
    found(next);
    assertThat(nextSlice().range().upTo()).isEqualTo(next);
  }

  @Test
  void whatLiesAboveTheBoundIsLeftToSlicesIfItTakesTooLongAsWell() {
    aBacklogOfFiveMinutesIsWorkedOff();
    scan.next(now, false);
    timedOut(QueueScan.SWEEP_LIMIT);
    empty(CHEAP); // learns the server's time
    scan.next(now, false);

    assertThat(timedOut(QueueScan.SWEEP_LIMIT)).as("expected").isTrue();
    ScanBound recent = new ScanBound(SERVER.minusSeconds(10), Long.MAX_VALUE);
    assertThat(scan.untilSweep(now)).isZero();
    assertThat(empty(CHEAP).upTo()).isEqualTo(recent);
    assertThat(empty(CHEAP)).isEqualTo(new Range(recent, null));
  }

  /** Returns where the last claim ended; a sweep is due. */
  private ScanBound aBacklogOfFiveMinutesIsWorkedOff() {
    scan = new QueueScan(Duration.ofSeconds(15));
    for (int i = 0; i < 20; i++) {
      claim(CHEAP, true, later(-300 + i));
    }
    now += TimeUnit.SECONDS.toNanos(1);
    return later(-281);
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
      scan.claimed(new ClaimResult(List.of(), false, null, SERVER), now, now + 1_000_000);
    }
    assertThat(slices).isBetween(8, 15);
  }

  @Test
  void slicesThatTakeTooLongBecomeNarrowerAndNoneIsLeftOut() {
    scan = new QueueScan(Duration.ofSeconds(15));
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
  void newSlicesBeginAtTheBoundThoughTheLastOnesEndedInTheMiddleOfTheYoungest() {
    scan.next(now, false);
    timedOut(QueueScan.SWEEP_LIMIT);
    empty(CHEAP); // learns the server's time
    now += TimeUnit.SECONDS.toNanos(60);
    nextSlice(); // of the youngest, which waits longer
    timedOut(DEAR);
    for (int i = 0; i < 100 && scan.sliced(); i++) { // all there is, meanwhile
      now += scan.untilSweep(now);
      empty(CHEAP);
    }
    assertThat(scan.sliced()).isFalse();

    claimAt(SERVER.plusSeconds(100), false);
    now += scan.untilSweep(now);
    assertThat(scan.next(now, false).range()).isEqualTo(Range.ALL);
    timedOut(QueueScan.SWEEP_LIMIT);
    assertThat(nextSlice().range().upTo())
        .isEqualTo(new ScanBound(SERVER.plusSeconds(90), Long.MAX_VALUE));
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
    scan = new QueueScan(Duration.ofSeconds(15));
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

  @Test
  void dearSweepsAreNotRepeatedBeforeTheirPauseIsOver() {
    emptySweep(DEAR);
    emptySweep(DEAR);
    assertThat(empty(CHEAP)).isNotEqualTo(Range.ALL);
    now += scan.untilSweep(now);
    emptySweep(CHEAP);
  }

  @Test
  void claimsLookAboveTheLastButSevenThatGaveRows() {
    for (int i = 1; i <= 7; i++) {
      assertThat(claim(CHEAP, true, later(i)).above()).isNotEqualTo(later(1));
    }
    for (int i = 8; i <= 12; i++) {
      claim(CHEAP, true, later(i));
      assertThat(scan.next(now, false).range()).isEqualTo(new Range(later(i - 7), null));
    }
  }

  @Test
  void behindABacklogClaimsLookAboveTheLastOne() {
    scan = new QueueScan(Duration.ofSeconds(15));
    for (int i = 1; i <= 12; i++) {
      claim(CHEAP, true, later(i - 100));
      assertThat(above()).isEqualTo(later(i - 100));
    }
    claim(CHEAP, true, later(-200));
    assertThat(above()).as("not back to what committed late").isEqualTo(later(12 - 100));
  }

  @Test
  void whatBecameDueInTheLastTenSecondsIsLookedAtAgainByTheClaimsThatFollow() {
    scan = new QueueScan(Duration.ofSeconds(15));
    claim(CHEAP, true, later(-100));
    claim(CHEAP, true, later(-9));
    ScanBound tenSecondsAgo = new ScanBound(SERVER.minusSeconds(10), Long.MAX_VALUE);
    assertThat(above()).isEqualTo(tenSecondsAgo);
    claim(CHEAP, true, later(-8));
    assertThat(above()).isEqualTo(tenSecondsAgo);
  }

  @Test
  void theBoundDoesNotGoBackToARowThatCommittedLate() {
    for (int i = 1; i <= 7; i++) {
      claim(CHEAP, true, later(20));
    }
    claim(CHEAP, true, later(1));
    for (int i = 1; i <= 7; i++) {
      assertThat(claim(CHEAP, true, later(21))).isEqualTo(new Range(later(20), null));
    }
    assertThat(scan.next(now, false).range()).isEqualTo(new Range(later(20), null));
  }

  @Test
  void onlyAClaimThatFoundAllThereWasTellsThatTheBoundMayRise() {
    claim(CHEAP, true, later(0)); // a sweep, so that what follows looks above
    claimAt(SERVER.plusSeconds(100), true);
    assertThat(scan.next(now, false).range().above())
        .isEqualTo(new ScanBound(SERVER.minusSeconds(10), Long.MAX_VALUE));
    claimAt(SERVER.plusSeconds(100), false);
    claimAt(SERVER.plusSeconds(100), true); // a sweep: the queue seemed drained
    assertThat(scan.next(now, false).range().above())
        .isEqualTo(new ScanBound(SERVER.plusSeconds(90), Long.MAX_VALUE));
  }

  @Test
  void aDearSweepThatFoundMoreGoesOnForEightTimesItsCost() {
    ScanBound last = later(-30);
    claim(Duration.ofMillis(500), true, last);
    empty(CHEAP);
    now += 2_000_000_000L;
    assertThat(scan.next(now, false).range()).isEqualTo(new Range(last, null));
    now += 2_000_000_000L;
    assertThat(scan.next(now, false).range()).isEqualTo(Range.ALL);
  }

  @Test
  void dearSweepsThatFindNothingBelowTheBoundArePutOff() {
    for (int i = 0; i < 2; i++) {
      now += TimeUnit.SECONDS.toNanos(20);
      assertThat(claim(DEAR, false, later(0))).isEqualTo(Range.ALL);
    }
    assertThat(scan.untilSweep(now)).isEqualTo(DEAR.multipliedBy(20).toNanos());
  }

  @Test
  void dearSweepsThatFindRowsBelowTheBoundAreNotPutOff() {
    for (int i = 0; i < 2; i++) {
      now += TimeUnit.SECONDS.toNanos(20);
      assertThat(claim(DEAR, false, later(-60), later(0))).isEqualTo(Range.ALL);
    }
    assertThat(scan.untilSweep(now)).isZero();
  }

  @Test
  void aRowAtTheBoundItselfIsOneThatOnlySweepsFind() {
    scan = new QueueScan(Duration.ofSeconds(15));
    claim(CHEAP, true, later(-100)); // behind a backlog this is the bound
    for (int i = 0; i < 2; i++) {
      now += TimeUnit.SECONDS.toNanos(20);
      assertThat(claim(DEAR, true, later(-100))).isEqualTo(Range.ALL);
    }
    assertThat(scan.untilSweep(now)).isZero();
  }

  @Test
  void sweepsThatFindRowsMayCostMoreThanEmptyOnes() {
    for (int i = 0; i < 2; i++) {
      now += TimeUnit.SECONDS.toNanos(20);
      assertThat(claim(Duration.ofMillis(15), false, later(0))).isEqualTo(Range.ALL);
    }
    assertThat(scan.untilSweep(now)).isZero();
  }

  @Test
  void passesThatAreDearDoNotEndTheSlicing() {
    scan.next(now, false);
    timedOut(QueueScan.SWEEP_LIMIT);
    empty(CHEAP);
    for (int i = 0; i < 200; i++) {
      now += scan.untilSweep(now);
      empty(Duration.ofMillis(50));
    }
    assertThat(scan.sliced()).isTrue();
  }

  @Test
  void aClaimAboveTheBoundThatTakesTooLongIsAFailureAndTheTimeIsAskedForNext() {
    claim(CHEAP, true, later(0));
    assertThat(scan.next(now, false).timeLimit()).as("above the bound").isNull();
    assertThat(timedOut(DEAR)).isFalse();
    assertThat(empty(CHEAP).above().availableAt()).isAfter(SERVER.plusSeconds(1_000_000));
    assertThat(empty(CHEAP).above().availableAt()).isEqualTo(SERVER.minusSeconds(10));
  }

  private ScanBound above() {
    QueueScan.Plan plan = scan.next(now, false);
    assertThat(plan.timeLimit()).as("no sweep").isNull();
    return plan.range().above();
  }

  private static ScanBound later(int seconds) {
    return new ScanBound(SERVER.plusSeconds(seconds), 1);
  }

  private void claimAt(Instant server, boolean full) {
    scan.next(now, false);
    scan.claimed(new ClaimResult(List.of(), full, null, server), now, now);
  }

  /** Takes the claim above the bound that lies between. */
  private QueueScan.Plan nextSlice() {
    for (int i = 0; i < 3; i++) {
      now += scan.untilSweep(now);
      QueueScan.Plan plan = scan.next(now, false);
      if (plan.range().upTo() != null) {
        return plan;
      }
      scan.claimed(new ClaimResult(List.of(), false, null, SERVER), now, now);
    }
    throw new AssertionError("no slice follows");
  }

  private Range emptySlice() {
    Range range = nextSlice().range();
    now += CHEAP.toNanos();
    scan.claimed(new ClaimResult(List.of(), false, null, SERVER), now - CHEAP.toNanos(), now);
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
    List<ClaimedRow> rows = Arrays.stream(found).map(EngineParts::row).toList();
    scan.claimed(new ClaimResult(rows, full, null, SERVER), sentAt, now);
    return range;
  }

  private void found(ScanBound last) {
    now += CHEAP.toNanos();
    ClaimResult result = new ClaimResult(List.of(EngineParts.row(last)), true, null, SERVER);
    scan.claimed(result, now - CHEAP.toNanos(), now);
  }

  private boolean timedOut(Duration after) {
    long sentAt = now;
    now += after.toNanos();
    return scan.timedOut(sentAt, now);
  }
}
