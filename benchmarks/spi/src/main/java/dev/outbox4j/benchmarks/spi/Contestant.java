package dev.outbox4j.benchmarks.spi;

import java.sql.SQLException;

/**
 * One way to keep a queue in PostgreSQL. Found by {@link java.util.ServiceLoader}, one object per
 * process, called from one thread.
 */
public interface Contestant {

  /** {@return the name by which a run asks for it} */
  String name();

  /** {@return in a few words, what it promises: who pays for less is not slower, only other} */
  String contract();

  /**
   * Creates its tables in an empty database.
   *
   * @param bench the run
   * @throws Exception if that fails
   */
  void prepare(Bench bench) throws Exception;

  /**
   * Adds a backlog that is due at once, as fast as it likes; not measured.
   *
   * @param bench the run
   * @param first the sequence number of the first message, see {@link Payloads}
   * @param rows how many
   * @param bytes the size of each payload
   * @throws Exception if that fails
   */
  void load(Bench bench, long first, long rows, int bytes) throws Exception;

  /**
   * Starts to consume.
   *
   * @param bench the run
   * @param sink called with each payload, from any thread
   * @throws Exception if that fails
   */
  void start(Bench bench, Sink sink) throws Exception;

  /**
   * Stops to consume and closes all connections.
   *
   * @throws Exception if that fails
   */
  void stop() throws Exception;

  /** {@return whether it calls {@link Sink#acked}; else a message counts as done when handled} */
  default boolean reportsAcks() {
    return false;
  }

  /**
   * Returns what publishes.
   *
   * @param bench the run
   * @return a thread-safe publisher
   * @throws SQLException if that fails
   */
  default Publisher publisher(Bench bench) throws SQLException {
    throw new UnsupportedOperationException(name() + " has no publisher on a JDBC connection");
  }
}
