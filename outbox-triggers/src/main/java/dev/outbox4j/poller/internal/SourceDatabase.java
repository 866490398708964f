package dev.outbox4j.poller.internal;

import dev.outbox4j.internal.OneLine;
import dev.outbox4j.postgres.internal.Redaction;
import dev.outbox4j.postgres.internal.Results;
import dev.outbox4j.postgres.internal.SqlFaults;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.time.Duration;
import java.util.concurrent.Executor;
import javax.sql.DataSource;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Runs statements on a source, each execution on a connection that is borrowed for it, in
 * autocommit mode. What an execution sets is gone with it, also behind a transaction pooler.
 * Thread-safe.
 */
final class SourceDatabase {
  private static final Logger log = LoggerFactory.getLogger(SourceDatabase.class);
  private static final Executor SAME_THREAD = Runnable::run;
  private static final Duration NETWORK_TIMEOUT = Duration.ofSeconds(60);

  /**
   * The server gives up before the client does. The time zone is for the texts of types that have
   * no class of their own.
   */
  private static final String SETTINGS =
      """
      select set_config('statement_timeout', '48000', true), set_config('jit', 'off', true),
        set_config('TimeZone', 'UTC', true), set_config('DateStyle', 'ISO, YMD', true),
        set_config('IntervalStyle', 'iso_8601', true), set_config('extra_float_digits', '1', true),
        set_config('plan_cache_mode', 'force_custom_plan', true);
      """;

  private final DataSource dataSource;

  SourceDatabase(DataSource dataSource) {
    this.dataSource = dataSource;
  }

  /** Sets the parameters of a statement. */
  @FunctionalInterface
  interface Binder {
    void bind(PreparedStatement statement) throws SQLException;
  }

  /** Reads the results, of which the first is the current one. */
  @FunctionalInterface
  interface Reader<T> {
    T read(Results results) throws SQLException;
  }

  /** Runs statements, behind the settings, as one execution. */
  <T> T run(String what, String sql, Binder binder, Reader<T> reader) {
    return on(
        what,
        connection -> {
          try (PreparedStatement statement = connection.prepareStatement(SETTINGS + sql)) {
            binder.bind(statement);
            return reader.read(Results.of(statement).next());
          }
        });
  }

  private interface Work<T> {
    T on(Connection connection) throws SQLException;
  }

  private <T> T on(String what, Work<T> work) {
    Connection connection = borrow(what);
    boolean clean = false;
    try {
      boolean autoCommit = connection.getAutoCommit();
      if (!autoCommit) {
        connection.setAutoCommit(true);
      }
      int timeout = connection.getNetworkTimeout();
      int most = (int) NETWORK_TIMEOUT.toMillis();
      if (timeout == 0 || timeout > most) {
        connection.setNetworkTimeout(SAME_THREAD, most);
      }
      try {
        T result = work.on(connection);
        clean = true;
        return result;
      } catch (SQLException e) {
        clean = !SqlFaults.isLost(e) && SqlFaults.state(e) != null;
        throw e;
      } finally {
        if (clean) {
          clean = restored(connection, autoCommit, timeout);
        }
      }
    } catch (SQLException e) {
      throw failure(what + " failed", e);
    } finally {
      giveBack(connection, clean);
    }
  }

  private Connection borrow(String what) {
    try {
      return dataSource.getConnection();
    } catch (SQLException e) {
      throw failure(what + " failed: no connection to the source could be had", e);
    } catch (RuntimeException e) { // pools have unchecked exceptions for a server that is down
      throw failure(
          what + " failed: no connection to the source could be had", new SQLException(e));
    }
  }

  private static boolean restored(Connection connection, boolean autoCommit, int timeout) {
    try {
      connection.setNetworkTimeout(SAME_THREAD, timeout);
      if (!autoCommit) {
        connection.setAutoCommit(false);
      }
      return true;
    } catch (SQLException e) {
      log.debug("a connection was lost after its statement", Redaction.redact(e));
      return false;
    }
  }

  /** Where an answer may be half read, nobody else may read on. */
  private static void giveBack(Connection connection, boolean clean) {
    try {
      if (!clean) {
        connection.abort(SAME_THREAD);
      }
      connection.close();
    } catch (SQLException e) {
      log.debug("a connection was given up", Redaction.redact(e));
    }
  }

  private static SourceException failure(String what, SQLException e) {
    Throwable safe = Redaction.redact(e);
    String state = SqlFaults.state(e);
    String words = String.valueOf(safe.getMessage()).lines().findFirst().orElse("");
    return new SourceException(
        "%s [%s: %s]".formatted(what, state == null ? "no SQLSTATE" : state, OneLine.of(words)),
        safe);
  }
}
