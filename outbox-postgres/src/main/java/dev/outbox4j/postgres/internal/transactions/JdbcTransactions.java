package dev.outbox4j.postgres.internal.transactions;

import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.internal.Following;
import dev.outbox4j.postgres.internal.SettlingWrites;
import dev.outbox4j.postgres.internal.SqlFaults;
import dev.outbox4j.spi.LeaseRef;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import javax.sql.DataSource;

/** Handlers' transactions that the library begins and commits itself. Thread-safe. */
public final class JdbcTransactions extends Settling {

  /**
   * Creates them; does no I/O.
   *
   * @param dataSource where to borrow connections
   * @param table the outbox
   * @param networkTimeout how long each statement may take that is not the handler's
   */
  public JdbcTransactions(DataSource dataSource, OutboxTable table, Duration networkTimeout) {
    this(dataSource, table, networkTimeout, Following.NOTHING);
  }

  /**
   * Creates them with more to write than the end of a message; does no I/O.
   *
   * @param dataSource where to borrow connections
   * @param table the outbox
   * @param networkTimeout how long each statement may take that is not the handler's
   * @param following what is written with an ack
   */
  public JdbcTransactions(
      DataSource dataSource, OutboxTable table, Duration networkTimeout, Following following) {
    super(dataSource, table, networkTimeout, following);
  }

  @Override
  public End run(LeaseRef lease, String owner, Work<Connection> work, AbortRegistration abort)
      throws Exception {
    HandlerSession session = new HandlerSession(borrow());
    try {
      abort.onAbort(session::abort);
      SettlingWrites writes = begin(session);
      Decision decision = handled(session, work, Flush.NOTHING);
      if (decision instanceof Decision.RollBack) {
        session.rollBack(timeoutMillis);
        return End.ROLLED_BACK;
      }
      if (!settled(session, writes, lease, owner, decision)) {
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

  private SettlingWrites begin(HandlerSession session) {
    try {
      session.shortenTimeout(timeoutMillis);
      session.begin();
      Found known = found();
      if (known == null) {
        known = find(session.connection());
      }
      if (!known.facts().readCommitted()) {
        setReadCommitted(session.connection());
      }
      session.restoreTimeout(); // the handler may take its time
      return known.writes();
    } catch (SQLException e) {
      throw SqlFaults.explainRolledBack(OPERATION, table, e);
    }
  }

  private void commit(HandlerSession session) {
    try {
      session.commit();
    } catch (SQLException e) {
      throw commitFailed(e);
    }
  }
}
