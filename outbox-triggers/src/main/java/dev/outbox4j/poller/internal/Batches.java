package dev.outbox4j.poller.internal;

import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.OutboxStoreException.Fault;
import dev.outbox4j.poller.PollContext;
import dev.outbox4j.poller.Poller;
import dev.outbox4j.poller.PollerFailure;
import dev.outbox4j.poller.Position;
import dev.outbox4j.poller.RowChange;
import dev.outbox4j.poller.internal.PollerStore.Ending;
import dev.outbox4j.poller.internal.PollerStore.Move;
import java.sql.Connection;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Hands batches to the handler, and moves the position behind them. Confined to the poller's
 * thread.
 */
final class Batches {
  private static final long FIRST_PAUSE = Duration.ofMillis(50).toNanos();
  private static final long LONGEST_PAUSE = Duration.ofSeconds(1).toNanos();

  /** So many rows in a row go to quarantine; then it is no row's fault any more. */
  private static final int MOST_IN_A_ROW = 10;

  private static final long MOST_IN_QUARANTINE = 10_000;
  private static final int MOST_REDRIVEN = 100;

  private final Poller poller;
  private final String application;
  private final PollerStore store;
  private final HandlerCall handler;
  private final PollerTransactions transactions;
  private final Observer observer;
  private final PollerLog log;
  private final Pauses pauses;
  private final Duration shortestPatience;
  private int quarantinedInARow;

  Batches(
      Poller poller,
      String application,
      PollerStore store,
      HandlerCall handler,
      Observer observer,
      PollerLog log,
      Pauses pauses,
      Duration shortestPatience) {
    this.poller = poller;
    this.application = application;
    this.store = store;
    this.handler = handler;
    this.transactions =
        new PollerTransactions(
            store.outbox().dataSource(), store.outbox().table(), store.networkTimeout());
    this.observer = observer;
    this.log = log;
    this.pauses = pauses;
    this.shortestPatience = shortestPatience;
  }

  /** What became of a batch. */
  static final class Result {
    int handled;
    int quarantined;
    boolean released;
    boolean paused;
  }

  /** What a handler threw. */
  private static final class HandlerFailure extends Exception {
    private static final long serialVersionUID = 1L;

    HandlerFailure(Throwable cause) {
      super(cause);
    }

    Throwable reason() {
      Throwable cause = getCause();
      return cause == null ? this : cause;
    }
  }

  /**
   * Handles a batch.
   *
   * @param ending asked when the position is written
   * @throws StepException if that failed
   */
  Result handle(
      Lease lease, List<SourceRow> rows, Position before, int attempt, Supplier<Ending> ending) {
    Result result = new Result();
    try {
      handlePart(lease, rows, before, attempt, ending, result);
      quarantinedInARow = 0;
    } catch (HandlerFailure failure) {
      boolean isolates =
          poller.isolateAfter().isPresent() && attempt >= poller.isolateAfter().getAsInt();
      if (!isolates || pauses.isInterrupted()) {
        throw new StepException(
            PollerFailure.HANDLER, failure.reason(), rows.get(rows.size() - 1).position());
      }
      isolate(lease, rows, before, attempt, failure, result);
    }
    return result;
  }

  /** Halves what has failed, in its order, until single rows fail; each time is another attempt. */
  private void isolate(
      Lease lease,
      List<SourceRow> rows,
      Position before,
      int attempt,
      HandlerFailure failure,
      Result result) {
    if (rows.size() == 1) {
      quarantine(lease, rows.get(0), before, attempt, failure, result);
      return;
    }
    int half = rows.size() / 2;
    Position from = before;
    for (List<SourceRow> part : List.of(rows.subList(0, half), rows.subList(half, rows.size()))) {
      try {
        handlePart(lease, part, from, attempt + 1, () -> Ending.none(null, ""), result);
        quarantinedInARow = 0;
      } catch (HandlerFailure again) {
        if (pauses.isInterrupted()) {
          throw new StepException(PollerFailure.HANDLER, again.reason(), null);
        }
        isolate(lease, part, from, attempt + 1, again, result);
      }
      from = part.get(part.size() - 1).position();
    }
  }

