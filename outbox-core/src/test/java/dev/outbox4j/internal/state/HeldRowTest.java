package dev.outbox4j.internal.state;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.Outcome;
import dev.outbox4j.Payload;
import dev.outbox4j.internal.state.HeldRow.State;
import dev.outbox4j.spi.History;
import dev.outbox4j.spi.ScanBound;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** The way of claimed rows, each step once, under a lease that is known to last. */
class HeldRowTest {
  private static final long LEASE = Duration.ofMinutes(1).toNanos();
  private final long claimed = System.nanoTime();

  private final ClaimedBatch batch =
      new ClaimedBatch(
          "orders",
          List.of(
              EngineParts.row(
                  place(1), "a", new History(1, 0, Duration.ZERO, Duration.ofSeconds(9))),
              EngineParts.row(
                  place(2), "bcd", new History(3, 2, Duration.ofSeconds(5), Duration.ofSeconds(9))),
              EngineParts.row(place(3))),
          claimed,
          LEASE);
  private final HeldRow row = at(0);

  @Test
  void isStartedOnce() {
    assertThat(row.state()).isEqualTo(State.WAITING);
    assertThat(row.running()).isNull();
    HandlerRun run = started(row, 7);
    assertThat(run.startedAt()).isEqualTo(7);
    assertThat(run.row()).isSameAs(row);
    assertThat(row.run()).isSameAs(run);
    assertThat(row.running()).isSameAs(run);
    assertThat(row.state()).isEqualTo(State.TAKEN);
    assertThat(row.start(8)).isNull();
    assertThat(row.run()).isSameAs(run);
    assertThat(row.withdraw()).isFalse();
    assertThat(row.giveBack()).isFalse();
    assertThat(row.state()).isEqualTo(State.TAKEN);
  }

  @Test
  void aRunEndsOnceAndIsThenNotTakenAway() {
    HandlerRun run = started(row, 0);
    assertThat(run.end()).isTrue();
    assertThat(run.isRunning()).isFalse();
    assertThat(row.running()).isNull();
    assertThat(row.run()).isSameAs(run);
    assertThat(run.end()).isFalse();
    assertThat(run.expire()).isFalse();
    assertThat(run.expired()).isFalse();
    row.decide(Settlement.Ack.INSTANCE);
    assertThat(row.state()).isEqualTo(State.DECIDED);
    assertThat(row.settlement()).isEqualTo(Settlement.Ack.INSTANCE);
  }

  @Test
  void aRunThatCommitsIsNotTakenAwayAndEnds() {
    HandlerRun run = started(row, 0);
    assertThat(row.isCommitting()).isFalse();
    assertThat(run.commits()).isTrue();
    assertThat(row.isCommitting()).isTrue();
    assertThat(row.running()).isNull();
    assertThat(run.commits()).isFalse();
    assertThat(run.expire()).isFalse();
    assertThat(run.end()).isTrue();
    assertThat(row.isCommitting()).isFalse();
    assertThat(run.end()).isFalse();
  }

  @Test
  void aRunThatWasTakenAwayDoesNotCommit() {
    HandlerRun run = started(row, 0);
    AtomicInteger aborted = new AtomicInteger();
    run.onAbort(aborted::incrementAndGet);
    run.expire();
    run.interrupt();
    assertThat(Thread.interrupted()).isTrue();
    run.abort();
    assertThat(aborted).hasValue(1);
    assertThat(run.commits()).isFalse();
  }

  @Test
  void aRunThatWasGivenUpBeforeItCouldBeBrokenOffIsBrokenOffOnceItCan() {
    HandlerRun run = started(row, 0);
    AtomicInteger aborted = new AtomicInteger();
    run.abort(); // there is nothing to break off
    run.onAbort(aborted::incrementAndGet);
    assertThat(aborted).hasValue(1);
  }

  @Test
  void aRunThatWasGivenUpBeforeItsHandlerCouldBeginIsNotBrokenOff() {
    HandlerRun run = started(row, 0);
    AtomicInteger aborted = new AtomicInteger();
    run.waits();
    run.abort();
    run.onAbort(aborted::incrementAndGet);
    assertThat(aborted).hasValue(0);
  }

  @Test
  void isGivenBackOrWithdrawnOnlyBeforeItsStart() {
    assertThat(row.giveBack()).isTrue();
    assertThat(row.state()).isEqualTo(State.DECIDED);
    assertThat(row.settlement()).isEqualTo(Settlement.Release.INSTANCE);
    assertThat(row.giveBack()).isFalse();
    assertThat(row.start(0)).isNull();
    assertThat(row.run()).isNull();
    assertThat(at(1).withdraw()).isTrue();
    assertThat(at(1).state()).isEqualTo(State.SETTLED);
    assertThat(at(1).start(0)).isNull();
  }

