package dev.outbox4j.internal.claim;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.internal.settings.SubscriberSettings;
import dev.outbox4j.spi.ClaimRequest.Idle;
import dev.outbox4j.spi.ClaimRequest.Idle.Mode;
import dev.outbox4j.spi.LookAhead;
import dev.outbox4j.spi.LookAhead.Watch;
import java.time.Duration;
import org.junit.jupiter.api.Test;

/** Who is told of new messages, and the protocol of falling asleep, on instants the test sets. */
class QueueWatchTest {
  private static final long MILLI = 1_000_000;
  private static final long SECOND = 1_000 * MILLI;
  private static final Duration QUICK = Duration.ofMillis(1);

  private final QueueWatch watch =
      new QueueWatch(
          new SubscriberSettings.Claiming(
              100,
              Duration.ofSeconds(60),
              Duration.ofMillis(10),
              Duration.ofSeconds(10),
              Duration.ofSeconds(1)));
  private long now = 1_000 * SECOND;
  private Watch others = Watch.VACANT;
  private boolean transactionsEnded = true;

  /** A claim that finds so many rows; answers as a store does. */
  private Idle claim(Duration takes, int rows) {
    return claim(Duration.ZERO, takes, rows);
  }

  private Idle claim(Duration waits, Duration takes, int rows) {
    Idle idle = watch.next(true, false, now);
    now += waits.plus(takes).toNanos();
    LookAhead ahead = null;
    if (idle.mode() == Mode.SLEEP || idle.mode() == Mode.LOOK_AHEAD) {
      if (idle.mode() == Mode.SLEEP && others != Watch.TAKEN) {
        others = Watch.MINE;
      }
      boolean known = idle.mark() != null && idle.mark() != Idle.NEW_MARK;
      ahead = new LookAhead(null, others, 7, known && transactionsEnded);
    }
    watch.claimed(rows, ahead, now);
    return idle;
  }

  private void emptyClaims(int count) {
    for (int i = 0; i < count; i++) {
      claim(QUICK, 0);
      now += 20 * MILLI;
    }
  }

  private Duration longestWait() {
    return Duration.ofNanos(watch.longestWait(true, now));
  }

  @Test
  void theOnlySubscriberTakesTheWatchAndSleepsLongOnceOlderTransactionsHaveEnded() {
    emptyClaims(30);
    assertThat(watch.asleep()).isTrue();
    assertThat(longestWait()).isEqualTo(Duration.ofSeconds(10));
  }

  @Test
  void waitsStayShortWhileATransactionIsOpenThatMayNotKnowOfTheSleep() {
    transactionsEnded = false;
    emptyClaims(30);
    assertThat(longestWait()).isLessThanOrEqualTo(Duration.ofMillis(20));
    now += 3 * SECOND;
    assertThat(longestWait()).isLessThanOrEqualTo(Duration.ofMillis(100));
  }

  @Test
  void aSlowClaimDoesNotTakeItsOwnSnapshotForOneAfterItsAnnouncement() {
    claim(QUICK, 0);
    assertThat(claim(Duration.ofMillis(300), 0).mode()).isEqualTo(Mode.SLEEP);
    now += 40 * MILLI;
    assertThat(claim(QUICK, 0).mark()).as("not before the margin has passed").isNull();
    now += 20 * MILLI;
    assertThat(claim(QUICK, 0).mark()).isEqualTo(Idle.NEW_MARK);
    assertThat(claim(QUICK, 0).mark()).isEqualTo(7);
  }

  @Test
  void anAnnouncementThatRanOutIsMadeAnewFromTheBeginning() {
    emptyClaims(30);
    now += 60 * SECOND; // no claim all the while, and nobody refreshed the announcement
    assertThat(claim(QUICK, 0).mode()).isEqualTo(Mode.SLEEP);
    assertThat(longestWait()).isLessThanOrEqualTo(Duration.ofMillis(20));
  }

  @Test
  void anAnnouncementThatRanOutWhileItsRefreshWaitedForAConnectionBeginsAnew() {
    emptyClaims(30);
    now += 9 * SECOND;
    assertThat(claim(Duration.ofSeconds(15), QUICK, 0).mode()).isEqualTo(Mode.SLEEP);
    assertThat(longestWait()).isLessThanOrEqualTo(Duration.ofMillis(20));
    emptyClaims(10);
    assertThat(longestWait()).isGreaterThan(Duration.ofSeconds(9));
  }

