package dev.outbox4j.lock;

import dev.outbox4j.Delivery;

/**
 * Handles messages while a lock is held.
 *
 * @param <T> what the payload is decoded to
 */
@FunctionalInterface
public interface LockedHandler<T> {

  /**
   * Handles one message. The thread is interrupted when the lock is lost.
   *
   * @param body the decoded payload
   * @param delivery the message and its lease
   * @param lock the lock, which is released behind it
   * @throws Exception to say that the attempt failed
   */
  void handle(T body, Delivery delivery, HeldLock lock) throws Exception;
}
