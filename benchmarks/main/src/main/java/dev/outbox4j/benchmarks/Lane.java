package dev.outbox4j.benchmarks;

import java.io.IOException;
import java.sql.SQLException;
import java.util.Map;

/** One kind of measurement. */
interface Lane {

  /** {@return the name by which a run asks for it} */
  String name();

  /** {@return whether it is one of all lanes, or runs only if it is asked for by name} */
  default boolean inAll() {
    return true;
  }

  /**
   * Measures, round by round, and stops when the run is over.
   *
   * @param run the run
   * @throws IOException if a contestant's process cannot be run
   * @throws SQLException if the server fails
   */
  void run(Run run) throws IOException, SQLException;

  /**
   * Draws the figures that are kept by name.
   *
   * @param results the run's
   * @param figures receives them
   */
  default void figures(Results results, Map<String, Figure> figures) {}
}
