package dev.outbox4j.internal.claim;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.spi.ClaimRequest.Range;
import dev.outbox4j.spi.ScanBound;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.NavigableSet;
import java.util.Random;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Where a walk goes, and when it ends. */
class SliceWalkTest {
  private static final Duration LIMIT = Duration.ofMillis(250);
  private static final Duration LONGEST = Duration.ofSeconds(4);
  private static final Duration MINUTE = Duration.ofMinutes(1);
  private static final long LITTLE = TimeUnit.MILLISECONDS.toNanos(1);
  private static final long MUCH = TimeUnit.MILLISECONDS.toNanos(200);
  private static final long PAUSE = TimeUnit.SECONDS.toNanos(1);
  private static final ScanBound BOUND = place(Duration.ZERO);

  private final SliceWalk all = new SliceWalk(null, PAUSE, LIMIT, LONGEST);
  private final SliceWalk aMinute = new SliceWalk(Duration.ofMinutes(1), PAUSE, LIMIT, LIMIT);

  @Test
  void eachSliceBeginsWhereTheLastOneEnded() {
    assertThat(all.next(BOUND).range()).isEqualTo(range(Duration.ofMinutes(1), Duration.ZERO));
    all.passed(MUCH, 0);
    assertThat(all.next(place(Duration.ofMinutes(-3))).range())
        .as("whatever the bound is now")
        .isEqualTo(range(Duration.ofMinutes(2), Duration.ofMinutes(1)));
  }

  @Test
  void slicesThatCostLittleAreFollowedByWiderOnesToTheVeryEnd() {
    int slices = 0;
    long cost;
    Range slice;
    do {
      slice = all.next(BOUND).range();
      cost = all.passed(LITTLE, 0);
      slices++;
    } while (cost < 0);
    assertThat(slice.above()).isNull();
    assertThat(slices).isLessThan(15);
    assertThat(cost).isEqualTo(slices * LITTLE);
    assertThat(all.allowedAt()).isEqualTo(PAUSE);
    assertThat(all.next(BOUND).range()).isEqualTo(range(Duration.ofMinutes(1), Duration.ZERO));
  }

  @Test
  void aSliceIsFollowedByAPauseOfItsShare() {
    all.next(BOUND);
    all.passed(MUCH, 100);
    assertThat(all.allowedAt()).isEqualTo(100 + 8 * MUCH);
  }

  @Test
  void aSliceThatFoundMoreGoesOnThereAtOnce() {
    all.next(BOUND);
    ScanBound last = new ScanBound(BOUND.availableAt().minusSeconds(30), 7);
    all.found(last, MUCH, 100);
    assertThat(all.allowedAt()).isEqualTo(100);
    assertThat(all.next(BOUND).range()).isEqualTo(new Range(last, BOUND));
    all.passed(MUCH, 200);
    assertThat(all.next(BOUND).range().upTo()).isEqualTo(place(Duration.ofMinutes(1)));
  }

  @Test
  void aSliceThatFoundMoreAndThenTookTooLongIsLeftOutNowhere() {
    all.next(BOUND);
    ScanBound last = new ScanBound(BOUND.availableAt().minusSeconds(30), 7);
    all.found(last, MUCH, 0);
    all.timedOut(MUCH, 0);
    Range upper = all.next(BOUND).range();
    assertThat(upper.upTo()).isEqualTo(BOUND);
    assertThat(upper.above()).isGreaterThan(last);
    all.passed(MUCH, 0);
    Range lower = all.next(BOUND).range();
    assertThat(lower.upTo()).isEqualTo(upper.above());
    assertThat(lower.above()).isGreaterThanOrEqualTo(last);
  }

  @Test
  void whatASliceHasFoundIsNotLookedAtAgainInNarrowerOnes() {
    all.next(BOUND);
    ScanBound last = new ScanBound(BOUND.availableAt().minusSeconds(30), 7);
    all.found(last, MUCH, 0);
    all.timedOut(MUCH, 0);
    Range slice;
    do {
      slice = all.next(BOUND).range();
      assertThat(slice.above()).isGreaterThanOrEqualTo(last);
      all.passed(MUCH, 0);
    } while (slice.above().compareTo(last) > 0);
    assertThat(all.next(BOUND).range().upTo()).isLessThan(last);
  }

  @Test
  void allThatIsLeftTakesTooLongAndIsFollowedByAPartOfADay() {
    Range rest = all.next(BOUND).range();
    while (rest.above() != null) {
      all.passed(LITTLE, 0);
      rest = all.next(BOUND).range();
    }
    all.timedOut(MUCH, 0);
    Duration width = Duration.ofDays(1).dividedBy(32);
    assertThat(all.next(BOUND).range())
        .isEqualTo(
            new Range(
                new ScanBound(rest.upTo().availableAt().minus(width), Long.MAX_VALUE),
                rest.upTo()));
  }

  @Test
  void aWalkOfAMinuteEndsAMinuteBelowItsBeginning() {
    assertThat(aMinute.next(BOUND).range()).isEqualTo(range(Duration.ofMinutes(1), Duration.ZERO));
    assertThat(aMinute.passed(LITTLE, 0)).isEqualTo(LITTLE);
    ScanBound later = place(Duration.ofMinutes(-5));
    assertThat(aMinute.next(later).range().upTo()).isEqualTo(later);
  }

