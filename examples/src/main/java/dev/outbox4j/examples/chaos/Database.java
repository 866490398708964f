package dev.outbox4j.examples.chaos;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.postgresql.ds.PGSimpleDataSource;

/** Connections, and small statements of the harness. */
final class Database {
  private Database() {}

  static PGSimpleDataSource at(int port) {
    return at(Integer.toString(port));
  }

  /** Of several ports, separated by commas, the primary's is taken. */
  static PGSimpleDataSource at(String ports) {
    return at(ports, new PGSimpleDataSource());
  }

  private static PGSimpleDataSource at(String ports, PGSimpleDataSource source) {
    int[] numbers = Stream.of(ports.split(",", -1)).mapToInt(Integer::parseInt).toArray();
    String[] names = new String[numbers.length];
    Arrays.fill(names, "localhost");
    source.setServerNames(names);
    source.setPortNumbers(numbers);
    if (numbers.length > 1) {
      source.setTargetServerType("primary");
      source.setHostRecheckSeconds(0); // the primary may be another one by now
    }
    source.setDatabaseName("postgres");
    source.setUser("postgres");
    source.setConnectTimeout(5);
    source.setSocketTimeout(10);
    return source;
  }

  /** For a pool: without the long pauses of HikariCP's. */
  static PGSimpleDataSource retrying(String ports) {
    return at(ports, new RetryingDataSource());
  }

  /** A pool as a service would set it up, at short times so that faults heal quickly. */
  static HikariDataSource pool(String ports, int size, String name, boolean pooler) {
    return new HikariDataSource(config(retrying(ports, pooler), size, name));
  }

  /** One for statements of the service's own: nobody else gives up connections that are no good. */
  static HikariDataSource servicePool(String ports, int size, String name, boolean pooler) {
    HikariConfig config = config(retrying(ports, pooler), size, name);
    config.setExceptionOverrideClassName(ReadOnlyEviction.class.getName());
    return new HikariDataSource(config);
  }

  static HikariDataSource pool(PGSimpleDataSource source, int size, String name) {
    return new HikariDataSource(config(source, size, name));
  }

  private static PGSimpleDataSource retrying(String ports, boolean pooler) {
    PGSimpleDataSource source = retrying(ports);
    if (pooler) {
      source.setPrepareThreshold(0); // a transaction pooler keeps no prepared statements
      source.setSocketFactory(EndingSocketFactory.class.getName());
    }
    return source;
  }

  private static HikariConfig config(PGSimpleDataSource source, int size, String name) {
    source.setApplicationName(name);
    // so that the name is sent with the first packet: a pooler would not learn of one that is set
    // later, if the server's session has it by chance
    source.setAssumeMinServerVersion("9.0");
    HikariConfig config = new HikariConfig();
    config.setDataSource(source);
    config.setPoolName(name);
    config.setMaximumPoolSize(size);
    config.setConnectionTimeout(1_000);
    config.setInitializationFailTimeout(-1);
    return config;
  }

  static int update(DataSource source, String sql, @Nullable Object... parameters)
      throws SQLException {
    try (Connection connection = source.getConnection();
        PreparedStatement statement = connection.prepareStatement(sql)) {
      bind(statement, parameters);
      return statement.executeUpdate();
    }
  }

  /** Does all or nothing: a connection that is closed rolls back. */
  static void transaction(DataSource source, List<String> statements) throws SQLException {
    try (Connection connection = source.getConnection();
        Statement statement = connection.createStatement()) {
      connection.setAutoCommit(false);
      for (String sql : statements) {
        statement.execute(sql);
      }
      connection.commit();
    }
  }

  static long number(DataSource source, String sql, Object... parameters) throws SQLException {
    try (Connection connection = source.getConnection();
        PreparedStatement statement = connection.prepareStatement(sql)) {
      bind(statement, parameters);
      try (ResultSet rows = statement.executeQuery()) {
        rows.next();
        return rows.getLong(1);
      }
    }
  }

  static List<String> texts(DataSource source, String sql, Object... parameters)
      throws SQLException {
    try (Connection connection = source.getConnection();
        PreparedStatement statement = connection.prepareStatement(sql)) {
      bind(statement, parameters);
      try (ResultSet rows = statement.executeQuery()) {
        List<String> texts = new ArrayList<>();
        while (rows.next()) {
          texts.add(rows.getString(1));
        }
        return texts;
      }
    }
  }

  private static void bind(PreparedStatement statement, @Nullable Object... parameters)
      throws SQLException {
    for (int i = 0; i < parameters.length; i++) {
      statement.setObject(i + 1, parameters[i]);
    }
  }
}
