package dev.outbox4j.internal.run;

import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.OutboxStoreException.Fault;
import dev.outbox4j.SubscriberEvents.Phase;
import dev.outbox4j.internal.settings.HandlerTable.InTransaction;
import dev.outbox4j.internal.settle.Completer;
import dev.outbox4j.internal.state.Buffer;
import dev.outbox4j.internal.state.EngineHealth;
import dev.outbox4j.internal.state.EngineHealth.Operation;
import dev.outbox4j.internal.state.HandlerRun;
import dev.outbox4j.internal.state.HeldRow;
import dev.outbox4j.internal.state.PausedQueues;
import dev.outbox4j.internal.state.Settlement;
import dev.outbox4j.internal.state.Shared;
import dev.outbox4j.spi.HandlerTransactions.Decision;
import dev.outbox4j.spi.HandlerTransactions.End;
import dev.outbox4j.spi.HandlerTransactions.Flush;
import dev.outbox4j.spi.SettlingTransactions;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Runs a handler in the transaction that settles its row. The engine's own writes come after the
 * transaction has ended, and only where it settled nothing. Thread-safe.
 */
final class TransactionalTask {
  /** After a failure that is no attempt's: the handler did not fail, or did not even run. */
  private static final Duration AGAIN = Duration.ofSeconds(1);

  /** Beyond what the last write and the commit may wait for the server. */
  private static final long END_SLACK_NANOS = TimeUnit.SECONDS.toNanos(1);

  private static final String REMOVED =
      "The handler's transaction replaced or cancelled its own message, so that it could not be"
          + " acked, and was rolled back; in an ordered queue publish the next one under another"
          + " timer id, or none, or not in the transaction";

  private final OutcomeApplier outcomes;
  private final Completer completer;
  private final String owner;
  private final EngineHealth health;
  private final PausedQueues pauses;
  private final Buffer buffer;
  private final DeliveryTask task;

  TransactionalTask(
      OutcomeApplier outcomes,
      Completer completer,
      Shared shared,
      Buffer buffer,
      DeliveryTask task) {
    this.outcomes = outcomes;
    this.completer = completer;
    this.health = shared.health();
    this.owner = shared.owner();
    this.pauses = shared.pauses();
    this.buffer = buffer;
    this.task = task;
  }

  /** What the handler came to, before its transaction ends. Written by one thread at a time. */
  static final class Handled {
    volatile boolean called;
    volatile @Nullable Throwable thrown;
    volatile @Nullable Settlement settlement;
  }

  /** Runs the handler; when it returns, the transaction has ended and its connection is free. */
  <C> void run(HandlerRun run, InTransaction<C> call) {
    HeldRow row = run.row();
    Handled handled = new Handled();
    End end;
    run.waits(); // for a connection
    try {
      end =
          call.transactions()
              .run(
                  row.lease(),
                  owner,
                  (connection, flush) -> work(run, call, connection, flush, handled),
                  run::onAbort);
    } catch (Throwable thrown) {
      failed(run, thrown, handled);
      return;
    }
    ended(run, end, handled);
  }

  /** The transaction has ended as it was to, or since the lease was lost. */
  void ended(HandlerRun run, End end, Handled handled) {
    HeldRow row = run.row();
    health.succeeded(Operation.TRANSACTION);
    Settlement settlement = handled.settlement;
    if (settlement == null) { // it was not called
      return;
    }
    switch (end) {
      case COMMITTED -> {
        run.end();
        completer.committed(row, settlement);
      }
      case LEASE_LOST -> {
        if (mayHaveRemovedItself(row)) {
          threw(run, new OutboxException(REMOVED));
          return;
        }
        run.end();
        completer.missed(
            row, settlement instanceof Settlement.Reschedule ? Phase.RESCHEDULE : Phase.ACK);
      }
      case ROLLED_BACK -> task.end(run, settlement);
      default -> throw new AssertionError(end);
    }
  }

