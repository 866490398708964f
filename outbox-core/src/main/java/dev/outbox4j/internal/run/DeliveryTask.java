package dev.outbox4j.internal.run;

import dev.outbox4j.SubscriberEvents;
import dev.outbox4j.internal.CurrentDelivery;
import dev.outbox4j.internal.RedactedThrowable;
import dev.outbox4j.internal.settings.HandlerTable;
import dev.outbox4j.internal.settings.SubscriberSettings;
import dev.outbox4j.internal.settle.Completer;
import dev.outbox4j.internal.settle.FailureLog;
import dev.outbox4j.internal.state.Buffer;
import dev.outbox4j.internal.state.Events;
import dev.outbox4j.internal.state.HandlerRun;
import dev.outbox4j.internal.state.HeldRow;
import dev.outbox4j.internal.state.LogContext;
import dev.outbox4j.internal.state.PausedQueues;
import dev.outbox4j.internal.state.Prefetch;
import dev.outbox4j.internal.state.Settlement;
import dev.outbox4j.internal.state.Shared;
import dev.outbox4j.spi.UndecodableException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Runs the handler of one row and hands its outcome to the completer. Thread-safe. */
public final class DeliveryTask {
  private static final Logger log = LoggerFactory.getLogger(DeliveryTask.class);

  static final Settlement AFTER_TROUBLE =
      new Settlement.Retry(Duration.ofSeconds(30), "the subscriber was in trouble");

  private final SubscriberSettings settings;
  private final String subscriber;
  private final HandlerTable handlers;
  private final OutcomeApplier outcomes;
  private final Completer completer;
  private final Events events;
  private final FailureLog failures;
  private final PausedQueues pauses;
  private final BatchTask batches;
  private final TransactionalTask transactional;
  private final ReactiveTask reactive;
  private volatile Runnable whenHandedOn = () -> {};

  public DeliveryTask(
      SubscriberSettings settings,
      OutcomeApplier outcomes,
      Completer completer,
      Shared shared,
      Prefetch prefetch,
      Buffer buffer) {
    this.settings = settings;
    this.subscriber = settings.name();
    this.handlers = settings.handlers();
    this.outcomes = outcomes;
    this.completer = completer;
    this.events = shared.events();
    this.pauses = shared.pauses();
    this.failures = new FailureLog(shared.warnings());
    this.batches =
        new BatchTask(
            settings,
            outcomes,
            completer,
            shared,
            prefetch,
            buffer,
            this,
            () -> whenHandedOn.run());
    this.transactional = new TransactionalTask(outcomes, completer, shared, buffer, this);
    this.reactive = new ReactiveTask(settings, outcomes, transactional, this, shared.owner());
  }

  /** Sets what finds a worker for a batch that has waited for long enough. */
  public void whenHandedOn(Runnable kick) {
    whenHandedOn = kick;
  }

  /** Begins to watch over batches that wait. */
  public void start() {
    if (handlers.gathers()) {
      batches.gathering().start();
    }
  }

  /** Gives back what waits for more of its batch, or for the halves of it to be handled. */
  public void close() {
    batches.close();
  }

  /**
   * Runs a row on the calling thread.
   *
   * @param whenDone run once the handler's work has ended, if that is not yet so on return
   * @param foreignThread whether the thread is of a user's executor, whose interrupts count
   * @return true if the handler's work has ended, false if its stage is pending
   */
  boolean run(HeldRow row, Runnable whenDone, boolean foreignThread) {
    HandlerTable.BatchRoute<?> batch = handlers.batch(row.typeOrNull());
    if (batch != null) {
      return HandlerThread.run(settings, () -> batches.run(row, batch, whenDone, foreignThread));
    }
    long now = System.nanoTime();
    if (!mayBegin(row, now)) {
      return true;
    }
    HandlerRun run = row.start(now);
    if (run == null) {
      return true;
    }
    try {
      return HandlerThread.run(settings, () -> dispatch(run, whenDone));
    } catch (
        Throwable unexpected) { // such as OutOfMemoryError in our own code: the row must not hang
      endInTrouble(run, unexpected);
      return true;
    } finally {
      clearInterrupt(run, foreignThread);
    }
  }

  /** An interrupt that was meant for this run is not to hit the next one. */
  static void clearInterrupt(HandlerRun run, boolean foreignThread) {
    run.awaitInterrupt();
    if (run.expired() || !foreignThread) {
      Thread.interrupted();
    }
  }

  /**
   * Tells whether a row may begin; lets go of one whose lease is over, or whose queue is paused.
   */
  boolean mayBegin(HeldRow row, long now) {
    if (!row.leaseOver(now)) {
      return !pauses.putsOff(row);
    }
    if (row.withdraw()) {
      completer.abandon(row, SubscriberEvents.Phase.DISPATCH);
    }
    return false;
  }

  void dispatched(HeldRow row) {
    if (!events.isEmpty()) {
      events.dispatched(
          row, row.history().age().plusNanos(System.nanoTime() - row.batch().claimedAt()));
    }
  }

  /** Runs a handler of one row with all that goes around it. */
  @Nullable Object inContext(HeldRow row, HandlerTable.Direct handler) throws Exception {
    return inContext(row, true, handler);
  }

