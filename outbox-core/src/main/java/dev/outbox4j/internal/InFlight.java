package dev.outbox4j.internal;

import dev.outbox4j.Delivery;
import dev.outbox4j.Outcome;
import dev.outbox4j.Payload;
import dev.outbox4j.spi.ClaimedRow;
import dev.outbox4j.spi.LeaseRef;
import java.time.Duration;
import java.time.Instant;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * One claimed row on its way through the engine. Its state only moves forward, each step by a
 * compare-and-set, so a message is started at most once, decided once and settled once:
 *
 * <pre>
 * BUFFERED -> RUNNING -> DECIDING -> DECIDED -> SETTLED
 *     \______________________________________/    released, or lease lost before the start
 * </pre>
 */
final class InFlight implements Delivery {

  /** How far a row has come. */
  enum State {
    /** Claimed, not started. */
    BUFFERED,
    /** A handler runs, or its stage is pending. */
    RUNNING,
    /** Somebody, the handler or its timeout, is writing the outcome down. */
    DECIDING,
    /** The outcome is known and waits to be written. */
    DECIDED,
    /** Written, lost, released or given up: the row is no longer this subscriber's business. */
    SETTLED
  }

  private final ClaimedRow row;
  private final LeaseBatch batch;
  private final int index;
  private final AtomicReference<State> state = new AtomicReference<>(State.BUFFERED);

  private volatile boolean lost;
  private volatile boolean expired;
  private volatile long startedAt;
  private volatile @Nullable Thread runner;
  private volatile @Nullable Outcome decision;
  private volatile @Nullable Runnable whenExpired;

  /** Written before the row is handed to the completer; read there. */
  private @Nullable Settlement settlement;

  /** Links the completer's stack; confined to whoever holds the stack. */
  @Nullable InFlight nextCompleted;

  /** A write for this row failed without an answer; confined to the completer. */
  boolean outcomeUnknown;

  InFlight(ClaimedRow row, LeaseBatch batch, int index) {
    this.row = row;
    this.batch = batch;
    this.index = index;
  }

  ClaimedRow row() {
    return row;
  }

  LeaseRef lease() {
    return row.lease();
  }

  LeaseBatch batch() {
    return batch;
  }

  State state() {
    return Objects.requireNonNull(state.get());
  }

  /**
   * Begins the handler's run on the calling thread; false if the row was released or lost before.
   */
  boolean start(long now) {
    runner = Thread.currentThread();
    startedAt = now;
    return state.compareAndSet(State.BUFFERED, State.RUNNING);
  }

  /** The handler returned a pending stage: no thread is to be interrupted for it. */
  void goesOnWithoutThread(Runnable whenExpired) {
    runner = null;
    this.whenExpired = whenExpired;
  }

  /** Ends the run with what is to be written; false if the handler's timeout came first. */
  boolean decided(Settlement settlement) {
    if (!state.compareAndSet(State.RUNNING, State.DECIDING)) {
      return false;
    }
    this.settlement = settlement;
    state.set(State.DECIDED);
    return true;
  }

  /**
   * Decides in place of a handler that ran too long, and interrupts it. The permit is free only
   * once the outcome has been handed on: a drain takes free permits for the sign that no more
   * outcomes will come.
   */
  boolean expire(Settlement settlement, Consumer<InFlight> handOn) {
    if (!state.compareAndSet(State.RUNNING, State.DECIDING)) {
      return false;
    }
    this.settlement = settlement;
    expired = true; // before the interrupt, so that whoever is woken by it finds it so
    Thread thread = runner;
    if (thread != null) {
      thread.interrupt();
    }
    try {
      handOn.accept(this);
    } finally {
      state.compareAndSet(State.DECIDING, State.DECIDED); // unless it is written already
      Runnable freePermit = whenExpired;
      if (freePermit != null) {
        freePermit.run();
      }
    }
    return true;
  }

  /**
   * Waits until a timeout that is deciding is done: its interrupt then hits no later message on
   * this thread, and its outcome has been handed on.
   */
  void awaitTimeout() {
    while (state.get() == State.DECIDING) {
      Thread.onSpinWait();
    }
  }

  Settlement settlement() {
    return Objects.requireNonNull(settlement, "settlement");
  }

  /** Takes a row that was not started out of the engine; false if a worker was faster. */
  boolean withdraw() {
    return state.compareAndSet(State.BUFFERED, State.SETTLED);
  }

  /** Ends the row's time in the engine; false if it had ended before. */
  boolean settle() {
    state.set(State.SETTLED);
    return batch.settle(index);
  }

  long startedAt() {
    return startedAt;
  }

  void lose() {
    lost = true;
  }

  boolean knownLost() {
    return lost;
  }

  boolean leaseOver(long now) {
    return lost || now - batch.expiresAt() >= 0;
  }

  Duration sinceFirstAttempt(long now) {
    return row.attempts() == 0
        ? Duration.ofNanos(now - startedAt)
        : row.sinceFirstAttempt().plusNanos(now - batch.claimedAt());
  }

  @Nullable Outcome decision() {
    return decision;
  }

  @Override
  public long id() {
    return row.lease().id();
  }

  @Override
  public String queue() {
    return row.lease().queue();
  }

  @Override
  public @Nullable String type() {
    return row.type();
  }

  @Override
  public @Nullable String orderingKey() {
    return row.orderingKey();
  }

  @Override
  public @Nullable String timerId() {
    return row.timerId();
  }

  @Override
  public Payload payload() {
    return row.payload();
  }

  @Override
  public Map<String, String> headers() {
    return row.headers();
  }

  @Override
  public Instant createdAt() {
    return row.createdAt();
  }

  @Override
  public Instant availableAt() {
    return row.availableAt();
  }

  @Override
  public int attempt() {
    return row.attempts() + 1;
  }

  @Override
  public int deliveries() {
    return row.deliveries();
  }

  @Override
  public int leaseToken() {
    return row.lease().token();
  }

  @Override
  public boolean leaseLost() {
    return expired || leaseOver(System.nanoTime());
  }

  @Override
  public void decide(Outcome outcome) {
    decision = Objects.requireNonNull(outcome, "outcome");
  }

  @Override
  public String toString() {
    return "Delivery[queue=" + queue() + ", id=" + id() + ", token=" + leaseToken() + "]";
  }
}
