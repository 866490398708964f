package dev.outbox4j.lock;

import dev.outbox4j.timer.TimerRun;

/** Does what a timer is for while a lock is held. */
@FunctionalInterface
public interface LockedTimerHandler {

  /**
   * Handles a run. The thread is interrupted when the lock is lost.
   *
   * @param run the run
   * @param lock the lock, which is released behind it
   * @throws Exception to say that the attempt failed
   */
  void handle(TimerRun run, HeldLock lock) throws Exception;
}
