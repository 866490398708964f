package dev.outbox4j.monitor.internal;

import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.OutboxStoreException.Fault;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.internal.SqlFaults;
import dev.outbox4j.spi.HandlerTransactions;
import dev.outbox4j.spi.LeaseRef;
import dev.outbox4j.spi.OutboxStore;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.OptionalInt;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Transactions that begin when the check has returned, so that none is open, and no connection
 * held, while it runs. Thread-safe.
 */
final class MonitorTransactions implements HandlerTransactions<MonitorTransactions.Pending> {
  private static final Logger log = LoggerFactory.getLogger(MonitorTransactions.class);

  private final HandlerTransactions<Connection> transactions;
  private final OutboxTable table;
  private final GroupedWrites groups;
  private final LockWaits waits;

  MonitorTransactions(
      HandlerTransactions<Connection> transactions,
      OutboxTable table,
      GroupedWrites groups,
      LockWaits waits) {
    this.transactions = transactions;
    this.table = table;
    this.groups = groups;
    this.waits = waits;
  }

  /** What a handler leaves to be written. Confined to its thread. */
  static final class Pending {
    private @Nullable Write write;
    private Runnable atEnd = () -> {};

    void set(Write pending) {
      write = pending;
    }

    /** To be run once it is written, or is not to be. */
    void atEnd(Runnable work) {
      atEnd = work;
    }
  }

  @Override
  public End run(LeaseRef lease, String owner, Work<Pending> work, AbortRegistration abort)
      throws Exception {
    Pending pending = new Pending();
    try {
      return run(lease, owner, work, abort, pending);
    } finally {
      pending.atEnd.run();
    }
  }

  private End run(
      LeaseRef lease, String owner, Work<Pending> work, AbortRegistration abort, Pending pending)
      throws Exception {
    Decision decision = work.run(pending, Flush.NOTHING);
    if (decision instanceof Decision.RollBack) {
      return End.ROLLED_BACK;
    }
    Write write = pending.write;
    if (write == null) {
      return transactions.run(lease, owner, (connection, flush) -> decision, abort);
    }
    Again again = write.ofGroup();
    if (again != null && groups.write(new GroupedWrites.Asked(lease, owner, again))) {
      waits.free(write.instance());
      return End.COMMITTED;
    }
    try {
      return commit(lease, owner, write, abort);
    } catch (OutboxStoreException e) {
      if (e.outcomeUnknown()) {
        throw e;
      }
      Write otherwise = isRefused(e) ? write.refused(e) : null;
      if (LockWaits.isLocked(e) || (e.fault() == Fault.TIMEOUT && otherwise == null)) {
        Duration wait = waits.inVain(write.instance()); // the check is repeated then
        log.warn("{}: another session has its row, trying again in {}", write, wait, e);
        return transactions.run(
            lease, owner, (connection, flush) -> Decision.reschedule(wait), abort);
      }
      if (otherwise == null) {
        throw e;
      }
      return commit(lease, owner, otherwise, abort);
    } catch (OutboxException e) { // a message could not be encoded
      Write otherwise = write.refused(e);
      if (otherwise == null) {
        throw e;
      }
      return commit(lease, owner, otherwise, abort);
    }
  }

  /** Also if the server has taken too long for it: it would do so again. */
  private static boolean isRefused(OutboxStoreException e) {
    return e.fault() == Fault.ROW || (e.fault() == Fault.TIMEOUT && !LockWaits.isLocked(e));
  }

  private End commit(LeaseRef lease, String owner, Write write, AbortRegistration abort)
      throws Exception {
    End end =
        transactions.run(lease, owner, (connection, flush) -> write(write, connection), abort);
    if (end == End.COMMITTED) {
      waits.free(write.instance());
      write.committed();
    }
    return end;
  }

  private Decision write(Write write, Connection connection) {
    try {
      return write.on(connection);
    } catch (SQLException e) {
      throw SqlFaults.explainRolledBack("commit of a check", table, e);
    }
  }

  @Override
  public boolean settlesRowsOf(OutboxStore store) {
    return transactions.settlesRowsOf(store);
  }

  @Override
  public Duration networkTimeout() {
    return transactions.networkTimeout();
  }

  /** No worker holds a connection while it works, so a pool may be smaller than they are many. */
  @Override
  public OptionalInt connectionLimit() {
    return OptionalInt.empty();
  }

  @Override
  public Object connectionSource() {
    return this;
  }
}
