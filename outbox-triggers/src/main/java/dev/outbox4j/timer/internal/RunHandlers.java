package dev.outbox4j.timer.internal;

import dev.outbox4j.Delivery;
import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.Outcome;
import dev.outbox4j.Payload;
import dev.outbox4j.Transactional;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.PostgresStore;
import dev.outbox4j.postgres.internal.JdbcStore;
import dev.outbox4j.postgres.internal.transactions.JdbcTransactions;
import dev.outbox4j.timer.Timer;
import dev.outbox4j.timer.TimerHandler;
import dev.outbox4j.timer.TransactionalTimerHandler;
import dev.outbox4j.triggers.internal.LeftToOthers;
import java.sql.Connection;
import java.time.Duration;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Calls the handlers of timers with runs, and knows which of them are in progress. Thread-safe. */
public final class RunHandlers {
  private static final Logger log = LoggerFactory.getLogger(RunHandlers.class);

  private static final Duration AFTER_A_FAILED_START = Duration.ofSeconds(1);

  private final PostgresStore store;
  private final RunTransactions transactions;
  private final RunStarts starts;
  private final String application;
  private final Observer observer;
  private final LeftToOthers left = new LeftToOthers();
  private final Map<Long, StartedRun> running = new ConcurrentHashMap<>();

  /**
   * Creates them; does no I/O.
   *
   * @param outbox where the messages are
   * @param application whose timers
   * @param observer told of each run
   */
  public RunHandlers(PostgresOutbox outbox, String application, Observer observer) {
    this.application = application;
    this.observer = observer;
    this.store =
        new JdbcStore(
            outbox.dataSource(),
            outbox.table(),
            PostgresOutbox.DEFAULT_NETWORK_TIMEOUT,
            RunEnds.OF_MESSAGES);
    this.transactions =
        new RunTransactions(
            new JdbcTransactions(
                outbox.dataSource(),
                outbox.table(),
                PostgresOutbox.DEFAULT_NETWORK_TIMEOUT,
                RunEnds.OF_MESSAGES.ack()));
    this.starts = new RunStarts(outbox, application);
  }

  /** A handler of either kind. */
  public sealed interface Entry {}

  private record Plain(TimerHandler handler) implements Entry {}

  private record InTransaction(TransactionalTimerHandler<Connection> handler) implements Entry {}

  /** Calls a run's handler. */
  private interface Call {
    void on(StartedRun run) throws Exception;
  }

  /** What a handler has written that returned before it was done is not kept. */
  private void call(
      TransactionalTimerHandler<Connection> handler, StartedRun run, Connection connection)
      throws Exception {
    handler.handle(run, connection);
    run.returned();
    if (run.comesAgain()) {
      transactions.rollBack();
    }
  }

  /** {@return a handler without a transaction} */
  public static Entry plain(TimerHandler handler) {
    return new Plain(handler);
  }

  /** {@return a handler that writes in the transaction that ends the run} */
  public static Entry transactional(TransactionalTimerHandler<Connection> handler) {
    return new InTransaction(handler);
  }

  /** {@return the store with which messages end, and their runs with them} */
  public PostgresStore store() {
    return store;
  }

  /** Has a timer's runs handled. */
  public void add(OutboxSubscriber.Builder builder, Timer timer, Entry entry) {
    if (entry instanceof InTransaction transactional) {
      Transactional<Payload> handler =
          Transactional.of(
              transactions,
              (payload, delivery, connection) -> {
                handle(timer, delivery, run -> call(transactional.handler(), run, connection));
              });
      builder.on(timer.name(), Payload.class, handler);
    } else if (entry instanceof Plain plain) {
      builder.on(
          timer.name(),
          (payload, delivery) -> {
            handle(timer, delivery, run -> plain.handler().handle(run));
          });
    }
  }

  /** A timer that only newer nodes know, or older ones, is left to them. */
  public void addOtherwise(OutboxSubscriber.Builder builder, String queue) {
    builder.rateLimit(queue, left);
    builder.otherwise(
        (payload, delivery) -> {
          leave(delivery.type().orElse(""), delivery);
        });
  }

  private void leave(String timer, Delivery delivery) {
    if (left.isNew(timer)) {
      log.info("timer {} is not one of this node's: its runs are left to others", timer);
    }
    // attempts and deliveries are those of nodes that have the timer
    delivery.decide(Outcome.leave(left.leave(timer, delivery.id())));
  }

  private void handle(Timer timer, Delivery delivery, Call call) throws Exception {
    String of = delivery.header(RunKey.APPLICATION).orElse(application);
    if (!of.equals(application)) { // they were given one queue
      leave(of + "/" + timer.name(), delivery);
      return;
    }
    RunKey key = RunKey.parse(delivery.header(RunKey.HEADER).orElse(""));
    StartedRun run;
    try {
      run = starts.start(timer, key, delivery);
    } catch (OutboxStoreException e) { // the handler has not been called: no attempt has failed
      log.warn("timer {}: run {} could not begin, trying again", timer.name(), key, e);
      delivery.decide(Outcome.reschedule(AFTER_A_FAILED_START));
      return;
    }
    if (run == null) {
      log.info("timer {}: run {} is not to begin any more", timer.name(), key);
      return;
    }
    running.put(run.id(), run);
    observer.tell(events -> events.began(application, run));
    long begun = System.nanoTime();
    Throwable failure = null;
    try {
      call.on(run);
    } catch (Throwable e) {
      failure = e;
      throw e;
    } finally {
      run.returned();
      running.remove(run.id(), run);
      tellHandled(run, Duration.ofNanos(System.nanoTime() - begun), failure);
    }
  }

  private void tellHandled(StartedRun run, Duration took, @Nullable Throwable failure) {
    observer.tell(events -> events.handled(application, run, took, failure));
  }

  /** {@return the keys of the runs that are handled now} */
  Set<Long> running() {
    return Set.copyOf(running.keySet());
  }

  /** Tells a run's handler to return; of a run that has ended, that its result is dropped. */
  void cancel(long id, boolean ended) {
    @Nullable StartedRun run = running.get(id);
    if (run != null && ended) {
      run.end();
    } else if (run != null) {
      run.cancel();
    }
  }
}
