package dev.outbox4j.internal;

import dev.outbox4j.Delivery;
import dev.outbox4j.Outcome;
import dev.outbox4j.Payload;
import dev.outbox4j.spi.ClaimedRow;
import dev.outbox4j.spi.History;
import dev.outbox4j.spi.LeaseRef;
import java.time.Duration;
import java.time.Instant;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * One claimed row on its way through the engine. Its state only moves forward, each step by a
 * compare-and-set, so a message is started at most once, decided once and settled once:
 *
 * <pre>
 * BUFFERED -> RUNNING -> DECIDING -> DECIDED -> SETTLED
 *     |          \__ EXPIRING -> EXPIRED __/        the handler ran too long
 *     |___________________________/    |           given back
 *     |________________________________|           lease lost before the start
 * </pre>
 */
final class InFlight implements Delivery {

  /** How far a row has come. */
  enum State {
    /** Claimed, not started. */
    BUFFERED,
    /** A handler runs, or its stage is pending. */
    RUNNING,
    /** The run's end is being written down. */
    DECIDING,
    /** The timeout has taken the run away and interrupts the handler. */
    EXPIRING,
    /** The timeout decides the outcome; the handler's end changes nothing. */
    EXPIRED,
    /** The outcome is known and waits to be written. */
    DECIDED,
    /** Written, lost, released or given up: the row is no longer this subscriber's business. */
    SETTLED
  }

  private final ClaimedRow row;

  // of the row; kept here too, as what is settled is long out of the processor's caches
  private final LeaseRef lease;
  private final int bytes;

  private final ClaimedBatch batch;
  private final int index;
  private final AtomicReference<State> state = new AtomicReference<>(State.BUFFERED);

  private volatile boolean lost;
  private volatile boolean apart;
  private volatile long expiresApart;
  private volatile boolean expired;
  private volatile long startedAt;
  private volatile @Nullable Thread runner;
  private volatile @Nullable Outcome decision;
  private volatile @Nullable Runnable whenExpired;

  /** Written before the row is handed to the completer; read there. */
  private @Nullable Settlement settlement;

  /** Links the completer's stack; confined to whoever holds the stack. */
  @Nullable InFlight nextCompleted;

  // confined to the completer

  /** Links the queue that the row is in. */
  @Nullable InFlight nextInQueue;

  /** A write for this row failed without an answer. */
  boolean outcomeUnknown;

  /** Does not count in the registry while it waits to be written. */
  boolean parked;

  /** Since when another session's lock has kept this row from being written; 0 if none does. */
  long busySince;

  InFlight(ClaimedRow row, ClaimedBatch batch, int index) {
    this.row = row;
    this.lease = row.lease();
    this.bytes = row.message().payload().size();
    this.batch = batch;
    this.index = index;
  }

  History history() {
    return row.history();
  }

  /** Returns the size of the payload. */
  int bytes() {
    return bytes;
  }

  LeaseRef lease() {
    return lease;
  }

  ClaimedBatch batch() {
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

  /** Ends the run with what is to be written; false if the timeout came first. */
  boolean decided(Settlement settlement) {
    if (!state.compareAndSet(State.RUNNING, State.DECIDING)) {
      return false;
    }
    this.settlement = settlement;
    state.set(State.DECIDED);
    return true;
  }

  /**
   * Takes the run away from a handler that ran too long, and interrupts it; false if the handler
   * was faster. The outcome is decided by {@link #decidedByTimeout}.
   */
  boolean expire() {
    if (!state.compareAndSet(State.RUNNING, State.EXPIRING)) {
      return false;
    }
    expired = true; // before the interrupt, so that whoever is woken by it finds it so
    Thread thread = runner;
    if (thread != null) {
      thread.interrupt();
    }
    state.set(State.EXPIRED);
    return true;
  }

  /** Ends a run that was taken away with what is to be written. */
  void decidedByTimeout(Settlement settlement) {
    this.settlement = settlement;
    state.compareAndSet(State.EXPIRED, State.DECIDED);
  }

  /** Frees the permit of a pending stage, if the run has one; once only, whoever calls. */
  void freePermit() {
    Runnable free = whenExpired;
    if (free != null) {
      free.run();
    }
  }

  /**
   * Waits until the timeout's interrupt, if one is on its way, has come: it then hits no later
   * message.
   */
  void awaitInterrupt() {
    while (state.get() == State.EXPIRING) {
      Thread.onSpinWait();
    }
  }

  boolean expired() {
    return expired;
  }

  Settlement settlement() {
    return Objects.requireNonNull(settlement, "settlement");
  }

  /** Takes a row that was not started out of the engine; false if a worker was faster. */
  boolean withdraw() {
    return state.compareAndSet(State.BUFFERED, State.SETTLED);
  }

  /** Decides that a row which was not started is given back; false if a worker was faster. */
  boolean giveBack() {
    if (!state.compareAndSet(State.BUFFERED, State.DECIDING)) {
      return false;
    }
    settlement = Settlement.Release.INSTANCE;
    state.set(State.DECIDED);
    return true;
  }

  /** Replaces what is to be written; for the completer. */
  void putOff(Settlement.Retry retry) {
    settlement = retry;
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
    return lost || now - expiresAt() >= 0;
  }

  private long expiresAt() {
    return apart ? expiresApart : batch.lease().expiresAt();
  }

  /** The row's lease is not renewed with its batch's from now on; it ends then. */
  void setApart(long expiresAt) {
    if (!apart) {
      expiresApart = expiresAt;
      apart = true;
    }
  }

  /** The lease was renewed again, by a statement that was sent then. */
  void rejoin() {
    apart = false;
  }

  boolean isApart() {
    return apart;
  }

  Duration sinceFirstAttempt(long now) {
    return history().attempts() == 0
        ? Duration.ofNanos(now - startedAt)
        : history().sinceFirstAttempt().plusNanos(now - batch.claimedAt());
  }

  @Nullable Outcome decision() {
    return decision;
  }

  @Override
  public long id() {
    return lease.id();
  }

  @Override
  public String queue() {
    return lease.queue();
  }

  @Override
  public Optional<String> type() {
    return Optional.ofNullable(typeOrNull());
  }

  /** The type, for the engine. */
  @Nullable String typeOrNull() {
    return row.message().type();
  }

  /** The type as a sentence says it. */
  String typeInWords() {
    String type = typeOrNull();
    return type == null ? "without a type" : "type " + OneLine.of(type);
  }

  @Override
  public Optional<String> orderingKey() {
    return Optional.ofNullable(row.message().orderingKey());
  }

  @Override
  public Optional<String> timerId() {
    return Optional.ofNullable(row.message().timerId());
  }

  @Override
  public Payload payload() {
    return row.message().payload();
  }

  @Override
  public Map<String, String> headers() {
    return row.message().headers();
  }

  @Override
  public Instant createdAt() {
    return row.message().createdAt();
  }

  @Override
  public Instant availableAt() {
    return row.message().availableAt();
  }

  @Override
  public int attempt() {
    return history().attempts() + 1;
  }

  @Override
  public int deliveries() {
    return history().deliveries();
  }

  @Override
  public long leaseToken() {
    return lease.token();
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
    return "Delivery[queue=%s, type=%s, id=%d, token=%d]"
        .formatted(OneLine.of(queue()), OneLine.of(typeOrNull()), id(), leaseToken());
  }
}
