package dev.outbox4j.benchmarks;

import io.zonky.test.db.postgres.embedded.EmbeddedPostgres;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.postgresql.ds.PGSimpleDataSource;

/**
 * The PostgreSQL server of a run: embedded, or at {@code -Durl=jdbc:postgresql://host:port/db}. The
 * embedded one has one of three settings, {@code -Dserver=}: {@code durable} (the default: every
 * commit flushed, memory and WAL as on a small production server), {@code stock} (as PostgreSQL
 * comes) or {@code relaxed} (durable but {@code synchronous_commit = off}).
 */
final class Server implements AutoCloseable {
  private static final String[] REPORTED = {
    "server_version",
    "shared_buffers",
    "fsync",
    "synchronous_commit",
    "wal_sync_method",
    "full_page_writes",
    "wal_compression",
    "max_wal_size",
    "checkpoint_timeout",
    "commit_delay",
    "commit_siblings",
    "autovacuum",
    "autovacuum_naptime",
    "jit",
    "io_method",
    "max_connections"
  };

  private final @Nullable EmbeddedPostgres embedded;
  private final String host;
  private final int port;
  private final String user;
  private final String password;
  private int databases;

  private Server(
      @Nullable EmbeddedPostgres embedded, String host, int port, String user, String password) {
    this.embedded = embedded;
    this.host = host;
    this.port = port;
    this.user = user;
    this.password = password;
  }

  static Server start() {
    if (Settings.given("url")) {
      URI uri = URI.create(Settings.text("url", "").substring("jdbc:".length()));
      return new Server(
          null,
          uri.getHost(),
          uri.getPort() < 0 ? 5432 : uri.getPort(),
          Settings.text("user", "postgres"),
          Settings.text("password", ""));
    }
    EmbeddedPostgres.Builder builder =
        EmbeddedPostgres.builder()
            .setPGStartupWait(Duration.ofSeconds(60))
            .setServerConfig("max_connections", "300")
            // the builder's own default would not be durable
            .setServerConfig("fsync", "on")
            .setServerConfig("synchronous_commit", "on")
            .setServerConfig("full_page_writes", "on");
    String kind = Settings.text("server", "durable");
    if (!kind.equals("stock")) {
      builder
          .setServerConfig("shared_buffers", Settings.text("shared_buffers", "2GB"))
          .setServerConfig("max_wal_size", "16GB")
          .setServerConfig("min_wal_size", "4GB")
          .setServerConfig("checkpoint_timeout", "30min")
          .setServerConfig("autovacuum_naptime", "10s");
    }
    if (kind.equals("relaxed")) {
      builder.setServerConfig("synchronous_commit", "off");
    }
    try {
      EmbeddedPostgres server = builder.start();
      return new Server(server, "localhost", server.getPort(), "postgres", "postgres");
    } catch (IOException e) {
      throw new UncheckedIOException("Embedded PostgreSQL did not start", e);
    }
  }

  String user() {
    return user;
  }

  String password() {
    return password;
  }

  String createDatabase() throws SQLException {
    String name = "bench_" + ProcessHandle.current().pid() + "_" + databases++;
    execute("postgres", "create database " + name);
    return name;
  }

  void dropDatabase(String name) throws SQLException {
    execute("postgres", "drop database if exists " + name + " with (force)");
  }

  /** Returns an address whose connections are counted on the wire. */
  String url(String database) {
    return "jdbc:postgresql://%s:%d/%s?sslmode=disable&gssEncMode=disable&ApplicationName=contestant&socketFactory=%s"
        .formatted(host, port, database, "dev.outbox4j.benchmarks.spi.CountingSocketFactory");
  }

  Connection connect(String database) throws SQLException {
    PGSimpleDataSource source = new PGSimpleDataSource();
    source.setServerNames(new String[] {host});
    source.setPortNumbers(new int[] {port});
    source.setDatabaseName(database);
    source.setUser(user);
    source.setPassword(password);
    source.setApplicationName("harness");
    return source.getConnection();
  }

  void execute(String database, String sql) throws SQLException {
    try (Connection connection = connect(database);
        Statement statement = connection.createStatement()) {
      statement.execute(sql);
    }
  }

  Map<String, String> settings() throws SQLException {
    Map<String, String> settings = new LinkedHashMap<>();
    try (Connection connection = connect("postgres");
        Statement statement = connection.createStatement()) {
      for (String name : REPORTED) {
        try (ResultSet row =
            statement.executeQuery("select current_setting('" + name + "', true)")) {
          row.next();
          String value = row.getString(1);
          if (value != null) {
            settings.put(name, value);
          }
        }
      }
    }
    return settings;
  }

  @Override
  public void close() {
    if (embedded != null) {
      try {
        embedded.close();
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }
  }
}
