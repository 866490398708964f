package dev.outbox4j.postgres.testing;

import dev.outbox4j.migrations.OutboxMigrations;
import io.zonky.test.db.postgres.embedded.EmbeddedPostgres;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.URI;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.UUID;
import java.util.jar.JarFile;
import org.jspecify.annotations.Nullable;
import org.postgresql.ds.PGSimpleDataSource;
import org.testcontainers.postgresql.PostgreSQLContainer;
import org.testcontainers.utility.DockerImageName;

/**
 * The PostgreSQL server of a test run, started once per JVM. Which one is said by system
 * properties:
 *
 * <ul>
 *   <li>{@code outbox.test.postgres=embedded} (default): real binaries from the class path, or from
 *       the jar named by {@code outbox.test.binaries};
 *   <li>{@code outbox.test.postgres=container}: Testcontainers with the image {@code
 *       outbox.test.image} (default {@code postgres:15});
 *   <li>{@code outbox.test.postgres=url}: the server at {@code outbox.test.url} (such as {@code
 *       jdbc:postgresql://host:5432/postgres}), {@code outbox.test.user}, {@code
 *       outbox.test.password}; the user must be allowed to create databases and roles.
 * </ul>
 */
public final class PostgresServer {
  private static final class Holder {
    static final PostgresServer SHARED = start();
  }

  private final String host;
  private final int port;
  private final String user;
  private final String password;
  private final boolean outlivesUs;
  private @Nullable String template;

  private PostgresServer(String host, int port, String user, String password, boolean outlivesUs) {
    this.host = host;
    this.port = port;
    this.user = user;
    this.password = password;
    this.outlivesUs = outlivesUs;
  }

  /** Returns the server, started by the first call and stopped with the JVM. */
  public static PostgresServer shared() {
    return Holder.SHARED;
  }

  public String host() {
    return host;
  }

  public int port() {
    return port;
  }

  public String user() {
    return user;
  }

  public String password() {
    return password;
  }

  /** Returns unpooled connections to a database of the server. */
  public PGSimpleDataSource dataSource(String database) {
    PGSimpleDataSource source = new PGSimpleDataSource();
    source.setServerNames(new String[] {host});
    source.setPortNumbers(new int[] {port});
    source.setDatabaseName(database);
    source.setUser(user);
    source.setPassword(password);
    return source;
  }

  /** Returns a database with the standard outbox, to copy from: migrated by the first call. */
  synchronized String template() {
    if (template == null) {
      String name = "template_" + UUID.randomUUID().toString().replace("-", "");
      execute("create database " + name + " encoding 'UTF8' template template0");
      OutboxMigrations.standard().migrate(dataSource(name));
      if (outlivesUs) {
        Runtime.getRuntime().addShutdownHook(new Thread(() -> execute("drop database " + name)));
      }
      template = name;
    }
    return template;
  }

  /** Runs a statement in no database of a test's. */
  void execute(String sql) {
    try (Connection connection = dataSource("postgres").getConnection();
        Statement statement = connection.createStatement()) {
      statement.execute(sql);
    } catch (SQLException e) {
      throw new IllegalStateException(sql, e);
    }
  }

  private static PostgresServer start() {
    String kind = System.getProperty("outbox.test.postgres", "embedded");
    return switch (kind) {
      case "embedded" -> embedded();
      case "container" -> container();
      case "url" -> byUrl();
      default ->
          throw new IllegalArgumentException(
              "outbox.test.postgres is '" + kind + "'; it must be embedded, container or url");
    };
  }

  private static PostgresServer embedded() {
    EmbeddedPostgres server = startEmbedded();
    Runtime.getRuntime().addShutdownHook(new Thread(() -> close(server)));
    return new PostgresServer("localhost", server.getPort(), "postgres", "postgres", false);
  }

  /** Starts a server from the binaries; it trusts whoever connects. */
  static EmbeddedPostgres startEmbedded() {
    try {
      return builder()
          .setServerConfig("max_connections", "300")
          .setServerConfig("shared_buffers", "256MB")
          .setServerConfig("fsync", "off")
          .setServerConfig("max_wal_size", "4GB")
          .setServerConfig("max_prepared_transactions", "10")
          .start();
    } catch (IOException e) {
      throw new UncheckedIOException("Embedded PostgreSQL did not start", e);
    }
  }

  /** What embedded servers have in common: where their binaries come from and go to. */
  static EmbeddedPostgres.Builder builder() {
    EmbeddedPostgres.Builder builder =
        EmbeddedPostgres.builder()
            .setOverrideWorkingDirectory(workingDirectory())
            .setPGStartupWait(Duration.ofSeconds(60));
    String binaries = System.getProperty("outbox.test.binaries", "");
    if (!binaries.isEmpty()) {
      builder.setPgBinaryResolver((system, architecture) -> binary(Path.of(binaries)));
    }
    return builder;
  }

  /** One for each user: what one has unpacked, another could not write to. */
  private static File workingDirectory() {
    return new File(
        System.getProperty("java.io.tmpdir"), "outbox4j-tests-" + System.getProperty("user.name"));
  }

  private static InputStream binary(Path jar) throws IOException {
    // the jar stays open as long as the stream is read, and the process ends soon after
    JarFile file = new JarFile(jar.toFile());
    return file.getInputStream(
        file.stream().filter(entry -> entry.getName().endsWith(".txz")).findFirst().orElseThrow());
  }

  private static void close(EmbeddedPostgres server) {
    try {
      server.close();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @SuppressWarnings("resource") // lives as long as the JVM
  private static PostgresServer container() {
    PostgreSQLContainer container =
        new PostgreSQLContainer(
                DockerImageName.parse(System.getProperty("outbox.test.image", "postgres:15"))
                    .asCompatibleSubstituteFor("postgres"))
            .withCommand(
                "postgres",
                "-c",
                "max_connections=300",
                "-c",
                "fsync=off",
                "-c",
                "max_prepared_transactions=10");
    container.start();
    Runtime.getRuntime().addShutdownHook(new Thread(container::stop));
    return new PostgresServer(
        container.getHost(),
        container.getMappedPort(5432),
        container.getUsername(),
        container.getPassword(),
        false);
  }

  private static PostgresServer byUrl() {
    String url = System.getProperty("outbox.test.url", "");
    if (!url.startsWith("jdbc:postgresql://")) {
      throw new IllegalArgumentException(
          "outbox.test.url must begin with jdbc:postgresql:// when outbox.test.postgres=url");
    }
    URI uri = URI.create(url.substring("jdbc:".length()));
    return new PostgresServer(
        uri.getHost(),
        uri.getPort() < 0 ? 5432 : uri.getPort(),
        System.getProperty("outbox.test.user", "postgres"),
        System.getProperty("outbox.test.password", ""),
        true);
  }
}
