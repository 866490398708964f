package dev.outbox4j.internal;

import dev.outbox4j.SubscriberEvents;
import dev.outbox4j.spi.UndecodableException;
import java.time.Duration;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Runs the handler of one row and hands its outcome to the completer. Thread-safe. */
final class DeliveryTask {
  private static final Logger log = LoggerFactory.getLogger(DeliveryTask.class);

  private static final Settlement AFTER_TROUBLE =
      new Settlement.Retry(Duration.ofSeconds(30), "the subscriber was in trouble");

  private final SubscriberSettings settings;
  private final String subscriber;
  private final HandlerTable handlers;
  private final OutcomeApplier outcomes;
  private final Completer completer;
  private final Events events;
  private final FailureLog failures;

  DeliveryTask(
      SubscriberSettings settings,
      OutcomeApplier outcomes,
      Completer completer,
      Engine.Shared shared) {
    this.settings = settings;
    this.subscriber = settings.name();
    this.handlers = settings.handlers();
    this.outcomes = outcomes;
    this.completer = completer;
    this.events = shared.events();
    this.failures = new FailureLog(shared.warnings());
  }

  /**
   * Runs a row on the calling thread.
   *
   * @param whenDone run once the handler's work has ended, if that is not yet so on return
   * @param foreignThread whether the thread is of a user's executor, whose interrupts count
   * @return true if the handler's work has ended, false if its stage is pending
   */
  boolean run(InFlight delivery, Runnable whenDone, boolean foreignThread) {
    long now = System.nanoTime();
    if (delivery.leaseOver(now)) {
      if (delivery.withdraw()) {
        completer.abandon(delivery, SubscriberEvents.Phase.DISPATCH);
      }
      return true;
    }
    if (!delivery.start(now)) {
      return true;
    }
    try {
      return HandlerThread.run(settings, () -> dispatch(delivery, whenDone));
    } catch (
        Throwable unexpected) { // such as OutOfMemoryError in our own code: the row must not hang
      endInTrouble(delivery, unexpected);
      return true;
    } finally {
      delivery.awaitInterrupt();
      if (delivery.expired() || !foreignThread) {
        Thread.interrupted(); // it was meant for this message, not for the next one
      }
    }
  }

  @SuppressWarnings("try") // the log context is there to be closed
  private boolean dispatch(InFlight delivery, Runnable whenDone) {
    if (delivery.deliveries() > settings.failing().maxDeliveries(delivery.typeOrNull())) {
      end(delivery, outcomes.tooManyDeliveries(delivery));
      return true;
    }
    HandlerTable.Route<?> route = handlers.route(delivery.typeOrNull());
    if (route == null) {
      end(delivery, outcomes.threw(delivery, OutcomeApplier.noHandler(delivery.typeOrNull())));
      return true;
    }
    HandlerTable.Call call;
    try {
      call = route.prepare(delivery);
    } catch (UndecodableException undecodable) {
      end(delivery, outcomes.undecodable(delivery, undecodable));
      return true;
    } catch (Throwable failure) { // this attempt failed, the bytes may be good
      end(delivery, outcomes.codecFailed(delivery, failure));
      return true;
    }
    if (!events.isEmpty()) {
      Duration age =
          delivery.history().age().plusNanos(System.nanoTime() - delivery.batch().claimedAt());
      events.dispatched(delivery, age);
    }
    Object result;
    try (LogContext context = LogContext.of(delivery)) {
      result = call.run();
    } catch (Throwable thrown) { // an Error is this message's failure, not the subscriber's
      return settle(delivery, null, thrown);
    }
    if (result instanceof CompletionStage<?> stage) {
      return settleLater(delivery, stage, whenDone);
    }
    return settle(delivery, result, null);
  }

  private boolean settleLater(InFlight delivery, CompletionStage<?> stage, Runnable whenDone) {
    PendingStage pending = new PendingStage(whenDone);
    delivery.goesOnWithoutThread(pending::ended);
    if (delivery.state() != InFlight.State.RUNNING) {
      delivery.awaitInterrupt(); // it came before the stage, which nobody may ever complete
      pending.ended();
    }
    try {
      stage.whenComplete((value, thrown) -> completed(delivery, value, thrown, pending));
    } catch (Throwable refused) { // a stage of the user's own
      endInTrouble(delivery, refused);
      pending.ended();
    }
    return pending.leaveThread();
  }

  private void completed(
      InFlight delivery, @Nullable Object value, @Nullable Throwable thrown, PendingStage pending) {
    try {
      HandlerThread.run(settings, () -> settle(delivery, value, thrown));
    } catch (Throwable unexpected) { // swallowed by the stage: the row must not hang
      endInTrouble(delivery, unexpected);
    } finally {
      pending.ended();
    }
  }

  private boolean settle(InFlight delivery, @Nullable Object value, @Nullable Throwable thrown) {
    handled(delivery, thrown);
    if (delivery.state() != InFlight.State.RUNNING) { // the timeout decides, and asks the policy
      dropped(delivery);
      return true;
    }
    end(
        delivery,
        thrown == null ? outcomes.returned(delivery, value) : outcomes.threw(delivery, thrown));
    return true;
  }

  /**
   * Frees a permit once, when the stage has ended and the handler's thread is done with it as well:
   * there are no more threads than permits.
   */
  private static final class PendingStage {
    private enum State {
      ON_THREAD,
      ENDED_ON_THREAD,
      PENDING,
      ENDED
    }

    private final AtomicReference<State> state = new AtomicReference<>(State.ON_THREAD);
    private final Runnable freePermit;

    PendingStage(Runnable freePermit) {
      this.freePermit = freePermit;
    }

    /** The stage is complete, or the timeout gave it up. */
    void ended() {
      if (!state.compareAndSet(State.ON_THREAD, State.ENDED_ON_THREAD)
          && state.compareAndSet(State.PENDING, State.ENDED)) {
        freePermit.run();
      }
    }

    /** Returns true if the stage has ended, so that the thread keeps the permit. */
    boolean leaveThread() {
      return !state.compareAndSet(State.ON_THREAD, State.PENDING);
    }
  }

  private void handled(InFlight delivery, @Nullable Throwable failure) {
    failures.thrown(delivery, failure);
    if (!events.isEmpty()) {
      Duration took = Duration.ofNanos(System.nanoTime() - delivery.startedAt());
      events.handled(delivery, took, failure);
    }
  }

  private void endInTrouble(InFlight delivery, Throwable trouble) {
    end(delivery, AFTER_TROUBLE); // first, since in such trouble logging may fail as well
    log.error(
        "[{}] {} could not be handled; it is retried",
        subscriber,
        delivery,
        RedactedThrowable.of(trouble));
  }

  private void end(InFlight delivery, Settlement settlement) {
    if (delivery.decided(settlement)) {
      completer.complete(delivery);
    } else {
      dropped(delivery);
    }
  }

  private void dropped(InFlight delivery) {
    log.debug("[{}] {} ended after its timeout; its outcome is dropped", subscriber, delivery);
  }
}
