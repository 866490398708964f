package dev.outbox4j.postgres;

import dev.outbox4j.Delivery;
import dev.outbox4j.Outcome;
import dev.outbox4j.OutcomeHandler;
import dev.outbox4j.TransactionalHandler;
import dev.outbox4j.TransactionalResultHandler;
import dev.outbox4j.TypedHandler;
import dev.outbox4j.internal.schema.Names;
import dev.outbox4j.internal.settings.HandlerTable;
import dev.outbox4j.postgres.internal.InboxSql;
import dev.outbox4j.postgres.internal.schema.TableName;
import dev.outbox4j.postgres.internal.transactions.PlainTransaction;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BiFunction;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/**
 * A table that remembers which messages were handled, in the database that their handlers write to:
 * each is noted in the transaction of what its handler did, so that one which comes again is
 * recognised. For handlers that write to another database than the outbox's, and for consumers of a
 * broker; where both are one database, {@link PostgresOutbox#transactional} needs no table.
 * Immutable and thread-safe; two are equal if their tables and times are.
 *
 * <p>A message that comes again while another process handles it waits for that one's transaction.
 * The time to live has to be longer than a message can take to come again, by retries and by a
 * redrive of dead letters.
 */
public final class Inbox {
  /** For how long messages are remembered unless it is said: 30 days. */
  public static final Duration DEFAULT_TIME_TO_LIVE = Duration.ofDays(30);

  private static final Duration LONGEST = Duration.ofDays(36_500);
  private static final int MAX_KEY_BYTES = 255;
  private static final int MOST_PURGED = 100_000;

  private final @Nullable String schema;
  private final String table;
  private final Duration timeToLive;
  private final InboxSql sql;

  private Inbox(@Nullable String schema, String table, Duration timeToLive) {
    this.schema = schema;
    this.table = table;
    this.timeToLive = timeToLive;
    this.sql = new InboxSql(Names.qualified(schema, table));
  }

  /**
   * Names a table on the search path.
   *
   * @param table as {@code InboxMigrations} made it, at most 36 bytes
   * @return the inbox
   * @throws IllegalArgumentException if the name is not allowed
   */
  public static Inbox in(String table) {
    return new Inbox(null, Names.requireInbox("inbox table name", table), DEFAULT_TIME_TO_LIVE);
  }

  /**
   * Names a table in a schema, which need not be on the search path.
   *
   * @param schema the schema
   * @param table as {@code InboxMigrations} made it, at most 36 bytes
   * @return the inbox
   * @throws IllegalArgumentException if a name is not allowed
   */
  public static Inbox in(String schema, String table) {
    return new Inbox(
        OutboxTable.requireIdentifier("inbox schema name", schema),
        Names.requireInbox("inbox table name", table),
        DEFAULT_TIME_TO_LIVE);
  }

  /**
   * Returns the same with another time to live.
   *
   * @param timeToLive for how long a message is remembered, by the server's clock: 1 s to 36,500
   *     days; default {@link #DEFAULT_TIME_TO_LIVE}
   * @return the inbox
   * @throws IllegalArgumentException if it is out of range
   */
  public Inbox timeToLive(Duration timeToLive) {
    Objects.requireNonNull(timeToLive, "timeToLive");
    if (timeToLive.compareTo(Duration.ofSeconds(1)) < 0 || timeToLive.compareTo(LONGEST) > 0) {
      throw new IllegalArgumentException(
          "timeToLive is " + timeToLive + "; it must be PT1S to " + LONGEST);
    }
    return new Inbox(schema, table, timeToLive);
  }

  /**
   * Notes a message in the caller's transaction. Waits if another transaction has just noted the
   * same one.
   *
   * @param connection in a transaction, at READ COMMITTED; at a higher level a rival makes it fail
   *     with a serialization failure
   * @param queue where the message came from: a queue, or a topic of a broker; not blank, at most
   *     255 bytes in UTF-8
   * @param key the same each time the message comes, and of no other of that queue; not blank, at
   *     most 255 bytes in UTF-8
   * @return true if it was not there, or has expired: handle the message now; false if it has been
   *     handled
   * @throws SQLException if the statement fails, or the connection is in autocommit mode
   * @throws IllegalArgumentException if a name is blank or too long
   */
  public boolean add(Connection connection, String queue, String key) throws SQLException {
    requireName("queue", queue);
    requireName("key", key);
    if (connection.getAutoCommit()) {
      throw new SQLException(
          "The connection is in autocommit mode, so the note in the inbox would be committed before"
              + " what the handler does; call setAutoCommit(false), and commit both");
    }
    return sql.add(connection, queue, key, timeToLive);
  }

  /**
   * Returns a handler that runs in a transaction of its own database, once for each message: what
   * comes again is acked without it. The key is the message's id, which retries and redrives keep.
   *
   * @param dataSource connections to the database of the inbox and of what the handler writes
   * @param handler the handler; the connection it gets can neither commit nor roll back
   * @param <T> what the payload is decoded to
   * @return for {@link dev.outbox4j.OutboxSubscriber.Builder#on(String, Class, TypedHandler)}
   */
  @SuppressWarnings("overloads") // on purpose: no lambda may drop its result by accident
  public <T> TypedHandler<T> once(
      DataSource dataSource, TransactionalHandler<T, Connection> handler) {
    return once(dataSource, Inbox::id, handler);
  }