  @Test
  void aWalkOfAMinuteInNarrowSlicesLeavesNothingOut() {
    aMinute.next(BOUND);
    aMinute.timedOut(MUCH, 0);
    ScanBound top = BOUND;
    long cost;
    int slices = 0;
    do {
      Range slice = aMinute.next(BOUND).range();
      assertThat(slice.upTo()).isEqualTo(top);
      assertThat(slice.above()).isLessThan(top);
      top = slice.above();
      cost = aMinute.passed(MUCH, 0);
      slices++;
    } while (cost < 0);
    assertThat(top).isEqualTo(place(Duration.ofMinutes(1)));
    assertThat(slices).as("the first four are a 32nd of a minute").isEqualTo(13);
    assertThat(cost).isEqualTo(14 * MUCH);
  }

  @Test
  void slicesBecomeWiderAgainAlthoughEachAnswerTakesLong() {
    all.next(BOUND);
    for (int i = 0; i < 6; i++) { // a pause of the machine, say
      all.timedOut(MUCH, 0);
    }
    int slices = 0;
    while (all.passed(MUCH, 0) < 0 && slices < 1_000) {
      slices++;
    }
    assertThat(slices).as("from a microsecond to all there is").isLessThan(300);
  }

  @ParameterizedTest
  @ValueSource(longs = {1, 2, 3, 4})
  void noRowIsLeftOutOfAWalkWhateverItsSlicesMeet(long seed) {
    Random random = new Random(seed);
    for (int walk = 0; walk < 1_000; walk++) {
      TreeSet<ScanBound> rows = new TreeSet<>();
      for (int i = 0; i < 200; i++) {
        rows.add(new ScanBound(BOUND.availableAt().minusMillis(random.nextInt(60_000)), i));
      }
      long cost = -1;
      for (int timeouts = 0; cost < 0; ) {
        Range slice = aMinute.next(BOUND).range();
        NavigableSet<ScanBound> inIt = rows.subSet(slice.above(), false, slice.upTo(), true);
        int lot = random.nextInt(10);
        if (lot < 3 && timeouts < 3) { // more would end in a slice that is left out
          timeouts++;
          aMinute.timedOut(MUCH, 0);
        } else if (lot < 6 && inIt.size() > 1) {
          ScanBound last = List.copyOf(inIt).get(random.nextInt(inIt.size()));
          inIt.headSet(last, true).clear();
          aMinute.found(last, LITTLE, 0);
        } else {
          inIt.clear();
          cost = aMinute.passed(random.nextBoolean() ? LITTLE : MUCH, 0);
        }
      }
      assertThat(rows).as("walk %d", walk).isEmpty();
    }
  }

  @Test
  void aMicrosecondIsGivenMoreTimeAndThenLeftOut() {
    all.next(BOUND);
    List<Duration> limits = new ArrayList<>();
    ScanBound top = BOUND;
    for (int i = 0; i < 20 && BOUND.equals(top); i++) {
      QueueScan.Plan plan = all.next(BOUND);
      top = plan.range().upTo();
      limits.add(plan.timeLimit());
      all.timedOut(MUCH, 0);
    }
    assertThat(Collections.max(limits)).isEqualTo(LONGEST);
    assertThat(limits).as("once with all the time there is").containsOnlyOnce(LONGEST);
    assertThat(top).isEqualTo(place(Duration.ofNanos(1_000)));
  }

  @Test
  void theCostOfAWalkIsThatOfAllItsSlices() {
    aMinute.next(BOUND);
    aMinute.found(place(Duration.ofSeconds(30)), MUCH, 0);
    aMinute.next(BOUND);
    assertThat(aMinute.passed(LITTLE, 0)).isEqualTo(MUCH + LITTLE);
  }

  @Test
  void aWalkIsFollowedByThePauseOfItsLastSliceIfThatIsLonger() {
    aMinute.next(BOUND);
    aMinute.passed(MUCH, 100);
    assertThat(aMinute.allowedAt()).isEqualTo(100 + 8 * MUCH);
  }

  @Test
  void aSliceIsWidenedByWhatTheLastOneCost() {
    all.next(BOUND);
    all.passed(TimeUnit.MILLISECONDS.toNanos(30), 0);
    assertThat(all.next(BOUND).range()).isEqualTo(range(Duration.ofMinutes(3), MINUTE));
    all.passed(LITTLE, 0);
    assertThat(all.next(BOUND).range())
        .isEqualTo(range(Duration.ofMinutes(3 + 16), Duration.ofMinutes(3)));
  }

  @Test
  void aSliceThatTookTooLongIsFollowedByAPauseOfItsShare() {
    all.next(BOUND);
    all.timedOut(MUCH, 100);
    assertThat(all.allowedAt()).isEqualTo(100 + 8 * MUCH);
  }

  @Test
  void whatCannotBeDividedAndTakesTooLongIsTriedAgainAfterAPause() {
    long begun = 0;
    int tries = 0;
    for (long now = 0; begun == 0 && tries < 20; now += TimeUnit.SECONDS.toNanos(100)) {
      all.next(null); // without a bound there is nothing to go down from
      all.timedOut(LITTLE, now);
      tries++;
      if (all.allowedAt() != now + 8 * LITTLE) {
        begun = now;
      }
    }
    assertThat(tries).isBetween(5, 15);
    assertThat(all.allowedAt()).isEqualTo(begun + PAUSE);
  }

  private static Range range(Duration from, Duration to) {
    return new Range(place(from), to.isZero() ? BOUND : place(to));
  }

  private static ScanBound place(Duration below) {
    return new ScanBound(Instant.parse("2026-01-01T00:00:00Z").minus(below), Long.MAX_VALUE);
  }
}
