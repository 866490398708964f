package dev.outbox4j.internal.state;

import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/**
 * How many more rows there is room for, and who is told when there may be some again. Thread-safe.
 */
public final class Room {
  private static final long NOTHING_DUE = Long.MAX_VALUE;

  private final HeldRows registry;
  private final Buffer buffer;
  private final Permits permits;
  private final Prefetch prefetch;
  private final int batchSize;
  private final int mostInFlight;
  private final long mostBytes;
  private final AtomicLong dueAgainAt = new AtomicLong(NOTHING_DUE);
  private volatile boolean awaited;
  private volatile boolean settledAwaited;
  private final AtomicBoolean settled = new AtomicBoolean();
  private volatile Runnable signal = () -> {};

  public Room(
      HeldRows registry,
      Buffer buffer,
      Permits permits,
      Prefetch prefetch,
      int batchSize,
      long mostBytes) {
    this.registry = registry;
    this.buffer = buffer;
    this.permits = permits;
    this.prefetch = prefetch;
    this.batchSize = batchSize;
    this.mostInFlight = permits.total() + 8 * batchSize;
    this.mostBytes = mostBytes;
  }

  /** Sets what wakes whoever waits for room. */
  public void signal(Runnable signal) {
    this.signal = signal;
  }

  /** Returns how many rows there is room for; it may change meanwhile, so read it once. */
  public int rows() {
    int waiting = buffer.size();
    int free = permits.free();
    int ahead = prefetch.target();
    if (free == 0 && waiting > ahead / 2) {
      return 0; // claims of a useful size, not one for each row that is taken
    }
    int room = Math.min(free + ahead - waiting, batchSize);
    room = Math.min(room, mostInFlight - registry.rows());
    return bytes() > 0 ? room : 0;
  }

  /** Tells whether nothing more is claimed before something is settled. */
  public boolean isExhausted() {
    return bytes() <= 0 || registry.rows() >= mostInFlight;
  }

  /** Returns how many payload bytes there is room for. */
  public long bytes() {
    return mostBytes - registry.bytes();
  }

  /** Announces that somebody waits for room; false if there is some already. */
  public boolean await() {
    awaited = true;
    if (rows() > 0) {
      awaited = false;
      return false;
    }
    return true;
  }

  /** Somebody looks how many rows of limited queues are held: what is settled now is told. */
  public void watchLimited() {
    registry.forgetFewerOfLimited();
    settledAwaited = true;
  }

  /** Says whether somebody waits until such rows are settled, since a queue is at its limit. */
  public void awaitSettled(boolean awaited) {
    settledAwaited = awaited;
  }

  /** Tells, once, whether rows of limited queues were settled while somebody waited for it. */
  public boolean takeSettled() {
    return settled.getAndSet(false);
  }

  /** A worker took a row, or is free: there may be room. Called per row, so it is cheap. */
  public void mayBeFree() {
    if (awaited && rows() > 0) {
      awaited = false;
      signal.run();
    }
  }

  /** Rows were settled: there may be room, also for a queue that has reached its limit. */
  public void settled() {
    if (settledAwaited && registry.fewerOfLimited()) {
      settledAwaited = false;
      settled.set(true);
      signal.run();
    }
    mayBeFree();
  }

  /** Tells whether rows wait for a worker. */
  public boolean hasWaiting() {
    return !buffer.isEmpty();
  }

  /** A row was made due again after so many nanoseconds. */
  public void dueAgainIn(long nanos) {
    long at = System.nanoTime() + nanos;
    long before = dueAgainAt.getAndAccumulate(at, Room::earlier);
    if (before == NOTHING_DUE || at - before < 0) {
      signal.run();
    }
  }

  private static long earlier(long known, long at) {
    return known == NOTHING_DUE || at - known < 0 ? at : known;
  }

  /** Takes the earliest instant at which a row was made due again, or null. */
  public @Nullable Long takeDueAgainAt() {
    long at = dueAgainAt.getAndSet(NOTHING_DUE);
    return at == NOTHING_DUE ? null : at;
  }
}
