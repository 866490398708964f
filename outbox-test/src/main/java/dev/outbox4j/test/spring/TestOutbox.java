package dev.outbox4j.test.spring;

import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.spi.PayloadCodec;
import dev.outbox4j.spring.ContextSubscribers;
import dev.outbox4j.test.Drained;
import dev.outbox4j.test.OutboxAssert;
import dev.outbox4j.test.OutboxAssertions;
import dev.outbox4j.test.internal.kit.Drain;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.transaction.support.TransactionSynchronizationManager;

/**
 * The outbox of a Spring test's context, a bean of tests with {@link OutboxTest} or {@link
 * AutoConfigureOutboxTest}. Thread-safe; a queue must be drained by one thread at a time.
 */
public final class TestOutbox {
  private static final Duration LIMIT = Duration.ofSeconds(30);
  private static final Duration POLL_MIN = Duration.ofMillis(5);
  private static final Duration POLL_MAX = Duration.ofMillis(20);
  private static final String UNSEEN_BY_SUBSCRIBERS = "no subscriber sees what it has published";

  private final BeanFactory beans;

  TestOutbox(BeanFactory beans) {
    this.beans = beans;
  }

  /**
   * Handles what is due, until nothing is, on the calling thread: by the handlers of the context,
   * with its codec, transactions, observers and settings of the queue, but one after the other.
   * What handlers publish to the queue meanwhile is handled as well. What waits for a retry is
   * left, unless its delay ends meanwhile.
   *
   * <p>A handler that throws is no failure of this call, since it may be what is tested: {@link
   * Drained#failures} has it, and {@link Drained#requireNoFailures} is for all other tests. An
   * {@link AssertionError} is: a check in a handler must fail its test.
   *
   * @param queue the queue
   * @return how many runs there were and what failed
   * @throws AssertionError if a handler threw one, or something is still due after 30 s; a handler
   *     that runs then is interrupted
   * @throws IllegalArgumentException if no handler of the context has this queue
   * @throws IllegalStateException if the calling thread is in a transaction, whose messages no
   *     subscriber sees, or if subscribers run already
   */
  public Drained drain(String queue) {
    requireNoTransaction(UNSEEN_BY_SUBSCRIBERS);
    TestTables tables = TestTables.of(beans);
    if (tables.properties().autoStart()) {
      throw new IllegalStateException(
          "Subscribers were started with the context; wait for them by awaitEmpty(...) or"
              + " awaitDrained(...), or set autoStart = false");
    }
    Drain drain =
        new Drain(
            LIMIT,
            () -> tables.due(queue) == 0,
            () ->
                "Queue '%s' is not drained after %s: %d messages are due"
                    .formatted(queue, LIMIT, tables.due(queue)));
    drain.run(
        beans
            .getBean(ContextSubscribers.class)
            .builder(queue)
            .poll(POLL_MIN, POLL_MAX)
            .pollWithoutListener(POLL_MAX));
    return new Drained(drain.runs(), drain.failures(), drain.retried(), drain.deadLettered());
  }

  /**
   * Lets time pass for the messages that are in the outbox: their instants are moved back, so that
   * retries and delayed messages fall due without a wait. Dead letters, the clock of the server and
   * those of the service stay as they are.
   *
   * <p>A policy with jitter waits up to that share longer, so advance by more than its delay.
   *
   * @param time how much; more than zero
   * @throws IllegalArgumentException if it is not more than zero
   * @throws IllegalStateException if the calling thread is in a transaction
   */
  public void advance(Duration time) {
    if (time.isZero() || time.isNegative()) {
      throw new IllegalArgumentException(
          "Time passes by %s; it must be more than zero".formatted(time));
    }
    requireNoTransaction("its messages stay as they are");
    TestTables.of(beans).advance(time);
  }