  private void quarantine(
      Lease lease,
      SourceRow row,
      Position before,
      int attempt,
      HandlerFailure failure,
      Result result) {
    if (quarantinedInARow >= MOST_IN_A_ROW) { // and no more until something succeeds
      throw new StepException(
          PollerFailure.HANDLER,
          new OutboxException(
              "%d rows in a row have failed, so that it seems to be no row's fault; the last one by %s"
                  .formatted(MOST_IN_A_ROW + 1, Failures.words(failure.reason())),
              failure.reason()),
          row.position());
    }
    String error = Failures.words(failure.reason());
    try {
      if (store.quarantined(MOST_IN_QUARANTINE) >= MOST_IN_QUARANTINE) {
        throw new StepException(
            PollerFailure.HANDLER,
            new OutboxException(
                "%d rows are in quarantine, which is the most; redrive or discard some; the next one failed by %s"
                    .formatted(MOST_IN_QUARANTINE, error),
                failure.reason()),
            row.position());
      }
    } catch (OutboxStoreException e) {
      throw new StepException(PollerFailure.COMMIT, e);
    }
    Move move = move(lease, before, List.of(row), 0);
    result.paused =
        persist(lease, move, row.position(), () -> store.quarantine(move, row.change(), error));
    quarantinedInARow++;
    result.quarantined++;
    log.quarantined(lease.token(), row.position(), attempt, error);
    observer.tell(events -> events.quarantined(application, poller.name(), 1));
  }

  private static Move move(Lease lease, Position before, List<SourceRow> rows, int counted) {
    return new Move(
        lease.token(),
        before,
        rows.get(rows.size() - 1).position(),
        counted,
        rows.get(0).position().cursor().orElse(""));
  }

  private void handlePart(
      Lease lease,
      List<SourceRow> rows,
      Position before,
      int attempt,
      Supplier<Ending> ending,
      Result result)
      throws HandlerFailure {
    Move move = move(lease, before, rows, rows.size());
    PollContext context =
        new BatchContext(poller, attempt, before, move.after(), lease, pauses::isStopping, false);
    if (attempt > 1) {
      log.retry(lease.token(), before, rows.size(), attempt);
    }
    List<RowChange> changes = rows.stream().map(SourceRow::change).toList();
    AtomicReference<@Nullable Ending> written = new AtomicReference<>();
    Supplier<Ending> once =
        () -> {
          Ending now = ending.get();
          written.set(now);
          return now;
        };
    long begun = System.nanoTime();
    if (handler instanceof HandlerCall.Plain plain) {
      call(lease, changes, attempt, () -> plain.handler().handle(changes, context));
      // asked anew at each attempt, since the lag grows meanwhile
      result.paused = persist(lease, move, move.after(), () -> store.commit(move, once.get()));
    } else if (handler instanceof HandlerCall.Transactional transactional) {
      result.paused =
          inTransaction(
              lease,
              move,
              move.after(),
              connection ->
                  call(
                      lease,
                      changes,
                      attempt,
                      () -> transactional.handler().handle(changes, context, connection)),
              connection -> store.commit(connection, move, once.get()));
    } else {
      throw new AssertionError(handler);
    }
    Ending end = written.get();
    result.released = end != null && end.release();
    result.handled += rows.size();
    log.batchComplete(lease.token(), move.after(), rows.size(), attempt, since(begun));
  }

  private interface Call {
    void run() throws Exception;
  }

  private void call(Lease lease, List<RowChange> rows, int attempt, Call call)
      throws HandlerFailure {
    requireHeld(lease);
    long begun = System.nanoTime();
    Throwable failure = null;
    lease.work(Thread.currentThread());
    try {
      call.run();
    } catch (Throwable thrown) { // whatever it is, the rows come again
      failure = thrown;
    } finally {
      lease.endWork();
      if (pauses.isInterrupted()) {
        Thread.interrupted(); // a pool would give no connection to release with
      }
    }
    Throwable told = failure;
    observer.tell(
        events ->
            events.handled(
                application, poller.name(), since(begun), rows.size(), attempt > 1, told));
    if (failure != null) {
      confirm(lease); // it may have failed since its transaction was ended
    }
    requireLease(lease, failure);
    if (failure != null) {
      throw new HandlerFailure(failure);
    }
  }

  /** A process that stood still does not begin with rows that another node may have by now. */
  private static void requireHeld(Lease lease) {
    try {
      lease.confirm();
    } catch (OutboxStoreException e) {
      throw new StepException(PollerFailure.LEASE, e);
    }
    requireLease(lease, null);
  }

  private static void confirm(Lease lease) {
    try {
      lease.confirm();
    } catch (OutboxStoreException e) {
      // what becomes of the lease is known later
    }
  }

