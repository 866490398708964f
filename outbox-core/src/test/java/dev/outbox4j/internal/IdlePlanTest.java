package dev.outbox4j.internal;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.spi.ClaimRequest.Idle.Mode;
import dev.outbox4j.spi.LookAhead;
import java.time.Duration;
import org.junit.jupiter.api.Test;

/** The protocol of falling asleep, on instants that the test sets. */
class IdlePlanTest {
  private static final long MILLI = 1_000_000;
  private static final long SECOND = 1_000 * MILLI;

  private final IdlePlan plan = plan(Duration.ofMillis(10));
  private long now = 1_000 * SECOND;

  private static IdlePlan plan(Duration minPoll) {
    return new IdlePlan(
        new SubscriberSettings.Claiming(
            100, Duration.ofSeconds(60), minPoll, Duration.ofSeconds(10), Duration.ofSeconds(1)));
  }

  /** An empty claim that takes so long; returns what it told publishers. */
  private Mode claim(IdlePlan plan, Duration takes, long oldest, long next) {
    Mode mode = plan.announcement(true, false, now).mode();
    now += takes.toNanos();
    plan.claimed(0, new LookAhead(null, oldest, next), now);
    return mode;
  }

  private Duration settledWait(IdlePlan plan) {
    long longest = 0;
    for (int i = 0; i < 20; i++) {
      longest = Math.max(longest, plan.wait(true, now));
    }
    return Duration.ofNanos(longest);
  }

  private void fallAsleep() {
    Duration quick = Duration.ofMillis(1);
    for (int i = 0; i < 30; i++) {
      claim(plan, quick, 100, 100);
      now += 20 * MILLI;
    }
    assertThat(settledWait(plan)).isGreaterThan(Duration.ofSeconds(5));
  }

  @Test
  void slowClaimDoesNotTakeItsOwnSnapshotForOneAfterItsAnnouncement() {
    claim(plan, Duration.ofMillis(1), 100, 100);
    // its look ahead is older than its commit, so it may not know of transaction 101
    assertThat(claim(plan, Duration.ofMillis(300), 100, 100)).isEqualTo(Mode.SLEEP);
    now += 200 * MILLI;
    for (int i = 0; i < 20; i++) { // transaction 101 is open all the time
      claim(plan, Duration.ofMillis(1), 101, 102);
      now += 20 * MILLI;
    }
    assertThat(settledWait(plan)).isLessThanOrEqualTo(Duration.ofMillis(100));
  }

  @Test
  void announcementThatRanOutWhileWorkersWereBusyIsMadeAnewFromTheBeginning() {
    fallAsleep();
    now += 60 * SECOND; // all workers busy: no claim, and nobody refreshed the announcement
    assertThat(claim(plan, Duration.ofMillis(1), 200, 200)).isEqualTo(Mode.SLEEP);
    assertThat(settledWait(plan)).isLessThanOrEqualTo(Duration.ofMillis(20));
  }

  @Test
  void refreshedAnnouncementStaysSettled() {
    fallAsleep();
    now += 6 * SECOND;
    assertThat(claim(plan, Duration.ofMillis(1), 150, 200)).isEqualTo(Mode.SLEEP);
    assertThat(settledWait(plan)).isGreaterThan(Duration.ofSeconds(5));
  }

  @Test
  void rowThatFellDueWhileTheClaimWasOnItsWayDoesNotWaitForThePoll() {
    IdlePlan patient = plan(Duration.ofSeconds(10));
    for (int i = 0; i < 30; i++) {
      claim(patient, Duration.ofMillis(1), 100, 100);
      now += 20 * MILLI;
    }
    patient.announcement(true, false, now);
    patient.claimed(0, new LookAhead(Duration.ZERO, 100, 100), now);
    assertThat(Duration.ofNanos(patient.wait(true, now))).isLessThanOrEqualTo(Duration.ofMillis(1));
    assertThat(settledWait(patient)).as("and it is told once").isGreaterThan(Duration.ofSeconds(5));
  }

  @Test
  void longFirstPollWaitsOnlyOnceTheSleepIsAnnounced() {
    IdlePlan patient = plan(Duration.ofSeconds(10));
    claim(patient, Duration.ofMillis(1), 100, 100);
    assertThat(settledWait(patient)).isLessThanOrEqualTo(Duration.ofMillis(20));
  }
}
