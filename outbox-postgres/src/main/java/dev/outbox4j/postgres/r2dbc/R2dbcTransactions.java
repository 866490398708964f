package dev.outbox4j.postgres.r2dbc;

import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.OutboxStoreException.Fault;
import dev.outbox4j.Transactional;
import dev.outbox4j.TransactionalResultHandler;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.PostgresStore;
import dev.outbox4j.postgres.internal.NumberedWrites;
import dev.outbox4j.postgres.internal.SqlFaults;
import dev.outbox4j.postgres.r2dbc.R2dbcSession.Access;
import dev.outbox4j.postgres.r2dbc.R2dbcSession.HandlerFailure;
import dev.outbox4j.spi.HandlerTransactions.AbortRegistration;
import dev.outbox4j.spi.HandlerTransactions.Decision;
import dev.outbox4j.spi.HandlerTransactions.End;
import dev.outbox4j.spi.LeaseRef;
import dev.outbox4j.spi.OutboxStore;
import dev.outbox4j.spi.ReactiveTransactions;
import io.r2dbc.postgresql.api.PostgresqlConnection;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.ConnectionFactory;
import io.r2dbc.spi.R2dbcException;
import io.r2dbc.spi.Wrapped;
import java.sql.SQLException;
import java.time.Duration;
import java.util.Objects;
import java.util.OptionalInt;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * Transactions of handlers that write over R2DBC: each gets a connection whose transaction is open,
 * and goes on after it has returned; when its result ends, the message is acked as the last
 * statement of that transaction. {@link Transactional} has the rules. Thread-safe.
 *
 * <p>Needs r2dbc-postgresql, best behind a pool such as r2dbc-pool. The subscriber's store stays
 * one of JDBC, since leases and retries are written there.
 */
public final class R2dbcTransactions implements ReactiveTransactions<Connection> {
  private static final String OPERATION = "transaction";
  private static final String LOST = "08006";
  private static final String READ_ONLY = "25006";
  private static final String SCHEMA =
      """
      select n.nspname
      from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
      where c.oid = to_regclass(cast($1 as text))\
      """;

  private final ConnectionFactory connections;
  private final OutboxTable table;
  private final Duration timeout;

  /** Null until a connection was asked where the outbox is. */
  private volatile @Nullable NumberedWrites writes;

  private R2dbcTransactions(ConnectionFactory connections, OutboxTable table, Duration timeout) {
    this.connections = Objects.requireNonNull(connections, "connections");
    this.table = Objects.requireNonNull(table, "table");
    this.timeout = timeout;
  }

  /**
   * Returns transactions on an outbox's database. Does no I/O.
   *
   * @param connections where to borrow a connection for each handler, best a pool; of
   *     r2dbc-postgresql
   * @param table the outbox
   * @return the transactions
   */
  public static R2dbcTransactions of(ConnectionFactory connections, OutboxTable table) {
    return new R2dbcTransactions(connections, table, PostgresOutbox.DEFAULT_NETWORK_TIMEOUT);
  }

  static R2dbcTransactions of(ConnectionFactory connections, OutboxTable table, Duration timeout) {
    return new R2dbcTransactions(connections, table, timeout);
  }

  /**
   * Returns a handler that runs in the transaction of its message's ack.
   *
   * @param handler the handler; the connection it gets can neither commit nor roll back
   * @param <T> what the payload is decoded to
   * @param <R> what the handler returns, such as a {@code Mono}
   * @return for {@link dev.outbox4j.OutboxSubscriber.Builder#on(String, Class, Transactional)}
   */
  public <T, R> Transactional<T> transactional(
      TransactionalResultHandler<T, Connection, R> handler) {
    return Transactional.of(this, handler);
  }

