package dev.outbox4j.lock;

/**
 * What is done while a lock is held.
 *
 * @param <T> what it returns
 */
@FunctionalInterface
public interface LockedCall<T> {
  /**
   * Does it. The thread is interrupted when the lock is lost.
   *
   * @param lock the lock, which is released behind it
   * @return what it found
   * @throws Exception to say that it failed
   */
  T call(HeldLock lock) throws Exception;
}
