package dev.outbox4j.postgres.jooq;

import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Savepoint;
import org.jooq.Transaction;
import org.jooq.TransactionContext;
import org.jooq.TransactionProvider;
import org.jooq.exception.DataAccessException;

/**
 * Transactions within a handler's: each is a savepoint, also the outermost, which jOOQ would else
 * commit. Confined to the handler's thread.
 */
final class SavepointProvider implements TransactionProvider {
  private final Connection connection;

  SavepointProvider(Connection connection) {
    this.connection = connection;
  }

  private record Nested(Savepoint savepoint) implements Transaction {}

  private interface Step {
    void run() throws SQLException;
  }

  @Override
  public void begin(TransactionContext context) {
    run("set", () -> context.transaction(new Nested(connection.setSavepoint())));
  }

  @Override
  public void commit(TransactionContext context) {
    run("released", () -> connection.releaseSavepoint(savepoint(context)));
  }

  @Override
  public void rollback(TransactionContext context) {
    run("rolled back to", () -> connection.rollback(savepoint(context)));
  }

  private static Savepoint savepoint(TransactionContext context) {
    if (context.transaction() instanceof Nested nested) {
      return nested.savepoint();
    }
    throw new DataAccessException("the transaction has no savepoint, since it could not be begun");
  }

  private static void run(String done, Step step) {
    try {
      step.run();
    } catch (SQLException e) {
      throw new DataAccessException("the savepoint of a transaction could not be " + done, e);
    }
  }
}
