package dev.outbox4j.examples.quickstart;

import dev.outbox4j.examples.orders.OrdersConfig;
import dev.outbox4j.examples.run.EmbeddedServer;
import org.jspecify.annotations.Nullable;

/**
 * The database of a run: the user's own, or real PostgreSQL binaries that were unpacked and started
 * for this run alone.
 */
final class Database implements AutoCloseable {
  /** A schema of its own, so that nothing of the user's is touched. */
  static final String SCHEMA = "outbox_quickstart";

  private final Options options;
  private final @Nullable EmbeddedServer embedded;

  private Database(Options options, @Nullable EmbeddedServer embedded) {
    this.options = options;
    this.embedded = embedded;
  }

  static Database open(Options options) {
    return new Database(options, options.url() == null ? EmbeddedServer.start() : null);
  }

  OrdersConfig config() {
    if (embedded == null) {
      String url = options.url() == null ? "" : options.url();
      return new OrdersConfig(url, options.user(), options.password(), SCHEMA, options.port());
    }
    String url = "jdbc:postgresql://localhost:" + embedded.port() + "/postgres";
    return new OrdersConfig(url, "postgres", "postgres", SCHEMA, options.port());
  }

  @Override
  public void close() {
    if (embedded != null) {
      embedded.close();
    }
  }
}
