package dev.outbox4j.internal.claim;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.RateLimit;
import dev.outbox4j.internal.settings.SubscriberSettings.Limits;
import java.time.Duration;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** How many rows of a limited queue may be claimed, and when it is looked again. */
class QueueLimitTest {
  private static final long MILLI = 1_000_000;
  private static final long NOW = 1_000_000 * MILLI;

  private static QueueLimit limit(Limits limits) {
    return QueueLimit.of("orders", limits, 4);
  }

  @Test
  void aQueueWithoutALimitHasNone() {
    QueueLimit limit = limit(new Limits(Map.of("mails", 2), Map.of("labels", 2), Map.of()));
    assertThat(limit.isLimited()).isFalse();
    assertThat(limit.slots()).isZero();
    assertThat(limit.waits()).isFalse();
  }

  @Test
  void noMoreAreHeldThanTheProcessMayOrHasWorkers() {
    QueueLimit ofProcess = limit(new Limits(Map.of("orders", 9), Map.of("orders", 3), Map.of()));
    assertThat(ofProcess.isLimited()).isTrue();
    assertThat(ofProcess.slots()).isEqualTo(9);
    assertThat(ofProcess.room(0, NOW)).isEqualTo(3);
    assertThat(ofProcess.room(2, NOW)).isEqualTo(1);
    assertThat(ofProcess.waits()).isFalse();
    assertThat(ofProcess.room(3, NOW)).isZero();
    assertThat(ofProcess.waits()).isTrue();
    ofProcess.settled();
    assertThat(ofProcess.waits()).isFalse();
    assertThat(limit(new Limits(Map.of("orders", 9), Map.of(), Map.of())).room(1, NOW))
        .isEqualTo(3);
  }

  @Test
  void aRateThatHasNoLimitNowLetsAsManyBeHeldAsWithoutIt() {
    ChangingRate rate = new ChangingRate();
    QueueLimit limit = limit(new Limits(Map.of(), Map.of(), Map.of("orders", rate)));
    assertThat(limit.room(100, NOW)).isEqualTo(RateLimit.NO_LIMIT);
    rate.available = 2;
    assertThat(limit.room(100, NOW)).isZero();
    assertThat(limit.room(1, NOW)).isEqualTo(2);
    rate.available = 0;
    assertThat(limit.room(0, NOW)).isZero();
    assertThat(limit.waits()).isTrue();
    rate.available = RateLimit.NO_LIMIT;
    assertThat(limit.room(100, NOW)).isEqualTo(RateLimit.NO_LIMIT);
    assertThat(limit.waits()).isFalse();

    QueueLimit ofProcess = limit(new Limits(Map.of(), Map.of("orders", 3), Map.of("orders", rate)));
    assertThat(ofProcess.room(1, NOW)).isEqualTo(2);
  }

  private static final class ChangingRate implements RateLimit {
    private int available = NO_LIMIT;

    @Override
    public int available() {
      return available;
    }

    @Override
    public void take(int messages) {}

    @Override
    public Duration untilNext() {
      return Duration.ofMillis(10);
    }
  }

  @Test
  void oneThatIsFullForLongWaitsForItsOwnRowsAndLetsOthersWatch() {
    QueueLimit limit = limit(new Limits(Map.of(), Map.of("orders", 1), Map.of()));
    assertThat(limit.room(1, NOW)).isZero();
    assertThat(limit.isFullForLong(NOW + 4 * MILLI)).isFalse();
    assertThat(limit.untilLook(NOW + 4 * MILLI)).isEqualTo(MILLI);
    assertThat(limit.room(1, NOW + 5 * MILLI)).isZero();
    assertThat(limit.isFullForLong(NOW + 5 * MILLI)).isTrue();
    assertThat(limit.untilLook(NOW + 5 * MILLI)).isEqualTo(RoomWait.LONGEST);
  }

  @Test
  void slotsThatAreAllTakenAreLookedAtAgainAfterAWhileOrWhenRowsAreSettled() {
    QueueLimit limit = limit(new Limits(Map.of("orders", 2), Map.of(), Map.of()));
    limit.claimed(0, true, NOW);
    assertThat(limit.room(0, NOW + 10 * MILLI)).isZero();
    assertThat(limit.untilLook(NOW + 10 * MILLI)).isEqualTo(240 * MILLI);
    assertThat(limit.waits()).as("until it has looked, however late that is").isTrue();
    assertThat(limit.untilLook(NOW + 300 * MILLI)).isZero();
    assertThat(limit.room(0, NOW + 250 * MILLI)).isEqualTo(4);
    limit.claimed(0, true, NOW);
    limit.settled();
    assertThat(limit.room(0, NOW + 10 * MILLI)).isEqualTo(4);
  }

  @Test
  void missingSlotsAreLookedForOnceInAWhile() {
    QueueLimit limit = limit(new Limits(Map.of("orders", 2), Map.of(), Map.of()));
    assertThat(limit.mayBeMissing(NOW)).isFalse();
    limit.claimed(0, true, NOW);
    assertThat(limit.mayBeMissing(NOW)).isTrue();
    assertThat(limit.mayBeMissing(NOW)).as("it failed").isTrue();
    limit.opened(NOW);
    assertThat(limit.mayBeMissing(NOW + 9_000 * MILLI)).isFalse();
    assertThat(limit.mayBeMissing(NOW + 10_000 * MILLI)).isTrue();
  }

  @Test
  void noMoreAreClaimedThanTheRateAllowsAndEachTakesAPermit() {
    Permits permits = new Permits();
    QueueLimit limit = limit(new Limits(Map.of(), Map.of(), Map.of("orders", permits)));
    permits.left = 3;
    assertThat(limit.room(0, NOW)).isEqualTo(3);
    limit.claimed(2, false, NOW);
    limit.claimed(0, false, NOW);
    assertThat(permits.left).isEqualTo(1);
    assertThat(limit.room(2, NOW)).isEqualTo(1);
    permits.left = -5;
    assertThat(limit.room(0, NOW)).isZero();
    assertThat(limit.waits()).isTrue();
    assertThat(limit.untilLook(NOW)).as("asked again when the rate says").isEqualTo(3 * MILLI);
    assertThat(limit.untilLook(NOW + 4 * MILLI)).as("watch is passed").isEqualTo(MILLI);
    permits.untilNext = Duration.ZERO;
    assertThat(limit.room(0, NOW + 5 * MILLI)).isZero();
    assertThat(limit.untilLook(NOW + 5 * MILLI)).isEqualTo(MILLI);
    permits.left = 9;
    assertThat(limit.room(1, NOW + 6 * MILLI)).as("workers").isEqualTo(3);
  }

  private static final class Permits implements RateLimit {
    private int left;
    private Duration untilNext = Duration.ofMillis(3);

    @Override
    public int available() {
      return left;
    }

    @Override
    public void take(int messages) {
      left -= messages;
    }

    @Override
    public Duration untilNext() {
      return untilNext;
    }
  }
}
