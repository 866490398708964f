package dev.outbox4j.internal.order;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.spi.BucketStore.Owned;
import dev.outbox4j.spi.BucketStore.Portion;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** How the rows of a read are shared among buckets, played with rows in memory. */
class RangePlanTest {
  private static final int LIMIT = 1_000;
  private static final int ROWS = 200_000;

  private final RangePlan plan = new RangePlan();
  private final Map<Integer, BucketScan> scans = new TreeMap<>();

  /** The ids of each bucket that were not read. */
  private final Map<Integer, List<Long>> left = new TreeMap<>();

  private void bucket(int bucket) {
    scans.put(bucket, new BucketScan(new Owned(bucket, 1, 0, 0), List.of()));
    left.put(bucket, new ArrayList<>());
  }

  private BucketScan full(int bucket, long place) {
    bucket(bucket);
    BucketScan scan = scans.get(bucket);
    scan.full(true);
    scan.read(place);
    return scan;
  }

  /** Publishes rows of keys that hash as chance has it, which makes some buckets twice as full. */
  private void publish(int buckets, int keys, long firstId) {
    for (int bucket = 0; bucket < buckets; bucket++) {
      bucket(bucket);
    }
    Random random = new Random(5);
    int[] bucketOfKey = random.ints(keys, 0, buckets).toArray();
    for (int i = 0; i < ROWS; i++) {
      left.get(bucketOfKey[random.nextInt(keys)]).add(firstId + i);
    }
  }

  /** Reads once, as a lane does; returns how many rows came. */
  private int read() {
    Collection<Portion> portions = plan.portions(scans.values(), LIMIT, false);
    assertThat(portions.stream().mapToInt(Portion::limit).sum()).isLessThanOrEqualTo(LIMIT);
    int read = 0;
    for (Portion portion : portions) {
      assertThat(portion.limit()).isPositive();
      BucketScan scan = scans.get(portion.range().bucket());
      List<Long> rows = left.get(scan.bucket());
      List<Long> found = List.copyOf(rows.subList(0, Math.min(rows.size(), portion.limit())));
      rows.subList(0, found.size()).clear();
      if (!found.isEmpty()) {
        scan.read(found.get(found.size() - 1));
        scan.met(found.size(), found.get(0), found.get(found.size() - 1));
      }
      scan.full(found.size() >= portion.limit());
      read += found.size();
    }
    return read;
  }

  private long spread() {
    return scans.values().stream().mapToLong(BucketScan::place).max().orElseThrow()
        - scans.values().stream().mapToLong(BucketScan::place).min().orElseThrow();
  }

  private Map<Integer, Integer> limits() {
    return plan.portions(scans.values(), LIMIT, false).stream()
        .collect(Collectors.toMap(portion -> portion.range().bucket(), Portion::limit));
  }

  @Test
  void bucketsOfWhichSomeAreTwiceAsFullAsOthersComeToAboutTheSameId() {
    publish(64, 1_000, 5_000_000_000L);
    int least = left.values().stream().mapToInt(List::size).min().orElseThrow();
    int most = left.values().stream().mapToInt(List::size).max().orElseThrow();
    assertThat(most).isGreaterThan(2 * least);
    for (int i = 0; i < 10; i++) {
      read();
    }
    int reads = 10;
    for (; left.values().stream().noneMatch(List::isEmpty); reads++) {
      assertThat(read()).isGreaterThan(LIMIT / 2);
      assertThat(spread()).as("ids after %d reads", reads).isLessThan(3 * LIMIT);
    }
    assertThat(reads).as("reads until a bucket is empty").isGreaterThan(ROWS / LIMIT - 10);
  }

  @Test
  void ofABucketThatDoesNotGoOnOthersAreReadAllTheSame() {
    full(1, 100).met(50, 51, 100);
    full(2, 1_000_000).met(50, 999_951, 1_000_000);

    assertThat(limits()).containsEntry(2, LIMIT / 16).containsEntry(1, LIMIT - LIMIT / 16);
  }

  @Test
  void bucketsOfWhichNothingIsKnownShareEvenly() {
    for (int bucket = 1; bucket <= 4; bucket++) {
      full(bucket, 7);
    }
    assertThat(limits().values()).containsOnly(LIMIT / 4);
  }

  @Test
  void whereNoBucketIsKnownToHaveMoreAllShareEvenly() {
    for (int bucket = 1; bucket <= 4; bucket++) {
      bucket(bucket);
    }
    assertThat(limits().values()).containsOnly(LIMIT / 4);
  }

  @Test
  void bucketsOfWhichNoMoreIsKnownHaveALittleRoom() {
    bucket(1);
    full(2, 100);
    assertThat(limits()).containsEntry(1, LIMIT / 16).containsEntry(2, LIMIT - LIMIT / 16);
  }

  @ParameterizedTest
  @ValueSource(ints = {10, 20, 25, 37})
  void ifARowOfEachWouldTakeHalfTheRoomTheOneThatHasMoreHasItAll(int room) {
    for (int bucket = 1; bucket <= 20; bucket++) {
      bucket(bucket);
    }
    scans.get(3).full(true);
    Function<Portion, Integer> bucket = portion -> portion.range().bucket();
    assertThat(
            plan.portions(scans.values(), room, false).stream()
                .collect(Collectors.toMap(bucket, Portion::limit)))
        .containsEntry(3, room)
        .containsEntry(4, 1);
  }
}
