package dev.outbox4j.timer.internal;

import dev.outbox4j.spi.HandlerTransactions;
import dev.outbox4j.spi.LeaseRef;
import dev.outbox4j.spi.OutboxStore;
import java.sql.Connection;
import java.time.Duration;
import java.util.OptionalInt;

/**
 * Transactions of runs: one that comes again from its start is rolled back, and rescheduled after
 * that. Thread-safe.
 */
final class RunTransactions implements HandlerTransactions<Connection> {
  private final HandlerTransactions<Connection> transactions;

  /** Set by the handler's thread, which is that of its transaction. */
  private final ThreadLocal<Boolean> rolledBack = new ThreadLocal<>();

  RunTransactions(HandlerTransactions<Connection> transactions) {
    this.transactions = transactions;
  }

  /** Rolls back this thread's transaction, though it is to be rescheduled. */
  void rollBack() {
    rolledBack.set(true);
  }

  @Override
  public End run(LeaseRef lease, String owner, Work<Connection> work, AbortRegistration abort)
      throws Exception {
    return transactions.run(
        lease,
        owner,
        (connection, flush) -> {
          try {
            Decision decision = work.run(connection, flush);
            boolean anew = rolledBack.get() != null && decision instanceof Decision.Reschedule;
            return anew ? Decision.rollBack() : decision;
          } finally {
            rolledBack.remove();
          }
        },
        abort);
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
}
