package dev.outbox4j.postgres.testing;

import java.io.PrintWriter;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Predicate;
import java.util.logging.Logger;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/**
 * Cuts connections at chosen statements: before they are sent, or when they have taken effect and
 * their answer is under way. A commit is the statement "commit". Each fault happens once.
 */
public final class FaultyDataSource implements DataSource {
  private final DataSource target;
  private final AtomicReference<@Nullable Fault> fault = new AtomicReference<>();
  private volatile boolean away;

  public FaultyDataSource(DataSource target) {
    this.target = target;
  }

  private record Fault(Predicate<String> at, boolean before, @Nullable Runnable instead) {
    Fault(Predicate<String> at, boolean before) {
      this(at, before, null);
    }
  }

  /** The next such statement is not sent. */
  public void cutBefore(Predicate<String> statement) {
    fault.set(new Fault(statement, true));
  }

  /** The answer to the next such statement is lost. */
  public void cutAfter(Predicate<String> statement) {
    fault.set(new Fault(statement, false));
  }

  /** From the next such statement on, none is sent any more, and no connection can be had. */
  public void dieAt(Predicate<String> statement) {
    fault.set(new Fault(dying(statement), true));
  }

  /** The same behind the next such statement, whose answer is lost. */
  public void dieAfter(Predicate<String> statement) {
    fault.set(new Fault(dying(statement), false));
  }

  private Predicate<String> dying(Predicate<String> statement) {
    return sql -> {
      if (statement.test(sql)) {
        away = true;
      }
      return away;
    };
  }

  /** Does something before the next such statement, which is sent after that. */
  public void before(Predicate<String> statement, Runnable something) {
    fault.set(new Fault(statement, true, something));
  }

  public boolean isSpent() {
    return fault.get() == null;
  }

  public void heal() {
    fault.set(null);
    away = false;
  }

  /** No connection can be had. */
  public void goAway() {
    away = true;
  }

  private boolean hits(String sql, boolean before) {
    Fault now = fault.get();
    if (now == null
        || now.before() != before
        || !now.at().test(sql)
        || !fault.compareAndSet(now, null)) {
      return false;
    }
    Runnable instead = now.instead();
    if (instead != null) {
      instead.run();
    }
    return instead == null;
  }

  @Override
  public Connection getConnection() throws SQLException {
    if (away) {
      throw new SQLException("the server is away", "08001");
    }
    Connection real = target.getConnection();
    return proxy(
        Connection.class,
        real,
        (name, arguments, result) ->
            name.equals("prepareStatement")
                ? statement((PreparedStatement) result, (String) arguments[0], real)
                : result,
        name -> name.equals("commit") ? "commit" : null,
        real);
  }

  private PreparedStatement statement(PreparedStatement real, String sql, Connection connection) {
    return proxy(
        PreparedStatement.class,
        real,
        (name, arguments, result) -> result,
        name -> name.startsWith("execute") ? sql : null,
        connection);
  }

  private interface After {
    Object apply(String method, Object[] arguments, Object result);
  }

  private interface Sent {
    @Nullable String by(String method);
  }

  private <T> T proxy(Class<T> type, T real, After after, Sent sent, Connection connection) {
    InvocationHandler handler =
        (proxy, method, arguments) -> {
          String sql = sent.by(method.getName());
          if (sql != null && hits(sql, true)) {
            throw cut(connection);
          }
          Object result;
          try {
            result = method.invoke(real, arguments);
          } catch (InvocationTargetException e) {
            throw e.getCause();
          }
          if (sql != null && hits(sql, false)) {
            throw cut(connection);
          }
          return after.apply(method.getName(), arguments, result);
        };
    return type.cast(
        Proxy.newProxyInstance(
            FaultyDataSource.class.getClassLoader(), new Class<?>[] {type}, handler));
  }

  private static SQLException cut(Connection connection) throws SQLException {
    connection.close();
    return new SQLException("the connection was cut", "08006");
  }

  @Override
  public Connection getConnection(String user, String password) throws SQLException {
    throw new SQLException("not here");
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
