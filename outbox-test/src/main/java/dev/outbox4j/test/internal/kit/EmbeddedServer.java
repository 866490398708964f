package dev.outbox4j.test.internal.kit;

import io.zonky.test.db.postgres.embedded.EmbeddedPostgres;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/** The embedded server of this JVM. The only class that needs one on the class path. */
final class EmbeddedServer {
  private static final String USER = "postgres";

  /** Started by the first use and stopped with the JVM. */
  private static @Nullable EmbeddedPostgres server;

  private EmbeddedServer() {}

  static DataSource dataSource(String database) {
    return running().getDatabase(USER, database);
  }

  static String url(String database) {
    return running().getJdbcUrl(USER, database);
  }

  private static synchronized EmbeddedPostgres running() {
    if (server == null) {
      server = start();
    }
    return server;
  }

  private static EmbeddedPostgres start() {
    try {
      EmbeddedPostgres started =
          EmbeddedPostgres.builder()
              .setOverrideWorkingDirectory(workingDirectory())
              .setPGStartupWait(Duration.ofSeconds(60))
              .setServerConfig("fsync", "off") // a test's data need not survive the machine
              .setServerConfig("max_connections", "200")
              .setServerConfig("max_prepared_transactions", "10")
              .start();
      Runtime.getRuntime()
          .addShutdownHook(new Thread(() -> close(started), "outbox-test-postgres"));
      return started;
    } catch (IOException e) {
      throw new UncheckedIOException("The embedded PostgreSQL did not start", e);
    }
  }

  /** One for each user: what one has unpacked, another could not write to. */
  private static File workingDirectory() {
    return new File(
        System.getProperty("java.io.tmpdir"), "outbox-test-" + System.getProperty("user.name"));
  }

  private static void close(EmbeddedPostgres started) {
    try {
      started.close();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
