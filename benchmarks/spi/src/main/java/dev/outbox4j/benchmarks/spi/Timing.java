package dev.outbox4j.benchmarks.spi;

import java.time.Instant;

/** A contestant that runs something at instants that are known beforehand, again and again. */
public interface Timing extends Contestant {

  /** The handler of all timers. Thread-safe. */
  interface Runs {

    /**
     * A run begins now.
     *
     * @param timer the timer's number, from 0
     * @param instant the instant that the run is for
     */
    void begin(int timer, Instant instant);
  }

  /**
   * Puts timers on record and starts to run them.
   *
   * @param bench the run
   * @param beats the timers
   * @param runs told of each run, from any thread
   * @throws Exception if that fails
   */
  void start(Bench bench, Beats beats, Runs runs) throws Exception;

  /**
   * Stops, and closes all connections.
   *
   * @throws Exception if that fails
   */
  void stop() throws Exception;
}
