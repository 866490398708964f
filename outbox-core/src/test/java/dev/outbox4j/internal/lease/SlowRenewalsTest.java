package dev.outbox4j.internal.lease;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.OutboxStoreException.Fault;
import dev.outbox4j.internal.EngineThreads;
import dev.outbox4j.internal.settings.SubscriberSettings;
import dev.outbox4j.internal.settle.Completer;
import dev.outbox4j.internal.state.EngineHealth;
import dev.outbox4j.internal.state.EngineParts;
import dev.outbox4j.internal.state.Events;
import dev.outbox4j.internal.state.HeldRow;
import dev.outbox4j.internal.state.Prefetch;
import dev.outbox4j.internal.state.Shared;
import dev.outbox4j.testing.InMemoryStore;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Renewals that end in a timeout, on a clock that goes on only while the server is at them. */
class SlowRenewalsTest {
  private static final Duration LEASE = Duration.ofSeconds(60);
  private static final Duration ROUND = Duration.ofSeconds(1);

  /** The default: a statement is ended after that. */
  private static final Duration TIMEOUT = Duration.ofSeconds(12);

  private final AtomicLong clock = new AtomicLong(System.nanoTime());
  private final InMemoryStore store = new InMemoryStore(Clock.systemUTC());
  private final EngineThreads threads =
      new EngineThreads("orders", SlowRenewalsTest.class.getClassLoader());
  private final Shared shared =
      EngineParts.shared(threads, new Events("orders", threads, List.of()), LEASE);
  private final SubscriberSettings settings =
      EngineParts.settings(store, new SubscriberSettings.Claiming(100, LEASE, LEASE, LEASE, LEASE));
  private final RowLeases leases =
      new RowLeases(
          settings, shared, new Completer(settings, shared), new Prefetch(1, 100), clock::get);

  @Test
  void oneQueuesTimeoutsDelayAnotherByOneStatementAndNotBeyondItsLease() {
    List<HeldRow> blocked = new ArrayList<>();
    HeldRow other = running("payments", 1).get(0);
    for (int round = 0; round < 300; round++) {
      if (round % 5 == 0) { // there is always something due of the queue that is blocked
        HeldRow row = running("orders", 1).get(0);
        store.failWrites(row.id(), Fault.TIMEOUT, () -> pass(TIMEOUT));
        blocked.add(row);
      }
      long before = clock.get();
      leases.renewDue();
      assertThat(Duration.ofNanos(clock.get() - before)).isLessThanOrEqualTo(TIMEOUT);
      assertThat(other.leaseOver(clock.get())).isFalse();
      pass(ROUND);
    }
    assertThat(other.isApart()).isFalse();
    assertThat(store.calls("renew")).isGreaterThan(blocked.size());
  }

