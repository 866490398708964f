package dev.outbox4j.monitor.internal;

import dev.outbox4j.Delivery;
import dev.outbox4j.ExceptionRenderer;
import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.OutboxStoreException.Fault;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.Outcome;
import dev.outbox4j.Payload;
import dev.outbox4j.RetryPolicy;
import dev.outbox4j.Transactional;
import dev.outbox4j.internal.RedactedThrowable;
import dev.outbox4j.internal.StackTraceRenderer;
import dev.outbox4j.internal.Utf8;
import dev.outbox4j.monitor.MonitorEvents.Dropped;
import dev.outbox4j.monitor.MonitorOutcome;
import dev.outbox4j.monitor.MonitorStatus;
import dev.outbox4j.monitor.RaisedEvent;
import dev.outbox4j.postgres.OutboxPublisher;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.PostgresStore;
import dev.outbox4j.postgres.internal.JdbcStore;
import dev.outbox4j.postgres.internal.transactions.JdbcTransactions;
import dev.outbox4j.spi.UndecodableException;
import dev.outbox4j.triggers.internal.LeftToOthers;
import dev.outbox4j.triggers.internal.Statements;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Answers wakes: looks at the instance, runs its check, and leaves what is to be written. */
public final class CheckHandlers {
  private static final Logger log = LoggerFactory.getLogger(CheckHandlers.class);

  private static final Duration AFTER_A_FAILURE = Duration.ofSeconds(1);
  private static final Duration BROKEN_POLICY = Duration.ofSeconds(30);
  private static final int MESSAGE_BYTES = 2_000;
  private static final int STACK_BYTES = 8 * 1024;

  private final PostgresStore store;
  private final MonitorTransactions transactions;
  private final InstanceReads reads;
  private final CheckWrites writes;
  private final String application;
  private final Observer observer;
  private final NodeState state;
  private final RunningChecks running;
  private final ExceptionRenderer renderer;
  private final LockWaits waits = new LockWaits();
  private final LeftToOthers left = new LeftToOthers();

  /**
   * Creates them; does no I/O.
   *
   * @param outbox where the instances and their messages are
   * @param application whose monitors
   * @param publisher publishes what checks want to tell
   * @param observer told of what becomes of instances
   * @param state where to note that instances cannot be read
   * @param running where to note which checks run
   * @param renderer what is kept of what checks throw
   */
  public CheckHandlers(
      PostgresOutbox outbox,
      String application,
      OutboxPublisher publisher,
      Observer observer,
      NodeState state,
      RunningChecks running,
      ExceptionRenderer renderer) {
    this.application = application;
    this.observer = observer;
    this.state = state;
    this.running = running;
    this.renderer = renderer;
    this.store =
        new JdbcStore(
            outbox.dataSource(),
            outbox.table(),
            PostgresOutbox.DEFAULT_NETWORK_TIMEOUT,
            MonitorEnds.OF_MESSAGES);
    this.transactions =
        new MonitorTransactions(
            new JdbcTransactions(
                outbox.dataSource(), outbox.table(), PostgresOutbox.DEFAULT_NETWORK_TIMEOUT),
            outbox.table(),
            new GroupedWrites(outbox, application),
            waits);
    this.reads = new InstanceReads(outbox, application);
    this.writes =
        new CheckWrites(
            new Statements(outbox.table(), application), publisher, observer, waits, application);
  }

  /** {@return the store with which messages become dead letters, and their instances fail} */
  public PostgresStore store() {
    return store;
  }

  /**
   * Has a type's instances checked. What is retried by the subscriber itself is what went past its
   * time limit; it comes again soon, so that it does not miss its expiry.
   */
  public void add(OutboxSubscriber.Builder builder, Check check) {
    String type = check.type().name();
    Transactional<Payload> handler =
        Transactional.of(
            transactions,
            (payload, delivery, pending) -> {
              return handle(check, delivery, pending);
            });
    builder.on(type, Payload.class, handler);
    builder.retry(
        type, RetryPolicy.constant(AFTER_A_FAILURE).attempts(check.type().retry().maxAttempts()));
  }

  /** A type that only newer nodes know, or older ones, is left to them. */
  public void addOtherwise(OutboxSubscriber.Builder builder, String queue) {
    builder.rateLimit(queue, left);
    builder.otherwise(
        (payload, delivery) -> {
          delivery.decide(leaveUnknown(delivery));
        });
  }

