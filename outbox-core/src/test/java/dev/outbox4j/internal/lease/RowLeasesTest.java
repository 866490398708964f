package dev.outbox4j.internal.lease;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.Delivery;
import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.OutboxStoreException.Fault;
import dev.outbox4j.SubscriberEvents;
import dev.outbox4j.internal.EngineThreads;
import dev.outbox4j.internal.settings.SubscriberSettings;
import dev.outbox4j.internal.settle.Completer;
import dev.outbox4j.internal.state.EngineHealth;
import dev.outbox4j.internal.state.EngineParts;
import dev.outbox4j.internal.state.Events;
import dev.outbox4j.internal.state.HeldRow;
import dev.outbox4j.internal.state.HeldRow.State;
import dev.outbox4j.internal.state.Lease;
import dev.outbox4j.internal.state.Prefetch;
import dev.outbox4j.internal.state.Settlement;
import dev.outbox4j.internal.state.Shared;
import dev.outbox4j.testing.InMemoryStore;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Single rounds of renewals, and what becomes of rows whose lease cannot be renewed. */
class RowLeasesTest {
  private static final Duration LEASE = Duration.ofSeconds(2);

  /** Before a renewal that failed is tried again. */
  private static final long PAUSE = LEASE.toNanos() / 32;

  private final InMemoryStore store = new InMemoryStore(Clock.systemUTC());
  private final EngineThreads threads =
      new EngineThreads("orders", RowLeasesTest.class.getClassLoader());
  private final AtomicInteger renewed = new AtomicInteger();
  private final Set<Long> lost = ConcurrentHashMap.newKeySet();
  private final Events events = new Events("orders", threads, List.of(observer()));
  private final Shared shared = EngineParts.shared(threads, events, LEASE);
  private final Prefetch prefetch = new Prefetch(1, 100);
  private final SubscriberSettings settings =
      EngineParts.settings(store, new SubscriberSettings.Claiming(100, LEASE, LEASE, LEASE, LEASE));
  private final Completer completer = new Completer(settings, shared);
  private final RowLeases leases = new RowLeases(settings, shared, completer, prefetch);

  @BeforeEach
  void start() {
    events.start();
    completer.start();
  }

  @AfterEach
  void stop() {
    completer.stop();
    completer.join(System.nanoTime() + TimeUnit.SECONDS.toNanos(10));
    events.stop(System.nanoTime() + TimeUnit.SECONDS.toNanos(10));
  }

  @Test
  void aLeaseIsLeftAloneUntilItsHalf() {
    running(2, Duration.ZERO);
    leases.renewDue();
    assertThat(store.calls("renew")).isZero();
  }

  @Test
  void aLeaseIsRenewedAtItsHalfForAllRowsThatAreNotSettled() {
    List<HeldRow> rows = running(3, LEASE.dividedBy(2));
    shared.registry().settle(rows.get(1));
    long before = System.nanoTime();
    leases.renewDue();
    assertThat(store.calls("renew")).isEqualTo(1);
    assertThat(rows.get(0).batch().lease().expiresAt()).isGreaterThan(before + LEASE.toNanos() / 2);
    await().untilAsserted(() -> assertThat(renewed).hasValue(2));
    leases.renewDue();
    assertThat(store.calls("renew")).as("not due any more").isEqualTo(1);
  }

  @Test
  void rowsThatNobodyHasBegunAreGivenBackAndNoneIsHeldReadyForAWhile() {
    List<HeldRow> rows = claim(2, LEASE.dividedBy(2));
    for (long now = 1; prefetch.target() == 0; now += 10_000_000) { // quick handlers
      prefetch.learn(now, now / 10_000, false);
    }
    leases.renewDue();
    assertThat(prefetch.target()).isZero();
    await()
        .untilAsserted(
            () ->
                assertThat(store.rows())
                    .hasSize(2)
                    .allSatisfy(row -> assertThat(row.leaseUntil()).isNull()));
    await()
        .untilAsserted(
            () ->
                assertThat(rows)
                    .allSatisfy(row -> assertThat(row.state()).isEqualTo(State.SETTLED)));
    assertThat(store.calls("renew")).isZero();
  }

