package dev.outbox4j.postgres;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.Statement;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;

/** A real connection that counts executed statements and lets no one but its owner end things. */
final class GuardedConnection {
  private static final Set<String> FORBIDDEN =
      Set.of(
          "commit",
          "rollback",
          "close",
          "abort",
          "setAutoCommit",
          "setTransactionIsolation",
          "setReadOnly",
          "setSavepoint",
          "releaseSavepoint",
          "setSchema",
          "setCatalog",
          "setHoldability",
          "setClientInfo");

  private final AtomicInteger executions = new AtomicInteger();
  private final AtomicInteger openStatements = new AtomicInteger();
  private final Connection proxy;

  GuardedConnection(Connection real) {
    this.proxy =
        (Connection)
            proxy(
                Connection.class,
                (method, call) -> {
                  if (FORBIDDEN.contains(method)) {
                    throw new AssertionError(method + " on the caller's connection");
                  }
                  Object result = call.on(real);
                  if (result instanceof Statement statement) {
                    openStatements.incrementAndGet();
                    return guarded(statement);
                  }
                  return result;
                });
  }

  Connection connection() {
    return proxy;
  }

  /** Returns how many statements were executed, each member of a batch counted. */
  int executions() {
    return executions.get();
  }

  /** Returns how many statements were made and not closed. */
  int openStatements() {
    return openStatements.get();
  }

  private Object guarded(Statement statement) {
    AtomicInteger batched = new AtomicInteger();
    return proxy(
        statement instanceof PreparedStatement ? PreparedStatement.class : Statement.class,
        (method, call) -> {
          switch (method) {
            case "addBatch" -> batched.incrementAndGet();
            case "executeBatch" -> executions.addAndGet(batched.getAndSet(0));
            case "close" -> openStatements.decrementAndGet();
            default -> {
              if (method.startsWith("execute")) {
                executions.incrementAndGet();
              }
            }
          }
          return call.on(statement);
        });
  }

  private interface Interceptor {
    Object intercept(String method, Call call) throws Throwable;
  }

  private interface Call {
    Object on(Object target) throws Throwable;
  }

  private static Object proxy(Class<?> type, Interceptor interceptor) {
    return Proxy.newProxyInstance(
        GuardedConnection.class.getClassLoader(),
        new Class<?>[] {type},
        (self, method, arguments) ->
            interceptor.intercept(
                method.getName(),
                target -> {
                  try {
                    return method.invoke(target, arguments);
                  } catch (InvocationTargetException e) {
                    throw e.getCause();
                  }
                }));
  }
}
