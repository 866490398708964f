package dev.outbox4j.internal.order;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.spi.BucketStore.Owned;
import dev.outbox4j.spi.BucketStore.Range;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class IdWalkTest {
  private static final long PAUSE = 1_000;
  private static final long SECOND = TimeUnit.SECONDS.toNanos(1);
  private static final long ALL = Long.MAX_VALUE;
  private static final long DEAR = 60_000_000;

  private final IdWalk walk = new IdWalk(PAUSE, 4 * PAUSE, 2, 0, 0);
  private final BucketScan first = new BucketScan(new Owned(1, 1, 0, 0), List.of());
  private final BucketScan second = new BucketScan(new Owned(2, 1, 0, 0), List.of());
  private final List<BucketScan> scans = List.of(first, second);

  @BeforeEach
  void setUp() {
    first.read(500_000);
    second.read(50_000);
  }

  @Test
  void walksPartByPartUpToWhereEachBucketWasRead() {
    assertThat(walk.next(10, 500_000, scans))
        .containsExactly(new Range(1, 10, 100_010), new Range(2, 10, 50_000));
    assertThat(walk.passed(ALL, false, 10, 0)).isFalse();
    assertThat(walk.next(10, 900_000, scans)).containsExactly(new Range(1, 100_010, 300_010));
    assertThat(walk.passed(ALL, false, 10, 0)).isFalse();
    assertThat(walk.next(10, 900_000, scans)).containsExactly(new Range(1, 300_010, 500_000));
    assertThat(walk.passed(ALL, false, 10, 0)).as("the end of when it began").isTrue();
  }

  @Test
  void goesOnWhereThereWasMoreThanCouldBeRead() {
    walk.next(0, 500_000, scans);
    walk.passed(7_000, true, 10, 0);
    assertThat(walk.next(0, 500_000, scans).get(0).above()).isEqualTo(7_000);
  }

  @Test
  void takesABoundedShareOfTheTimeAndSmallerPartsWhereTheyAreDear() {
    walk.next(0, 500_000, scans);
    walk.passed(ALL, false, DEAR, 100);
    assertThat(walk.isDue(0, 500_000, 99 + 2 * DEAR)).isFalse();
    assertThat(walk.isDue(0, 500_000, 100 + 2 * DEAR)).isTrue();
    assertThat(walk.next(0, 500_000, scans)).containsExactly(new Range(1, 100_000, 150_000));
    walk.timedOut(DEAR, 200);
    assertThat(walk.next(0, 500_000, scans)).containsExactly(new Range(1, 100_000, 106_250));
  }

  @Test
  void restsLongerWhileItFindsNothing() {
    assertThat(pass(false)).isEqualTo(2 * PAUSE);
    assertThat(pass(false)).isEqualTo(4 * PAUSE);
    assertThat(pass(false)).isEqualTo(4 * PAUSE);
    assertThat(pass(true)).isEqualTo(PAUSE);
  }

  /** Returns how long it rests after a pass. */
  private long pass(boolean found) {
    walk.next(0, 10, scans);
    assertThat(walk.passed(ALL, found, 0, 0)).isTrue();
    return walk.untilDue(0, 10, 0);
  }

  @Test
  void hasNothingToDoWhereThereIsNothing() {
    assertThat(walk.isDue(10, 10, 100)).isFalse();
    assertThat(walk.untilDue(10, 10, 100)).isEqualTo(ALL);
  }

  @Test
  void aPassThatIsToBeginEarlyWaitsForWhatTheOneBeforeHasCost() {
    IdWalk rare = new IdWalk(PAUSE, PAUSE, 2, 0, 60 * SECOND);
    assertThat(rare.isDue(0, 100, SECOND)).isFalse();
    rare.beginEarly(SECOND);
    assertThat(rare.isDue(0, 100, SECOND)).isTrue();

    rare.next(0, 100, scans);
    assertThat(rare.passed(ALL, false, 5 * SECOND, 10 * SECOND)).isTrue();
    rare.beginEarly(10 * SECOND);
    assertThat(rare.untilDue(0, 100, 10 * SECOND)).isEqualTo(10 * SECOND);
  }
}
