package dev.outbox4j.monitor;

import java.time.Duration;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Observes the monitors of a node. Thread-safe; methods must return quickly, and may throw without
 * harm: what they throw is logged and dropped. They are called on the threads that look, check, and
 * start or stop. What is told of messages, such as dead letters, is told by the subscriber's {@link
 * dev.outbox4j.SubscriberEvents}.
 */
public interface MonitorEvents {

  /** Why a wake or a result has changed nothing. */
  enum Dropped {
    /** A wake that came twice or too late: the instance has gone on, or has ended. */
    STALE_WAKE,
    /** A wake of an instance that is suspended; it is made up for when it is resumed. */
    SUSPENDED,
    /** The result of a check whose instance was terminated, restarted or purged meanwhile. */
    LATE_RESULT
  }

  /**
   * The monitors were started.
   *
   * @param application whose monitors they are
   * @param health reads their state from memory, for gauges
   */
  default void started(String application, Supplier<MonitorsHealth> health) {}

  /**
   * The monitors have stopped.
   *
   * @param application whose monitors they are
   */
  default void stopped(String application) {}

  /**
   * A look at the instances is over: for missing wakes, and for what is overdue.
   *
   * @param application whose monitors they are
   * @param took how long it took
   * @param failure why it failed, or null
   */
  default void looked(String application, Duration took, @Nullable Throwable failure) {}

  /**
   * A check has returned or thrown. Its result is not committed yet.
   *
   * @param application whose monitor it is
   * @param call the attempt
   * @param took how long it took
   * @param failure what it threw, or null
   */
  default void checked(
      String application, MonitorCall<?> call, Duration took, @Nullable Throwable failure) {}

  /**
   * This node has ended an instance by a wake, and that is committed. It is not told if the answer
   * of the commit is lost, nor of what {@link MonitorControl} ends.
   *
   * @param application whose monitor it is
   * @param type the name of its type
   * @param id the instance's id
   * @param status what it has become
   * @param outcome how it was completed; null unless it was
   */
  default void ended(
      String application,
      String type,
      String id,
      MonitorStatus status,
      @Nullable MonitorOutcome outcome) {}

  /**
   * A wake or a result has changed nothing.
   *
   * @param application whose monitor it is
   * @param type the name of its type
   * @param id the instance's id
   * @param why why
   */
  default void dropped(String application, String type, String id, Dropped why) {}

  /**
   * A look has found instances that are due and have no message that wakes them, such as one that
   * was deleted by hand, and has published the messages.
   *
   * @param application whose monitors they are
   * @param instances how many, 1 or more
   */
  default void repaired(String application, int instances) {}
}
