package dev.outbox4j.internal.run;

import dev.outbox4j.internal.settings.HandlerTable.InReactiveTransaction;
import dev.outbox4j.internal.settings.SubscriberSettings;
import dev.outbox4j.internal.state.HandlerRun;
import dev.outbox4j.internal.state.HeldRow;
import dev.outbox4j.internal.state.Settlement;
import dev.outbox4j.spi.HandlerTransactions.Decision;
import dev.outbox4j.spi.HandlerTransactions.End;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;

/**
 * Runs a handler that goes on after its return, in the transaction that settles its row. It is
 * called on the worker's thread, which waits until the transaction has begun, and for no more.
 * Thread-safe.
 */
final class ReactiveTask {
  private final SubscriberSettings settings;
  private final OutcomeApplier outcomes;
  private final TransactionalTask transactional;
  private final DeliveryTask task;
  private final String owner;

  ReactiveTask(
      SubscriberSettings settings,
      OutcomeApplier outcomes,
      TransactionalTask transactional,
      DeliveryTask task,
      String owner) {
    this.owner = owner;
    this.settings = settings;
    this.outcomes = outcomes;
    this.transactional = transactional;
    this.task = task;
  }

  /** What the handler returned, to be cancelled once its run is broken off. */
  private final class Work {
    private @Nullable CompletionStage<?> stage; // guarded by this
    private boolean brokenOff; // guarded by this

    synchronized boolean begun(CompletionStage<?> returned) {
      stage = returned;
      return !brokenOff;
    }

    void cancel() {
      CompletionStage<?> known;
      synchronized (this) {
        brokenOff = true;
        known = stage;
      }
      if (known != null) {
        task.cancel(known);
      }
    }
  }

  /** Returns true if all of it has ended, false if it is pending. */
  <C> boolean run(HandlerRun run, InReactiveTransaction<C> call, PendingStage pending) {
    TransactionalTask.Handled handled = new TransactionalTask.Handled();
    Work work = new Work();
    CompletionStage<End> end;
    run.waits(); // for a connection
    run.endsWithStop();
    run.onCancel(work::cancel);
    try {
      end =
          call.transactions()
              .run(
                  run.row().lease(),
                  owner,
                  connection -> begin(run, call, connection, handled, work),
                  run::onAbort);
    } catch (Throwable notBegun) {
      transactional.failed(run, notBegun, handled);
      return true;
    }
    run.goesOnWithoutThread(pending::ended);
    if (run.expired()) { // before the stage, which nobody may ever complete
      run.awaitInterrupt();
      pending.ended();
      run.abort();
    }
    end.whenComplete((how, thrown) -> ended(run, how, thrown, handled, pending));
    return pending.leaveThread();
  }

  private <C> CompletionStage<Decision> begin(
      HandlerRun run,
      InReactiveTransaction<C> call,
      C connection,
      TransactionalTask.Handled handled,
      Work work) {
    HeldRow row = run.row();
    if (!run.isRunning()) { // while it waited for a connection, and the timeout decides
      return CompletableFuture.completedFuture(Decision.rollBack());
    }
    handled.settlement = transactional.withoutHandler(row); // asked again: it waited
    if (handled.settlement != null) {
      return CompletableFuture.completedFuture(Decision.rollBack());
    }
    run.begins(System.nanoTime());
    handled.called = true;
    CompletableFuture<Decision> decision = new CompletableFuture<>();
    Object result;
    try {
      result = task.inContext(row, () -> call.work().run(connection));
    } catch (Throwable thrown) {
      handled(run, call, null, thrown, handled, decision);
      return decision;
    }
    if (!(result instanceof CompletionStage<?> stage)) {
      handled(run, call, result, null, handled, decision);
      return decision;
    }
    if (!work.begun(stage)) {
      task.cancel(stage);
    }
    Stages.whenComplete(
        stage,
        (value, thrown) ->
            HandlerThread.run(
                settings,
                () -> {
                  handled(run, call, value, thrown, handled, decision);
                  return true;
                }),
        refused -> handled(run, call, null, refused, handled, decision));
    return decision;
  }

  private void handled(
      HandlerRun run,
      InReactiveTransaction<?> call,
      @Nullable Object value,
      @Nullable Throwable thrown,
      TransactionalTask.Handled handled,
      CompletableFuture<Decision> decision) {
    try {
      TransactionalTask.isDone(run, call.transactions()); // before what ends it
      task.handled(run, thrown);
      if (thrown != null) {
        handled.thrown = thrown;
        decision.completeExceptionally(thrown);
        return;
      }
      Settlement settlement = outcomes.returned(run.row(), value);
      handled.settlement = settlement;
      decision.complete(TransactionalTask.decision(run, settlement));
    } catch (Throwable unexpected) { // swallowed by the stage: the transaction must not hang
      decision.completeExceptionally(unexpected);
    }
  }

  private void ended(
      HandlerRun run,
      @Nullable End how,
      @Nullable Throwable thrown,
      TransactionalTask.Handled handled,
      PendingStage pending) {
    try {
      HandlerThread.run(
          settings,
          () -> {
            if (how != null) {
              transactional.ended(run, how, handled);
            } else {
              transactional.failed(
                  run, thrown == null ? new IllegalStateException("no end") : thrown, handled);
            }
            return true;
          });
    } catch (Throwable unexpected) { // swallowed by the stage: the row must not hang
      task.endInTrouble(run, unexpected);
    } finally {
      pending.ended();
    }
  }
}
