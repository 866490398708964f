package dev.outbox4j.benchmarks.spi;

import java.sql.SQLException;

/** A contestant that publishes in a transaction of the caller's. */
public interface Publishing extends Contestant {

  /**
   * Returns what publishes.
   *
   * @param bench the run
   * @return a thread-safe publisher
   * @throws SQLException if that fails
   */
  Publisher publisher(Bench bench) throws SQLException;
}
