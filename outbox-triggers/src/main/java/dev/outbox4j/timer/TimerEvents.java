package dev.outbox4j.timer;

import java.time.Duration;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Observes the timers of a node. Thread-safe; methods must return quickly, and may throw without
 * harm: what they throw is logged and dropped. They are called on the threads that tick, handle,
 * and start or stop. What is told of messages, such as retries and dead letters, is told by the
 * subscriber's {@link dev.outbox4j.SubscriberEvents}.
 */
public interface TimerEvents {

  /**
   * The timers were started.
   *
   * @param application whose timers they are
   * @param health reads their state from memory, for gauges
   */
  default void started(String application, Supplier<TimersHealth> health) {}

  /**
   * The timers have stopped.
   *
   * @param application whose timers they are
   */
  default void stopped(String application) {}

  /**
   * A look at the timers is over.
   *
   * @param application whose timers they are
   * @param took how long it took
   * @param failure why it failed, or null
   */
  default void ticked(String application, Duration took, @Nullable Throwable failure) {}

  /**
   * A look has ended runs of a timer that are not to be, or not any more. Told by the node that
   * decided so.
   *
   * @param application whose timer it is
   * @param timer its name
   * @param status {@link RunStatus#SKIPPED} or {@link RunStatus#TERMINATED}
   * @param runs how many, 1 or more
   */
  default void ended(String application, String timer, RunStatus status, long runs) {}

  /**
   * An attempt at a run begins.
   *
   * @param application whose timer it is
   * @param run the attempt
   */
  default void began(String application, TimerRun run) {}

  /**
   * A handler has ended.
   *
   * @param application whose timer it is
   * @param run the attempt
   * @param took how long it took
   * @param failure what it threw, or null
   */
  default void handled(
      String application, TimerRun run, Duration took, @Nullable Throwable failure) {}
}
