package dev.outbox4j.dlq;

import java.sql.Connection;
import java.sql.SQLException;
import javax.sql.DataSource;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A pooled connection in autocommit mode, as it was again once it is given back. */
final class AutoCommitLoan implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(AutoCommitLoan.class);

  private final Connection connection;
  private final boolean switched;

  private AutoCommitLoan(Connection connection, boolean switched) {
    this.connection = connection;
    this.switched = switched;
  }

  static AutoCommitLoan from(DataSource pool) throws SQLException {
    Connection connection = pool.getConnection();
    try {
      boolean switched = !connection.getAutoCommit();
      if (switched) {
        connection.setAutoCommit(true);
      }
      return new AutoCommitLoan(connection, switched);
    } catch (SQLException | RuntimeException e) {
      try {
        connection.close();
      } catch (SQLException closing) {
        e.addSuppressed(closing);
      }
      throw e;
    }
  }

  Connection connection() {
    return connection;
  }

  /** Never throws: by now the statement's own result or error is what counts. */
  @Override
  public void close() {
    try (connection) {
      if (switched) {
        connection.setAutoCommit(false);
      }
    } catch (SQLException e) {
      LOG.debug("A connection could not be given back in order; its pool will replace it", e);
    }
  }
}
