package dev.outbox4j.internal;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.Outcome;
import dev.outbox4j.Payload;
import dev.outbox4j.internal.InFlight.State;
import dev.outbox4j.spi.History;
import dev.outbox4j.spi.ScanBound;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** The way of claimed rows, each step once, under a lease that is known to last. */
class InFlightTest {
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
  private final InFlight row = at(0);

  @Test
  void isStartedOnce() {
    assertThat(row.state()).isEqualTo(State.BUFFERED);
    assertThat(row.start(7)).isTrue();
    assertThat(row.startedAt()).isEqualTo(7);
    assertThat(row.state()).isEqualTo(State.RUNNING);
    assertThat(row.start(8)).isFalse();
    assertThat(row.withdraw()).isFalse();
    assertThat(row.giveBack()).isFalse();
    assertThat(row.state()).isEqualTo(State.RUNNING);
  }

  @Test
  void isDecidedOnceAndNotBeforeItsStart() {
    assertThat(row.decided(Settlement.Ack.INSTANCE)).isFalse();
    row.start(0);
    assertThat(row.decided(Settlement.Ack.INSTANCE)).isTrue();
    assertThat(row.state()).isEqualTo(State.DECIDED);
    assertThat(row.decided(Settlement.Release.INSTANCE)).isFalse();
    assertThat(row.expire()).isFalse();
    assertThat(row.expired()).isFalse();
    assertThat(row.settlement()).isEqualTo(Settlement.Ack.INSTANCE);
  }

  @Test
  void isGivenBackOrWithdrawnOnlyBeforeItsStart() {
    assertThat(row.giveBack()).isTrue();
    assertThat(row.state()).isEqualTo(State.DECIDED);
    assertThat(row.settlement()).isEqualTo(Settlement.Release.INSTANCE);
    assertThat(row.giveBack()).isFalse();
    assertThat(row.start(0)).isFalse();
    assertThat(at(1).withdraw()).isTrue();
    assertThat(at(1).state()).isEqualTo(State.SETTLED);
    assertThat(at(1).start(0)).isFalse();
  }

  @Test
  void aTimeoutInterruptsTheHandlerAndDecidesInItsPlace() {
    row.start(0);
    assertThat(row.expire()).isTrue();
    assertThat(Thread.interrupted()).isTrue();
    assertThat(row.state()).isEqualTo(State.EXPIRED);
    assertThat(row.expired()).isTrue();
    assertThat(row.leaseLost()).isTrue();
    row.awaitInterrupt(); // it has come
    assertThat(row.expire()).isFalse();
    assertThat(row.decided(Settlement.Ack.INSTANCE)).isFalse();
    Settlement.Retry retry = new Settlement.Retry(Duration.ZERO, "took too long");
    row.decidedByTimeout(retry);
    assertThat(row.state()).isEqualTo(State.DECIDED);
    assertThat(row.settlement()).isEqualTo(retry);
  }

  @Test
  void aTimeoutOfAPendingStageInterruptsNobodyAndMayFreeItsPermit() {
    AtomicInteger freed = new AtomicInteger();
    row.freePermit(); // it has none
    row.start(0);
    row.goesOnWithoutThread(freed::incrementAndGet);
    assertThat(row.expire()).isTrue();
    assertThat(Thread.interrupted()).isFalse();
    row.freePermit();
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
    assertThat(row.leaseLost()).isFalse();
    assertThat(row.knownLost()).isFalse();
    row.lose();
    assertThat(row.knownLost()).isTrue();
    assertThat(row.leaseOver(claimed)).isTrue();
    assertThat(row.leaseLost()).isTrue();
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
    InFlight third = at(2);
    at(1).settle();
    assertThat(batch.next()).isSameAs(third);
    assertThat(batch.next()).isNull();
    assertThat(batch.waiting()).isZero();
  }

  @Test
  void theRegistryCountsWhatIsHeldAndForgetsABatchWithItsLastRow() {
    InFlightRegistry registry = new InFlightRegistry();
    InFlight second = at(1);
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
    assertThat(row.type()).contains("t");
    assertThat(row.orderingKey()).contains("key");
    assertThat(row.timerId()).contains("timer");
    assertThat(row.headers()).containsEntry("h", "v");
    assertThat(row.payload()).isEqualTo(Payload.ofText("a"));
    assertThat(row.createdAt()).isEqualTo(EngineParts.SERVER);
    assertThat(row.availableAt()).isEqualTo(EngineParts.SERVER);
    assertThat(row).hasToString("Delivery[queue=orders, type=t, id=1, token=1]");
    assertThat(row.decision()).isNull();
    row.decide(Outcome.ack());
    assertThat(row.decision()).isEqualTo(Outcome.ack());
  }

  private InFlight at(int index) {
    return Objects.requireNonNull(batch.at(index));
  }

  private static ScanBound place(long id) {
    return new ScanBound(EngineParts.SERVER, id);
  }
}
