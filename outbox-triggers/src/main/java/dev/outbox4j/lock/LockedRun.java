package dev.outbox4j.lock;

/** What is done while a lock is held. */
@FunctionalInterface
public interface LockedRun {
  /**
   * Does it. The thread is interrupted when the lock is lost.
   *
   * @param lock the lock, which is released behind it
   * @throws Exception to say that it failed
   */
  void run(HeldLock lock) throws Exception;
}