  @Override
  public CompletionStage<End> run(
      LeaseRef lease, String owner, Work<Connection> work, AbortRegistration abort) {
    R2dbcSession session = open();
    abort.onAbort(session::abort);
    NumberedWrites known = begin(session);
    session.handle(work);
    CompletableFuture<End> ended = new CompletableFuture<>();
    CompletableFuture<End> unused =
        Mono.usingWhen(
                Mono.just(session),
                open -> end(open, known, lease, owner),
                R2dbcSession::release,
                (open, failure) -> open.release(),
                R2dbcSession::release)
            .toFuture()
            .whenComplete(
                (end, failure) -> {
                  if (failure == null) {
                    ended.complete(end);
                  } else {
                    ended.completeExceptionally(
                        failure instanceof HandlerFailure handler ? handler.thrown() : failure);
                  }
                });
    return ended;
  }

  private R2dbcSession open() {
    Connection connection;
    try {
      connection = await(Mono.from(connections.create()).toFuture());
    } catch (Exception e) {
      throw SqlFaults.notSent(OPERATION, table, sql(e));
    }
    PostgresqlConnection driver = driverOf(connection);
    if (driver == null) {
      Mono.from(connection.close()).subscribe(nothing -> {}, failure -> {});
      throw new OutboxStoreException(
          OPERATION
              + " on "
              + table
              + " failed: the factory gives connections of "
              + connection.getMetadata().getDatabaseProductName()
              + " that are not r2dbc-postgresql's; take a PostgresqlConnectionFactory, or a pool of"
              + " one",
          Fault.SETUP,
          false,
          null);
    }
    return new R2dbcSession(connection, driver, timeout);
  }

  /** Whatever comes too late is closed: nobody else would. */
  private Connection await(CompletableFuture<? extends Connection> opening) throws Exception {
    try {
      return Objects.requireNonNull(
          opening.get(timeout.toMillis(), TimeUnit.MILLISECONDS), "the factory gave no connection");
    } catch (ExecutionException e) {
      throw e.getCause() instanceof Exception exception ? exception : e;
    } catch (InterruptedException | TimeoutException e) {
      CompletableFuture<Void> unused =
          opening.thenAccept(
              late -> Mono.from(late.close()).subscribe(nothing -> {}, failure -> {}));
      if (e instanceof InterruptedException) {
        Thread.currentThread().interrupt();
      }
      throw new SQLException("no connection came in time", "08001", e);
    }
  }

  private static @Nullable PostgresqlConnection driverOf(Connection connection) {
    Object layer = connection;
    while (!(layer instanceof PostgresqlConnection)) {
      if (!(layer instanceof Wrapped<?> wrapped)) {
        return null;
      }
      layer = wrapped.unwrap();
    }
    return (PostgresqlConnection) layer;
  }

  private NumberedWrites begin(R2dbcSession session) {
    NumberedWrites known = writes;
    Mono<NumberedWrites> found = known == null ? find(session) : Mono.just(known);
    try {
      return found
          .flatMap(each -> session.begin().thenReturn(each))
          .toFuture()
          .get(2 * timeout.toMillis(), TimeUnit.MILLISECONDS);
    } catch (InterruptedException | ExecutionException | TimeoutException e) {
      session.closeForGood();
      session.release().subscribe();
      if (e instanceof InterruptedException) {
        Thread.currentThread().interrupt();
      }
      Throwable cause = e instanceof ExecutionException ? e.getCause() : e;
      throw SqlFaults.explainRolledBack(OPERATION, table, sql(cause == null ? e : cause));
    }
  }

  /** Before a handler has set anything. */
  private Mono<NumberedWrites> find(R2dbcSession session) {
    return Mono.defer(
            () ->
                Flux.from(
                        session
                            .connection()
                            .createStatement(SCHEMA)
                            .bind(0, table.qualifiedName())
                            .execute())
                    .concatMap(result -> result.map(row -> String.valueOf(row.get(0))))
                    .filter(schema -> schema.matches("[^:{}]*")) // nameable by a template
                    .next())
        .timeout(timeout)
        .map(
            schema -> {
              NumberedWrites found = new NumberedWrites(table, schema);
              writes = found;
              return found;
            })
        .switchIfEmpty(
            Mono.fromSupplier(() -> new NumberedWrites(table, null))); // it may be made yet
  }