  @Test
  void aWaitEndsBeforeTheAnnouncementThatItCountsOnThoughTheClaimWaitedForAConnection() {
    emptyClaims(30);
    now += 9 * SECOND;
    assertThat(claim(QUICK, 0).mode()).isEqualTo(Mode.SLEEP);
    long inForceUntil = now + 21 * SECOND;
    now += 4 * SECOND;
    assertThat(claim(Duration.ofSeconds(12), QUICK, 0).mode()).isEqualTo(Mode.LOOK_AHEAD);
    assertThat(longestWait()).isLessThan(Duration.ofNanos(inForceUntil - now));
  }

  @Test
  void aRefreshedAnnouncementStaysSettled() {
    emptyClaims(30);
    now += 6 * SECOND;
    assertThat(claim(QUICK, 0).mode()).isEqualTo(Mode.SLEEP);
    assertThat(longestWait()).isEqualTo(Duration.ofSeconds(10));
  }

  @Test
  void whoFindsTheWatchTakenStaysInReserveAndPollsAtTheMediumPace() {
    others = Watch.TAKEN;
    emptyClaims(3);
    assertThat(watch.inReserve()).isTrue();
    assertThat(watch.asleep()).as("notifications are for another").isFalse();
    assertThat(longestWait()).isEqualTo(Duration.ofSeconds(1));
  }

  @Test
  void whoIsInReserveTakesTheWatchWhenItFindsItVacant() {
    others = Watch.TAKEN;
    emptyClaims(3);
    others = Watch.VACANT;
    claim(QUICK, 0);
    assertThat(claim(QUICK, 0).mode()).isEqualTo(Mode.SLEEP);
    assertThat(watch.onWatch()).isTrue();
  }

  @Test
  void whoIsWokenByNameTakesTheWatchWhenItFindsNothing() {
    others = Watch.TAKEN;
    emptyClaims(3);
    others = Watch.VACANT;
    watch.called();
    assertThat(claim(QUICK, 0).mode()).isEqualTo(Mode.SLEEP);
    assertThat(watch.onWatch()).isTrue();
  }

  @Test
  void whoIsWokenByNameAndHasNoRoomEitherIsToWakeTheNext() {
    others = Watch.TAKEN;
    emptyClaims(3);
    assertThat(watch.isCountedOn()).isFalse();
    watch.called();
    assertThat(watch.isCountedOn()).isTrue();
    watch.passed(now);
    assertThat(watch.isCountedOn()).isFalse();
  }

  @Test
  void whoIsBusyOnWatchNeedsNoNotificationsButKeepsTheWatch() {
    emptyClaims(30);
    boolean told = false;
    for (int i = 0; i < 20; i++) {
      told |= claim(QUICK, 5).mode() == Mode.AWAKE;
    }
    assertThat(told).isTrue();
    assertThat(watch.onWatch()).isTrue();
    Idle again = claim(QUICK, 5);
    for (int i = 0; i < 100 && again.mode() == Mode.UNCHANGED; i++) {
      now += 50 * MILLI;
      again = claim(QUICK, 5);
    }
    assertThat(again.mode()).as("said again before it runs out").isEqualTo(Mode.AWAKE);
    assertThat(again.wakeIn()).isGreaterThan(Duration.ofSeconds(3));
  }

  @Test
  void whoIsBusyOnWatchLearnsThatAnotherHasIt() {
    emptyClaims(30);
    others = Watch.TAKEN;
    int reserve = 0;
    for (int i = 0; i < 500; i++) { // five seconds
      now += 10 * MILLI;
      claim(QUICK, 5);
      reserve += watch.inReserve() ? 1 : 0;
    }
    assertThat(reserve).isPositive();
    assertThat(watch.onWatch()).isFalse();
  }

  @Test
  void claimsThatAllGiveRowsMakeBusyHoweverSlowTheServer() {
    emptyClaims(30);
    assertThat(watch.asleep()).isTrue();
    for (int i = 0; i < 8; i++) {
      now += 200 * MILLI;
      assertThat(claim(QUICK, 20).mode()).as("claim %d", i + 1).isNotEqualTo(Mode.AWAKE);
    }
    now += 200 * MILLI;
    assertThat(claim(QUICK, 20).mode()).as("after eight").isEqualTo(Mode.AWAKE);
    assertThat(watch.asleep()).as("publishers notify").isFalse();
    assertThat(watch.onWatch()).isTrue();

    now += 1_000 * MILLI;
    assertThat(claim(QUICK, 0).mode()).as("the last one gave rows").isNotEqualTo(Mode.SLEEP);
    now += 200 * MILLI;
    assertThat(claim(QUICK, 0).mode()).isEqualTo(Mode.SLEEP);
  }

