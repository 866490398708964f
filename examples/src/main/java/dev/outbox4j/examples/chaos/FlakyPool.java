package dev.outbox4j.examples.chaos;

import com.zaxxer.hikari.HikariDataSource;
import java.io.PrintWriter;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.logging.Logger;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.postgresql.PGConnection;

/** A pool that hands out dead connections while it is told to. */
final class FlakyPool implements DataSource {
  private final HikariDataSource pool;
  private final AtomicInteger given = new AtomicInteger();
  private final Tally tally;
  private volatile boolean dead;

  FlakyPool(HikariDataSource pool, Tally tally) {
    this.pool = pool;
    this.tally = tally;
  }

  void handOutDead(boolean on) {
    dead = on;
  }

  @Override
  public Connection getConnection() throws SQLException {
    Connection connection = pool.getConnection();
    if (dead) {
      tally.add(Tally.Count.DEAD_CONNECTIONS);
      if (given.getAndIncrement() % 2 == 0) {
        connection.close(); // the handle is closed
      } else {
        ((Connection) connection.unwrap(PGConnection.class)).close(); // what it stands for is
      }
    }
    return connection;
  }

  @Override
  public Connection getConnection(String user, String password) throws SQLException {
    return pool.getConnection(user, password);
  }

  @Override
  public @Nullable PrintWriter getLogWriter() throws SQLException {
    return pool.getLogWriter();
  }

  @Override
  public void setLogWriter(@Nullable PrintWriter out) throws SQLException {
    pool.setLogWriter(out);
  }

  @Override
  public void setLoginTimeout(int seconds) throws SQLException {
    pool.setLoginTimeout(seconds);
  }

  @Override
  public int getLoginTimeout() throws SQLException {
    return pool.getLoginTimeout();
  }

  @Override
  public Logger getParentLogger() {
    return Logger.getLogger(Logger.GLOBAL_LOGGER_NAME);
  }

  @Override
  public <T> T unwrap(Class<T> type) throws SQLException {
    return type.isInstance(pool) ? type.cast(pool) : pool.unwrap(type);
  }

  @Override
  public boolean isWrapperFor(Class<?> type) throws SQLException {
    return type.isInstance(pool) || pool.isWrapperFor(type);
  }
}
