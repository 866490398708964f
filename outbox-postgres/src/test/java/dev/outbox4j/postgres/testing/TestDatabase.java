package dev.outbox4j.postgres.testing;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.postgres.OutboxTable;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BiConsumer;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.postgresql.PGStatement;
import org.postgresql.ds.PGSimpleDataSource;

/**
 * A database of a test class's own, with the standard outbox migrated. Its time zone is not UTC,
 * for sessions that name none as they connect; those of pgjdbc name the JVM's. Pools it gave out
 * are closed with it.
 */
public final class TestDatabase implements AutoCloseable {
  private final PostgresServer server;
  private final String name;
  private final List<HikariDataSource> pools = new ArrayList<>();
  private final Set<Object> migrated = new HashSet<>();
  private final AtomicReference<@Nullable Connection> kept = new AtomicReference<>();

  TestDatabase(PostgresServer server, String name) {
    this.server = server;
    this.name = name;
    server.execute("create database \"" + name + "\" template \"" + server.template() + "\"");
    server.execute("alter database \"" + name + "\" set timezone = 'Pacific/Auckland'");
  }

  public PostgresServer server() {
    return server;
  }

  public String name() {
    return name;
  }

  /** Returns the table that every test database has. */
  public OutboxTable table() {
    return OutboxTable.named("outbox");
  }

  /** Returns unpooled connections. */
  public PGSimpleDataSource plain() {
    return server.dataSource(name);
  }

  /** Returns a new pool of at most so many connections, which are made when they are needed. */
  public synchronized HikariDataSource pool(int size) {
    HikariConfig config = new HikariConfig();
    config.setDataSource(plain());
    config.setMaximumPoolSize(size);
    config.setMinimumIdle(1); // each is a server process, and many tests need few of them
    config.setPoolName("test-" + name + "-" + pools.size());
    HikariDataSource pool = new HikariDataSource(config);
    pools.add(pool);
    return pool;
  }

  /**
   * Applies migrations, unless it has before: that Flyway finds nothing to do takes as long as a
   * test.
   */
  public synchronized <M> void migrate(M migrations, BiConsumer<M, DataSource> migrate) {
    if (!migrated.contains(migrations)) {
      migrate.accept(migrations, plain());
      migrated.add(migrations);
    }
  }

  /** Runs a statement in a transaction of its own and returns its update count. */
  public int update(String sql, Object... parameters) {
    return inSession(sql, session -> update(session, sql, parameters));
  }

  /** Returns the first column of the first row. */
  public <T> T one(Class<T> type, String sql, Object... parameters) {
    List<T> rows = list(type, sql, parameters);
    if (rows.size() != 1) {
      throw new AssertionError(rows.size() + " rows instead of 1: " + sql);
    }
    return rows.get(0);
  }

  /** Returns the first column of all rows. */
  public <T> List<T> list(Class<T> type, String sql, Object... parameters) {
    return inSession(sql, session -> list(session, type, sql, parameters));
  }

  /** What a test asks or changes. */
  @FunctionalInterface
  private interface Work<T> {
    T on(Connection session) throws SQLException;
  }

  /** One session is kept, since tests ask again and again, and a new one costs a server process. */
  private <T> T inSession(String sql, Work<T> work) {
    Connection session = kept.getAndSet(null);
    try {
      if (session == null || !session.isValid(1)) {
        close(session);
        session = plain().getConnection();
      }
      T result = work.on(session);
      session = kept.getAndSet(session);
      return result;
    } catch (SQLException e) {
      throw new IllegalStateException(sql, e);
    } finally {
      close(session);
    }
  }

  private static <T> List<T> list(
      Connection session, Class<T> type, String sql, Object... parameters) throws SQLException {
    try (PreparedStatement statement = session.prepareStatement(sql)) {
      bind(statement, parameters);
      List<T> values = new ArrayList<>();
      try (ResultSet rows = statement.executeQuery()) {
        while (rows.next()) {
          values.add(rows.getObject(1, type));
        }
      }
      return values;
    }
  }

  private static void close(@Nullable Connection session) {
    if (session != null) {
      try {
        session.close();
      } catch (SQLException e) {
        throw new IllegalStateException(e);
      }
    }
  }

  /** Returns how many rows a table has. */
  public long count(String table) {
    return one(Long.class, "select count(*) from " + table);
  }

  private static int update(Connection session, String sql, Object... parameters)
      throws SQLException {
    try (PreparedStatement statement = session.prepareStatement(sql)) {
      bind(statement, parameters);
      return statement.executeUpdate();
    }
  }

  private static void bind(PreparedStatement statement, Object... parameters) throws SQLException {
    statement.unwrap(PGStatement.class).setPrepareThreshold(0); // tables may change
    for (int i = 0; i < parameters.length; i++) {
      statement.setObject(i + 1, parameters[i]);
    }
  }

  /** Closes the pools, fails if a test left a connection borrowed, and drops the database. */
  @Override
  public synchronized void close() {
    List<String> leaks = new ArrayList<>();
    for (HikariDataSource pool : pools) {
      if (!pool.isClosed() && pool.getHikariPoolMXBean().getActiveConnections() > 0) {
        leaks.add(pool.getPoolName() + ": " + pool.getHikariPoolMXBean().getActiveConnections());
      }
      pool.close();
    }
    close(kept.getAndSet(null));
    server.execute("drop database \"" + name + "\" with (force)");
    if (!leaks.isEmpty()) {
      throw new AssertionError("Connections still borrowed: " + leaks);
    }
  }
}
