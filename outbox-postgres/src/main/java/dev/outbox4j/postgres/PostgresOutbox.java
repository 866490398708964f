package dev.outbox4j.postgres;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.Transactional;
import dev.outbox4j.TransactionalHandler;
import dev.outbox4j.TransactionalResultHandler;
import dev.outbox4j.postgres.internal.DedupKeys;
import dev.outbox4j.postgres.internal.Jdbc;
import dev.outbox4j.postgres.internal.JdbcPauses;
import dev.outbox4j.postgres.internal.JdbcStore;
import dev.outbox4j.postgres.internal.QueueDepths;
import dev.outbox4j.postgres.internal.publish.JdbcOutboxPublisher;
import dev.outbox4j.postgres.internal.publish.PublisherSettings;
import dev.outbox4j.postgres.internal.publish.R2dbcOutboxPublisher;
import dev.outbox4j.postgres.internal.transactions.FrameworkTransactions;
import dev.outbox4j.postgres.internal.transactions.JdbcTransactions;
import dev.outbox4j.spi.HandlerTransactions;
import dev.outbox4j.spi.PayloadCodec;
import java.sql.Connection;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Objects;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/**
 * The entry point: {@link #publisher} for who publishes, {@link #on} for who subscribes, validates
 * or counts. Immutable and thread-safe; does no I/O until told to.
 */
public final class PostgresOutbox {
  /** How long a store waits for the server's answer by default: 15 s. */
  public static final Duration DEFAULT_NETWORK_TIMEOUT = Duration.ofSeconds(15);

  private final DataSource dataSource;
  private final OutboxTable table;

  private PostgresOutbox(DataSource dataSource, OutboxTable table) {
    this.dataSource = Objects.requireNonNull(dataSource, "dataSource");
    this.table = Objects.requireNonNull(table, "table");
  }

  /**
   * Names an outbox and where to reach it.
   *
   * @param dataSource where to borrow a connection for each statement, best a pool
   * @param table the outbox table
   * @return what can be had of it; it touches no database yet
   */
  public static PostgresOutbox on(DataSource dataSource, OutboxTable table) {
    return new PostgresOutbox(dataSource, table);
  }

  /** {@return where it borrows connections} */
  public DataSource dataSource() {
    return dataSource;
  }

  /** {@return its table} */
  public OutboxTable table() {
    return table;
  }

  /**
   * Starts a publisher of an outbox. It needs no data source, since it publishes on the caller's
   * connection.
   *
   * @param table where it publishes
   * @return a builder; it touches no database
   */
  public static PublisherBuilder publisher(OutboxTable table) {
    return new PublisherBuilder(table);
  }

  /**
   * Returns the outbox's store, with the {@linkplain #DEFAULT_NETWORK_TIMEOUT default} network
   * timeout. Does no I/O. The connections must be pgjdbc's, at any isolation level.
   *
   * @return the store
   */
  public PostgresStore store() {
    return store(DEFAULT_NETWORK_TIMEOUT);
  }

  /**
   * Returns the outbox's store. Does no I/O. The connections must be pgjdbc's, at any isolation
   * level.
   *
   * @param networkTimeout how long to wait for the server's answer before the connection is given
   *     up, 1 ms to about 24 days; a shorter one that the connection has already ({@code
   *     socketTimeout}) is kept, but the server's limit follows this one. Bounds what a connection
   *     costs that has died without a word
   * @return the store
   * @throws IllegalArgumentException if the timeout is out of range
   */
  public PostgresStore store(Duration networkTimeout) {
    return new JdbcStore(dataSource, table, networkTimeout);
  }

  /**
   * Returns the transactions of handlers that write to this database: each ends with the write that
   * settles its message. The connections must be pgjdbc's; handlers run at READ COMMITTED. Does no
   * I/O.
   *
   * @return the transactions
   */
  public HandlerTransactions<Connection> transactions() {
    return new JdbcTransactions(dataSource, table, DEFAULT_NETWORK_TIMEOUT);
  }

  /**
   * Returns the transactions of handlers that write to this database, as a framework manages them.
   * The framework's connections must be pgjdbc's and come from this {@linkplain #dataSource() data
   * source}; handlers run at READ COMMITTED. Does no I/O.
   *
   * @param managed the framework's transactions, such as Spring's
   * @return the transactions, for {@link Transactional#of}
   */
  public HandlerTransactions<Connection> transactions(ManagedTransactions managed) {
    return new FrameworkTransactions(managed, dataSource, table, DEFAULT_NETWORK_TIMEOUT);
  }

  /**
   * Returns a handler that runs in the transaction of its message's ack. {@link Transactional} has
   * the rules.
   *
   * @param handler the handler; the connection it gets can neither commit nor roll back
   * @param <T> what the payload is decoded to
   * @return for {@link dev.outbox4j.OutboxSubscriber.Builder#on(String, Class, Transactional)}
   */
  @SuppressWarnings("overloads") // on purpose: no lambda may drop its result by accident
  public <T> Transactional<T> transactional(TransactionalHandler<T, Connection> handler) {
    return Transactional.of(transactions(), handler);
  }

  /**
   * Returns a handler that runs in the transaction of its message's ack, and says what becomes of
   * the message. {@link Transactional} has the rules.
   *
   * @param handler the handler; the connection it gets can neither commit nor roll back
   * @param <T> what the payload is decoded to
   * @param <R> {@link dev.outbox4j.Outcome}; every other value is a failed attempt
   * @return for {@link dev.outbox4j.OutboxSubscriber.Builder#on(String, Class, Transactional)}
   */
  @SuppressWarnings("overloads") // on purpose: no lambda may drop its result by accident
  public <T, R> Transactional<T> transactional(
      TransactionalResultHandler<T, Connection, R> handler) {
    return Transactional.of(transactions(), handler);
  }

