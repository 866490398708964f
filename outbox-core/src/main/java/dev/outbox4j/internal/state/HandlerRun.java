package dev.outbox4j.internal.state;

import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * One run of a handler, for a row or several. It ends once: by the handler, or by the timeout,
 * which takes it away.
 *
 * <pre>
 * RUNNING -> ENDED
 *    |\__ COMMITTING -> ENDED     in a transaction
 *     \__ EXPIRING -> EXPIRED     it ran too long
 *             \__ INTERRUPTING -> EXPIRED
 * </pre>
 */
public final class HandlerRun {
  private enum State {
    /** The handler runs, or its stage is pending. */
    RUNNING,
    /** The transaction that settles the row is being ended, and no timeout can take it away. */
    COMMITTING,
    /** The timeout has taken the run away, and is to interrupt the handler. */
    EXPIRING,
    /** It interrupts the handler. */
    INTERRUPTING,
    /** The timeout decides the outcome; the handler's end changes nothing. */
    EXPIRED,
    /** The handler's end decides the outcome. */
    ENDED
  }

  private final AtomicReference<State> state = new AtomicReference<>(State.RUNNING);
  private final HeldRow first;
  private volatile List<HeldRow> rows;
  private volatile List<HeldRow> behind;
  private volatile long startedAt;
  private volatile @Nullable Thread thread;
  private volatile boolean waiting;
  private volatile long endingSince;
  private volatile long endsWithin; // 0 until the transaction is being ended
  private volatile @Nullable Runnable whenExpired;
  private volatile @Nullable Runnable abort;
  private volatile @Nullable Runnable cancel;
  private volatile boolean aborted;

  private volatile boolean endsWithStop;

  /** Its lease was lost, and what it waits for is broken off; confined to the lease keeper. */
  public boolean givenUp;

  /** A run on the calling thread. */
  HandlerRun(List<HeldRow> rows, long now) {
    this(rows, List.of(), now);
  }

  private HandlerRun(List<HeldRow> rows, List<HeldRow> behind, long now) {
    this.first = rows.get(0);
    this.rows = rows;
    this.behind = behind;
    this.startedAt = now;
    this.thread = Thread.currentThread();
  }

  /**
   * Begins a run of several rows on the calling thread, or the next one for them. All of them are
   * taken.
   *
   * @param behind rows that wait for the end of this run: whoever ends it has them as well
   */
  public static HandlerRun of(List<HeldRow> taken, List<HeldRow> behind, long now) {
    HandlerRun run = new HandlerRun(List.copyOf(taken), List.copyOf(behind), now);
    taken.forEach(row -> row.runs(run));
    return run;
  }

  /** Returns the row, or the first of several. */
  public HeldRow row() {
    return first;
  }

  public List<HeldRow> rows() {
    return rows;
  }

  /** Returns the rows whose own run is to come after this one, on the same thread. */
  public List<HeldRow> behind() {
    return behind;
  }

  public long startedAt() {
    return startedAt;
  }

  /** Lets go of the rows of a run for several: one of them may be held for much longer. */
  public void forget() {
    behind = List.of();
    if (rows.size() > 1) {
      rows = List.of();
    }
  }

  /** What comes before the handler takes none of its time; nor does the timeout end it. */
  public void waits() {
    waiting = true;
  }

  /** The handler begins now. */
  public void begins(long now) {
    startedAt = now;
    waiting = false;
  }

  /** Tells whether the handler has not begun. */
  public boolean isWaiting() {
    return waiting;
  }

  /** The handler is done, and its transaction is to end within so many nanoseconds. */
  public void ends(long now, long within) {
    endingSince = now;
    endsWithin = within;
  }

  /**
   * Tells whether the transaction should have ended by now; and again each time it still has not.
   */
  public boolean endsTooLate(long now) {
    long within = endsWithin;
    if (within == 0 || now - endingSince <= within || !(isRunning() || isCommitting())) {
      return false;
    }
    endingSince = now;
    return true;
  }

