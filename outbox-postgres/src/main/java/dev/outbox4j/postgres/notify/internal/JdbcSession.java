package dev.outbox4j.postgres.notify.internal;

import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;

/** What both JDBC drivers do in the same way. */
public final class JdbcSession {
  private JdbcSession() {}

  /** Prepares a fresh connection: autocommit, since notifications wait for a transaction's end. */
  public static void prepare(Connection connection, Duration limit) throws SQLException {
    limitNetwork(connection, limit);
    if (!connection.getAutoCommit()) {
      connection.setAutoCommit(true);
    }
  }

  /** Runs a statement as it is, with a limit for each read of the network. */
  public static void execute(Connection connection, String sql, Duration limit)
      throws SQLException {
    limitNetwork(connection, limit);
    try (Statement statement = connection.createStatement()) {
      statement.setEscapeProcessing(false); // braces in a channel's name are no JDBC escapes
      statement.execute(sql);
    }
  }

  private static void limitNetwork(Connection connection, Duration limit) throws SQLException {
    connection.setNetworkTimeout(Runnable::run, Math.toIntExact(limit.toMillis()));
  }
}
