package dev.outbox4j.internal.claim;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.internal.settings.SubscriberSettings;
import dev.outbox4j.internal.state.EngineParts;
import dev.outbox4j.spi.ClaimResult;
import dev.outbox4j.spi.LookAhead;
import dev.outbox4j.testing.InMemoryStore;
import java.time.Clock;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;

/** How long a fetcher waits that has found nothing. Waits are shortened by up to a fifth. */
class IdlePlanTest {
  private static final long MILLI = 1_000_000;
  private static final long NOW = 1_000_000 * MILLI;
  private static final SubscriberSettings.Claiming CLAIMING =
      new SubscriberSettings.Claiming(
          100,
          Duration.ofSeconds(60),
          Duration.ofMillis(10),
          Duration.ofSeconds(10),
          Duration.ofSeconds(1));

  private final QueueLane first = lane("first");
  private final QueueLane second = lane("second");
  private final IdlePlan plan = new IdlePlan(List.of(first, second), CLAIMING);

  @Test
  void waitsDoubleWithEachEmptyRoundUpToTheLongest() {
    assertWaitsAbout(10);
    emptyRounds(1);
    assertWaitsAbout(10);
    emptyRounds(1);
    assertWaitsAbout(20);
    emptyRounds(2);
    assertWaitsAbout(80);
    emptyRounds(100);
    assertWaitsAbout(1_000);
  }

  @Test
  void aRoundThatGaveRowsMakesWaitsShortAgain() {
    emptyRounds(20);
    plan.round(1);
    assertWaitsAbout(10);
  }

  @Test
  void aWaitEndsWhenARowOfAnyQueueIsDue() {
    emptyRounds(20);
    second.dueAt(NOW + 30 * MILLI);
    assertThat(plan.nextWait(false, NOW)).isEqualTo(30 * MILLI);
  }

  @Test
  void whatFellDueMeanwhileIsLookedForAfterAMoment() {
    emptyRounds(20);
    second.dueAt(NOW);
    assertThat(plan.nextWait(false, NOW)).isEqualTo(MILLI);
  }

  @Test
  void aWaitEndsWhenTheHeadOfAQueueIsToBeLookedAt() {
    emptyRounds(20);
    claim(second, true);
    claim(second, false); // above the bound
    assertThat(plan.nextWait(false, NOW)).isZero();
  }

  @Test
  void whoIsInReserveEverywhereWaitsForTheMediumPollWhateverFallsDue() {
    reserve(first);
    assertThat(plan.inReserve()).isFalse();
    reserve(second);
    assertThat(plan.inReserve()).isTrue();
    second.dueAt(NOW + 30 * MILLI);
    claim(second, true);
    claim(second, false);
    assertThat(plan.nextWait(true, NOW)).isBetween(800 * MILLI, 1_000 * MILLI);
  }

  @Test
  void whoIsInReserveOfOneQueueLooksAfterTheOther() {
    reserve(first);
    first.dueAt(NOW + 2 * MILLI);
    second.dueAt(NOW + 5 * MILLI);
    assertThat(plan.nextWait(true, NOW)).isEqualTo(5 * MILLI);
  }

  @Test
  void aQueueWhoseClaimsFailIsTriedAgainAfterAPauseAndDoesNotKeepTheOthersAwake() {
    emptyRounds(20);
    reserve(first);
    second.failed(false, NOW);
    long wait = plan.nextWait(true, NOW);
    assertThat(wait).isEqualTo(second.untilTry(NOW)).isGreaterThan(50 * MILLI);
    assertThat(plan.nextWait(true, NOW + wait)).as("it is to be tried now").isZero();
  }

  @Test
  void whereAllQueuesFailTheNextTryIsAwaited() {
    emptyRounds(30);
    first.failed(false, NOW);
    second.failed(false, NOW);
    assertThat(plan.nextWait(true, NOW))
        .isEqualTo(Math.min(first.untilTry(NOW), second.untilTry(NOW)))
        .isPositive();
  }

  private void assertWaitsAbout(long millis) {
    for (int i = 0; i < 100; i++) { // the part that is left to chance
      assertThat(plan.nextWait(false, NOW)).isBetween(millis * MILLI * 8 / 10, millis * MILLI);
    }
  }

  private void emptyRounds(int count) {
    for (int i = 0; i < count; i++) {
      plan.round(0);
    }
  }

  private static void claim(QueueLane lane, boolean full) {
    lane.scan().next(NOW, false);
    lane.scan().claimed(new ClaimResult(List.of(), full, null, EngineParts.SERVER), NOW, NOW);
  }

  private static void reserve(QueueLane lane) {
    for (int i = 0; i < 2; i++) {
      lane.watch().next(true, false, NOW);
      lane.watch().claimed(0, new LookAhead(null, LookAhead.Watch.TAKEN, 1, false), NOW);
    }
    assertThat(lane.watch().inReserve()).isTrue();
  }

  private static QueueLane lane(String queue) {
    return new QueueLane(
        queue, EngineParts.settings(new InMemoryStore(Clock.systemUTC()), CLAIMING));
  }
}