  /**
   * Runs a handler with all that goes around it.
   *
   * @param alone whether it is for this row alone, and not for others of its type as well
   */
  @SuppressWarnings("try") // the contexts are there to be closed
  @Nullable Object inContext(HeldRow row, boolean alone, HandlerTable.Direct handler)
      throws Exception {
    try (CurrentDelivery current = CurrentDelivery.set(alone ? row.delivery() : null);
        LogContext context = LogContext.of(row, alone)) {
      return handler.run();
    }
  }

  private boolean dispatch(HandlerRun run, Runnable whenDone) {
    HeldRow row = run.row();
    Settlement without = outcomes.withoutHandler(row, System.nanoTime());
    if (without != null) {
      end(run, without);
      return true;
    }
    HandlerTable.Route<?> route = handlers.route(row.typeOrNull());
    if (route == null) {
      end(run, outcomes.threw(row, OutcomeApplier.noHandler(row.typeOrNull())));
      return true;
    }
    HandlerTable.Call call;
    try {
      call = route.prepare(row.delivery());
    } catch (UndecodableException undecodable) {
      end(run, outcomes.undecodable(row, undecodable));
      return true;
    } catch (Throwable failure) { // this attempt failed, the bytes may be good
      end(run, outcomes.codecFailed(row, failure));
      return true;
    }
    dispatched(row);
    if (call instanceof HandlerTable.InTransaction<?> inTransaction) {
      transactional.run(run, inTransaction);
      return true;
    }
    if (call instanceof HandlerTable.InReactiveTransaction<?> inTransaction) {
      return reactive.run(run, inTransaction, new PendingStage(whenDone));
    }
    Object result;
    try {
      result = inContext(row, (HandlerTable.Direct) call);
    } catch (Throwable thrown) { // an Error is this message's failure, not the subscriber's
      return settle(run, null, thrown);
    }
    if (result instanceof CompletionStage<?> stage) {
      return settleLater(run, stage, whenDone);
    }
    return settle(run, result, null);
  }

  private boolean settleLater(HandlerRun run, CompletionStage<?> stage, Runnable whenDone) {
    PendingStage pending = new PendingStage(whenDone);
    run.goesOnWithoutThread(pending::ended);
    run.onCancel(() -> cancel(stage));
    if (!run.isRunning()) {
      run.awaitInterrupt(); // it came before the stage, which nobody may ever complete
      pending.ended();
      cancel(stage);
    }
    Stages.whenComplete(
        stage,
        (value, thrown) -> completed(run, value, thrown, pending),
        refused -> {
          endInTrouble(run, refused);
          pending.ended();
        });
    return pending.leaveThread();
  }

  /** Its outcome changes nothing any more, so whatever works for it may end. */
  void cancel(CompletionStage<?> stage) {
    try {
      stage.toCompletableFuture().cancel(true);
    } catch (RuntimeException | Error broken) { // a stage of the user's own
      log.debug("[{}] a stage could not be cancelled", subscriber, RedactedThrowable.of(broken));
    }
  }

  private void completed(
      HandlerRun run, @Nullable Object value, @Nullable Throwable thrown, PendingStage pending) {
    try {
      HandlerThread.run(settings, () -> settle(run, value, thrown));
    } catch (Throwable unexpected) { // swallowed by the stage: the row must not hang
      endInTrouble(run, unexpected);
    } finally {
      pending.ended();
    }
  }

  private boolean settle(HandlerRun run, @Nullable Object value, @Nullable Throwable thrown) {
    HeldRow row = run.row();
    handled(run, thrown);
    if (!run.isRunning()) { // the timeout decides, and asks the policy
      dropped(run);
      return true;
    }
    end(run, thrown == null ? outcomes.returned(row, value) : outcomes.threw(row, thrown));
    return true;
  }

  void handled(HandlerRun run, @Nullable Throwable failure) {
    handled(run.row(), run, failure);
  }

  void handled(HeldRow row, HandlerRun run, @Nullable Throwable failure) {
    failures.thrown(row, failure);
    if (!events.isEmpty()) {
      Duration took = Duration.ofNanos(System.nanoTime() - run.startedAt());
      events.handled(row, took, failure);
    }
  }

  /** A handler threw when it had decided of all its rows. */
  void threwAfterAll(List<HeldRow> rows, Throwable failure) {
    failures.threwAfterAll(rows, outcomes.inWords(failure));
  }

  void endInTrouble(HandlerRun run, Throwable trouble) {
    end(run, AFTER_TROUBLE); // first, since in such trouble logging may fail as well
    log.error(
        "[{}] {} could not be handled; it is retried",
        subscriber,
        run.row(),
        RedactedThrowable.of(trouble));
  }

  void end(HandlerRun run, Settlement settlement) {
    if (run.end()) {
      run.row().decide(settlement);
      completer.complete(run.row());
    } else {
      dropped(run);
    }
  }

  void dropped(HandlerRun run) {
    log.debug("[{}] {} ended after its timeout; its outcome is dropped", subscriber, run.row());
  }
}
