package dev.outbox4j.benchmarks.spi;

/** A contestant that works off a backlog. */
public interface Draining extends Consuming {

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

  /** {@return the query that counts the messages whose end is not committed; empty if unknown} */
  default String countLeft() {
    return ""; // of another build of ours that does not tell
  }

  /** {@return whether it calls {@link Sink#acked}; else a message counts as done when handled} */
  default boolean reportsAcks() {
    return false;
  }
}
