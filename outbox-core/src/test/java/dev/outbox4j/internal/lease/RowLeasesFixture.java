package dev.outbox4j.internal.lease;

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
import dev.outbox4j.test.SettableClock;
import dev.outbox4j.testing.InMemoryStore;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;

/** Rounds of renewals, on a clock that stands still but for the time that a test lets pass. */
abstract class RowLeasesFixture {
  static final Duration LEASE = Duration.ofSeconds(60);
  static final Duration HALF = LEASE.dividedBy(2);

  /** A statement that is refused after that has taken too long. */
  static final Duration SECOND = Duration.ofSeconds(1);

  /** What one takes that does take too long. */
  static final Duration TOO_LONG = Duration.ofSeconds(2);

  /** The longest pause before stuck rows are tried again. */
  static final Duration LONGEST_PAUSE = LEASE.dividedBy(16);

  private final SettableClock server = new SettableClock(EngineParts.SERVER);
  private final AtomicLong nanos = new AtomicLong(Duration.ofDays(1).toNanos());
  private final EngineThreads threads =
      new EngineThreads("orders", RowLeasesFixture.class.getClassLoader());

  final InMemoryStore store = new InMemoryStore(server);
  final Shared shared =
      EngineParts.shared(threads, new Events("orders", threads, List.of()), LEASE);
  final RowLeases leases = rowLeases(LEASE);

  /** Makes what renews by leases that last so long. Nobody writes what it gives back. */
  final RowLeases rowLeases(Duration lease) {
    SubscriberSettings settings =
        EngineParts.settings(
            store, new SubscriberSettings.Claiming(100, lease, lease, lease, lease));
    return new RowLeases(
        settings, shared, new Completer(settings, shared), new Prefetch(1, 100), nanos::get);
  }

  final void pass(Duration time) {
    server.advance(time);
    nanos.addAndGet(time.toNanos());
  }

  /** Claims new rows of a queue, all in one batch. */
  final List<HeldRow> claim(String queue, int count, Duration lease) {
    return EngineParts.claim(store, shared.registry(), queue, count, lease, nanos.get());
  }

  /** Claims new rows of a queue, all in one batch, and begins them. */
  final List<HeldRow> running(String queue, int count) {
    List<HeldRow> rows = claim(queue, count, LEASE);
    rows.forEach(row -> row.start(nanos.get()));
    return rows;
  }

  /** Claims and begins rows that a stranger then locks. Half a lease later they are stuck. */
  final List<HeldRow> stuck(String queue, int count) {
    List<HeldRow> rows = running(queue, count);
    rows.forEach(row -> store.lock(row.id()));
    pass(HALF);
    leases.renewDue();
    return rows;
  }

  /** Makes the server end each renewal that names a row, after a time that is too long. */
  final void takesTooLong(HeldRow row) {
    store.failWrites(row.id(), Fault.TIMEOUT, () -> pass(TOO_LONG));
  }

  /** Returns how many renewals were sent. */
  final int renewals() {
    return store.calls("renew");
  }

  /** Returns for how long the server still keeps a row's lease. */
  final Duration leaseLeft(HeldRow row) {
    return Duration.between(server.instant(), store.row(row.id()).leaseUntil());
  }

  final String lastFailure() {
    EngineHealth.Failure failure = shared.health().lastFailure();
    return failure == null ? "" : failure.text();
  }
}
