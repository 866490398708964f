package dev.outbox4j.examples.shop;

import io.zonky.test.db.postgres.embedded.EmbeddedPostgres;
import java.io.IOException;
import java.io.UncheckedIOException;
import org.springframework.test.context.DynamicPropertyRegistry;

/** One PostgreSQL for all tests, stopped with the JVM. */
final class Server {
  private static final EmbeddedPostgres POSTGRES = start();

  private Server() {}

  private static EmbeddedPostgres start() {
    try {
      return EmbeddedPostgres.start();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  static void register(DynamicPropertyRegistry registry) {
    registry.add("spring.datasource.url", () -> POSTGRES.getJdbcUrl("postgres", "postgres"));
    registry.add("spring.datasource.username", () -> "postgres");
    registry.add("spring.datasource.password", () -> "postgres");
  }
}
