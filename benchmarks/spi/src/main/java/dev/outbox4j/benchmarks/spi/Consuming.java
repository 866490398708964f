package dev.outbox4j.benchmarks.spi;

/** A contestant that handles messages. */
public interface Consuming extends Contestant {

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
}
