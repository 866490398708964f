package dev.outbox4j.benchmarks.spi;

/** The handler of all messages. Thread-safe. */
public interface Sink {

  /**
   * Handles a message.
   *
   * @param payload as loaded or published
   * @return what is to become of it
   */
  Verdict handle(byte[] payload);

  /**
   * Counts messages whose end is committed. By default does nothing.
   *
   * @param messages how many more
   */
  default void acked(int messages) {}

  /**
   * Counts a claim. By default does nothing.
   *
   * @param rows how many rows it brought, zero included
   */
  default void claimed(int rows) {}
}