  @Test
  void aTimeoutInterruptsTheHandlerAndTakesTheRunAway() {
    HandlerRun run = started(row, 0);
    assertThat(row.delivery().leaseLost()).isFalse();
    assertThat(run.expire()).isTrue();
    assertThat(Thread.interrupted()).isFalse();
    run.interrupt();
    assertThat(Thread.interrupted()).isTrue();
    assertThat(run.expired()).isTrue();
    assertThat(run.isRunning()).isFalse();
    assertThat(row.state()).as("nothing is decided").isEqualTo(State.TAKEN);
    assertThat(row.delivery().leaseLost()).isTrue();
    run.awaitInterrupt(); // it has come
    assertThat(run.expire()).isFalse();
    assertThat(run.end()).isFalse();
  }

  @Test
  void aHandlerThatIsDoneIsNotInterruptedAnyMore() {
    HandlerRun run = started(row, 0);
    run.expire();
    run.awaitInterrupt();
    run.interrupt();
    assertThat(Thread.interrupted()).isFalse();
    assertThat(run.expired()).isTrue();
  }

  @Test
  void aTimeoutOfAPendingStageInterruptsNobodyAndMayFreeItsPermit() {
    AtomicInteger freed = new AtomicInteger();
    HandlerRun run = started(row, 0);
    run.freePermit(); // it has none
    run.goesOnWithoutThread(freed::incrementAndGet);
    assertThat(run.expire()).isTrue();
    run.interrupt();
    assertThat(Thread.interrupted()).isFalse();
    run.freePermit();
    assertThat(freed).hasValue(1);
  }

  @Test
  void isSettledOnceAndThenForgotten() {
    assertThat(row.settle()).isTrue();
    assertThat(row.state()).isEqualTo(State.SETTLED);
    assertThat(batch.at(0)).isNull();
    assertThat(row.settle()).isFalse();
    assertThat(batch.settled()).isFalse();
    at(1).settle();
    assertThat(batch.settled()).isFalse();
    at(2).settle();
    assertThat(batch.settled()).isTrue();
  }

  @Test
  void theLeaseIsOverAtItsEndAndNotBefore() {
    assertThat(row.leaseOver(claimed + LEASE - 1)).isFalse();
    assertThat(row.leaseOver(claimed + LEASE)).isTrue();
    assertThat(row.delivery().leaseLost()).isFalse();
    assertThat(row.knownLost()).isFalse();
    row.lose();
    assertThat(row.knownLost()).isTrue();
    assertThat(row.leaseOver(claimed)).isTrue();
    assertThat(row.delivery().leaseLost()).isTrue();
    assertThat(at(1).leaseOver(claimed)).as("another row of the claim").isFalse();
  }

  @Test
  void aRowThatASessionHasLockedKeepsTheLeaseThatItHadThen() {
    assertThat(row.isApart()).isFalse();
    row.setApart(claimed + 500);
    row.setApart(claimed + 900);
    assertThat(row.isApart()).isTrue();
    batch.lease().renewed(claimed + LEASE, LEASE);
    assertThat(row.leaseOver(claimed + 499)).isFalse();
    assertThat(row.leaseOver(claimed + 500)).isTrue();
    assertThat(at(1).leaseOver(claimed + 500)).isFalse();
    row.rejoin();
    assertThat(row.isApart()).isFalse();
    assertThat(row.leaseOver(claimed + 2 * LEASE - 1)).isFalse();
  }

  @Test
  void aLeaseIsDueForRenewalAtHalfItsLife() {
    Lease lease = batch.lease();
    assertThat(lease.expiresAt()).isEqualTo(claimed + LEASE);
    assertThat(lease.dueAt(claimed + LEASE / 2 - 1)).isFalse();
    assertThat(lease.dueAt(claimed + LEASE / 2)).isTrue();
    lease.renewed(claimed + 100, LEASE);
    assertThat(lease.expiresAt()).isEqualTo(claimed + 100 + LEASE);
    assertThat(lease.dueAt(claimed + LEASE / 2)).isFalse();
  }

