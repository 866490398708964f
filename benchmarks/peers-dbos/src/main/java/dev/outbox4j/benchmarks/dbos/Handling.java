package dev.outbox4j.benchmarks.dbos;

/** The workflow of a message. */
public interface Handling {

  /**
   * Handles a message.
   *
   * @param payload in Base64
   */
  void handle(String payload);
}
