package dev.outbox4j.postgres.internal.transactions;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.SQLException;
import org.jspecify.annotations.Nullable;

/**
 * A connection as a handler sees it: it cannot end the transaction, nor make it read-only, and is
 * of no use after it. Closing it does nothing, so that it may be handed to code that closes what it
 * is given.
 */
final class HandlerConnection implements InvocationHandler {
  private final Connection connection;
  private volatile boolean over;

  private HandlerConnection(Connection connection) {
    this.connection = connection;
  }

  /** What is handed out, and how to take it back. */
  record Handed(Connection seen, HandlerConnection guard) {}

  static Handed handOut(Connection connection) {
    HandlerConnection guard = new HandlerConnection(connection);
    Connection seen =
        (Connection)
            Proxy.newProxyInstance(
                HandlerConnection.class.getClassLoader(), new Class<?>[] {Connection.class}, guard);
    return new Handed(seen, guard);
  }

  /** The handler has returned: whoever kept the connection has it no longer. */
  void takeBack() {
    over = true;
  }

  @Override
  public @Nullable Object invoke(Object proxy, Method method, @Nullable Object @Nullable [] args)
      throws Throwable {
    return switch (method.getName()) {
      case "equals" -> args != null && proxy == args[0];
      case "hashCode" -> System.identityHashCode(proxy);
      case "toString" -> "HandlerConnection[" + connection + "]";
      case "close" -> null;
      case "isClosed" -> over || connection.isClosed();
      default -> invokeInTransaction(proxy, method, args);
    };
  }

  private @Nullable Object invokeInTransaction(
      Object proxy, Method method, @Nullable Object @Nullable [] args) throws Throwable {
    if (over) {
      throw new SQLException(
          "The handler has returned, and its transaction is over; nothing may use its connection"
              + " after that",
          "08003");
    }
    Object first = args == null || args.length == 0 ? null : args[0];
    String name = method.getName();
    boolean ends =
        name.equals("commit")
            || name.equals("abort")
            || (name.equals("rollback") && first == null) // else to a savepoint
            || (name.equals("setAutoCommit") && Boolean.TRUE.equals(first));
    if (ends) {
      throw new SQLException(
          "The transaction of a transactional handler ends with its message: return to commit it,"
              + " throw or return another outcome to roll it back",
          "2D000");
    }
    if (name.equals("setReadOnly") && Boolean.TRUE.equals(first)) {
      throw new SQLException(
          "The transaction of a transactional handler cannot be read-only, since the library writes"
              + " in it, too; leave it as it is, or read on a connection of your own",
          "25001");
    }
    if (name.equals("setAutoCommit")) {
      return null; // as it is
    }
    if (first instanceof Class<?> type && type.isInstance(proxy)) {
      if (name.equals("unwrap")) {
        return proxy;
      }
      if (name.equals("isWrapperFor")) {
        return true;
      }
    }
    return invoke(method, args);
  }

  private @Nullable Object invoke(Method method, @Nullable Object @Nullable [] args)
      throws Throwable {
    try {
      return method.invoke(connection, args);
    } catch (InvocationTargetException thrown) {
      throw thrown.getCause();
    }
  }
}
