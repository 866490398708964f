package dev.outbox4j.monitor;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.concurrent.atomic.AtomicInteger;
import javax.sql.DataSource;

/** Connections of which the answer to a commit gets lost, as often as it is told. */
final class LostAnswers {
  private final AtomicInteger left = new AtomicInteger();

  void loseNext(int commits) {
    left.set(commits);
  }

  boolean allLost() {
    return left.get() == 0;
  }

  DataSource of(DataSource target) {
    return (DataSource)
        Proxy.newProxyInstance(
            LostAnswers.class.getClassLoader(),
            new Class<?>[] {DataSource.class},
            (proxy, method, arguments) -> {
              try {
                Object result = method.invoke(target, arguments);
                return result instanceof Connection connection ? losing(connection) : result;
              } catch (InvocationTargetException e) {
                throw e.getCause();
              }
            });
  }

  private Connection losing(Connection target) {
    return (Connection)
        Proxy.newProxyInstance(
            LostAnswers.class.getClassLoader(),
            new Class<?>[] {Connection.class},
            (proxy, method, arguments) -> {
              try {
                Object result = method.invoke(target, arguments);
                if (method.getName().equals("commit")
                    && left.getAndUpdate(now -> Math.max(0, now - 1)) > 0) {
                  target.abort(Runnable::run);
                  throw new SQLException("the answer was lost", "08006");
                }
                return result;
              } catch (InvocationTargetException e) {
                throw e.getCause();
              }
            });
  }
}
