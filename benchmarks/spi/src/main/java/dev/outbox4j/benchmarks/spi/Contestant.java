package dev.outbox4j.benchmarks.spi;

/**
 * One way to keep a queue in PostgreSQL. Found by {@link java.util.ServiceLoader}, one object per
 * process, called from one thread. What it can do, it tells by being {@link Publishing}, {@link
 * Consuming}, {@link Draining}, {@link Timing}, {@link Lagging} or {@link Redriving} as well.
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
}