  private Mono<End> end(R2dbcSession session, NumberedWrites known, LeaseRef lease, String owner) {
    return session
        .decision()
        .onErrorResume(HandlerFailure.class, failure -> failed(session, failure))
        .flatMap(
            decision ->
                decision instanceof Decision.RollBack
                    ? session.rollBack().thenReturn(End.ROLLED_BACK)
                    : settle(session, known, lease, owner, decision));
  }

  /**
   * Rolls back what has failed. Only the connection knows whether it was lost, or cannot write. An
   * Error stays the handler's own.
   */
  private Mono<Decision> failed(R2dbcSession session, HandlerFailure failure) {
    if (failure.thrown() instanceof Error) {
      return session.rollBack().then(Mono.error(failure));
    }
    return session
        .accessAfterRollBack()
        .flatMap(
            access ->
                Mono.error(
                    switch (access) {
                      case LOST ->
                          SqlFaults.explainRolledBack(
                              OPERATION,
                              table,
                              new SQLException(
                                  "the connection was lost while the handler ran", LOST));
                      case READ_ONLY ->
                          SqlFaults.explainRolledBack(
                              OPERATION,
                              table,
                              new SQLException("the handler could write nothing", READ_ONLY));
                      case READ_WRITE, UNKNOWN -> failure;
                    }));
  }

  private Mono<End> settle(
      R2dbcSession session, NumberedWrites known, LeaseRef lease, String owner, Decision decision) {
    int timeoutMillis = (int) timeout.toMillis();
    return session
        .run(known.of(lease, owner, decision, timeoutMillis))
        .flatMap(
            held ->
                held ? Mono.just(true) : session.run(known.handOver(lease, owner, timeoutMillis)))
        .onErrorResume(e -> notSettled(session, sql(e)))
        .flatMap(
            held ->
                held
                    ? session
                        .commit()
                        .onErrorMap(e -> notCommitted(session, sql(e)))
                        .thenReturn(End.COMMITTED)
                    : session.rollBack().thenReturn(End.LEASE_LOST));
  }

  private Mono<Boolean> notSettled(R2dbcSession session, SQLException e) {
    if (SqlFaults.isOfServer(e)) {
      return session
          .accessAfterRollBack()
          .flatMap(
              access ->
                  Mono.error(
                      access == Access.READ_WRITE
                          ? SqlFaults.explainReadOnlyHandler(OPERATION, table, e)
                          : SqlFaults.explainRolledBack(OPERATION, table, e)));
    }
    OutboxStoreException failure = SqlFaults.explainRolledBack(OPERATION, table, e);
    lookAnewAfter(session, failure);
    return session.rollBack().then(Mono.error(failure));
  }

  private OutboxStoreException notCommitted(R2dbcSession session, SQLException e) {
    OutboxStoreException failure = SqlFaults.explainCommit(OPERATION, table, e);
    lookAnewAfter(session, failure);
    return failure;
  }

  /** The table may have been moved; and what goes on after it was given up is not to be lent. */
  private void lookAnewAfter(R2dbcSession session, OutboxStoreException failure) {
    if (failure.fault() == Fault.SETUP) {
      writes = null;
    }
    if (failure.fault() == Fault.CONNECTION) {
      session.closeForGood();
    }
  }

  private static SQLException sql(Throwable e) {
    if (e instanceof SQLException sql) {
      return sql;
    }
    if (e instanceof R2dbcException told) {
      return new SQLException(told.getMessage(), told.getSqlState(), told.getErrorCode(), told);
    }
    if (e instanceof TimeoutException) {
      return new SQLException("the server did not answer in time", LOST, e);
    }
    return new SQLException(e);
  }

  @Override
  public boolean settlesRowsOf(OutboxStore store) {
    return store instanceof PostgresStore own && own.table().equals(table);
  }

  @Override
  public Duration networkTimeout() {
    return timeout;
  }

  /** The API of R2DBC does not tell how many connections a factory has. */
  @Override
  public OptionalInt connectionLimit() {
    return OptionalInt.empty();
  }

  @Override
  public Object connectionSource() {
    return connections;
  }

  @Override
  public String toString() {
    return "transactions on " + table;
  }
}