  /**
   * Ends what handlers have left open by tokens before this one. A node that stands still would
   * keep whatever they have locked, and hold back rows of its database.
   */
  void endSessions(long before) {
    if (!(handler instanceof HandlerCall.Transactional)) {
      return;
    }
    try {
      List<Integer> ended = store.endSessions(before);
      if (!ended.isEmpty()) {
        log.changed(
            LogEvent.HANDLER_SESSION_ENDED,
            "a transaction that a node before had open was ended, of processes " + ended);
      }
    } catch (OutboxStoreException e) {
      log.sessionNotEnded(Failures.words(e));
    }
  }

  private static void requireLease(Lease lease, @Nullable Throwable failure) {
    String why = lease.whyLost();
    if (why != null) {
      throw new StepException(
          PollerFailure.COMMIT,
          new OutboxException(
              "the lease was lost, and nothing of the batch was committed: " + why, failure));
    }
  }

  private interface Write {
    /** Returns whether the poller is paused; empty if nothing was written. */
    Optional<Boolean> run();
  }

  /**
   * Writes the position; tries again while the database is away, since a lease that is over and
   * that nobody took is still this node's. If an answer was lost, the record tells what became of
   * it.
   */
  private boolean persist(Lease lease, Move move, Position after, Write write) {
    long begun = System.nanoTime();
    long until = begun + patience();
    long wait = FIRST_PAUSE;
    boolean unknown = false;
    while (true) {
      try {
        Optional<Boolean> paused = write.run();
        if (paused.isPresent()) {
          committed(begun, move, null);
          return paused.get();
        }
        Optional<StateRow> found = unknown ? store.state() : Optional.empty();
        if (found.isPresent() && isAt(found.get(), after)) {
          committed(begun, move, null);
          return found.get().paused();
        }
        String why = store.whyLost(lease.token());
        lease.lose(why);
        throw commitFailed(
            begun,
            move,
            new OutboxException(
                "the lease was lost, and the position of the batch was not written: " + why));
      } catch (OutboxStoreException e) {
        unknown |= e.outcomeUnknown();
        boolean hopeless = e.fault() == Fault.SETUP || e.fault() == Fault.ROW;
        if (hopeless || pauses.isStopping() || System.nanoTime() - until > 0) {
          throw commitFailed(begun, move, e);
        }
        log.failed(
            PollerFailure.COMMIT,
            lease.token(),
            after,
            move.rows(),
            0,
            since(begun),
            "it is tried again: " + Failures.words(e));
        pauses.pause(wait);
        wait = Math.min(LONGEST_PAUSE, 2 * wait);
      }
    }
  }

  private long patience() {
    return Math.max(shortestPatience.toNanos(), poller.lease().toNanos());
  }

  private static boolean isAt(StateRow row, Position position) {
    return row.stored().positionOrBeginning().equals(position);
  }

  private StepException commitFailed(long begun, Move move, Throwable failure) {
    committed(begun, move, failure);
    return new StepException(PollerFailure.COMMIT, failure);
  }

  private void committed(long begun, Move move, @Nullable Throwable failure) {
    observer.tell(
        events -> events.committed(application, poller.name(), since(begun), move.rows(), failure));
  }

  private interface TransactionalWork {
    void run(Connection connection) throws HandlerFailure;
  }

  private interface TransactionalWrite {
    Optional<Boolean> run(Connection connection);
  }

  /** Returns whether the poller is paused. */
  private boolean inTransaction(
      Lease lease, Move move, Position after, TransactionalWork work, TransactionalWrite write)
      throws HandlerFailure {
    AtomicBoolean paused = new AtomicBoolean();
    long[] ended = {System.nanoTime()};
    try {
      boolean committed =
          transactions.run(
              store.session(lease.token()),
              work::run,
              connection -> {
                ended[0] = System.nanoTime();
                Optional<Boolean> written = write.run(connection);
                written.ifPresent(paused::set);
                return written.isPresent();
              });
      if (committed) {
        committed(ended[0], move, null);
        return paused.get();
      }
    } catch (PollerTransactions.HandlerException e) {
      Throwable cause = e.getCause();
      if (cause instanceof HandlerFailure failure) {
        throw failure;
      }
      if (cause instanceof StepException step) {
        throw step;
      }
      throw new HandlerFailure(cause == null ? e : cause);
    } catch (OutboxStoreException e) {
      if (e.outcomeUnknown() && wasCommitted(after)) {
        committed(ended[0], move, null);
        return false;
      }
      if (e.fault() == Fault.ROW) { // such as a deferred constraint of the handler's
        throw new HandlerFailure(e);
      }
      confirm(lease); // whoever has it now may have ended the transaction
      String lost = lease.whyLost();
      throw commitFailed(
          ended[0],
          move,
          lost == null
              ? e
              : new OutboxException(
                  "the lease was lost, and nothing of the batch was committed: " + lost, e));
    }
    String why = whyLost(lease);
    lease.lose(why);
    throw commitFailed(
        ended[0],
        move,
        new OutboxException("the lease was lost, and the transaction was rolled back: " + why));
  }

