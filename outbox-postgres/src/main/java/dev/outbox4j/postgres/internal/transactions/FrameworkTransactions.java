package dev.outbox4j.postgres.internal.transactions;

import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.OutboxStoreException.Fault;
import dev.outbox4j.postgres.ManagedTransactions;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.internal.Following;
import dev.outbox4j.postgres.internal.Redaction;
import dev.outbox4j.postgres.internal.SettlingWrites;
import dev.outbox4j.postgres.internal.SqlFaults;
import dev.outbox4j.spi.LeaseRef;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.Objects;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/** Handlers' transactions that a framework begins and commits. Thread-safe. */
public final class FrameworkTransactions extends Settling {
  private final ManagedTransactions managed;

  /**
   * Creates them; does no I/O.
   *
   * @param managed the framework's
   * @param dataSource where the framework has its connections from
   * @param table the outbox
   * @param networkTimeout how long each statement may take that is not the handler's
   */
  public FrameworkTransactions(
      ManagedTransactions managed,
      DataSource dataSource,
      OutboxTable table,
      Duration networkTimeout) {
    super(dataSource, table, networkTimeout, Following.NOTHING);
    this.managed = Objects.requireNonNull(managed, "managed");
  }

  @Override
  public End run(LeaseRef lease, String owner, Work<Connection> work, AbortRegistration abort)
      throws Exception {
    Run run = new Run(known(), lease, owner, work, abort);
    try {
      managed.run(run);
    } catch (Throwable thrown) {
      return run.endedBy(thrown);
    } finally {
      run.letGo();
    }
    return run.end();
  }

  /** Not asked in the transaction: that is the framework's, and the question would be in it. */
  private Found known() {
    Found known = found();
    if (known != null) {
      return known;
    }
    HandlerSession session = new HandlerSession(borrow());
    try {
      session.shortenTimeout(timeoutMillis);
      session.begin();
      return find(session.connection());
    } catch (SQLException e) {
      throw SqlFaults.explainRolledBack(OPERATION, table, e);
    } finally {
      session.rollBack(timeoutMillis);
      session.giveBack();
    }
  }

  /** One transaction. What a step of ours threw counts, whatever the framework makes of it. */
  private final class Run implements ManagedTransactions.Work {
    private final PoolFacts facts;
    private final SettlingWrites writes;
    private final LeaseRef lease;
    private final String owner;
    private final Work<Connection> work;
    private final AbortRegistration abort;
    private @Nullable HandlerSession session;
    private @Nullable Decision decision;
    private @Nullable Throwable failure;
    private boolean settled;
    private boolean leaseLost;
    private boolean rolledBack;

    Run(Found known, LeaseRef lease, String owner, Work<Connection> work, AbortRegistration abort) {
      this.facts = known.facts();
      this.writes = known.writes();
      this.lease = lease;
      this.owner = owner;
      this.work = work;
      this.abort = abort;
    }

    @Override
    public boolean handle(Connection connection, Flush flush) throws Exception {
      HandlerSession opened = new HandlerSession(connection);
      session = opened;
      try {
        abort.onAbort(opened::abort);
        begin(opened);
        decision = handled(opened, work, flush);
        if (decision instanceof Decision.RollBack) {
          opened.rollBack(timeoutMillis); // the framework's own knows no limit
          return false;
        }
        return true;
      } catch (Throwable thrown) {
        failure = thrown;
        opened.rollBack(timeoutMillis);
        throw thrown;
      }
    }

    private void begin(HandlerSession opened) {
      try {
        opened.isBegun();
        if (!facts.readCommitted()) {
          opened.shortenTimeout(timeoutMillis);
          setReadCommitted(opened.connection());
          opened.restoreTimeout(); // the handler may take its time
        }
      } catch (SQLException e) {
        throw SqlFaults.explainRolledBack(OPERATION, table, e);
      }
    }

    @Override
    public void settle() {
      HandlerSession opened = Objects.requireNonNull(session, "handle() comes first");
      try {
        settled =
            settled(opened, writes, lease, owner, Objects.requireNonNull(decision, "decision"));
        if (!settled) {
          leaseLost = true;
          throw new OutboxException("the lease was lost, so the transaction is rolled back");
        }
      } catch (Throwable thrown) {
        failure = thrown;
        opened.rollBack(timeoutMillis);
        throw thrown;
      }
    }

    @Override
    public void ended(boolean surelyRolledBack) {
      rolledBack = surelyRolledBack;
      HandlerSession opened = session;
      if (opened == null) {
        return;
      }
      if (failure == null && commits() && !settled) { // between the handler and the last write
        failure = ofConnection(opened); // null: it is what the framework throws
      }
      opened.leave();
    }

    private boolean commits() {
      return decision != null && !(decision instanceof Decision.RollBack);
    }

    /** Nothing may break off what the connection does for its next owner. */
    void letGo() {
      if (session != null) {
        session.endAborts();
      }
    }

    End end() {
      if (decision == null) {
        throw notBegun(new OutboxException(managed + " has not called the handler"));
      }
      if (!commits()) {
        return End.ROLLED_BACK;
      }
      if (!settled) {
        throw new OutboxException(
            "The transaction was marked rollback-only, so the framework has rolled it back");
      }
      return End.COMMITTED;
    }

    /** What the framework threw, or what was behind it. */
    End endedBy(Throwable thrown) throws Exception {
      if (leaseLost) {
        return End.LEASE_LOST;
      }
      if (failure != null) {
        throw unchecked(failure);
      }
      if (decision == null) {
        throw notBegun(thrown);
      }
      if (!commits()) { // its rollback failed
        return End.ROLLED_BACK;
      }
      SQLException sql = SqlFaults.sqlOf(thrown);
      if (!settled || (rolledBack && sql == null)) {
        throw unchecked(thrown);
      }
      if (sql != null) {
        throw commitFailed(sql);
      }
      throw new OutboxStoreException(
          OPERATION + " on " + table + " failed: it is not known whether it was committed",
          Fault.TRANSIENT,
          true,
          Redaction.redact(thrown));
    }

    private OutboxStoreException notBegun(Throwable thrown) {
      if (thrown instanceof OutboxStoreException known) {
        return known;
      }
      if (thrown instanceof OutboxException refused) {
        return new OutboxStoreException(
            String.valueOf(refused.getMessage()), Fault.SETUP, false, refused);
      }
      SQLException sql = SqlFaults.sqlOf(thrown);
      return SqlFaults.notSent(OPERATION, table, sql == null ? new SQLException(thrown) : sql);
    }

    private Exception unchecked(Throwable thrown) {
      if (thrown instanceof Error error) {
        throw error;
      }
      return thrown instanceof Exception exception
          ? exception
          : new OutboxException(OPERATION + " on " + table + " failed", thrown);
    }
  }
}
