package dev.outbox4j.postgres.notify.pgjdbc;

import dev.outbox4j.postgres.internal.Redaction;
import dev.outbox4j.postgres.notify.internal.ConnectionLostException;
import dev.outbox4j.postgres.notify.internal.JdbcSession;
import dev.outbox4j.postgres.notify.internal.ListenConnection;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.postgresql.PGConnection;
import org.postgresql.PGNotification;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A connection of pgjdbc, which has to be asked for notifications and blocks until one comes. */
final class PgjdbcListenConnection implements ListenConnection {
  private static final Logger LOG = LoggerFactory.getLogger(PgjdbcListenConnection.class);
  private static final Duration CLOSE_LIMIT = Duration.ofMillis(800);

  private final Connection connection;
  private final PGConnection notifications;
  private final Consumer<String> onNotification;
  private final Duration readLimit;

  PgjdbcListenConnection(
      Connection connection,
      PGConnection notifications,
      Consumer<String> onNotification,
      Duration readLimit)
      throws SQLException {
    this.connection = connection;
    this.notifications = notifications;
    this.onNotification = onNotification;
    this.readLimit = readLimit;
    JdbcSession.prepare(connection, readLimit);
    requireOwnBackend();
  }

  /** A pooler gives clients a number of its own, and hands notifications to whom it will. */
  private void requireOwnBackend() throws SQLException {
    try (Statement statement = connection.createStatement();
        ResultSet row = statement.executeQuery("select pg_backend_pid()")) {
      if (row.next() && row.getInt(1) != notifications.getBackendPID()) {
        throw new ConnectionLostException(
            "This session is not the server's own: a pooler is between here and the server, and"
                + " would lose notifications; give the source a direct connection to the server");
      }
    }
  }

  @Override
  public void execute(String sql, Duration limit) throws SQLException {
    JdbcSession.execute(connection, sql, limit);
  }

  /**
   * The driver's timeout ends with the first byte of a message, and it reads the rest without one;
   * the guard bounds a message of which only the beginning arrives.
   */
  @Override
  public void await(Duration limit) throws SQLException {
    int millis = (int) Math.max(1, Math.min(limit.toMillis(), Integer.MAX_VALUE));
    CompletableFuture<Void> guard =
        new CompletableFuture<Void>()
            .orTimeout(millis + readLimit.toMillis(), TimeUnit.MILLISECONDS);
    CompletableFuture<Void> unused =
        guard.whenComplete((nothing, timeout) -> abortIf(timeout != null));
    PGNotification[] received;
    try {
      received = notifications.getNotifications(millis);
    } finally {
      guard.complete(null);
    }
    if (received != null) {
      for (PGNotification notification : received) {
        onNotification.accept(notification.getParameter());
      }
    }
    if (connection.isClosed()) {
      throw new ConnectionLostException("The connection is closed");
    }
  }

  private void abortIf(boolean stuck) {
    if (stuck) {
      abort();
    }
  }

  /** Closes the socket, which is the only thing that wakes a thread that reads it. */
  @Override
  public void abort() {
    try {
      connection.abort(Runnable::run);
    } catch (SQLException e) {
      LOG.debug("Aborting the LISTEN connection failed", Redaction.redact(e));
    }
  }

  @Override
  public void close() {
    try {
      connection.setNetworkTimeout(Runnable::run, Math.toIntExact(CLOSE_LIMIT.toMillis()));
      connection.close();
    } catch (SQLException e) {
      LOG.debug("Closing the LISTEN connection failed; it was closed already", Redaction.redact(e));
    }
  }
}