  @Test
  void whoIsInReserveStaysKnownAndTakesAVacantWatchThoughEachOfItsPollsGivesRows() {
    others = Watch.TAKEN;
    emptyClaims(30);
    assertThat(watch.inReserve()).isTrue();
    int said = 0;
    for (int i = 0; i < 60; i++) {
      now += SECOND;
      said += claim(QUICK, 20).mode() == Mode.SLEEP ? 1 : 0;
    }
    assertThat(said).as("said again each five seconds").isBetween(9, 12);

    others = Watch.VACANT;
    for (int i = 0; i < 10 && !watch.onWatch(); i++) {
      now += SECOND;
      claim(QUICK, 20);
    }
    assertThat(watch.onWatch()).isTrue();
  }

  @Test
  void whoHasPassedTheWatchForWantOfRoomDoesNotTakeItBackWhileItsClaimsGiveRows() {
    for (int i = 0; i < 20; i++) { // slow handlers: a claim whenever one ends
      now += 50 * MILLI;
      assertThat(claim(QUICK, 1).mode()).isNotIn(Mode.SLEEP, Mode.AWAKE);
      watch.passed(now);
    }
  }

  @Test
  void whoHasPassedTheWatchForWantOfRoomDoesNotTakeItBackWithEachOfManyQuickClaims() {
    int taken = 0;
    for (int i = 0; i < 200; i++) { // two seconds
      now += 10 * MILLI;
      if (claim(QUICK, 1).mode() == Mode.SLEEP) {
        taken++;
      }
      watch.passed(now);
    }
    assertThat(taken).isLessThanOrEqualTo(1);
  }

  @Test
  void aMessageNowAndThenLeavesTheSubscriberAsleep() {
    emptyClaims(30);
    for (int i = 0; i < 100; i++) {
      now += 50 * MILLI;
      claim(QUICK, 1);
      now += 3 * MILLI;
      claim(QUICK, 0);
    }
    assertThat(watch.asleep()).isTrue();
  }

  @Test
  void aSteadyTrickleKeepsTheSubscriberAwakeThoughEachSecondClaimIsEmpty() {
    emptyClaims(30);
    int sleeps = 0;
    for (int i = 0; i < 100; i++) { // a message each 8 ms
      claim(QUICK, 1);
      now += 3 * MILLI;
      sleeps += claim(QUICK, 0).mode() == Mode.SLEEP ? 1 : 0;
      now += 3 * MILLI;
    }
    assertThat(watch.asleep()).as("publishers notify").isFalse();
    assertThat(watch.onWatch()).isTrue();
    assertThat(sleeps).isZero();
    now += 200 * MILLI;
    assertThat(claim(QUICK, 0).mode()).isEqualTo(Mode.SLEEP);
  }

  @Test
  void whatCouldNotBeSaidIsNotSaidAgainAtOnceSoThatRowsAreClaimedMeanwhile() {
    claim(QUICK, 0);
    assertThat(watch.next(true, false, now).mode()).isEqualTo(Mode.SLEEP);
    watch.failed(now); // somebody has locked the table of sleepers
    for (int i = 0; i < 5; i++) {
      now += 500 * MILLI;
      assertThat(claim(QUICK, 0).mode()).isEqualTo(Mode.LOOK_AHEAD);
    }
    assertThat(longestWait()).isEqualTo(Duration.ofSeconds(1));
    now += 5 * SECOND;
    assertThat(claim(QUICK, 0).mode()).isEqualTo(Mode.SLEEP);
  }

  @Test
  void whoIsBusyFromTheBeginningTakesAVacantWatchSoThatNobodyElseIsWoken() {
    boolean taken = false;
    for (int i = 0; i < 12; i++) {
      taken |= claim(QUICK, 5).mode() == Mode.SLEEP;
    }
    assertThat(taken).isTrue();
    assertThat(watch.onWatch()).isTrue();
  }

  @Test
  void withoutAListenerTheWatchIsGivenUp() {
    emptyClaims(30);
    Idle idle = watch.next(false, false, now);
    assertThat(idle).isEqualTo(Idle.awake(Duration.ZERO));
    assertThat(watch.onWatch()).isFalse();
    assertThat(Duration.ofNanos(watch.longestWait(false, now))).isEqualTo(Duration.ofSeconds(1));
  }

  @Test
  void whereRowsAreLikelyNothingIsSaidOrAsked() {
    emptyClaims(30);
    now += 8 * SECOND; // the announcement wants a refresh
    assertThat(watch.next(true, true, now)).isEqualTo(Idle.UNCHANGED);
    assertThat(watch.saysSomething()).isFalse();
    assertThat(watch.next(true, false, now).mode()).isEqualTo(Mode.SLEEP);
    assertThat(watch.saysSomething()).isTrue();
  }