  @Test
  void rowsOfABlockedQueueAreTriedInTurnWithThoseOfAnother() {
    HeldRow first = running("orders", 1).get(0);
    HeldRow second = running("payments", 1).get(0);
    store.failWrites(first.id(), Fault.TIMEOUT, () -> pass(TIMEOUT));
    store.failWrites(second.id(), Fault.TIMEOUT, () -> pass(TIMEOUT));
    pass(LEASE.dividedBy(2));
    leases.renewDue();
    assertThat(first.isApart()).isTrue();
    assertThat(second.isApart()).isTrue();
    store.mend(second.id());
    roundsFor(TIMEOUT.plus(LEASE.dividedBy(4)));
    assertThat(first.isApart()).isTrue();
    assertThat(second.isApart()).isFalse();
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 7, 29, 99})
  void ofRowsThatTimeOutTogetherOnlyTheOneAtFaultLosesItsLease(int fault) {
    Duration timeout = LEASE.dividedBy(10);
    List<HeldRow> rows = running("orders", 100);
    HeldRow bad = rows.get(fault);
    store.failWrites(bad.id(), Fault.TIMEOUT, () -> pass(timeout));
    pass(LEASE.dividedBy(2));
    for (int round = 0; round < 200; round++) {
      leases.renewDue();
      assertThat(rows).filteredOn(row -> row != bad).noneMatch(row -> row.leaseOver(clock.get()));
      pass(ROUND);
    }
    assertThat(rows).filteredOn(HeldRow::isApart).containsExactly(bad);
    assertThat(bad.leaseOver(clock.get())).isTrue();
    EngineHealth.Failure failure = shared.health().lastFailure();
    assertThat(failure).isNotNull();
    assertThat(failure.text()).contains("the lease of row " + bad.id() + " of queue 'orders'");

    store.mend(bad.id());
    roundsFor(LEASE);
    assertThat(rows).noneMatch(HeldRow::isApart).noneMatch(row -> row.leaseOver(clock.get()));
    assertThat(shared.health().failing()).isFalse();
  }

  @Test
  void afterAnOutageThatTimedOutManyRowsAreRenewedWithinSeconds() {
    List<HeldRow> rows = running("orders", 2_000);
    rows.forEach(row -> store.failWrites(row.id(), Fault.TIMEOUT, () -> pass(TIMEOUT)));
    pass(LEASE.dividedBy(2));
    leases.renewDue();
    rows.forEach(row -> store.mend(row.id()));
    store.afterEach(operation -> pass(Duration.ofMillis(5))); // each statement costs a commit
    roundsFor(Duration.ofSeconds(10));
    assertThat(rows).noneMatch(HeldRow::isApart).noneMatch(row -> row.leaseOver(clock.get()));
  }

  @Test
  void aRowThatTakesTooLongIsTriedAgainAfterASixteenthOfTheLease() {
    HeldRow row = running("orders", 1).get(0);
    store.failWrites(row.id(), Fault.TIMEOUT, () -> pass(ROUND)); // just too long
    pass(LEASE.dividedBy(2));
    leases.renewDue();
    leases.renewDue();
    assertThat(store.calls("renew")).isEqualTo(2);
    pass(LEASE.dividedBy(16).minusNanos(1));
    leases.renewDue();
    assertThat(store.calls("renew")).isEqualTo(2);
    pass(Duration.ofNanos(1));
    leases.renewDue();
    assertThat(store.calls("renew")).isEqualTo(3);
  }

  @Test
  void aLockedRowIsTriedAgainAfterASecondThoughAnotherQueueIsBlocked() {
    HeldRow locked = running("payments", 1).get(0);
    store.lock(locked.id());
    pass(LEASE.dividedBy(2));
    leases.renewDue();
    assertThat(locked.isApart()).isTrue();
    assertThat(store.calls("renew")).as("with its batch, and by itself").isEqualTo(2);
    pass(ROUND.minusNanos(1));
    leases.renewDue();
    assertThat(store.calls("renew")).isEqualTo(2);
    pass(Duration.ofNanos(1));
    leases.renewDue();
    assertThat(store.calls("renew")).isEqualTo(3);

    HeldRow blocked = running("orders", 1).get(0);
    store.failWrites(blocked.id(), Fault.TIMEOUT, () -> pass(TIMEOUT));
    pass(LEASE.dividedBy(2));
    leases.renewDue();
    store.unlock(locked.id());
    pass(ROUND);
    leases.renewDue();
    assertThat(locked.isApart()).isFalse();
  }

  private void roundsFor(Duration time) {
    for (long until = clock.get() + time.toNanos(); clock.get() - until < 0; pass(ROUND)) {
      leases.renewDue();
    }
  }

  private void pass(Duration time) {
    clock.addAndGet(time.toNanos());
  }

  private List<HeldRow> running(String queue, int count) {
    List<HeldRow> rows =
        EngineParts.claim(store, shared.registry(), queue, count, LEASE, clock.get());
    rows.forEach(row -> row.start(clock.get()));
    return rows;
  }
}
