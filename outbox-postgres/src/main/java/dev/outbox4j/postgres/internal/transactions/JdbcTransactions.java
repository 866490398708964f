package dev.outbox4j.postgres.internal.transactions;

import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.OutboxStoreException.Fault;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresStore;
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
 * Handlers' transactions over JDBC, at READ COMMITTED: at a higher level a renewal of the lease
 * would make the last write fail. Thread-safe.
 */
public final class JdbcTransactions implements HandlerTransactions<Connection> {
  private static final String OPERATION = "transaction";
  private static final String LOST = "08006";
  private static final String READ_ONLY = "25006";
  private static final String SERIALIZATION_FAILURE = "40001";
  private static final String READ_COMMITTED = "set transaction isolation level read committed";

  private final DataSource dataSource;
  private final OutboxTable table;
  private final int timeoutMillis;
  private final PoolRenewal renewal;

  /** Null until a connection was asked. */
  private volatile @Nullable Found found;

  /**
   * Creates them; does no I/O.
   *
   * @param dataSource where to borrow connections
   * @param table the outbox
   * @param networkTimeout how long each statement may take that is not the handler's
   */
  public JdbcTransactions(DataSource dataSource, OutboxTable table, Duration networkTimeout) {
    this.dataSource = Objects.requireNonNull(dataSource, "dataSource");
    this.table = Objects.requireNonNull(table, "table");
    this.timeoutMillis = (int) networkTimeout.toMillis();
    this.renewal = new PoolRenewal(dataSource);
  }

  /** What is known of the pool's connections, and what follows from it. */
  private record Found(PoolFacts facts, SettlingWrites writes) {}

  @Override
  public End run(LeaseRef lease, Work<Connection> work, AbortRegistration abort) throws Exception {
    HandlerSession session = new HandlerSession(borrow());
    try {
      abort.onAbort(session::abort);
      SettlingWrites writes = begin(session);
      Decision decision = handled(session, work);
      if (decision instanceof Decision.RollBack) {
        session.rollBack(timeoutMillis);
        return End.ROLLED_BACK;
      }
      if (!settled(session, writes, lease, decision)) {
        session.rollBack(timeoutMillis);
        return End.LEASE_LOST;
      }
      commit(session);
      return End.COMMITTED;
    } catch (Throwable failure) {
      session.rollBack(timeoutMillis);
      throw failure;
    } finally {
      session.giveBack();
    }
  }

  /**
   * Runs the work. Only the connection knows whether it was lost, or cannot write: what the handler
   * throws may say nothing of it. An Error stays the handler's own.
   */
  private Decision handled(HandlerSession session, Work<Connection> work) throws Exception {
    try {
      return session.run(work::run);
    } catch (Exception thrown) {
      session.rollBack(timeoutMillis);
      if (session.isLost()) {
        throw SqlFaults.explainRolledBack(
            OPERATION,
            table,
            new SQLException("the connection was lost while the handler ran", LOST));
      }
      if (access(session) == Access.READ_ONLY) {
        throw SqlFaults.explainRolledBack(
            OPERATION, table, new SQLException("the handler could write nothing", READ_ONLY));
      }
      throw thrown;
    }
  }

  private Connection borrow() {
    try {
      return dataSource.getConnection();
    } catch (SQLException e) {
      throw SqlFaults.notSent(OPERATION, table, e);
    } catch (RuntimeException e) { // pools have unchecked exceptions for a server that is down
      throw SqlFaults.notSent(OPERATION, table, new SQLException(e));
    }
  }

  private SettlingWrites begin(HandlerSession session) {
    try {
      session.shortenTimeout(timeoutMillis);
      session.begin();
      Found known = found;
      if (known == null) {
        known = find(session.connection());
      }
      if (!known.facts().readCommitted()) {
        try (Statement statement = session.connection().createStatement()) {
          statement.execute(READ_COMMITTED);
        }
      }
      session.restoreTimeout(); // the handler may take its time
      return known.writes();
    } catch (SQLException e) {
      throw SqlFaults.explainRolledBack(OPERATION, table, e);
    }
  }

  private Found find(Connection connection) throws SQLException {
    PoolFacts facts = PoolFacts.ask(connection, table);
    Found now = new Found(facts, new SettlingWrites(table, facts.schema()));
    if (facts.schema() != null) { // else it may be made yet
      found = now;
    }
    return now;
  }

  private boolean settled(
      HandlerSession session, SettlingWrites writes, LeaseRef lease, Decision decision) {
    try {
      session.shortenTimeout(timeoutMillis);
      return decision instanceof Decision.Reschedule reschedule
          ? writes.reschedule(session.connection(), lease, reschedule.delay(), timeoutMillis)
          : writes.ack(session.connection(), lease, timeoutMillis);
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

  /** The table may have been moved, or the default isolation changed. */
  private void lookAnewAfter(OutboxStoreException failure) {
    boolean serialization = SERIALIZATION_FAILURE.equals(failure.sqlState().orElse(null));
    if (failure.fault() == Fault.SETUP || serialization) {
      found = null;
    }
  }

  private void commit(HandlerSession session) {
    try {
      session.commit();
    } catch (SQLException e) {
      OutboxStoreException failure = SqlFaults.explainCommit(OPERATION, table, e);
      lookAnewAfter(failure);
      throw failure;
    }
  }

  @Override
  public boolean settlesRowsOf(OutboxStore store) {
    return store instanceof PostgresStore own && own.table().equals(table);
  }

  @Override
  public OptionalInt connectionLimit() {
    return PoolSize.of(dataSource);
  }

  @Override
  public Duration networkTimeout() {
    return Duration.ofMillis(timeoutMillis);
  }

  @Override
  public Object connectionSource() {
    return dataSource;
  }

  @Override
  public String toString() {
    return "transactions on " + table;
  }
}
