package dev.outbox4j.postgres.testing;

import java.io.PrintWriter;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.util.logging.Logger;
import javax.sql.DataSource;

/** Lends the same connection again and again, which closing leaves open. */
public class SingleConnection implements DataSource {
  private final Connection connection;

  public SingleConnection(Connection connection) {
    this.connection = connection;
  }

  /** Told before each prepared statement is closed. */
  protected void executed(PreparedStatement statement) throws SQLException {}

  @Override
  public Connection getConnection() {
    return proxy(
        Connection.class,
        (proxy, method, arguments) -> {
          if (method.getName().equals("close")) {
            return null;
          }
          Object result = invoke(connection, method, arguments);
          return result instanceof PreparedStatement statement ? watched(statement) : result;
        });
  }

  private PreparedStatement watched(PreparedStatement statement) {
    return proxy(
        PreparedStatement.class,
        (proxy, method, arguments) -> {
          if (method.getName().equals("close")) {
            executed(statement);
          }
          return invoke(statement, method, arguments);
        });
  }

  private static <T> T proxy(Class<T> type, InvocationHandler handler) {
    return type.cast(
        Proxy.newProxyInstance(
            SingleConnection.class.getClassLoader(), new Class<?>[] {type}, handler));
  }

  private static Object invoke(Object on, Method method, Object[] arguments) throws Throwable {
    try {
      return method.invoke(on, arguments);
    } catch (InvocationTargetException e) {
      throw e.getCause();
    }
  }

  @Override
  public Connection getConnection(String user, String password) throws SQLException {
    throw new SQLException("not here");
  }

  @Override
  public PrintWriter getLogWriter() throws SQLException {
    throw new SQLException("none");
  }

  @Override
  public void setLogWriter(PrintWriter out) throws SQLException {
    throw new SQLException("none");
  }

  @Override
  public void setLoginTimeout(int seconds) throws SQLException {
    throw new SQLException("none");
  }

  @Override
  public int getLoginTimeout() {
    return 0;
  }

  @Override
  public Logger getParentLogger() {
    return Logger.getGlobal();
  }

  @Override
  public <T> T unwrap(Class<T> type) throws SQLException {
    throw new SQLException("none");
  }

  @Override
  public boolean isWrapperFor(Class<?> type) {
    return false;
  }
}
