package dev.outbox4j.benchmarks.spi;

/** A contestant that tells how far it is behind. */
public interface Lagging extends Contestant {

  /**
   * Tells the time since everything that was committed had been handled; from any thread.
   *
   * @return nanoseconds, or {@link Double#NaN} while that is not known
   */
  double lagNanos();
}
