package dev.outbox4j.poller.internal;

import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.internal.Redaction;
import dev.outbox4j.postgres.internal.SqlFaults;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.time.Duration;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicBoolean;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Transactions of handlers, which end with a statement of ours. They are READ COMMITTED, since at a
 * higher level a renewal of the lease would make that statement fail. Thread-safe.
 */
final class PollerTransactions {
  private static final Logger log = LoggerFactory.getLogger(PollerTransactions.class);
  private static final Executor SAME_THREAD = Runnable::run;
  private static final String BEGIN =
      "set transaction isolation level read committed;"
          + " select set_config('application_name', ?, true)";

  private final DataSource dataSource;
  private final OutboxTable table;
  private final int timeoutMillis;

  PollerTransactions(DataSource dataSource, OutboxTable table, Duration networkTimeout) {
    this.dataSource = dataSource;
    this.table = table;
    this.timeoutMillis = (int) networkTimeout.toMillis();
  }

  /** What the handler does. */
  @FunctionalInterface
  interface Work {
    void run(Connection connection) throws Exception;
  }

  /** Our last statement; false undoes all. */
  @FunctionalInterface
  interface End {
    boolean run(Connection connection);
  }

  /** What a handler threw. */
  static final class HandlerException extends Exception {
    private static final long serialVersionUID = 1L;

    HandlerException(Throwable cause) {
      super(cause);
    }
  }

  /**
   * Runs a transaction.
   *
   * @param session what its session is called meanwhile
   * @return whether it was committed; false if the end undid it
   * @throws HandlerException if the handler threw; it is rolled back
   * @throws OutboxStoreException if a statement of ours or the commit failed
   */
  boolean run(String session, Work work, End end) throws HandlerException {
    Connection connection = borrow();
    boolean clean = false;
    try {
      Before before = begin(connection, session);
      try {
        handle(connection, work);
        connection.setNetworkTimeout(SAME_THREAD, shorter(before.timeout()));
        if (end.run(connection)) {
          commit(connection);
          clean = giveBack(connection, before, true);
          return true;
        }
        clean = giveBack(connection, before, false);
        return false;
      } catch (HandlerException e) {
        clean = giveBack(connection, before, false);
        throw e;
      }
    } catch (SQLException e) {
      throw SqlFaults.explainRolledBack("handle rows", table, e);
    } finally {
      close(connection, clean);
    }
  }

  private Connection borrow() {
    try {
      return dataSource.getConnection();
    } catch (SQLException e) {
      throw SqlFaults.notSent("handle rows", table, e);
    } catch (RuntimeException e) { // pools have unchecked exceptions for a server that is down
      throw SqlFaults.notSent("handle rows", table, new SQLException(e));
    }
  }

  /** As a connection was borrowed. */
  private record Before(int timeout, boolean autoCommit) {}

  /** Returns how the connection was; the handler may take its time. */
  private Before begin(Connection connection, String session) throws SQLException {
    int timeout = connection.getNetworkTimeout();
    boolean autoCommit = connection.getAutoCommit();
    connection.setNetworkTimeout(SAME_THREAD, shorter(timeout));
    if (autoCommit) {
      connection.setAutoCommit(false);
    } else {
      connection.rollback(); // a pool's test query may have begun one, at another isolation
    }
    try (PreparedStatement statement = connection.prepareStatement(BEGIN)) {
      statement.setString(1, session);
      statement.execute();
    }
    connection.setNetworkTimeout(SAME_THREAD, timeout);
    return new Before(timeout, autoCommit);
  }

  private int shorter(int timeout) {
    return timeout == 0 || timeout > timeoutMillis ? timeoutMillis : timeout;
  }

  private static void handle(Connection connection, Work work) throws HandlerException {
    AtomicBoolean over = new AtomicBoolean();
    try {
      work.run(handedOut(connection, over));
    } catch (Throwable e) {
      throw new HandlerException(e);
    } finally {
      over.set(true);
    }
  }

  private void commit(Connection connection) {
    try {
      connection.commit();
    } catch (SQLException e) {
      throw SqlFaults.explainCommit("handle rows", table, e);
    }
  }

  /** Returns whether the connection is as it was; what is not committed is rolled back. */
  private boolean giveBack(Connection connection, Before before, boolean committed) {
    try {
      if (!committed) {
        connection.setNetworkTimeout(SAME_THREAD, shorter(before.timeout()));
        connection.rollback();
      }
      connection.setNetworkTimeout(SAME_THREAD, before.timeout());
      if (before.autoCommit()) {
        connection.setAutoCommit(true);
      }
      return true;
    } catch (SQLException e) {
      log.debug("a connection was given up", Redaction.redact(e));
      return false;
    }
  }

  /** The server rolls back what is left open. */
  private static void close(Connection connection, boolean clean) {
    try {
      if (!clean) {
        connection.abort(SAME_THREAD);
      }
      connection.close();
    } catch (SQLException e) {
      log.debug("a connection was given up", Redaction.redact(e));
    }
  }

  /** A connection that cannot end the transaction, and is of no use after it. */
  private static Connection handedOut(Connection connection, AtomicBoolean over) {
    return (Connection)
        Proxy.newProxyInstance(
            PollerTransactions.class.getClassLoader(),
            new Class<?>[] {Connection.class},
            (proxy, method, arguments) -> invoke(connection, over, proxy, method, arguments));
  }

  private static @Nullable Object invoke(
      Connection connection,
      AtomicBoolean over,
      Object proxy,
      Method method,
      @Nullable Object @Nullable [] arguments)
      throws Throwable {
    return switch (method.getName()) {
      case "equals" -> arguments != null && proxy == arguments[0];
      case "hashCode" -> System.identityHashCode(proxy);
      case "toString" -> "HandlerConnection[" + connection + "]";
      case "close" -> null;
      case "isClosed" -> over.get() || connection.isClosed();
      default -> invokeInTransaction(connection, over, method, arguments);
    };
  }

  private static @Nullable Object invokeInTransaction(
      Connection connection,
      AtomicBoolean over,
      Method method,
      @Nullable Object @Nullable [] arguments)
      throws Throwable {
    String name = method.getName();
    if (over.get()) {
      throw new SQLException(
          "The handler has returned, and its transaction is over; nothing may use its connection"
              + " after that",
          "08003");
    }
    boolean ends =
        name.equals("commit")
            || name.equals("abort")
            || (name.equals("rollback") && arguments == null) // else to a savepoint
            || name.equals("setAutoCommit");
    if (ends) {
      throw new SQLException(
          "The transaction of a poller's handler ends with its position: return to commit it, throw"
              + " to roll it back",
          "2D000");
    }
    try {
      return method.invoke(connection, arguments);
    } catch (InvocationTargetException e) {
      throw e.getCause();
    }
  }
}