  /**
   * Waits until nothing of the queues is due, while subscribers handle it that were started with
   * the context. What is due later is left, also what failed and waits for a retry; {@link
   * #awaitEmpty} leaves nothing.
   *
   * @param queues the queues, one after the other
   * @throws AssertionError if something of one is still due after 30 s
   * @throws IllegalArgumentException if none is named, or no handler of the context has one
   * @throws IllegalStateException if the calling thread is in a transaction, or no subscriber was
   *     started
   */
  public void awaitDrained(String... queues) {
    OutboxAssert outbox = beginToAwait(queues);
    for (String queue : queues) {
      outbox.awaitDrained(queue, LIMIT);
    }
  }

  /**
   * Waits until no message of the queues is left: neither due, delayed, nor waiting for a retry,
   * while subscribers handle them that were started with the context. What failed for good has left
   * as well; ask {@link #assertThatOutbox()} for dead letters next.
   *
   * @param queues the queues, one after the other
   * @throws AssertionError if something of one is left after 30 s; it says what, with its last
   *     error
   * @throws IllegalArgumentException if none is named, or no handler of the context has one
   * @throws IllegalStateException if the calling thread is in a transaction, or no subscriber was
   *     started
   */
  public void awaitEmpty(String... queues) {
    OutboxAssert outbox = beginToAwait(queues);
    for (String queue : queues) {
      outbox.awaitEmpty(queue, LIMIT);
    }
  }

  private OutboxAssert beginToAwait(String... queues) {
    requireNoTransaction(UNSEEN_BY_SUBSCRIBERS);
    if (!TestTables.of(beans).properties().autoStart()) {
      throw new IllegalStateException(
          "No subscriber was started with the context, so nobody handles what is waited for; run the"
              + " handlers by drain(...), or set autoStart = true");
    }
    requireHandled(List.of(queues));
    return assertThatOutbox();
  }

  private void requireHandled(List<String> queues) {
    Set<String> handled = beans.getBean(ContextSubscribers.class).queues();
    if (queues.isEmpty()) {
      throw new IllegalArgumentException(
          "No queue is named to wait for; handled are %s".formatted(handled));
    }
    Set<String> unheard = new TreeSet<>(queues);
    unheard.removeAll(handled);
    if (!unheard.isEmpty() && !hasSubscriberBeans()) {
      throw new IllegalArgumentException(
          "No @OutboxHandler of this context handles %s; handled are %s"
              .formatted(unheard, handled));
    }
  }

  /** Those do not say which queues are theirs. */
  private boolean hasSubscriberBeans() {
    return beans.getBeanProvider(OutboxSubscriber.class).stream().findAny().isPresent();
  }

  /**
   * Begins assertions about the rows that are committed and not handled yet, with the context's
   * codec; see {@link OutboxAssertions#assertThatOutbox(javax.sql.DataSource,
   * dev.outbox4j.postgres.OutboxTable)}. Where {@code outbox4j.delete-terminal-failures} is set
   * there are no dead letters, and assertions about them throw an {@link IllegalStateException}.
   *
   * @return the assertions
   * @throws IllegalStateException if the calling thread is in a transaction, whose messages nobody
   *     else sees
   */
  public OutboxAssert assertThatOutbox() {
    requireNoTransaction("assertions look from outside it, and see none of its messages");
    TestTables tables = TestTables.of(beans);
    OutboxAssert all =
        OutboxAssertions.assertThatOutbox(tables.store().dataSource(), tables.store().table());
    OutboxAssert outbox =
        tables.properties().deleteTerminalFailures()
            ? all.withoutDeadLetters()
            : all.deadLettersIn(tables.deadLetterSchema(), tables.deadLetters());
    PayloadCodec codec = beans.getBeanProvider(PayloadCodec.class).getIfAvailable();
    return codec == null ? outbox : outbox.codec(codec);
  }

  private static void requireNoTransaction(String why) {
    if (TransactionSynchronizationManager.isActualTransactionActive()) {
      throw new IllegalStateException(
          "This thread is in a transaction, and "
              + why
              + " until it commits; take @Transactional off the test, or commit by"
              + " TestTransaction.end() or in a TransactionTemplate before");
    }
  }
}