  /**
   * In an ordered queue nothing keeps a handler from replacing or cancelling its own message, which
   * is there again once that is rolled back; it would do so for ever. If it was somebody else, the
   * retry finds no row.
   */
  private static boolean mayHaveRemovedItself(HeldRow row) {
    return row.lease().bucket() != null
        && row.message().timerId() != null
        && !row.leaseOver(System.nanoTime());
  }

  private <C> Decision work(
      HandlerRun run, InTransaction<C> call, C connection, Flush flush, Handled handled)
      throws Exception {
    try {
      return handle(run, call, connection, flush, handled);
    } finally {
      isDone(run, call.transactions());
    }
  }

  /** The handler is done, and the end of its transaction has its own time. */
  static void isDone(HandlerRun run, SettlingTransactions transactions) {
    run.ends(System.nanoTime(), 2 * transactions.networkTimeout().toNanos() + END_SLACK_NANOS);
  }

  private <C> Decision handle(
      HandlerRun run, InTransaction<C> call, C connection, Flush flush, Handled handled)
      throws Exception {
    if (!run.isRunning()) { // while it waited for a connection, and the timeout decides
      return Decision.rollBack();
    }
    HeldRow row = run.row();
    handled.settlement = withoutHandler(row); // asked again: it waited
    if (handled.settlement != null) {
      return Decision.rollBack();
    }
    run.begins(System.nanoTime());
    handled.called = true;
    Settlement settlement;
    try {
      settlement = outcomes.returned(row, task.inContext(row, () -> call.work().run(connection)));
      if (commits(settlement)) {
        flush.run(); // in the handler's time, and at its risk
      }
    } catch (Throwable thrown) {
      handled.thrown = thrown;
      task.handled(run, thrown);
      throw thrown;
    }
    task.handled(run, null);
    handled.settlement = settlement;
    return decision(run, settlement);
  }

  private static boolean commits(Settlement settlement) {
    return settlement == Settlement.Ack.INSTANCE || settlement instanceof Settlement.Reschedule;
  }

  /** How the transaction is to end; from then on no timeout ends it. */
  static Decision decision(HandlerRun run, Settlement settlement) {
    if (!commits(settlement) || !run.commits()) { // or the timeout decides
      return Decision.rollBack();
    }
    return settlement instanceof Settlement.Reschedule reschedule
        ? Decision.reschedule(reschedule.delay())
        : Decision.ack();
  }

  /** Returns what becomes of a row whose handler is not to begin; null if it is to. */
  @Nullable Settlement withoutHandler(HeldRow row) {
    long now = System.nanoTime();
    // somebody else may have it, or nothing is to begin any more
    if (row.leaseOver(now) || pauses.putsOff(row) || buffer.isClosed()) {
      return Settlement.Release.INSTANCE;
    }
    return outcomes.withoutHandler(row, now);
  }

  /** The handler failed, or its transaction. */
  void failed(HandlerRun run, Throwable thrown, Handled handled) {
    if (thrown instanceof OutboxStoreException failure && failure != handled.thrown) {
      failed(run, failure, handled);
      return;
    }
    health.succeeded(Operation.TRANSACTION);
    threw(run, thrown);
  }

  /**
   * An Error is this message's failure, not the subscriber's. If the timeout has taken the run
   * away, this came of it: the policy has been asked then, and not on a thread that may be a
   * driver's.
   */
  private void threw(HandlerRun run, Throwable thrown) {
    if (run.expired()) {
      task.dropped(run);
    } else {
      task.end(run, outcomes.threw(run.row(), thrown));
    }
  }

  /** The transaction could not be begun, or not be ended as its handler said. */
  private void failed(HandlerRun run, OutboxStoreException failure, Handled handled) {
    HeldRow row = run.row();
    if (failure.fault() == Fault.ROW && handled.called) { // such as a constraint that is deferred
      threw(run, failure);
      return;
    }
    health.failed(Operation.TRANSACTION, failure);
    row.outcomeUnknown |= failure.outcomeUnknown(); // handed over with the row
    String error =
        (handled.called
                ? "the handler's transaction could not be ended: "
                : "no transaction could be begun for the handler: ")
            + failure.getMessage();
    task.end(run, new Settlement.Retry(AGAIN, error, false, !handled.called, null));
  }
}
