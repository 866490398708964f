package dev.outbox4j.lock;

import java.time.Duration;
import java.util.function.Supplier;

/**
 * Observes the locks of a process. Thread-safe; methods must return quickly, and may throw without
 * harm: what they throw is logged and dropped.
 */
public interface LockEvents {

  /**
   * The locks were started.
   *
   * @param application whose locks they are
   * @param health reads their state from memory, for gauges
   */
  default void started(String application, Supplier<LocksHealth> health) {}

  /**
   * The locks have stopped.
   *
   * @param application whose locks they are
   */
  default void stopped(String application) {}

  /**
   * A lock was acquired.
   *
   * @param application whose lock it is
   * @param lock its name, without its suffix
   * @param waited for how long it was waited for
   */
  default void acquired(String application, String lock, Duration waited) {}

  /**
   * A lock was not acquired within its timeout.
   *
   * @param application whose lock it is
   * @param lock its name, without its suffix
   */
  default void timedOut(String application, String lock) {}

  /**
   * A lock was lost before it was released.
   *
   * @param application whose lock it is
   * @param lock its name, without its suffix
   * @param lost what was lost
   */
  default void lost(String application, String lock, LostLock lost) {}
}
