package dev.outbox4j.postgres.internal;

import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.postgres.OutboxTable;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.Executor;
import javax.sql.DataSource;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Runs one statement on a borrowed connection, in autocommit mode and under a network timeout, and
 * gives the connection back as it was. Thread-safe.
 */
public final class Jdbc {
  private static final Logger log = LoggerFactory.getLogger(Jdbc.class);
  // the driver needs it only to close the socket, so the caller's thread will do
  private static final Executor SAME_THREAD = Runnable::run;

  private final DataSource dataSource;
  private final OutboxTable table;
  private final int timeoutMillis;
  private final PoolRenewal renewal;
  private final Preamble preamble;

  /**
   * Creates a runner.
   *
   * @param dataSource where to borrow connections
   * @param table the outbox, for error texts
   * @param networkTimeout how long to wait for an answer before the connection is given up, 1 ms to
   *     {@link Integer#MAX_VALUE} ms; a shorter one that the connection already has is kept
   * @throws IllegalArgumentException if the timeout is out of range
   */
  public Jdbc(DataSource dataSource, OutboxTable table, Duration networkTimeout) {
    this.dataSource = Objects.requireNonNull(dataSource, "dataSource");
    this.table = Objects.requireNonNull(table, "table");
    if (networkTimeout.compareTo(Duration.ofMillis(1)) < 0
        || networkTimeout.compareTo(Duration.ofMillis(Integer.MAX_VALUE)) > 0) {
      throw new IllegalArgumentException(
          "networkTimeout is "
              + networkTimeout
              + "; it must be PT0.001S to "
              + Duration.ofMillis(Integer.MAX_VALUE));
    }
    this.timeoutMillis = (int) networkTimeout.toMillis();
    this.renewal = new PoolRenewal(dataSource);
    this.preamble = new Preamble(networkTimeout);
  }

  /** {@return where connections are borrowed} */
  public DataSource dataSource() {
    return dataSource;
  }

  /** {@return the outbox} */
  public OutboxTable table() {
    return table;
  }

  /** {@return how long to wait for an answer before the connection is given up} */
  public Duration networkTimeout() {
    return Duration.ofMillis(timeoutMillis);
  }

  /** {@return what comes before every statement} */
  public Preamble preamble() {
    return preamble;
  }

  /**
   * Runs a statement.
   *
   * @param operation what it is for, by its verb, for error texts
   * @param work the statement; it should make one JDBC execution, since each commits by itself
   * @param <T> what it returns
   * @return what the work returned
   * @throws OutboxStoreException if no connection could be had, or the statement failed
   */
  public <T> T run(String operation, Work<T> work) {
    Connection connection = borrow(operation);
    try {
      T result = inSession(connection, work);
      giveBack(connection);
      return result;
    } catch (SQLException e) {
      OutboxStoreException failure = SqlFaults.explain(operation, table, e);
      if (failure.outcomeUnknown() || SqlFaults.isOfServer(e)) {
        // a timed-out answer may still arrive: nobody else may read it; and the pool is to look for
        // another server, if this one is the wrong one
        closing(failure, () -> connection.abort(SAME_THREAD));
      }
      if (SqlFaults.isOfServer(e)) {
        renewal.renew();
      }
      closing(failure, connection::close);
      throw failure;
    } catch (OutboxException e) { // the library's own, thrown when the answer had been read
      closing(e, connection::close);
      throw e;
    } catch (Throwable e) { // also a checked exception of another language
      // where it broke off is not known: an answer may be half read, and nobody else may read on
      closing(e, () -> connection.abort(SAME_THREAD));
      closing(e, connection::close);
      throw e;
    }
  }

  /**
   * Runs statements in one transaction, at the connection's isolation level.
   *
   * @param operation what they are for, by its verb, for error texts
   * @param work the statements
   * @param <T> what they return
   * @return what the work returned, once it is committed
   * @throws OutboxStoreException if no connection could be had, or a statement or the commit failed
   */
  public <T> T transaction(String operation, Work<T> work) {
    return run(operation, connection -> inTransaction(connection, work));
  }

  private static <T> T inTransaction(Connection connection, Work<T> work) throws SQLException {
    connection.setAutoCommit(false);
    T result;
    try {
      result = work.on(connection);
    } catch (Throwable e) {
      closing(e, connection::rollback);
      closing(e, () -> connection.setAutoCommit(true));
      throw e;
    }
    connection.commit();
    connection.setAutoCommit(true);
    return result;
  }

  private Connection borrow(String operation) {
    try {
      return dataSource.getConnection();
    } catch (SQLException e) {
      throw SqlFaults.notSent(operation, table, e);
    } catch (RuntimeException e) {
      // pools have unchecked exceptions of their own for a server that is down
      throw SqlFaults.notSent(operation, table, new SQLException(e));
    }
  }

  private <T> T inSession(Connection connection, Work<T> work) throws SQLException {
    boolean autoCommit = connection.getAutoCommit();
    if (!autoCommit) {
      connection.setAutoCommit(true);
    }
    int timeout = connection.getNetworkTimeout();
    boolean shortened = timeout == 0 || timeout > timeoutMillis;
    if (shortened) {
      connection.setNetworkTimeout(SAME_THREAD, timeoutMillis);
    }
    Action restore =
        () -> {
          if (shortened) {
            connection.setNetworkTimeout(SAME_THREAD, timeout);
          }
          if (!autoCommit) {
            connection.setAutoCommit(false);
          }
        };
    T result;
    try {
      result = work.on(connection);
    } catch (Throwable e) {
      closing(e, restore);
      throw e;
    }
    afterCommit(restore, connection);
    return result;
  }

  private void giveBack(Connection connection) {
    afterCommit(connection::close, connection);
  }

  /** What fails here cannot undo the statement, so it must not look as if it had failed. */
  private void afterCommit(Action action, Connection connection) {
    try {
      action.run();
    } catch (SQLException e) {
      Throwable safe = Redaction.redact(e);
      log.debug("{}: a connection was lost after its statement had succeeded", table, safe);
      closing(safe, () -> connection.abort(SAME_THREAD));
    }
  }

  private static void closing(Throwable failure, Action action) {
    try {
      action.run();
    } catch (SQLException e) {
      failure.addSuppressed(Redaction.redact(e));
    }
  }

  /**
   * A statement to run.
   *
   * @param <T> what it returns
   */
  @FunctionalInterface
  public interface Work<T> {
    /**
     * Runs the statement.
     *
     * @param connection in autocommit mode; not to be closed or kept
     * @return what was found
     * @throws SQLException if it failed
     */
    T on(Connection connection) throws SQLException;
  }

  private interface Action {
    void run() throws SQLException;
  }
}
