package dev.outbox4j.examples.run;

import io.zonky.test.db.postgres.embedded.EmbeddedPostgres;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.time.Duration;
import javax.sql.DataSource;

/** Real PostgreSQL binaries that are unpacked and started for one run, with default settings. */
public final class EmbeddedServer implements AutoCloseable {
  private final EmbeddedPostgres server;

  private EmbeddedServer(EmbeddedPostgres server) {
    this.server = server;
  }

  /**
   * Starts one.
   *
   * @return the server, to be closed by the caller
   * @throws IllegalStateException if it does not start
   */
  public static EmbeddedServer start() {
    // a directory for each user: what one has unpacked, another could not write to
    Path directory =
        Path.of(
            System.getProperty("java.io.tmpdir"),
            "outbox4j-quickstart-" + System.getProperty("user.name"));
    try {
      return new EmbeddedServer(
          EmbeddedPostgres.builder()
              .setOverrideWorkingDirectory(directory.toFile())
              .setPGStartupWait(Duration.ofSeconds(60))
              .setServerConfig("synchronous_commit", "on") // as in production
              .setServerConfig("max_connections", "100")
              .setRegisterShutdownHook(false) // it is closed after what uses it
              .start());
    } catch (IOException | IllegalStateException e) {
      throw new IllegalStateException(
          "The embedded PostgreSQL did not start; use your own by -Dquickstart.url=jdbc:postgresql://host:5432/database",
          e);
    }
  }

  /** {@return its port on this machine} */
  public int port() {
    return server.getPort();
  }

  /** {@return unpooled connections of its superuser to the database postgres} */
  public DataSource dataSource() {
    return server.getPostgresDatabase();
  }

  @Override
  public void close() {
    try {
      server.close();
    } catch (IOException e) {
      throw new UncheckedIOException("The embedded PostgreSQL did not stop", e);
    }
  }
}
