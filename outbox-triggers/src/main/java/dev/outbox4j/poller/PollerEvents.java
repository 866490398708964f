package dev.outbox4j.poller;

import java.time.Duration;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Observes the pollers of a node. Thread-safe; methods must return quickly, and may throw without
 * harm: what they throw is logged and dropped. They are called on the threads that tick, and start
 * or stop.
 */
public interface PollerEvents {
  /**
   * The pollers were started.
   *
   * @param application whose pollers they are
   * @param health reads their state from memory, for gauges
   */
  default void started(String application, Supplier<PollersHealth> health) {}

  /**
   * The pollers have stopped.
   *
   * @param application whose pollers they are
   */
  default void stopped(String application) {}

  /**
   * A tick is over.
   *
   * @param application whose poller it is
   * @param poller its name
   * @param took how long it took
   * @param result what became of it
   */
  default void ticked(String application, String poller, Duration took, TickResult result) {}

  /**
   * Rows were read, or could not be.
   *
   * @param application whose poller it is
   * @param poller its name
   * @param took how long it took
   * @param rows how many were read
   * @param failure why it failed, or null
   */
  default void fetched(
      String application, String poller, Duration took, int rows, @Nullable Throwable failure) {}

  /**
   * A handler has ended.
   *
   * @param application whose poller it is
   * @param poller its name
   * @param took how long it took
   * @param rows how many rows it was called with
   * @param repeated whether they may have been handled before
   * @param failure what it threw, or null
   */
  default void handled(
      String application,
      String poller,
      Duration took,
      int rows,
      boolean repeated,
      @Nullable Throwable failure) {}

  /**
   * A position was written, or could not be.
   *
   * @param application whose poller it is
   * @param poller its name
   * @param took how long it took
   * @param rows how many rows it is for
   * @param failure why it failed, or null
   */
  default void committed(
      String application, String poller, Duration took, int rows, @Nullable Throwable failure) {}

  /**
   * Rows went to quarantine.
   *
   * @param application whose poller it is
   * @param poller its name
   * @param rows how many
   */
  default void quarantined(String application, String poller, int rows) {}

  /**
   * A step of a tick has failed.
   *
   * @param application whose poller it is
   * @param poller its name
   * @param step which
   * @param failure why
   */
  default void failed(String application, String poller, PollerFailure step, Throwable failure) {}
}