  /** Whether others check its instance shows in how far that has come. */
  private Outcome leaveUnknown(Delivery delivery) {
    String type = delivery.type().orElse("");
    if (isOfOthers(delivery)) {
      return leave(type, delivery, 0);
    }
    try {
      return leave(type, delivery, reads.iteration(delivery.header(Wake.ID).orElse("")));
    } catch (OutboxStoreException e) {
      log.debug("monitor type {}: how far an instance has come is not known", type, e);
      return Outcome.leave(AFTER_A_FAILURE);
    }
  }

  private boolean isOfOthers(Delivery delivery) {
    return !delivery.header(Wake.APPLICATION).orElse(application).equals(application);
  }

  private Outcome leave(String type, Delivery delivery, long iteration) {
    if (left.isNew(type)) {
      log.info("monitor type {} is not one of this node's: its checks are left to others", type);
    }
    // attempts and deliveries are those of nodes that have the type
    return Outcome.leave(left.leave(type, delivery.id(), iteration));
  }

  private Outcome handle(Check check, Delivery delivery, MonitorTransactions.Pending pending)
      throws Exception {
    String type = check.type().name();
    if (isOfOthers(delivery)) { // they were given one queue
      return leave(delivery.header(Wake.APPLICATION).orElse("") + "/" + type, delivery, 0);
    }
    String id = delivery.header(Wake.ID).orElse("");
    Instance instance;
    try {
      instance = reads.read(id, delivery.id());
    } catch (OutboxStoreException e) { // the check has not been called: no attempt has failed
      return unread(type, id, AFTER_A_FAILURE, e);
    }
    if (instance == null) {
      log.info("monitor {}/{}: a wake comes twice or too late and is dropped", type, id);
      observer.tell(told -> told.dropped(application, type, id, Dropped.STALE_WAKE));
      return Outcome.ack();
    }
    List<RaisedEvent> events;
    try {
      if (waits.wasLocked(instance) && !reads.isFree(instance)) {
        return stillLocked(instance);
      }
      if (instance.status() == MonitorStatus.SUSPENDED) {
        pending.set(writes.suspended(instance));
        return Outcome.ack();
      }
      if (instance.isExpired()) {
        pending.set(writes.expired(instance));
        return Outcome.ack();
      }
      if (instance.status() == MonitorStatus.PENDING && !reads.startRunning(instance)) {
        return Outcome.reschedule(Duration.ZERO); // somebody was faster: looked at anew
      }
      events = reads.events(instance);
      state.read();
    } catch (OutboxStoreException e) {
      return unread(type, id, LockWaits.isLocked(e) ? waits.inVain(instance) : AFTER_A_FAILURE, e);
    }
    if (instance.hasExpiredSince()) { // it was read before, and so may have been its events
      pending.set(writes.expired(instance));
      return Outcome.ack();
    }
    CheckResult result;
    running.begins(instance);
    pending.atEnd(() -> running.ends(instance)); // until then it may go on past its expiry
    try {
      result = check.run(instance, events, delivery);
    } catch (Throwable e) {
      return failed(check, instance, events, delivery, pending, e);
    }
    return returned(check, instance, events, result, pending, delivery.attempt());
  }

  private Outcome unread(String type, String id, Duration wait, OutboxStoreException failure) {
    if (failure.fault() != Fault.ROW && failure.fault() != Fault.TIMEOUT) { // else it is its row
      state.unread(failure);
    }
    log.warn("monitor {}/{}: it could not be read, trying again in {}", type, id, wait, failure);
    return Outcome.reschedule(wait);
  }

  /** What the check would say could not be written, and it may cost others something to ask. */
  private Outcome stillLocked(Instance instance) {
    Duration wait = waits.inVain(instance);
    log.info("monitor {}: another session has its row still, trying again in {}", instance, wait);
    return Outcome.reschedule(wait);
  }

  private Outcome returned(
      Check check,
      Instance instance,
      List<RaisedEvent> events,
      CheckResult result,
      MonitorTransactions.Pending pending,
      int attempt) {
    long most = check.type().maxIterations().orElse(Long.MAX_VALUE);
    MonitorStatus status = status(result, instance.iteration() + 1 >= most);
    if (status == MonitorStatus.RUNNING) {
      pending.set(
          writes.again(
              instance,
              result,
              events,
              refusal -> refused(check, instance, events, attempt, refusal)));
      return Outcome.reschedule(result.delay());
    }
    pending.set(
        writes.end(
            instance,
            result,
            events,
            status,
            outcome(result, status),
            refusal -> refused(check, instance, events, attempt, refusal)));
    return Outcome.ack();
  }

