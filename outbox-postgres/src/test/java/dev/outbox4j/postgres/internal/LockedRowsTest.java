package dev.outbox4j.postgres.internal;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

class LockedRowsTest {
  private static final long[] NONE = {};

  private long now = 5;
  private final LockedRows locked = new LockedRows(() -> now);

  @Test
  void rowsAreExpectedToBeLockedUntilAWriteHasFoundThemFree() {
    assertThat(locked.areExpectedAmong(ids(1, 2))).isFalse();
    locked.passedBy(ids(1, 3), List.of(2L, 3L));
    assertThat(locked.areExpectedAmong(ids(1, 1))).isFalse();
    assertThat(locked.areExpectedAmong(ids(1, 2))).isTrue();
    locked.passedBy(ids(2, 2), List.of());
    assertThat(locked.areExpectedAmong(ids(2, 2))).isFalse();
    assertThat(locked.areExpectedAmong(ids(3, 3))).isTrue();
  }

  @Test
  void allAreExpectedToBeLockedForASecondAfterAWaitInVain() {
    locked.waitedInVain();
    assertThat(locked.areExpectedAmong(ids(1, 1))).isTrue();
    now += TimeUnit.SECONDS.toNanos(1);
    assertThat(locked.areExpectedAmong(ids(1, 1))).isFalse();
  }

  @Test
  void moreThanTenThousandAreForgottenOnceOthersCome() {
    locked.passedBy(NONE, LongStream.rangeClosed(1, 10_000).boxed().toList());
    locked.passedBy(NONE, List.of(10_001L));
    assertThat(locked.areExpectedAmong(ids(1, 1))).isTrue();

    locked.passedBy(NONE, List.of(10_002L));
    assertThat(locked.areExpectedAmong(ids(1, 10_001))).isFalse();
    assertThat(locked.areExpectedAmong(ids(10_002, 10_002))).isTrue();
  }

  private static long[] ids(long from, long to) {
    return LongStream.rangeClosed(from, to).toArray();
  }
}
