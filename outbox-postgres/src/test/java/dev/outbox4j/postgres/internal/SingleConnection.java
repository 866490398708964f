package dev.outbox4j.postgres.internal;

import java.io.PrintWriter;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.logging.Logger;
import javax.sql.DataSource;

/** Lends one connection again and again, and leaves it open when it is given back. */
class SingleConnection implements DataSource {
  private final Connection connection;

  SingleConnection(Connection connection) {
    this.connection = connection;
  }

  @Override
  public Connection getConnection() {
    return (Connection)
        Proxy.newProxyInstance(
            getClass().getClassLoader(),
            new Class<?>[] {Connection.class},
            (self, method, arguments) -> {
              if (method.getName().equals("close")) {
                return null;
              }
              try {
                return called(method.getName(), method.invoke(connection, arguments));
              } catch (InvocationTargetException e) {
                throw e.getCause();
              }
            });
  }

  /** What a call on the connection is to give. */
  Object called(String method, Object result) {
    return result;
  }

  @Override
  public Connection getConnection(String user, String password) {
    throw new UnsupportedOperationException();
  }

  @Override
  public PrintWriter getLogWriter() {
    throw new UnsupportedOperationException();
  }

  @Override
  public void setLogWriter(PrintWriter out) {
    throw new UnsupportedOperationException();
  }

  @Override
  public void setLoginTimeout(int seconds) {
    throw new UnsupportedOperationException();
  }

  @Override
  public int getLoginTimeout() {
    throw new UnsupportedOperationException();
  }

  @Override
  public Logger getParentLogger() {
    throw new UnsupportedOperationException();
  }

  @Override
  public <T> T unwrap(Class<T> type) throws SQLException {
    throw new SQLException("wraps nothing");
  }

  @Override
  public boolean isWrapperFor(Class<?> type) {
    return false;
  }
}