  /**
   * As {@link #once(DataSource, TransactionalHandler)}, with a handler that says what becomes of
   * the message. {@link Outcome#ack()} commits what it wrote and the note; every other outcome
   * rolls both back, so that the message may come again.
   *
   * @param dataSource connections to the database of the inbox and of what the handler writes
   * @param handler the handler; the connection it gets can neither commit nor roll back
   * @param <T> what the payload is decoded to
   * @param <R> {@link Outcome}; every other value is a failed attempt
   * @return for {@link dev.outbox4j.OutboxSubscriber.Builder#on(String, Class,
   *     dev.outbox4j.ResultHandler)}
   */
  @SuppressWarnings("overloads") // on purpose: no lambda may drop its result by accident
  public <T, R> OutcomeHandler<T> once(
      DataSource dataSource, TransactionalResultHandler<T, Connection, R> handler) {
    return once(dataSource, Inbox::id, handler);
  }

  /**
   * Returns a handler that runs in a transaction of its own database, once for each key.
   *
   * @param dataSource connections to the database of the inbox and of what the handler writes
   * @param key reads what tells messages of a queue apart, such as an id in the body, which also
   *     tells a message that was published twice
   * @param handler the handler; the connection it gets can neither commit nor roll back
   * @param <T> what the payload is decoded to
   * @return for {@link dev.outbox4j.OutboxSubscriber.Builder#on(String, Class, TypedHandler)}
   */
  @SuppressWarnings("overloads") // on purpose: no lambda may drop its result by accident
  public <T> TypedHandler<T> once(
      DataSource dataSource,
      BiFunction<? super T, Delivery, String> key,
      TransactionalHandler<T, Connection> handler) {
    Objects.requireNonNull(handler, "handler");
    OutcomeHandler<T> once =
        noted(
            dataSource,
            key,
            (body, delivery, connection) -> {
              handler.handle(body, delivery, connection);
              return Outcome.ack();
            });
    return (body, delivery) -> {
      Outcome unused = once.handle(body, delivery); // it is an ack, unless it throws
    };
  }

  /**
   * As {@link #once(DataSource, BiFunction, TransactionalHandler)}, with a handler that says what
   * becomes of the message. {@link Outcome#ack()} commits what it wrote and the note; every other
   * outcome rolls both back, so that the message may come again.
   *
   * @param dataSource connections to the database of the inbox and of what the handler writes
   * @param key reads what tells messages of a queue apart
   * @param handler the handler; the connection it gets can neither commit nor roll back
   * @param <T> what the payload is decoded to
   * @param <R> {@link Outcome}; every other value is a failed attempt
   * @return for {@link dev.outbox4j.OutboxSubscriber.Builder#on(String, Class,
   *     dev.outbox4j.ResultHandler)}
   */
  @SuppressWarnings("overloads") // on purpose: no lambda may drop its result by accident
  public <T, R> OutcomeHandler<T> once(
      DataSource dataSource,
      BiFunction<? super T, Delivery, String> key,
      TransactionalResultHandler<T, Connection, R> handler) {
    return noted(dataSource, key, Objects.requireNonNull(handler, "handler"));
  }

  private <T> OutcomeHandler<T> noted(
      DataSource dataSource,
      BiFunction<? super T, Delivery, String> key,
      TransactionalResultHandler<T, Connection, ?> handler) {
    Objects.requireNonNull(dataSource, "dataSource");
    Objects.requireNonNull(key, "key");
    return (body, delivery) -> {
      AtomicReference<Outcome> outcome = new AtomicReference<>(Outcome.ack());
      PlainTransaction.run(
          dataSource,
          connection -> {
            if (!add(connection, delivery.queue(), key.apply(body, delivery))) {
              return false;
            }
            outcome.set(HandlerTable.requireOutcome(handler.handle(body, delivery, connection)));
            return outcome.get() instanceof Outcome.Ack;
          });
      return Objects.requireNonNull(outcome.get());
    };
  }

  private static String id(Object body, Delivery delivery) {
    return Long.toString(delivery.id());
  }

  /**
   * Deletes what has expired, the oldest first. To be called now and then, by any number of
   * processes; those that call it at once share the work.
   *
   * @param dataSource connections to the inbox's database
   * @param limit how many at most, 1 to 100,000
   * @return how many were deleted; call again if it is the limit
   * @throws SQLException if the statement fails
   * @throws IllegalArgumentException if the limit is out of range
   */
  public int purge(DataSource dataSource, int limit) throws SQLException {
    if (limit < 1 || limit > MOST_PURGED) {
      throw new IllegalArgumentException("limit is " + limit + "; it must be 1 to " + MOST_PURGED);
    }
    try (Connection connection = dataSource.getConnection()) {
      boolean autoCommit = connection.getAutoCommit();
      int purged = sql.purge(connection, limit);
      if (!autoCommit) {
        connection.commit();
      }
      return purged;
    }
  }

  TableName name() {
    return new TableName(schema, table);
  }

  private static void requireName(String what, String name) {
    Objects.requireNonNull(name, what);
    int bytes = name.getBytes(StandardCharsets.UTF_8).length;
    if (name.isBlank() || bytes > MAX_KEY_BYTES || name.indexOf('\0') >= 0) {
      throw new IllegalArgumentException(
          name.isBlank()
              ? what + " is blank; give it a name"
              : what
                  + " has "
                  + bytes
                  + " bytes; it may have "
                  + MAX_KEY_BYTES
                  + ", and no zero character");
    }
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Inbox that
        && table.equals(that.table)
        && Objects.equals(schema, that.schema)
        && timeToLive.equals(that.timeToLive);
  }

  @Override
  public int hashCode() {
    return Objects.hash(schema, table, timeToLive);
  }

  @Override
  public String toString() {
    return "Inbox[" + (schema == null ? table : schema + "." + table) + "]";
  }
}
