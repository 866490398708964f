package dev.outbox4j.benchmarks.spi;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.HashMap;
import java.util.Map;
import org.postgresql.ds.PGSimpleDataSource;

/**
 * One run as its contestant sees it. Immutable.
 *
 * @param url the JDBC address of a database of the contestant's own; connections made with it are
 *     counted on the wire
 * @param user the user
 * @param password the password
 * @param options the contestant's settings, as {@code name=value}
 */
public record Bench(String url, String user, String password, Map<String, String> options) {
  /** Copies the options. */
  public Bench {
    options = Map.copyOf(options);
  }

  /**
   * Returns a setting.
   *
   * @param name its name
   * @param fallback used if it is not set
   * @return the value
   */
  public String option(String name, String fallback) {
    return options.getOrDefault(name, fallback);
  }

  /**
   * Returns a number among the settings.
   *
   * @param name its name
   * @param fallback used if it is not set
   * @return the value
   */
  public int option(String name, int fallback) {
    return Integer.parseInt(options.getOrDefault(name, Integer.toString(fallback)));
  }

  /**
   * Returns a number that must be among the settings.
   *
   * @param name its name
   * @return the value
   */
  public int number(String name) {
    String value = options.get(name);
    if (value == null) {
      throw new IllegalArgumentException("the setting " + name + " is missing");
    }
    return Integer.parseInt(value);
  }

  /**
   * Returns the run with one more setting.
   *
   * @param name its name
   * @param value its value
   * @return a copy
   */
  public Bench with(String name, String value) {
    Map<String, String> more = new HashMap<>(options);
    more.put(name, value);
    return new Bench(url, user, password, more);
  }

  /** {@return unpooled connections} */
  public PGSimpleDataSource dataSource() {
    PGSimpleDataSource source = new PGSimpleDataSource();
    source.setUrl(url);
    source.setUser(user);
    source.setPassword(password);
    return source;
  }

  /**
   * Returns a new pool.
   *
   * @param connections how many at the most
   * @return the pool; the caller closes it
   */
  public HikariDataSource pool(int connections) {
    HikariConfig config = new HikariConfig();
    config.setDataSource(dataSource());
    config.setMaximumPoolSize(connections);
    config.setMinimumIdle(0);
    config.setPoolName("contestant");
    return new HikariDataSource(config);
  }

  /**
   * Runs statements, each by itself.
   *
   * @param statements the statements
   * @throws SQLException if one fails
   */
  public void execute(String... statements) throws SQLException {
    try (Connection connection = dataSource().getConnection();
        Statement statement = connection.createStatement()) {
      for (String sql : statements) {
        statement.execute(sql);
      }
    }
  }
}
