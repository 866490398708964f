package dev.outbox4j.postgres.internal;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import javax.sql.DataSource;

/** A view of a DataSource that counts JDBC executions, and refuses calls that end a transaction. */
final class CountingDataSource {
  private static final Set<String> FORBIDDEN = Set.of("commit", "rollback", "createStatement");

  final AtomicInteger executions = new AtomicInteger();
  final DataSource source;

  CountingDataSource(DataSource real) {
    source = proxy(DataSource.class, real);
  }

  private <T> T proxy(Class<T> type, T target) {
    return type.cast(
        Proxy.newProxyInstance(
            type.getClassLoader(),
            new Class<?>[] {type},
            (self, method, arguments) -> {
              String name = method.getName();
              if (FORBIDDEN.contains(name)) {
                throw new AssertionError(name + " was called");
              }
              if (name.startsWith("execute")) {
                executions.incrementAndGet();
              }
              Object result;
              try {
                result = method.invoke(target, arguments);
              } catch (InvocationTargetException e) {
                throw e.getCause();
              }
              return switch (name) {
                case "getConnection" ->
                    type == DataSource.class
                        ? proxy(Connection.class, (Connection) result)
                        : result;
                case "prepareStatement" ->
                    proxy(PreparedStatement.class, (PreparedStatement) result);
                default -> result;
              };
            }));
  }
}