  public boolean isRunning() {
    return Objects.requireNonNull(state.get()) == State.RUNNING;
  }

  /** The handler returned a pending stage: no thread is to be interrupted for it. */
  public void goesOnWithoutThread(Runnable whenExpired) {
    thread = null;
    this.whenExpired = whenExpired;
  }

  /** Nobody is to commit what goes on after a stop has waited for it. */
  public void endsWithStop() {
    endsWithStop = true;
  }

  /** Tells whether a stop that has waited for long enough breaks it off. */
  public boolean isEndedByStop() {
    return endsWithStop && isRunning();
  }

  /** The handler has ended, or its transaction has; false if the timeout came first. */
  public boolean end() {
    return state.compareAndSet(State.RUNNING, State.ENDED)
        || state.compareAndSet(State.COMMITTING, State.ENDED);
  }

  /** The transaction that settles the row is about to end; false if the timeout came first. */
  public boolean commits() {
    return state.compareAndSet(State.RUNNING, State.COMMITTING);
  }

  boolean isCommitting() {
    return state.get() == State.COMMITTING;
  }

  /**
   * Says how another thread can end the transaction that the handler may wait for; ends it at once
   * if that was asked for before. What only waits to begin is left alone: it asks for its lease
   * when it does.
   */
  public void onAbort(Runnable abort) {
    this.abort = abort;
    if (aborted && !waiting) {
      abort.run();
    }
  }

  /**
   * Says how to cancel what the handler returned, which is the user's code and may block; cancels
   * it at once if the run was broken off before.
   */
  public void onCancel(Runnable cancel) {
    this.cancel = cancel;
    if (aborted && !waiting) {
      cancel.run();
    }
  }

  /** Cancels what the handler returned; it may be so twice. */
  public void cancel() {
    Runnable known = cancel;
    if (known != null) {
      known.run();
    }
  }

  /** Ends the transaction, as soon as there is one; it may be so twice. */
  public void abort() {
    aborted = true; // before the look, so that whoever registers it later finds it so
    Runnable known = abort;
    if (known != null) {
      known.run();
    }
  }

  /**
   * Tells whether the handler's thread may wait for a transaction that can be ended. That has to
   * come before its interrupt, which closes the socket under a virtual thread: the server would go
   * on.
   */
  public boolean isBrokenOffFirst() {
    return abort != null && thread != null;
  }

  /**
   * Takes the run away from its handler, with what waits behind it; false if the handler was
   * faster. It is to be interrupted then.
   */
  public boolean expire() {
    return state.compareAndSet(State.RUNNING, State.EXPIRING);
  }

  /** Interrupts the handler of a run that was taken away; once only, whoever calls. */
  public void interrupt() {
    if (!state.compareAndSet(State.EXPIRING, State.INTERRUPTING)) {
      return;
    }
    Thread running = thread;
    if (running != null) {
      running.interrupt();
    }
    state.set(State.EXPIRED);
  }

  /** Tells whether the timeout has taken the run away. */
  public boolean expired() {
    State now = state.get();
    return now == State.EXPIRING || now == State.INTERRUPTING || now == State.EXPIRED;
  }

  /** Returns where the handler's thread is; empty if it has none, or has left it. */
  public StackTraceElement[] place() {
    Thread running = thread;
    return running == null ? new StackTraceElement[0] : running.getStackTrace();
  }

  /** Tells whether the timeout has taken the run away and its handler goes on, on its thread. */
  public boolean isOverdue() {
    return expired() && thread != null;
  }

  /** Frees the permit of a pending stage, if the run has one; once only, whoever calls. */
  public void freePermit() {
    Runnable free = whenExpired;
    if (free != null) {
      free.run();
    }
  }

  /**
   * The handler has left the thread and needs no interrupt any more; waits for one that is on its
   * way: it then hits no later message.
   */
  public void awaitInterrupt() {
    state.compareAndSet(State.EXPIRING, State.EXPIRED);
    while (state.get() == State.INTERRUPTING) {
      Thread.onSpinWait();
    }
    thread = null;
  }
}
