package dev.outbox4j;

import dev.outbox4j.internal.settings.HandlerTable;
import dev.outbox4j.spi.HandlerTransactions;
import dev.outbox4j.spi.ReactiveTransactions;
import dev.outbox4j.spi.SettlingTransactions;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * A handler with the transactions that it runs in. Its effects on the outbox's database are exactly
 * once: what it writes commits together with the message's ack, or not at all. Immutable; a store
 * makes them, such as {@code PostgresOutbox.transactional(...)}.
 *
 * <ul>
 *   <li>The ack is the last statement of the transaction and fenced by the lease. If the lease was
 *       lost, or the handler ran past {@code handlerTimeout}, everything is rolled back.
 *   <li>{@link Outcome#ack()} and {@link Outcome#reschedule} commit what the handler wrote. {@link
 *       Outcome#retry}, {@link Outcome#retryAfter}, {@link Outcome#reject} and exceptions roll it
 *       back; the retry or the dead letter is written after that.
 *   <li>What the handler does elsewhere, such as a call over the network, is not rolled back, and
 *       is at least once as with every handler.
 *   <li>Each run takes a connection, so the pool needs one for each worker, beside the subscriber's
 *       own.
 * </ul>
 *
 * @param <T> what the payload is decoded to
 */
public final class Transactional<T> {
  private final SettlingTransactions transactions;
  private final HandlerTable.Invocation<T> invocation;

  private Transactional(SettlingTransactions transactions, HandlerTable.Invocation<T> invocation) {
    this.transactions = transactions;
    this.invocation = invocation;
  }

  /**
   * Returns a handler that runs in transactions.
   *
   * @param transactions where it runs
   * @param handler the handler
   * @param <T> what the payload is decoded to
   * @param <C> what the handler writes with
   * @return for {@link OutboxSubscriber.Builder#on(String, Class, Transactional)}
   */
  @SuppressWarnings("overloads") // on purpose: no lambda may drop its result by accident
  public static <T, C> Transactional<T> of(
      HandlerTransactions<C> transactions, TransactionalHandler<T, C> handler) {
    Objects.requireNonNull(handler, "handler");
    return running(
        transactions,
        (body, delivery, connection) -> {
          handler.handle(body, delivery, connection);
          return null;
        });
  }

  /**
   * Returns a handler that runs in transactions and says what becomes of its messages.
   *
   * @param transactions where it runs
   * @param handler the handler
   * @param <T> what the payload is decoded to
   * @param <C> what the handler writes with
   * @param <R> {@link Outcome}
   * @return for {@link OutboxSubscriber.Builder#on(String, Class, Transactional)}
   */
  @SuppressWarnings("overloads") // on purpose: no lambda may drop its result by accident
  public static <T, C, R> Transactional<T> of(
      HandlerTransactions<C> transactions, TransactionalResultHandler<T, C, R> handler) {
    Objects.requireNonNull(handler, "handler");
    return running(
        transactions,
        (body, delivery, connection) ->
            HandlerTable.requireOutcome(handler.handle(body, delivery, connection)));
  }

  /**
   * Returns a handler that runs in transactions and goes on after it has returned.
   *
   * @param transactions where it runs
   * @param handler the handler
   * @param <T> what the payload is decoded to
   * @param <C> what the handler writes with
   * @param <R> what the handler returns
   * @return for {@link OutboxSubscriber.Builder#on(String, Class, Transactional)}
   */
  public static <T, C, R> Transactional<T> of(
      ReactiveTransactions<C> transactions, TransactionalResultHandler<T, C, R> handler) {
    Objects.requireNonNull(transactions, "transactions");
    Objects.requireNonNull(handler, "handler");
    return new Transactional<>(
        transactions,
        (body, delivery) ->
            new HandlerTable.InReactiveTransaction<>(
                transactions,
                connection -> HandlerTable.settling(handler.handle(body, delivery, connection))));
  }

  private interface Work<T, C> {
    @Nullable Outcome run(T body, Delivery delivery, C connection) throws Exception;
  }

  private static <T, C> Transactional<T> running(
      HandlerTransactions<C> transactions, Work<T, C> work) {
    Objects.requireNonNull(transactions, "transactions");
    return new Transactional<>(
        transactions,
        (body, delivery) ->
            new HandlerTable.InTransaction<>(
                transactions, connection -> work.run(body, delivery, connection)));
  }

  SettlingTransactions transactions() {
    return transactions;
  }

  HandlerTable.Invocation<T> invocation() {
    return invocation;
  }
}