  private String whyLost(Lease lease) {
    try {
      return store.whyLost(lease.token());
    } catch (OutboxStoreException e) {
      return "why is not known, since " + Failures.words(e);
    }
  }

  /** Asks until the record can be read; who does not learn it handles the batch again. */
  private boolean wasCommitted(Position after) {
    long until = System.nanoTime() + patience();
    long wait = FIRST_PAUSE;
    while (true) {
      try {
        return store.state().filter(row -> isAt(row, after)).isPresent();
      } catch (OutboxStoreException e) {
        if (pauses.isStopping() || System.nanoTime() - until > 0) {
          return false;
        }
        pauses.pause(wait);
        wait = Math.min(LONGEST_PAUSE, 2 * wait);
      }
    }
  }

  /**
   * Hands rows to the handler that somebody has taken out of quarantine, each by itself; what fails
   * goes back. Returns how many were handled.
   */
  int redrive(Lease lease, Position position) {
    int handled = 0;
    for (int i = 0; i < MOST_REDRIVEN && !pauses.isStopping(); i++) {
      try {
        Optional<QuarantineEntry> next = store.redriven();
        if (next.isEmpty()) {
          return handled;
        }
        handled += redrive(lease, position, next.get()) ? 1 : 0;
      } catch (OutboxStoreException e) {
        throw new StepException(PollerFailure.COMMIT, e);
      }
    }
    return handled;
  }

  private boolean redrive(Lease lease, Position position, QuarantineEntry entry) {
    int attempt = entry.attempts() + 1;
    List<RowChange> rows = List.of(entry.change());
    PollContext context =
        new BatchContext(poller, attempt, position, position, lease, pauses::isStopping, true);
    log.retry(lease.token(), entry.position(), 1, attempt);
    try {
      if (handler instanceof HandlerCall.Plain plain) {
        call(lease, rows, attempt, () -> plain.handler().handle(rows, context));
        requireDone(store.redriveDone(lease.token(), entry.id()));
      } else if (handler instanceof HandlerCall.Transactional transactional) {
        boolean committed =
            transactions.run(
                store.session(lease.token()),
                connection ->
                    call(
                        lease,
                        rows,
                        attempt,
                        () -> transactional.handler().handle(rows, context, connection)),
                connection -> store.redriveDone(connection, lease.token(), entry.id()));
        requireDone(committed);
      }
      return true;
    } catch (HandlerFailure failure) {
      keep(lease, entry, attempt, failure.reason());
    } catch (PollerTransactions.HandlerException e) {
      Throwable cause = e.getCause();
      if (cause instanceof StepException step) {
        throw step;
      }
      Throwable reason = cause instanceof HandlerFailure failure ? failure.reason() : cause;
      keep(lease, entry, attempt, reason == null ? e : reason);
    }
    return false;
  }

  private static void requireDone(boolean done) {
    if (!done) {
      throw new StepException(
          PollerFailure.COMMIT,
          new OutboxException(
              "the lease was lost, or a row left quarantine while it was handled again"));
    }
  }

  private void keep(Lease lease, QuarantineEntry entry, int attempt, Throwable reason) {
    store.redriveFailed(entry.id(), Failures.words(reason));
    log.failed(
        PollerFailure.HANDLER,
        lease.token(),
        entry.position(),
        1,
        attempt,
        Duration.ZERO,
        "the row stays in quarantine: " + Failures.words(reason));
    observer.tell(
        events -> events.failed(application, poller.name(), PollerFailure.HANDLER, reason));
  }

  private static Duration since(long begun) {
    return Duration.ofNanos(System.nanoTime() - begun);
  }
}
