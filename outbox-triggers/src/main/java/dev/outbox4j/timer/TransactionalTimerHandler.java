package dev.outbox4j.timer;

/**
 * Does what a timer is for, in the transaction that ends the run.
 *
 * @param <C> what it writes with, such as a connection
 */
@FunctionalInterface
public interface TransactionalTimerHandler<C> {
  /**
   * Handles a run.
   *
   * @param run the run
   * @param connection in the run's transaction; it can neither commit nor roll back
   * @throws Exception if the attempt failed; what it wrote is rolled back
   */
  void handle(TimerRun run, C connection) throws Exception;
}