  @Test
  void aRenewalThatFailsIsOwedUntilItSucceedsAndIsNotTriedAllTheTime() {
    HeldRow row = running(1, LEASE.dividedBy(2)).get(0);
    long expiresAt = row.batch().lease().expiresAt();
    AtomicBoolean broken = new AtomicBoolean(true);
    store.beforeEach(
        operation -> {
          if (operation.equals("renew") && broken.get()) {
            throw new OutboxStoreException("down", Fault.TRANSIENT, false, null);
          }
        });
    long before = System.nanoTime();
    leases.renewDue();
    Lease lease = row.batch().lease();
    assertThat(lease.overdue()).isTrue();
    assertThat(lease.expiresAt()).isEqualTo(expiresAt);
    assertThat(lease.dueAt(before + PAUSE)).isFalse();
    assertThat(lease.dueAt(System.nanoTime() + PAUSE)).isTrue();
    assertThat(shared.health().failing()).isTrue();
    running(1, Duration.ZERO); // one whose lease is not due
    leases.renewDue();
    assertThat(shared.health().failing()).as("still owed").isTrue();
    broken.set(false);
    await().until(() -> lease.dueAt(System.nanoTime()));
    leases.renewDue();
    assertThat(lease.overdue()).isFalse();
    assertThat(shared.health().failing()).isFalse();
  }

  @Test
  void aRowThatIsGoneIsLostToItsHandlerAtOnceAndTheOthersAreNot() {
    List<HeldRow> rows = running(2, LEASE.dividedBy(2));
    store.ack(List.of(rows.get(1).lease()));
    leases.renewDue();
    assertThat(rows.get(1).knownLost()).isTrue();
    assertThat(rows.get(0).knownLost()).isFalse();
    await().untilAsserted(() -> assertThat(lost).containsExactly(rows.get(1).id()));
  }

  @Test
  void aRowThatIsKnownToBeLostIsNotAskedForAgain() {
    List<HeldRow> rows = running(1, LEASE.dividedBy(2));
    store.ack(List.of(rows.get(0).lease()));
    leases.renewDue();
    assertThat(store.calls("renew")).isEqualTo(1);
    rows.get(0).batch().lease().renewLater(System.nanoTime());
    leases.renewDue();
    assertThat(store.calls("renew")).isEqualTo(1);
  }

  @Test
  void aRowThatWasWrittenByItsOwnSubscriberMeanwhileIsNotLost() {
    HeldRow row = running(1, LEASE.dividedBy(2)).get(0);
    EngineParts.decide(row, Settlement.Ack.INSTANCE);
    store.ack(List.of(row.lease()));
    leases.renewDue();
    assertThat(row.knownLost()).isFalse();
  }

  @ParameterizedTest
  @EnumSource(
      value = Fault.class,
      names = {"ROW", "TIMEOUT"})
  void aRowThatIsRefusedIsSoughtByHalvingAtOnce(Fault fault) {
    List<HeldRow> rows = running(8, LEASE.dividedBy(2));
    HeldRow refused = rows.get(5);
    store.failWrites(refused.id(), fault);
    leases.renewDue();
    assertThat(rows).filteredOn(HeldRow::isApart).containsExactly(refused);
    assertThat(store.calls("renew")).isEqualTo(1 + 2 + 2 + 2 + 1); // and once more by itself
    assertThat(refused.batch().lease().overdue()).as("of the others").isFalse();
    assertThat(lastFailure()).contains("row " + refused.id() + " of");
    leases.renewDue();
    assertThat(store.calls("renew")).as("not all the time").isEqualTo(8);
    store.mend(refused.id());
    await()
        .untilAsserted(
            () -> {
              leases.renewDue();
              assertThat(refused.isApart()).isFalse();
            });
    leases.renewDue();
    assertThat(shared.health().failing()).isFalse();
  }

  @Test
  void aFaultThatMayBeTheServersIsARowsWhenItComesAgain() {
    List<HeldRow> rows = running(4, LEASE.dividedBy(2));
    store.failWrites(rows.get(2).id(), Fault.TRANSIENT);
    leases.renewDue();
    assertThat(store.calls("renew")).isEqualTo(1);
    assertThat(rows).noneMatch(HeldRow::isApart);
    await().until(() -> rows.get(0).batch().lease().dueAt(System.nanoTime()));
    leases.renewDue();
    assertThat(rows).filteredOn(HeldRow::isApart).containsExactly(rows.get(2));
  }

