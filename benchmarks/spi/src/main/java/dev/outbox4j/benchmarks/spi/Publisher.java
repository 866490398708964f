package dev.outbox4j.benchmarks.spi;

import java.sql.Connection;
import java.time.Duration;
import java.util.List;

/** Publishes in the caller's transaction. Thread-safe. */
@FunctionalInterface
public interface Publisher {

  /**
   * Publishes one message per payload.
   *
   * @param transaction the caller's
   * @param payloads the payloads
   * @param delay after which they are due; zero for now
   * @throws Exception if that fails
   */
  void publish(Connection transaction, List<byte[]> payloads, Duration delay) throws Exception;
}