  @Test
  void aLeaseWhoseRenewalFailedIsOverdueUntilOneSucceedsAndEndsNoLater() {
    Lease lease = batch.lease();
    assertThat(lease.overdue()).isFalse();
    lease.renewLater(claimed + LEASE - 100);
    assertThat(lease.overdue()).isTrue();
    assertThat(lease.dueAt(claimed + LEASE - 101)).isFalse();
    assertThat(lease.dueAt(claimed + LEASE - 100)).isTrue();
    assertThat(lease.expiresAt()).isEqualTo(claimed + LEASE);
    lease.renewed(claimed + LEASE - 100, LEASE);
    assertThat(lease.overdue()).isFalse();
  }

  @Test
  void aBatchGivesEachRowOnceAndNoneThatIsSettled() {
    assertThat(batch.size()).isEqualTo(3);
    assertThat(batch.bytes()).isEqualTo(1 + 3 + 1);
    assertThat(batch.claimedAt()).isEqualTo(claimed);
    assertThat(batch.waiting()).isEqualTo(3);
    assertThat(batch.next()).isSameAs(row);
    assertThat(batch.waiting()).isEqualTo(2);
    HeldRow third = at(2);
    at(1).settle();
    assertThat(batch.next()).isSameAs(third);
    assertThat(batch.next()).isNull();
    assertThat(batch.waiting()).isZero();
  }

  @Test
  void theRegistryCountsWhatIsHeldAndForgetsABatchWithItsLastRow() {
    HeldRows registry = new HeldRows();
    HeldRow second = at(1);
    registry.add(batch);
    assertThat(registry.rows()).isEqualTo(3);
    assertThat(registry.bytes()).isEqualTo(5);
    registry.parked(second);
    assertThat(registry.rows()).isEqualTo(2);
    assertThat(registry.bytes()).isEqualTo(2);
    registry.unparked(second);
    assertThat(registry.bytes()).isEqualTo(5);
    registry.settle(second);
    registry.settle(second);
    assertThat(registry.rows()).isEqualTo(2);
    assertThat(registry.bytes()).isEqualTo(2);
    assertThat(registry.batches()).containsExactly(batch);
    registry.settle(List.of(row, at(2)));
    assertThat(registry.rows()).isZero();
    assertThat(registry.bytes()).isZero();
    assertThat(registry.batches()).isEmpty();
  }

  @Test
  void theFirstAttemptIsTheFirstRunAndNotTheFirstOfThisProcess() {
    row.start(claimed + 10);
    assertThat(row.attempt()).isEqualTo(1);
    assertThat(row.sinceFirstAttempt(claimed + 17)).isEqualTo(Duration.ofNanos(7));
    at(1).start(claimed + 10);
    assertThat(at(1).attempt()).isEqualTo(3);
    assertThat(at(1).deliveries()).isEqualTo(3);
    assertThat(at(1).sinceFirstAttempt(claimed + 17))
        .isEqualTo(Duration.ofSeconds(5).plusNanos(17));
  }

  @Test
  void tellsHandlersWhatWasPublished() {
    assertThat(row.id()).isEqualTo(1);
    assertThat(row.leaseToken()).isEqualTo(1);
    assertThat(row.queue()).isEqualTo("orders");
    assertThat(row.delivery().type()).contains("t");
    assertThat(row.delivery().orderingKey()).contains("key");
    assertThat(row.delivery().timerId()).contains("timer");
    assertThat(row.delivery().headers()).containsEntry("h", "v");
    assertThat(row.delivery().payload()).isEqualTo(Payload.ofText("a"));
    assertThat(row.delivery().createdAt()).isEqualTo(EngineParts.SERVER);
    assertThat(row.delivery().availableAt()).isEqualTo(EngineParts.SERVER);
    assertThat(row).hasToString("Delivery[queue=orders, type=t, id=1, token=1]");
    assertThat(row.delivery()).hasToString(row.toString());
    assertThat(row.delivery().id()).isEqualTo(1);
    assertThat(row.delivery().leaseToken()).isEqualTo(1);
    assertThat(row.delivery().queue()).isEqualTo("orders");
    assertThat(row.delivery().attempt()).isEqualTo(1);
    assertThat(row.delivery().deliveries()).isEqualTo(1);
    assertThat(row.delivery().decision()).isNull();
    row.delivery().decide(Outcome.ack());
    assertThat(row.delivery().decision()).isEqualTo(Outcome.ack());
  }

  private static HandlerRun started(HeldRow row, long now) {
    return Objects.requireNonNull(row.start(now));
  }

  private HeldRow at(int index) {
    return Objects.requireNonNull(batch.at(index));
  }

  private static ScanBound place(long id) {
    return new ScanBound(EngineParts.SERVER, id);
  }
}
