package dev.outbox4j.internal.order;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.spi.BucketStore.DueRange;
import dev.outbox4j.spi.BucketStore.Owned;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class DueLookTest {
  private static final Instant NOON = Instant.parse("2026-01-01T12:00:00Z");

  private final DueLook look = new DueLook(0);
  private final Map<Integer, BucketScan> scans = new TreeMap<>();

  @BeforeEach
  void ownSixteenBuckets() {
    for (int bucket = 0; bucket < 16; bucket++) {
      scans.put(bucket, new BucketScan(new Owned(bucket, 1, 0, 0), List.of()));
    }
  }

  private static long millis(long count) {
    return TimeUnit.MILLISECONDS.toNanos(count);
  }

  private List<Integer> next() {
    return next(Long.MAX_VALUE / 2);
  }

  private List<Integer> next(long now) {
    return look.next(scans, now).stream().map(DueRange::bucket).toList();
  }

  private void look(long now, long cost) {
    assertThat(look.isDue(now)).isTrue();
    look.looked(next(now), cost, now + cost);
  }

  @Test
  void isDueAtOnceAndThenFiveTimesASecond() {
    assertThat(next()).hasSize(16);
    look(0, 0);
    assertThat(look.hasMore(0)).isFalse();
    assertThat(look.isDue(millis(199))).isFalse();
    look(millis(200), 0);
    assertThat(look.isDue(millis(399))).isFalse();
    assertThat(look.isDue(millis(400))).isTrue();
  }

  @Test
  void goesOnAtOnceWithTheBucketsOfWhichThereIsMore() {
    assertThat(next()).hasSize(16);
    look.looked(next().subList(0, 14), 0, 1);
    assertThat(look.hasMore(1)).isTrue();
    assertThat(look.untilDue(1)).isZero();
    assertThat(next()).containsExactly(14, 15);
    look.looked(List.of(14, 15), 0, 2);
    assertThat(look.hasMore(2)).isFalse();
    assertThat(look.isDue(millis(199))).isFalse();
    assertThat(next()).hasSize(16);
  }

  @Test
  void restsAfterALookThatCostsMuch() {
    look(0, millis(100));
    assertThat(look.isDue(millis(899))).isFalse();
    look.restart();
    assertThat(look.untilDue(millis(899))).isEqualTo(millis(1));
    assertThat(look.hasMore(millis(899))).as("while it rests").isFalse();
    assertThat(look.isDue(millis(900))).isTrue();
    assertThat(look.hasMore(millis(900))).isTrue();
  }

  @Test
  void looksAtFewerBucketsAfterATimeoutAndAtMoreAgainWhenThatIsCheap() {
    Duration first = look.limit();
    look.timedOut(next().size(), millis(250), millis(250));
    assertThat(look.isDue(millis(2_249))).isFalse();
    assertThat(look.isDue(millis(2_250))).isTrue();
    assertThat(next()).containsExactly(0, 1);
    look.timedOut(2, millis(250), millis(2_500));
    assertThat(next()).containsExactly(0);
    assertThat(look.limit()).isEqualTo(first);
    look.timedOut(1, millis(250), millis(5_000));
    assertThat(look.limit()).as("of a single bucket that takes longer").isGreaterThan(first);

    look.looked(List.of(0), millis(10), millis(10_000));
    assertThat(next()).containsExactly(1, 2);
    look.looked(List.of(1, 2), millis(10), millis(10_000));
    assertThat(next()).containsExactly(3, 4, 5, 6);
    look.looked(List.of(3, 4, 5, 6), millis(10), millis(10_000));
    assertThat(next()).hasSize(8);
  }

  @Test
  void aBucketThatIsGoneIsLeftOut() {
    look.looked(next().subList(0, 14), 0, 1);
    scans.remove(14);
    assertThat(next()).containsExactly(15);
    scans.remove(15);
    assertThat(next()).as("a new round").hasSize(14);
  }

  @Test
  void isDueWhenARowFallsDueThatIsKnownOf() {
    look(0, 0);
    assertThat(look.untilDue(0)).isEqualTo(Long.MAX_VALUE);
    look.nextAt(millis(50));
    look.alsoAt(millis(70));
    assertThat(look.untilDue(millis(10))).isEqualTo(millis(40));
    look.alsoAt(millis(30));
    assertThat(look.isDue(millis(29))).isFalse();
    look(millis(30), 0);
    assertThat(look.untilDue(millis(30))).isEqualTo(Long.MAX_VALUE);
  }

  @Test
  void goesOnALittleBeforeTheLastLook() {
    assertThat(DueLook.after(NOON).availableAt()).isEqualTo(NOON.minusSeconds(10));
  }

  @Test
  void whatFallsDueLaterIsStillKnownAfterALookBeforeIt() {
    look(0, 0);
    look.nextAt(millis(500));
    look(millis(200), 0);
    assertThat(look.untilDue(millis(200))).isEqualTo(millis(300));
    look(millis(500), 0);
    assertThat(look.untilDue(millis(500))).isEqualTo(Long.MAX_VALUE);
  }
}