  @Test
  void aConnectionThatIsLostThriceIsARowsFaultIfOtherRowsCanBeRenewed() {
    List<HeldRow> rows = running(4, LEASE.dividedBy(2));
    store.failWrites(rows.get(2).id(), Fault.CONNECTION);
    for (int i = 1; i <= 2; i++) {
      await().until(() -> rows.get(0).batch().lease().dueAt(System.nanoTime()));
      leases.renewDue();
      assertThat(store.calls("renew")).isEqualTo(i);
    }
    await().until(() -> rows.get(0).batch().lease().dueAt(System.nanoTime()));
    leases.renewDue();
    assertThat(rows).filteredOn(HeldRow::isApart).containsExactly(rows.get(2));
    assertThat(lastFailure()).contains("row " + rows.get(2).id() + " of");
  }

  @Test
  void anOutageIsNoRowsFault() {
    List<HeldRow> rows = running(4, LEASE.dividedBy(2));
    rows.forEach(row -> store.failWrites(row.id(), Fault.CONNECTION));
    for (int i = 0; i < 5; i++) {
      await().until(() -> rows.get(0).batch().lease().dueAt(System.nanoTime()));
      leases.renewDue();
    }
    assertThat(rows).noneMatch(HeldRow::isApart);
    assertThat(rows.get(0).batch().lease().overdue()).isTrue();
    assertThat(shared.health().failing()).isTrue();
  }

  @Test
  void theSearchForRefusedRowsIsBounded() {
    List<HeldRow> rows = running(100, LEASE.dividedBy(2));
    rows.forEach(row -> store.failWrites(row.id(), Fault.ROW));
    leases.renewDue();
    assertThat(store.calls("renew")).isLessThanOrEqualTo(25);
    assertThat(rows.get(0).batch().lease().overdue()).isTrue();
  }

  @Test
  void manyStuckRowsOfOneQueueDoNotKeepAnotherQueuesFromBeingTriedAgain() {
    HeldRow other = runningOfAnotherQueue();
    List<HeldRow> refused = new ArrayList<>();
    for (int i = 0; i < 40; i++) { // each a batch of its own, so that each is found
      refused.addAll(running(1, LEASE.dividedBy(2)));
    }
    store.lock(other.id());
    refused.forEach(row -> store.failWrites(row.id(), Fault.ROW));
    await()
        .untilAsserted(
            () -> {
              leases.renewDue();
              assertThat(other.isApart()).isTrue();
              assertThat(refused.stream().filter(HeldRow::isApart).count()).isGreaterThan(30);
            });
    store.unlock(other.id());
    await()
        .untilAsserted(
            () -> {
              leases.renewDue();
              assertThat(other.isApart()).isFalse();
            });
  }

  @Test
  void aLockedRowIsNamedUnlessItsOutcomeIsJustBeingWritten() {
    List<HeldRow> rows = running(2, LEASE.dividedBy(2));
    store.lock(rows.get(0).id());
    EngineParts.decide(rows.get(0), Settlement.Ack.INSTANCE);
    leases.renewDue();
    assertThat(rows.get(0).isApart()).isTrue();
    assertThat(shared.health().lastFailure()).isNull();
    List<HeldRow> others = running(1, LEASE.dividedBy(2));
    store.lock(others.get(0).id());
    leases.renewDue();
    assertThat(lastFailure()).contains("row " + others.get(0).id() + " of", "is locked by another");
  }

  private String lastFailure() {
    EngineHealth.Failure failure = shared.health().lastFailure();
    return failure == null ? "" : failure.text();
  }

  private HeldRow runningOfAnotherQueue() {
    long sentAt = System.nanoTime() - LEASE.dividedBy(2).toNanos();
    HeldRow row = EngineParts.claim(store, shared.registry(), "payments", 1, LEASE, sentAt).get(0);
    row.start(System.nanoTime());
    return row;
  }

  private List<HeldRow> running(int count, Duration since) {
    List<HeldRow> rows = claim(count, since);
    rows.forEach(row -> row.start(System.nanoTime()));
    return rows;
  }

  private List<HeldRow> claim(int count, Duration since) {
    return EngineParts.claim(
        store, shared.registry(), count, LEASE, System.nanoTime() - since.toNanos());
  }

  private SubscriberEvents observer() {
    return new SubscriberEvents() {
      @Override
      public void renewed(String subscriber, int rows) {
        renewed.addAndGet(rows);
      }

      @Override
      public void leaseLost(String subscriber, Delivery delivery, Phase phase) {
        lost.add(delivery.id());
      }
    };
  }
}
