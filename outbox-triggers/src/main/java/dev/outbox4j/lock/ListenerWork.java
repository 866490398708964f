package dev.outbox4j.lock;

/** What a {@link SingletonListener} does while it holds its lock. */
@FunctionalInterface
public interface ListenerWork {
  /**
   * Starts it. Returns when it is started, not when it is done.
   *
   * @param lock the lock; what is written may be guarded by it
   * @return what is closed to stop it, such as a subscriber that was started; the lock is released
   *     when that has returned
   * @throws Exception if it cannot be started: the lock is released, and it is tried again
   */
  AutoCloseable start(HeldLock lock) throws Exception;
}
