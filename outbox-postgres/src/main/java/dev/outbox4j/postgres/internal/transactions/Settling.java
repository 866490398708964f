package dev.outbox4j.postgres.internal.transactions;

import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.OutboxStoreException.Fault;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresStore;
import dev.outbox4j.postgres.internal.Following;
import dev.outbox4j.postgres.internal.PoolRenewal;
import dev.outbox4j.postgres.internal.PoolSize;
import dev.outbox4j.postgres.internal.SettlingWrites;
import dev.outbox4j.postgres.internal.SqlFaults;
import dev.outbox4j.spi.HandlerTransactions;
import dev.outbox4j.spi.LeaseRef;
import dev.outbox4j.spi.OutboxStore;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.Objects;
import java.util.OptionalInt;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/**
 * What handlers' transactions over JDBC have in common, whoever begins and commits them: what is
 * known of the pool, the last write, and what a failure means. They are READ COMMITTED, since at a
 * higher level a renewal of the lease would make the last write fail. Thread-safe.
 */
abstract class Settling implements HandlerTransactions<Connection> {
  static final String OPERATION = "transaction";
  private static final String LOST = "08006";
  private static final String READ_ONLY = "25006";
  private static final String SERIALIZATION_FAILURE = "40001";
  private static final String READ_COMMITTED = "set transaction isolation level read committed";

  final DataSource dataSource;
  final OutboxTable table;
  final int timeoutMillis;
  private final Following following;
  private final PoolRenewal renewal;

  /** Null until a connection was asked. */
  private volatile @Nullable Found found;

  Settling(DataSource dataSource, OutboxTable table, Duration networkTimeout, Following following) {
    this.following = following;
    this.dataSource = Objects.requireNonNull(dataSource, "dataSource");
    this.table = Objects.requireNonNull(table, "table");
    this.timeoutMillis = (int) networkTimeout.toMillis();
    this.renewal = new PoolRenewal(dataSource);
  }

  /** What is known of the pool's connections, and what follows from it. */
  record Found(PoolFacts facts, SettlingWrites writes) {}

  final Connection borrow() {
    try {
      return dataSource.getConnection();
    } catch (SQLException e) {
      throw SqlFaults.notSent(OPERATION, table, e);
    } catch (RuntimeException e) { // pools have unchecked exceptions for a server that is down
      throw SqlFaults.notSent(OPERATION, table, new SQLException(e));
    }
  }

  final @Nullable Found found() {
    return found;
  }

  /** Asks a connection; its next statement begins a transaction again. */
  final Found find(Connection connection) throws SQLException {
    PoolFacts facts = PoolFacts.ask(connection, table);
    Found now = new Found(facts, new SettlingWrites(table, facts.schema(), following));
    if (facts.schema() != null) { // else it may be made yet
      found = now;
    }
    return now;
  }

  /** Is the first statement of a transaction, if it is needed. */
  static void setReadCommitted(Connection connection) throws SQLException {
    try (Statement statement = connection.createStatement()) {
      statement.execute(READ_COMMITTED);
    }
  }

  /** Runs the work; what it throws is rolled back. An Error stays the handler's own. */
  final Decision handled(HandlerSession session, Work<Connection> work, Flush flush)
      throws Exception {
    try {
      return session.run(connection -> work.run(connection, flush));
    } catch (Exception thrown) {
      OutboxStoreException failure = ofConnection(session);
      throw failure == null ? thrown : failure;
    }
  }

  /**
   * Rolls back what has failed. Only the connection knows whether it was lost, or cannot write:
   * what the handler throws may say nothing of it.
   *
   * @return null if the connection is not at fault
   */
  final @Nullable OutboxStoreException ofConnection(HandlerSession session) {
    session.rollBack(timeoutMillis);
    if (session.isLost()) {
      return SqlFaults.explainRolledBack(
          OPERATION,
          table,
          new SQLException("the connection was lost while the handler ran", LOST));
    }
    if (access(session) == Access.READ_ONLY) {
      return SqlFaults.explainRolledBack(
          OPERATION, table, new SQLException("the handler could write nothing", READ_ONLY));
    }
    return null;
  }

  final boolean settled(
      HandlerSession session,
      SettlingWrites writes,
      LeaseRef lease,
      String owner,
      Decision decision) {
    try {
      session.shortenTimeout(timeoutMillis);
      return decision instanceof Decision.Reschedule reschedule
          ? writes.reschedule(session.connection(), lease, owner, reschedule.delay(), timeoutMillis)
          : writes.ack(session.connection(), lease, owner, timeoutMillis);
    } catch (SQLException e) {
      if (SqlFaults.isOfServer(e) && access(session) == Access.READ_WRITE) {
        throw SqlFaults.explainReadOnlyHandler(OPERATION, table, e);
      }
      OutboxStoreException failure = SqlFaults.explainRolledBack(OPERATION, table, e);
      lookAnewAfter(failure);
      throw failure;
    }
  }

  /** Rolls back, and leaves a server that has become read-only: another may be the right one. */
  private Access access(HandlerSession session) {
    Access access = session.accessAfterRollBack(timeoutMillis);
    if (access == Access.READ_ONLY) {
      session.closeForGood();
      renewal.renew();
    }
    return access;
  }

  final OutboxStoreException commitFailed(SQLException e) {
    OutboxStoreException failure = SqlFaults.explainCommit(OPERATION, table, e);
    lookAnewAfter(failure);
    return failure;
  }

  /** The table may have been moved, or the default isolation changed. */
  private void lookAnewAfter(OutboxStoreException failure) {
    boolean serialization = SERIALIZATION_FAILURE.equals(failure.sqlState().orElse(null));
    if (failure.fault() == Fault.SETUP || serialization) {
      found = null;
    }
  }

  @Override
  public final boolean settlesRowsOf(OutboxStore store) {
    return store instanceof PostgresStore own && own.table().equals(table);
  }

  @Override
  public final OptionalInt connectionLimit() {
    return PoolSize.of(dataSource);
  }

  @Override
  public final Duration networkTimeout() {
    return Duration.ofMillis(timeoutMillis);
  }

  @Override
  public final Object connectionSource() {
    return dataSource;
  }

  @Override
  public String toString() {
    return "transactions on " + table;
  }
}
