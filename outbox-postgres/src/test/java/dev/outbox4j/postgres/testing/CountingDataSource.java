package dev.outbox4j.postgres.testing;

import java.io.PrintWriter;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import java.util.logging.Logger;
import java.util.stream.Stream;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/**
 * Counts what is asked of the connections of a data source: JDBC executions, each one round trip,
 * the SQL statements in them, and calls that end a transaction; and how many connections are lent
 * at once.
 */
public final class CountingDataSource implements DataSource {
  private final DataSource target;
  private final AtomicLong executions = new AtomicLong();
  private final AtomicLong statements = new AtomicLong();
  private final AtomicLong transactionEnds = new AtomicLong();
  private final Map<String, AtomicLong> byText = new ConcurrentHashMap<>();
  private final AtomicInteger lent = new AtomicInteger();
  private volatile Consumer<String> before = text -> {};
  private volatile Runnable beforeCommit = () -> {};
  private final AtomicInteger mostLent = new AtomicInteger();

  public CountingDataSource(DataSource target) {
    this.target = target;
  }

  public long executions() {
    return executions.get();
  }

  public long statements() {
    return statements.get();
  }

  /** Counts commits and rollbacks that were asked for. */
  public long transactionEnds() {
    return transactionEnds.get();
  }

  /** Counts executions of texts that contain something. */
  public long executionsOf(String part) {
    return byText.entrySet().stream()
        .filter(each -> each.getKey().contains(part))
        .mapToLong(each -> each.getValue().get())
        .sum();
  }

  /** Calls back with each text before it is executed. */
  public void beforeEach(Consumer<String> hook) {
    before = hook;
  }

  /** Calls back before each commit that is asked for. */
  public void beforeCommit(Runnable hook) {
    beforeCommit = hook;
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
    return counted(Connection.class, connection, null);
  }

  /** The SQL is that of a prepared statement; others are given theirs when they are executed. */
  private <T> T counted(Class<T> type, T real, @Nullable String sql) {
    InvocationHandler handler =
        (proxy, method, arguments) -> {
          String name = method.getName();
          if (name.startsWith("execute")) {
            executions.incrementAndGet();
            String text = sql == null ? (String) arguments[0] : sql;
            statements.addAndGet(statements(text));
            byText.computeIfAbsent(text, key -> new AtomicLong()).incrementAndGet();
            before.accept(text);
          }
          if (type == Connection.class && (name.equals("commit") || name.equals("rollback"))) {
            transactionEnds.incrementAndGet();
          }
          if (type == Connection.class && name.equals("commit")) {
            beforeCommit.run();
          }
          if (type == Connection.class && name.equals("close") && !((Connection) real).isClosed()) {
            lent.decrementAndGet();
          }
          try {
            Object result = method.invoke(real, arguments);
            if (name.equals("prepareStatement")) {
              return counted(
                  PreparedStatement.class, (PreparedStatement) result, (String) arguments[0]);
            }
            if (name.equals("createStatement")) {
              return counted(Statement.class, (Statement) result, null);
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

  /** No literal in our SQL has a semicolon. */
  private static long statements(String sql) {
    return Stream.of(sql.split(";")).filter(statement -> !statement.isBlank()).count();
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
