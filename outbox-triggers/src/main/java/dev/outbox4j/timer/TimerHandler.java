package dev.outbox4j.timer;

/** Does what a timer is for. Called by several threads at once, if runs may overlap. */
@FunctionalInterface
public interface TimerHandler {
  /**
   * Handles a run. It is called again if it throws, or if nobody can tell whether it has ended: so
   * what it does should be the same when it is done twice for one {@linkplain TimerRun#instant
   * instant}.
   *
   * @param run the run
   * @throws Exception if the attempt failed
   */
  void handle(TimerRun run) throws Exception;
}
