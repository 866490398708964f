package dev.outbox4j.examples.quickstart;

import dev.outbox4j.examples.orders.OrdersConfig;
import io.zonky.test.db.postgres.embedded.EmbeddedPostgres;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * The database of a run: the user's own, or real PostgreSQL binaries that were unpacked and started
 * for this run alone.
 */
final class Database implements AutoCloseable {
  /** A schema of its own, so that nothing of the user's is touched. */
  static final String SCHEMA = "outbox_quickstart";

  private final Options options;
  private final @Nullable EmbeddedPostgres embedded;

  private Database(Options options, @Nullable EmbeddedPostgres embedded) {
    this.options = options;
    this.embedded = embedded;
  }

  static Database open(Options options) {
    return new Database(options, options.url() == null ? startEmbedded() : null);
  }

  OrdersConfig config() {
    if (embedded == null) {
      String url = options.url() == null ? "" : options.url();
      return new OrdersConfig(url, options.user(), options.password(), SCHEMA, options.port());
    }
    String url = "jdbc:postgresql://localhost:" + embedded.getPort() + "/postgres";
    return new OrdersConfig(url, "postgres", "postgres", SCHEMA, options.port());
  }

  private static EmbeddedPostgres startEmbedded() {
    // a directory for each user: what one has unpacked, another could not write to
    Path directory =
        Path.of(
            System.getProperty("java.io.tmpdir"),
            "outbox4j-quickstart-" + System.getProperty("user.name"));
    try {
      return EmbeddedPostgres.builder()
          .setOverrideWorkingDirectory(directory.toFile())
          .setPGStartupWait(Duration.ofSeconds(60))
          .setServerConfig("synchronous_commit", "on") // as in production
          .setServerConfig("max_connections", "100")
          .setRegisterShutdownHook(false) // it is closed after the service, see Quickstart
          .start();
    } catch (IOException | IllegalStateException e) {
      throw new IllegalStateException(
          "The embedded PostgreSQL did not start; use your own by -Dquickstart.url=jdbc:postgresql://host:5432/database",
          e);
    }
  }

  @Override
  public void close() {
    if (embedded == null) {
      return;
    }
    try {
      embedded.close();
    } catch (IOException e) {
      throw new UncheckedIOException("The embedded PostgreSQL did not stop", e);
    }
  }
}
