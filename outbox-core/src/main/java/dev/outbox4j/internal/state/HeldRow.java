package dev.outbox4j.internal.state;

import dev.outbox4j.internal.OneLine;
import dev.outbox4j.spi.ClaimedRow;
import dev.outbox4j.spi.History;
import dev.outbox4j.spi.LeaseRef;
import dev.outbox4j.spi.StoredMessage;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * One claimed row on its way through the engine. Its state only moves forward, each step by one
 * thread, so a row is started at most once, decided once and settled once:
 *
 * <pre>
 * WAITING -> TAKEN -> DECIDED -> SETTLED
 *    |__________________________/   lease lost before the start
 * </pre>
 */
public final class HeldRow {

  /** How far a row has come. */
  public enum State {
    /** Claimed; no handler has begun. */
    WAITING,
    /** A handler runs, or the row is being given back. */
    TAKEN,
    /** It is known what is to be written. */
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
  private final RowDelivery delivery = new RowDelivery(this);
  private final AtomicReference<State> state = new AtomicReference<>(State.WAITING);

  private volatile boolean lost;
  private volatile boolean apart;
  private volatile long expiresApart;
  private volatile @Nullable HandlerRun run;

  /** Written before the row is handed to the completer; read there. */
  private @Nullable Settlement settlement;

  /** Links the completer's stack; confined to whoever holds the stack. */
  public @Nullable HeldRow nextCompleted;

  // confined to the completer

  /** Links the queue that the row is in. */
  public @Nullable HeldRow nextInQueue;

  /** A write for this row failed without an answer. */
  public boolean outcomeUnknown;

  /** A write did not find the row; set before it settles. */
  public boolean missing;

  /** Does not count in the registry while it waits to be written. */
  public boolean parked;

  /** Since when another session's lock has kept this row from being written; 0 if none does. */
  public long busySince;

  /** When it came to be written, among those of its key; for the completer. */
  public long turn;

  HeldRow(ClaimedRow row, ClaimedBatch batch, int index) {
    this.row = row;
    this.lease = row.lease();
    this.bytes = row.message().payload().size();
    this.batch = batch;
    this.index = index;
  }

  public StoredMessage message() {
    return row.message();
  }

  public History history() {
    return row.history();
  }

  /** Returns the size of the payload. */
  public int bytes() {
    return bytes;
  }

  public LeaseRef lease() {
    return lease;
  }

  public ClaimedBatch batch() {
    return batch;
  }

  /** Returns what users see of the row. */
  public RowDelivery delivery() {
    return delivery;
  }

  public State state() {
    return Objects.requireNonNull(state.get());
  }

  /** Begins a run on the calling thread; null if the row was given back or lost before. */
  public @Nullable HandlerRun start(long now) {
    HandlerRun begun = new HandlerRun(List.of(this), now);
    if (!state.compareAndSet(State.WAITING, State.TAKEN)) {
      return null;
    }
    run = begun;
    return begun;
  }

  /** Takes the row for a run with others; false if it was given back or lost before. */
  public boolean take() {
    return state.compareAndSet(State.WAITING, State.TAKEN);
  }

  void runs(HandlerRun begun) {
    run = begun;
  }

  /** Returns the run of this row's handler, or null if none has begun. */
  public @Nullable HandlerRun run() {
    return run;
  }

  /** Returns the run of this row's handler while it goes on, or null. */
  public @Nullable HandlerRun running() {
    HandlerRun known = run;
    return known != null && known.isRunning() ? known : null;
  }

  /**
   * Tells whether the handler's transaction is settling the row: it may have locked it, and so
   * nobody else can claim it.
   */
  public boolean isCommitting() {
    HandlerRun known = run;
    return known != null && known.isCommitting();
  }

  /** Decides what is to be written, once the run has ended; it is then for the completer. */
  public void decide(Settlement settlement) {
    this.settlement = settlement;
    state.set(State.DECIDED);
  }

  /** Tells that what was decided is on its way, before all that will be decided from now on. */
  public void tellDecided() {
    RowFollower follower = batch.follower();
    if (follower != null) {
      follower.decided(this);
    }
  }

