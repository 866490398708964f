package dev.outbox4j.internal.claim;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.internal.settings.SubscriberSettings;
import dev.outbox4j.internal.state.EngineParts;
import dev.outbox4j.spi.ClaimRequest.Idle.Mode;
import dev.outbox4j.spi.ClaimRequest.Range;
import dev.outbox4j.spi.ClaimResult;
import dev.outbox4j.spi.LookAhead;
import dev.outbox4j.testing.InMemoryStore;
import java.time.Clock;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** When and of how many rows a queue's next claim is, and when a row there is due. */
class QueueLaneTest {
  private static final long MILLI = 1_000_000;
  private static final long NOW = 1_000_000 * MILLI;
  private static final Duration SECOND = Duration.ofSeconds(1);

  private final QueueLane lane =
      new QueueLane(
          "orders",
          EngineParts.settings(
              new InMemoryStore(Clock.systemUTC()),
              new SubscriberSettings.Claiming(100, SECOND, SECOND, SECOND, SECOND)));

  @Test
  void afterAFailureTheQueueIsLeftAloneForALittleWhile() {
    assertThat(lane.queue()).isEqualTo("orders");
    assertThat(lane.isFailing()).isFalse();
    assertThat(lane.mayClaim(NOW)).isTrue();
    lane.failed(false, NOW);
    assertThat(lane.isFailing()).isTrue();
    assertThat(lane.mayClaim(NOW + 60 * MILLI)).isFalse();
    assertThat(lane.mayClaim(NOW + 140 * MILLI)).isTrue();
  }

  @Test
  void pausesGrowWithFailuresInARowAndBeginAnewAfterAClaim() {
    for (int i = 0; i < 8; i++) {
      lane.failed(false, NOW);
    }
    assertThat(lane.mayClaim(NOW + 600 * MILLI)).isFalse();
    assertThat(lane.mayClaim(NOW + 1_000 * MILLI)).isTrue();
    claimed(null);
    assertThat(lane.isFailing()).isFalse();
    assertThat(lane.mayClaim(NOW)).isTrue();
    lane.failed(false, NOW);
    assertThat(lane.mayClaim(NOW + 140 * MILLI)).isTrue();
  }

  @Test
  void claimsThatMayHaveFailedByTheirSizeAreHalvedAndGrowSlowly() {
    assertThat(lane.limited(1_000)).isEqualTo(1_000);
    lane.failed(true, NOW);
    assertThat(lane.limited(1_000)).isEqualTo(500);
    claimed(null);
    assertThat(lane.limited(1_000)).isEqualTo(500 + 62);
    assertThat(lane.limited(100)).isEqualTo(100);
    lane.failed(false, NOW);
    assertThat(lane.limited(1_000)).isEqualTo(562);
  }

  @Test
  void claimsDoNotBecomeSmallerThanOneRowAndGrowFromThere() {
    lane.limited(1);
    lane.failed(true, NOW);
    assertThat(lane.limited(10)).isEqualTo(1);
    claimed(null);
    assertThat(lane.limited(10)).isEqualTo(2);
  }

  @Test
  void claimsThatNeverFailedAreNotLimited() {
    for (int i = 0; i < 10; i++) {
      claimed(null);
    }
    assertThat(lane.limited(Integer.MAX_VALUE)).isEqualTo(Integer.MAX_VALUE);
  }

  @Test
  void aFailureEndsWhatWasSaidOfTheSubscriber() {
    fallAsleep();
    lane.failed(false, NOW);
    assertThat(lane.watch().asleep()).isFalse();
  }

  @Test
  void scanAndWatchLearnFromAClaim() {
    assertThat(lane.scan().next(NOW, false).range()).isEqualTo(Range.ALL);
    lane.watch().next(true, false, NOW);
    lane.claimed(answer(true, null), false, NOW, NOW);
    assertThat(lane.scan().next(NOW, false).timeLimit()).as("above the bound").isNull();
    assertThat(lane.watch().next(true, false, NOW).mode()).as("it was empty").isEqualTo(Mode.SLEEP);
  }

  @Test
  void whatIsDueIsToldUntilItIsAndThenOnce() {
    assertThat(lane.untilDue(NOW)).isEqualTo(Long.MAX_VALUE);
    claimed(Duration.ofSeconds(5));
    assertThat(lane.untilDue(NOW)).isEqualTo(5_000 * MILLI);
    assertThat(lane.untilDue(NOW + 4_999 * MILLI)).isEqualTo(MILLI);
    assertThat(lane.untilDue(NOW + 5_000 * MILLI)).isZero();
    assertThat(lane.untilDue(NOW + 5_000 * MILLI)).isEqualTo(Long.MAX_VALUE);
  }

  @Test
  void aClaimThatFindsNothingDueLaterEndsWhatWasKnownAndOneThatDidNotAskLeavesIt() {
    claimed(Duration.ofSeconds(5));
    lane.claimed(answer(false, null), false, NOW, NOW);
    assertThat(lane.untilDue(NOW)).isEqualTo(5_000 * MILLI);
    claimed(null);
    assertThat(lane.untilDue(NOW)).isEqualTo(Long.MAX_VALUE);
  }

  @Test
  void ofTwoRowsThatAreDueTheFirstCounts() {
    lane.dueAt(NOW + 50 * MILLI);
    lane.dueAt(NOW + 70 * MILLI);
    assertThat(lane.untilDue(NOW)).isEqualTo(50 * MILLI);
    lane.dueAt(NOW + 30 * MILLI);
    assertThat(lane.untilDue(NOW)).isEqualTo(30 * MILLI);
  }

  private void fallAsleep() {
    for (int i = 0; i < 2; i++) {
      lane.watch().next(true, false, NOW);
      lane.watch().claimed(0, new LookAhead(null, LookAhead.Watch.MINE, 1, false), NOW);
    }
    assertThat(lane.watch().asleep()).isTrue();
  }

  private void claimed(@Nullable Duration nextDueIn) {
    LookAhead ahead = new LookAhead(nextDueIn, LookAhead.Watch.VACANT, 1, false);
    lane.claimed(answer(false, ahead), false, NOW, NOW);
  }

  private static ClaimResult answer(boolean full, @Nullable LookAhead ahead) {
    return new ClaimResult(List.of(), full, ahead, EngineParts.SERVER);
  }
}
