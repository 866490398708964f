package dev.outbox4j.monitor;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Predicate;
import javax.sql.DataSource;

/** Connections of which answers get lost: to commits, or to a statement that commits by itself. */
final class LostAnswers {
  private final AtomicInteger commits = new AtomicInteger();
  private final AtomicInteger statements = new AtomicInteger();
  private volatile String text = "";

  void loseNext(int commits) {
    this.commits.set(commits);
  }

  void loseNextOf(String text, int statements) {
    this.text = text;
    this.statements.set(statements);
  }

  boolean allLost() {
    return commits.get() == 0 && statements.get() == 0;
  }

  DataSource of(DataSource target) {
    return proxy(
        DataSource.class,
        target,
        (method, result) -> result instanceof Connection connection ? losing(connection) : result);
  }

  private Connection losing(Connection target) {
    return proxy(
        Connection.class,
        target,
        (method, result) -> {
          if (method.startsWith("commit")) {
            lose(commits, target);
          }
          return method.startsWith("prepareStatement")
                  && method.contains(text)
                  && result instanceof PreparedStatement statement
              ? losing(target, statement)
              : result;
        });
  }

  private PreparedStatement losing(Connection connection, PreparedStatement target) {
    return proxy(
        PreparedStatement.class,
        target,
        (method, result) -> {
          if (method.startsWith("execute")) {
            lose(statements, connection);
          }
          return result;
        });
  }

  private static void lose(AtomicInteger left, Connection connection) throws SQLException {
    if (left.getAndUpdate(now -> Math.max(0, now - 1)) > 0) {
      connection.abort(Runnable::run);
      throw new SQLException("the answer was lost", "08006");
    }
  }

  /**
   * What is done once a method has returned: it is told its name, with a text that it was given.
   */
  private interface After {
    Object of(String method, Object result) throws SQLException;
  }

  private static <T> T proxy(Class<T> type, T target, After after) {
    Predicate<Object[]> hasText =
        arguments -> arguments != null && arguments.length > 0 && arguments[0] instanceof String;
    return type.cast(
        Proxy.newProxyInstance(
            LostAnswers.class.getClassLoader(),
            new Class<?>[] {type},
            (proxy, method, arguments) -> {
              try {
                Object result = method.invoke(target, arguments);
                String given = hasText.test(arguments) ? " " + arguments[0] : "";
                return after.of(method.getName() + given, result);
              } catch (InvocationTargetException e) {
                throw e.getCause();
              }
            }));
  }
}
