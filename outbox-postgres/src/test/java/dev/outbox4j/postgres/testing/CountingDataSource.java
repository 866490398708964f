package dev.outbox4j.postgres.testing;

import java.io.PrintWriter;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.logging.Logger;
import javax.sql.DataSource;

/**
 * Counts the JDBC executions, each one round trip, on the connections of a data source, and how
 * many of these are lent at once.
 */
public final class CountingDataSource implements DataSource {
  private final DataSource target;
  private final AtomicLong executions = new AtomicLong();
  private final AtomicInteger lent = new AtomicInteger();
  private final AtomicInteger mostLent = new AtomicInteger();

  public CountingDataSource(DataSource target) {
    this.target = target;
  }

  public long executions() {
    return executions.get();
  }

  public int mostLent() {
    return mostLent.get();
  }

  @Override
  public Connection getConnection() throws SQLException {
    return lend(target.getConnection());
  }

  @Override
  public Connection getConnection(String user, String password) throws SQLException {
    return lend(target.getConnection(user, password));
  }

  private Connection lend(Connection connection) {
    mostLent.accumulateAndGet(lent.incrementAndGet(), Math::max);
    return counted(Connection.class, connection);
  }

  private <T> T counted(Class<T> type, T real) {
    InvocationHandler handler =
        (proxy, method, arguments) -> {
          if (method.getName().startsWith("execute")) {
            executions.incrementAndGet();
          }
          if (type == Connection.class
              && method.getName().equals("close")
              && !((Connection) real).isClosed()) {
            lent.decrementAndGet();
          }
          try {
            Object result = method.invoke(real, arguments);
            if (result instanceof PreparedStatement statement) {
              return counted(PreparedStatement.class, statement);
            }
            if (result instanceof Statement statement
                && method.getName().equals("createStatement")) {
              return counted(Statement.class, statement);
            }
            return result;
          } catch (InvocationTargetException e) {
            throw e.getCause();
          }
        };
    return type.cast(
        Proxy.newProxyInstance(
            CountingDataSource.class.getClassLoader(), new Class<?>[] {type}, handler));
  }

  @Override
  public PrintWriter getLogWriter() throws SQLException {
    return target.getLogWriter();
  }

  @Override
  public void setLogWriter(PrintWriter out) throws SQLException {
    target.setLogWriter(out);
  }

  @Override
  public void setLoginTimeout(int seconds) throws SQLException {
    target.setLoginTimeout(seconds);
  }

  @Override
  public int getLoginTimeout() throws SQLException {
    return target.getLoginTimeout();
  }

  @Override
  public Logger getParentLogger() {
    return Logger.getGlobal();
  }

  @Override
  public <T> T unwrap(Class<T> type) throws SQLException {
    return target.unwrap(type);
  }

  @Override
  public boolean isWrapperFor(Class<?> type) throws SQLException {
    return target.isWrapperFor(type);
  }
}
