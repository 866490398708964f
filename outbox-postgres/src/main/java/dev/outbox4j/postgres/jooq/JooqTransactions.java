package dev.outbox4j.postgres.jooq;

import dev.outbox4j.Transactional;
import dev.outbox4j.TransactionalHandler;
import dev.outbox4j.TransactionalResultHandler;
import dev.outbox4j.spi.HandlerTransactions;
import dev.outbox4j.spi.LeaseRef;
import dev.outbox4j.spi.OutboxStore;
import java.sql.Connection;
import java.time.Duration;
import java.util.Objects;
import java.util.OptionalInt;
import org.jooq.Configuration;
import org.jooq.impl.DefaultConnectionProvider;

/**
 * Transactions of handlers that write with jOOQ: each gets a {@link Configuration} on the
 * connection of the transaction that also acks its message. {@link Transactional} has the rules.
 * Works with jOOQ 3.19 and later. Thread-safe.
 *
 * <p>{@code tx.dsl().transaction(...)} in a handler is a savepoint. The configuration is of no use
 * after the handler has returned, nor on other threads.
 */
public final class JooqTransactions implements HandlerTransactions<Configuration> {
  private final HandlerTransactions<Connection> transactions;
  private final Configuration configuration;

  private JooqTransactions(
      HandlerTransactions<Connection> transactions, Configuration configuration) {
    this.transactions = Objects.requireNonNull(transactions, "transactions");
    this.configuration = Objects.requireNonNull(configuration, "configuration");
  }

  /**
   * Returns transactions for jOOQ. Does no I/O.
   *
   * @param transactions of {@link dev.outbox4j.postgres.PostgresOutbox#transactions()}
   * @param configuration has dialect, settings, listeners and mappings for what handlers get; its
   *     connections are not used
   * @return the transactions
   */
  public static JooqTransactions of(
      HandlerTransactions<Connection> transactions, Configuration configuration) {
    return new JooqTransactions(transactions, configuration);
  }

  /**
   * Returns a handler that runs in the transaction of its message's ack.
   *
   * @param handler the handler
   * @param <T> what the payload is decoded to
   * @return for {@link dev.outbox4j.OutboxSubscriber.Builder#on(String, Class, Transactional)}
   */
  @SuppressWarnings("overloads") // on purpose: no lambda may drop its result by accident
  public <T> Transactional<T> transactional(TransactionalHandler<T, Configuration> handler) {
    return Transactional.of(this, handler);
  }

  /**
   * Returns a handler that runs in the transaction of its message's ack, and says what becomes of
   * the message.
   *
   * @param handler the handler
   * @param <T> what the payload is decoded to
   * @param <R> {@link dev.outbox4j.Outcome}; every other value is a failed attempt
   * @return for {@link dev.outbox4j.OutboxSubscriber.Builder#on(String, Class, Transactional)}
   */
  @SuppressWarnings("overloads") // on purpose: no lambda may drop its result by accident
  public <T, R> Transactional<T> transactional(
      TransactionalResultHandler<T, Configuration, R> handler) {
    return Transactional.of(this, handler);
  }

  @Override
  public End run(LeaseRef lease, String owner, Work<Configuration> work, AbortRegistration abort)
      throws Exception {
    return transactions.run(
        lease, owner, (connection, flush) -> work.run(inTransaction(connection), flush), abort);
  }

  private Configuration inTransaction(Connection connection) {
    return configuration
        .derive(new DefaultConnectionProvider(connection))
        .derive(new SavepointProvider(connection));
  }

  @Override
  public boolean settlesRowsOf(OutboxStore store) {
    return transactions.settlesRowsOf(store);
  }

  @Override
  public Duration networkTimeout() {
    return transactions.networkTimeout();
  }

  @Override
  public OptionalInt connectionLimit() {
    return transactions.connectionLimit();
  }

  @Override
  public Object connectionSource() {
    return transactions.connectionSource();
  }

  @Override
  public String toString() {
    return transactions.toString();
  }
}
