package dev.outbox4j.test.spring;

import dev.outbox4j.spi.PayloadCodec;
import dev.outbox4j.spring.ContextSubscribers;
import dev.outbox4j.test.Drained;
import dev.outbox4j.test.OutboxAssert;
import dev.outbox4j.test.OutboxAssertions;
import dev.outbox4j.test.internal.kit.Drain;
import java.time.Duration;
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
   * Drained#failures} has it. An {@link AssertionError} is: a check in a handler must fail its
   * test.
   *
   * @param queue the queue
   * @return how many runs there were and what failed
   * @throws AssertionError if a handler threw one, or something is still due after 30 s
   * @throws IllegalArgumentException if no handler of the context has this queue
   * @throws IllegalStateException if the calling thread is in a transaction, whose messages no
   *     subscriber sees, or if subscribers run already
   */
  public Drained drain(String queue) {
    requireNoTransaction();
    TestTables tables = TestTables.of(beans);
    if (tables.properties().autoStart()) {
      throw new IllegalStateException(
          "Subscribers were started with the context; wait for them by awaitDrained(...), or set"
              + " autoStart = false");
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
   * Waits until nothing of the queues is due, while subscribers handle it that were started with
   * the context. What is due later, or waits for a retry, is left.
   *
   * @param queues the queues, one after the other
   * @throws AssertionError if something of one is still due after 30 s
   * @throws IllegalStateException if the calling thread is in a transaction
   */
  public void awaitDrained(String... queues) {
    requireNoTransaction();
    OutboxAssert outbox = assertThatOutbox();
    for (String queue : queues) {
      outbox.awaitDrained(queue, LIMIT);
    }
  }

  /**
   * Begins assertions about the rows that are committed and not handled yet, with the context's
   * codec; see {@link OutboxAssertions#assertThatOutbox(javax.sql.DataSource,
   * dev.outbox4j.postgres.OutboxTable)}.
   *
   * @return the assertions
   */
  public OutboxAssert assertThatOutbox() {
    TestTables tables = TestTables.of(beans);
    OutboxAssert outbox =
        OutboxAssertions.assertThatOutbox(tables.store().dataSource(), tables.store().table())
            .deadLettersIn(tables.deadLetters());
    PayloadCodec codec = beans.getBeanProvider(PayloadCodec.class).getIfAvailable();
    return codec == null ? outbox : outbox.codec(codec);
  }

  private static void requireNoTransaction() {
    if (TransactionSynchronizationManager.isActualTransactionActive()) {
      throw new IllegalStateException(
          "This thread is in a transaction, and no subscriber sees what it has published until it"
              + " commits; take @Transactional off the test, or commit by TestTransaction.end() or"
              + " in a TransactionTemplate before");
    }
  }
}