  /** Tells that what was decided cannot be written for now. */
  public void tellUnwritten() {
    RowFollower follower = batch.follower();
    if (follower != null) {
      follower.unwritten(this);
    }
  }

  /** Returns the key whose rows are handled in their order; null if the row has none. */
  public @Nullable String keyInOrder() {
    return lease.bucket() == null ? null : message().orderingKey();
  }

  public Settlement settlement() {
    return Objects.requireNonNull(settlement, "settlement");
  }

  /** Returns what is written, or was, of the row; null if that was never decided. */
  public @Nullable Settlement settlementOrNull() {
    return settlement;
  }

  /** Notes what the handler's transaction has written. */
  public void committed(Settlement settlement) {
    this.settlement = settlement;
  }

  /** Takes a row that was not started out of the engine; false if a worker was faster. */
  public boolean withdraw() {
    return state.compareAndSet(State.WAITING, State.SETTLED);
  }

  /** Decides that a row which was not started is given back; false if a worker was faster. */
  public boolean giveBack() {
    if (!state.compareAndSet(State.WAITING, State.TAKEN)) {
      return false;
    }
    decide(Settlement.Release.INSTANCE);
    return true;
  }

  /** Replaces what is to be written; for the completer. */
  public void putOff(Settlement.Retry retry) {
    settlement = retry;
  }

  /** Ends the row's time in the engine; false if it had ended before. */
  boolean settle() {
    state.set(State.SETTLED);
    if (!batch.settle(index)) {
      return false;
    }
    RowFollower follower = batch.follower();
    if (follower != null) {
      follower.settled(this);
    }
    return true;
  }

  public void lose() {
    lost = true;
  }

  public boolean knownLost() {
    return lost;
  }

  public boolean leaseOver(long now) {
    return lost || now - expiresAt() >= 0;
  }

  /** Tells whether the handler's outcome will change nothing: its time or its lease is over. */
  boolean endedEarly(long now) {
    HandlerRun known = run;
    return (known != null && known.expired()) || leaseOver(now);
  }

  Duration leaseLeft(long now) {
    return endedEarly(now) ? Duration.ZERO : Duration.ofNanos(Math.max(0, expiresAt() - now));
  }

  private long expiresAt() {
    return apart ? expiresApart : batch.lease().expiresAt();
  }

  /** The row's lease is not renewed with its batch's from now on; it ends then. */
  public void setApart(long expiresAt) {
    if (!apart) {
      expiresApart = expiresAt;
      apart = true;
    }
  }

  /** The lease was renewed again, by a statement that was sent then. */
  public void rejoin() {
    apart = false;
  }

  public boolean isApart() {
    return apart;
  }

  /** Returns the time since the first attempt began, of a row whose handler has begun. */
  public Duration sinceFirstAttempt(long now) {
    return history().attempts() == 0
        ? Duration.ofNanos(now - Objects.requireNonNull(run, "run").startedAt())
        : history().sinceFirstAttempt().plusNanos(now - batch.claimedAt());
  }

  /** Tells whether the message has expired: by the server's clock at the claim, by ours since. */
  public boolean hasExpired(long now) {
    Instant expiresAt = message().expiresAt();
    return expiresAt != null
        && Duration.between(message().createdAt(), expiresAt)
                .compareTo(history().age().plusNanos(now - batch.claimedAt()))
            <= 0;
  }

  public long id() {
    return lease.id();
  }

  public String queue() {
    return lease.queue();
  }

  public long leaseToken() {
    return lease.token();
  }

  public @Nullable String typeOrNull() {
    return row.message().type();
  }

  /** The type as a sentence says it. */
  public String typeInWords() {
    String type = typeOrNull();
    return type == null ? "without a type" : "type " + OneLine.of(type);
  }

  /** Returns the number of the attempt that runs, or would run next. */
  public int attempt() {
    return history().attempts() + 1;
  }

  public int deliveries() {
    return history().deliveries();
  }

  @Override
  public String toString() {
    return "Delivery[queue=%s, type=%s, id=%d, token=%d]"
        .formatted(OneLine.of(queue()), OneLine.of(typeOrNull()), id(), leaseToken());
  }
}