  @Test
  void withoutAListenerOnlyWhatComesNextIsAskedUnlessRowsAreLikely() {
    assertThat(watch.next(false, false, now)).isEqualTo(Idle.LOOK_AHEAD);
    assertThat(watch.saysSomething()).isFalse();
    assertThat(watch.next(false, true, now)).isEqualTo(Idle.UNCHANGED);
  }

  @Test
  void whoIsUnknownToOthersIsNotInReserve() {
    assertThat(watch.inReserve()).isFalse();
    others = Watch.TAKEN;
    emptyClaims(3);
    assertThat(watch.inReserve()).isTrue();
    watch.called();
    assertThat(watch.inReserve()).isFalse();
  }

  @Test
  void whoIsInReserveStaysSoThoughNoClaimWasMadeForLong() {
    others = Watch.TAKEN;
    emptyClaims(3);
    now += 10 * SECOND;
    watch.next(true, false, now);
    assertThat(watch.inReserve()).isTrue();
  }

  @Test
  void whoWasBusyOnWatchAndThenAwayForLongerThanItSaidHasLostTheWatch() {
    becomeBusy();
    now += 10 * SECOND;
    watch.next(true, true, now);
    assertThat(watch.onWatch()).isFalse();
  }

  @Test
  void whoIsBusyOnWatchSaysSoEachTwoSeconds() {
    becomeBusy();
    int said = 0;
    for (int i = 0; i < 200; i++) { // ten seconds
      now += 49 * MILLI;
      said += claim(QUICK, 5).mode() == Mode.AWAKE ? 1 : 0;
    }
    assertThat(said).isBetween(4, 5);
  }

  @Test
  void twoEmptyClaimsWithinATenthOfASecondDoNotEndABusyTime() {
    becomeBusy();
    for (int i = 0; i < 10; i++) {
      now += 150 * MILLI;
      claim(QUICK, 5);
    }
    now += 20 * MILLI;
    claim(QUICK, 0);
    now += 20 * MILLI;
    assertThat(claim(QUICK, 0).mode()).isNotEqualTo(Mode.SLEEP);
    now += 60 * MILLI;
    assertThat(claim(QUICK, 0).mode()).isEqualTo(Mode.SLEEP);
  }

  @Test
  void whoIsBusyInReserveTakesTheWatchOnlyWhenItIsCalled() {
    others = Watch.TAKEN;
    emptyClaims(3);
    for (int i = 0; i < 8; i++) {
      claim(QUICK, 5);
    }
    for (int i = 0; i < 20; i++) {
      assertThat(claim(QUICK, 5).mode()).isEqualTo(Mode.UNCHANGED);
    }
    watch.called();
    others = Watch.VACANT;
    assertThat(claim(QUICK, 5).mode()).isEqualTo(Mode.SLEEP);
  }

  @Test
  void aRefreshAsksForTheMarkThatWasNotReachedYetAndLearnsFromTheAnswer() {
    transactionsEnded = false;
    assertThat(claim(QUICK, 0).mark()).isNull();
    Idle first = claim(QUICK, 0);
    assertThat(first.mode()).isEqualTo(Mode.SLEEP);
    assertThat(first.mark()).as("there was no announcement to ask about").isNull();
    emptyClaims(30);
    now += 5 * SECOND;
    transactionsEnded = true;
    Idle refresh = claim(QUICK, 0);
    assertThat(refresh.mode()).isEqualTo(Mode.SLEEP);
    assertThat(refresh.mark()).isEqualTo(7);
    assertThat(longestWait()).isEqualTo(Duration.ofSeconds(10));
  }

  @Test
  void whatWasAskedOfAnAnnouncementThatRanOutSaysNothingOfTheNewOne() {
    transactionsEnded = false;
    emptyClaims(30);
    now += 6 * SECOND;
    Idle refresh = claim(Duration.ofSeconds(17), QUICK, 0);
    assertThat(refresh.mark()).isEqualTo(7);
    now += 60 * MILLI;
    assertThat(claim(QUICK, 0).mark()).isEqualTo(Idle.NEW_MARK);
  }

  @Test
  void afterAClaimThatFailedNobodyIsCountedOn() {
    emptyClaims(30);
    watch.failed(now);
    assertThat(watch.asleep()).isFalse();
    assertThat(watch.isCountedOn()).isFalse();
  }

  private void becomeBusy() {
    emptyClaims(30);
    for (int i = 0; i < 10; i++) {
      claim(QUICK, 5);
    }
    assertThat(watch.asleep()).isFalse();
    assertThat(watch.onWatch()).isTrue();
  }
}