  private static MonitorStatus status(CheckResult result, boolean last) {
    return switch (result.kind()) {
      case AGAIN -> last ? MonitorStatus.COMPLETED : MonitorStatus.RUNNING;
      case DONE -> MonitorStatus.COMPLETED;
      case FAIL -> MonitorStatus.FAILED;
      case CANCEL -> MonitorStatus.CANCELED;
    };
  }

  private static @Nullable MonitorOutcome outcome(CheckResult result, MonitorStatus status) {
    if (status != MonitorStatus.COMPLETED) {
      return null;
    }
    return result.kind() == CheckResult.Kind.DONE
        ? MonitorOutcome.CONDITION_MET
        : MonitorOutcome.MAX_ITERATIONS;
  }

  private Outcome failed(
      Check check,
      Instance instance,
      List<RaisedEvent> events,
      Delivery delivery,
      MonitorTransactions.Pending pending,
      Throwable thrown) {
    if (delivery.stopping() || delivery.leaseLost()) {
      log.debug("monitor {}: its check ended since its node stops", instance, thrown);
      return Outcome.reschedule(Duration.ZERO);
    }
    Attempt attempt = attempt(check, instance, events, delivery.attempt(), thrown);
    pending.set(attempt.write());
    return attempt.again() == null ? Outcome.ack() : Outcome.reschedule(attempt.again());
  }

  /** What the check said could not be written: that is a failed attempt. */
  private Write refused(
      Check check,
      Instance instance,
      List<RaisedEvent> events,
      int attempt,
      RuntimeException refusal) {
    return attempt(check, instance, events, attempt, refusal).write();
  }

  /** An attempt that failed, and when the next one is; null if there is none. */
  private record Attempt(Write write, @Nullable Duration again) {}

  private Attempt attempt(
      Check check, Instance instance, List<RaisedEvent> events, int ofDelivery, Throwable thrown) {
    int attempts = instance.attempts() + ofDelivery;
    Duration again = again(check, instance, attempts, thrown);
    CheckWrites.Failed failed = words(attempts, thrown);
    if (again == null) {
      log.error(
          "monitor {}: failed for good in attempt {} at check {}",
          instance,
          attempts,
          instance.iteration() + 1,
          RedactedThrowable.of(thrown));
      return new Attempt(writes.failed(instance, failed), null);
    }
    log.warn(
        "monitor {}: attempt {} at check {} failed, the next one is in {}",
        instance,
        attempts,
        instance.iteration() + 1,
        again,
        RedactedThrowable.of(thrown));
    return new Attempt(writes.attemptFailed(instance, failed, events, again), again);
  }

  private static @Nullable Duration again(
      Check check, Instance instance, int attempts, Throwable thrown) {
    if (thrown instanceof UndecodableException) { // the same bytes are there the next time
      return null;
    }
    RetryPolicy policy = check.type().retry();
    try {
      return policy.givesUp(attempts, instance.sinceFirstAttempt(), thrown)
          ? null
          : policy.delayAfter(attempts, thrown);
    } catch (RuntimeException | Error broken) { // a predicate or curve of the user's
      log.error(
          "monitor {}: its retry policy failed; it is tried again in {}",
          instance,
          BROKEN_POLICY,
          RedactedThrowable.of(broken));
      return BROKEN_POLICY;
    }
  }

  /**
   * Of a renderer of the user's nothing but its text is kept. What was thrown is the user's, too,
   * and may throw when it is asked for its words.
   */
  private CheckWrites.Failed words(int attempts, Throwable thrown) {
    String type = Utf8.bounded(thrown.getClass().getName(), MESSAGE_BYTES);
    String text = null;
    String stack = "";
    try {
      if (renderer instanceof StackTraceRenderer ours) {
        text = thrown.getMessage();
        stack = ours.render(thrown, STACK_BYTES + 1);
      } else {
        text = renderer.render(thrown);
      }
    } catch (RuntimeException | Error broken) {
      log.warn("monitors: a {} could not be rendered", type, RedactedThrowable.of(broken));
    }
    return new CheckWrites.Failed(
        attempts,
        Utf8.bounded(text == null || text.isBlank() ? type : text, MESSAGE_BYTES),
        type,
        Utf8.bounded(stack, STACK_BYTES));
  }
}