  /**
   * Returns what pauses and resumes the outbox's queues. Does no I/O.
   *
   * @return the pauses
   */
  public QueuePauses pauses() {
    return new QueuePauses(new JdbcPauses(new Jdbc(dataSource, table, DEFAULT_NETWORK_TIMEOUT)));
  }

  /**
   * Deletes dedup keys whose windows are over, those that are longest over first. To be called now
   * and then, by any number of processes; those that call it at once share the work. Publishing a
   * key does not depend on it.
   *
   * @param limit how many at most, 1 to 100,000
   * @return how many were deleted; call again if it is the limit
   * @throws dev.outbox4j.OutboxStoreException if the statement fails
   * @throws IllegalArgumentException if the limit is out of range
   */
  public int purgeDedupKeys(int limit) {
    return DedupKeys.purge(new Jdbc(dataSource, table, DEFAULT_NETWORK_TIMEOUT), limit);
  }

  /**
   * Returns what compares the live schema with what the code needs. Touches no database yet.
   *
   * @return the validator
   */
  public SchemaValidator validator() {
    return SchemaValidator.of(dataSource, table);
  }

  /**
   * Counts what queues hold, each count up to 10,000, in one statement that walks the claim index.
   * Needs select on the table.
   *
   * @param queues the queues, of which some may be empty or unknown
   * @return one depth for each, in the same order
   * @throws dev.outbox4j.OutboxStoreException if the statement fails
   * @throws IllegalArgumentException if a queue's name is one that no message can have
   */
  public List<QueueDepth> depths(Collection<String> queues) {
    return depths(queues, QueueDepths.DEFAULT_COUNT_LIMIT);
  }

  /**
   * Counts what every queue holds that has rows, also those that nobody subscribes to: each count
   * up to 10,000, in one statement. Needs select on the table.
   *
   * @return one depth for each queue, in the order of their names; empty if the table is
   * @throws dev.outbox4j.OutboxStoreException if the statement fails
   */
  public List<QueueDepth> depths() {
    return new QueueDepths(table).readAll(dataSource, QueueDepths.DEFAULT_COUNT_LIMIT);
  }

  /**
   * Counts what queues hold, each count up to a limit: its cost is that many index entries for each
   * queue, twice. Needs select on the table.
   *
   * @param queues the queues, of which some may be empty or unknown
   * @param countLimit where to stop counting, from 1 to 10,000,000
   * @return one depth for each, in the same order
   * @throws dev.outbox4j.OutboxStoreException if the statement fails
   * @throws IllegalArgumentException if the limit is out of range, or a queue's name is one that no
   *     message can have
   */
  public List<QueueDepth> depths(Collection<String> queues, int countLimit) {
    return new QueueDepths(table).read(dataSource, queues, countLimit);
  }

  /**
   * Returns the deeper health check, which asks the database: the {@linkplain #validator()
   * validator} with its default settings, and no queue unless they are named. Touches no database
   * yet.
   *
   * @return the check
   */
  public OutboxHealthCheck healthCheck() {
    return new OutboxHealthCheck(dataSource, table, validator(), List.of());
  }

  @Override
  public String toString() {
    return "PostgresOutbox[" + table + "]";
  }

  /** Collects a publisher's settings. Not thread-safe; does no I/O. */
  public static final class PublisherBuilder {
    private final OutboxTable table;
    private @Nullable PayloadCodec codec;
    private NotifyMode notifyMode = NotifyMode.AUTO;
    private boolean autoCommitAllowed;

    private PublisherBuilder(OutboxTable table) {
      this.table = Objects.requireNonNull(table, "table");
    }

    /**
     * Sets what encodes bodies that are neither bytes nor {@link dev.outbox4j.Payload} nor {@link
     * String}; without one such bodies are refused. Its media type becomes the content type of the
     * messages that name none.
     *
     * @param codec a thread-safe codec
     * @return this builder
     * @throws IllegalArgumentException if its content type is not storable
     */
    public PublisherBuilder codec(PayloadCodec codec) {
      OutboxMessage.to("any").contentType(codec.contentType()); // the rules for every header
      this.codec = codec;
      return this;
    }

    /**
     * Sets when publishing notifies. Transactions that are prepared (two-phase commit, XA) need
     * {@link NotifyMode#NEVER}.
     *
     * @param mode the mode; default {@link NotifyMode#AUTO}
     * @return this builder
     */
    public PublisherBuilder notify(NotifyMode mode) {
      this.notifyMode = Objects.requireNonNull(mode, "mode");
      return this;
    }

    /**
     * Allows connections in autocommit mode. What is published then commits by itself, also if the
     * domain write it tells of does not.
     *
     * @return this builder
     */
    public PublisherBuilder allowAutoCommit() {
      this.autoCommitAllowed = true;
      return this;
    }

    /** {@return a publisher for JDBC and jOOQ; needs no R2DBC driver on the class path} */
    public OutboxPublisher build() {
      return new JdbcOutboxPublisher(settings());
    }

    /** {@return a publisher for R2DBC; needs no JDBC driver on the class path} */
    public ReactiveOutboxPublisher buildReactive() {
      return new R2dbcOutboxPublisher(settings());
    }

    private PublisherSettings settings() {
      return new PublisherSettings(table, notifyMode, codec, autoCommitAllowed);
    }
  }
}
