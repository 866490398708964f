package dev.outbox4j;

import java.time.Duration;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Observes a subscriber. Thread-safe; methods must return quickly, and may throw without harm to
 * delivery: what they throw is logged and dropped.
 *
 * <p>{@link #dispatched} and {@link #handled} are called on the handler's thread, {@link #started}
 * and {@link #stopped} on the one that starts and stops the subscriber, all others on a thread for
 * events. While that one is behind by 10,000 events, further ones are dropped.
 *
 * <p>An instance may observe several subscribers; each call names the one it is about.
 */
public interface SubscriberEvents {

  /** In which write a lease was found lost. */
  enum Phase {
    /** Before the handler was started. */
    DISPATCH,
    /** While acking. */
    ACK,
    /** While writing a retry. */
    RETRY,
    /** While writing a reschedule. */
    RESCHEDULE,
    /** While dead-lettering. */
    DEAD_LETTER,
    /** While renewing. */
    RENEW,
    /** While releasing. */
    RELEASE
  }

  /**
   * What a subscriber was built to do. What it was not built to do is never told.
   *
   * @param listens whether it has a LISTEN source; without, it only polls
   * @param keepsDeadLetters whether terminal failures go to dead letters; else they are deleted
   * @param limitsHandlerTime whether handlers are interrupted after a while
   * @param limitsDeliveries whether a message fails for good that was claimed too often
   */
  record Setup(
      boolean listens,
      boolean keepsDeadLetters,
      boolean limitsHandlerTime,
      boolean limitsDeliveries) {}

  /**
   * The subscriber was started.
   *
   * @param subscriber its name
   * @param setup what it was built to do
   * @param health reads its state from memory, for gauges
   */
  default void started(String subscriber, Setup setup, Supplier<SubscriberHealth> health) {}

  /**
   * The subscriber has stopped.
   *
   * @param subscriber its name
   */
  default void stopped(String subscriber) {}

  /**
   * A claim succeeded.
   *
   * @param subscriber its name
   * @param rows how many rows it gave, zero included
   * @param took how long the statement took
   */
  default void claimed(String subscriber, int rows, Duration took) {}

  /**
   * A handler is about to run.
   *
   * @param subscriber the subscriber's name
   * @param delivery the message
   * @param age how long ago it was created
   */
  default void dispatched(String subscriber, Delivery delivery, Duration age) {}

  /**
   * A handler has ended.
   *
   * @param subscriber the subscriber's name
   * @param delivery the message
   * @param took how long it ran
   * @param failure what it threw, or null
   */
  default void handled(
      String subscriber, Delivery delivery, Duration took, @Nullable Throwable failure) {}

  /**
   * A message is done and its row deleted.
   *
   * @param subscriber the subscriber's name
   * @param delivery the message
   */
  default void acked(String subscriber, Delivery delivery) {}

  /**
   * A failed message is due again.
   *
   * @param subscriber the subscriber's name
   * @param delivery the message
   * @param delay after which delay
   */
  default void retried(String subscriber, Delivery delivery, Duration delay) {}

  /**
   * A message that did not fail is due again.
   *
   * @param subscriber the subscriber's name
   * @param delivery the message
   * @param delay after which delay
   */
  default void rescheduled(String subscriber, Delivery delivery, Duration delay) {}

  /**
   * A message failed for good and its row is gone.
   *
   * @param subscriber the subscriber's name
   * @param delivery the message
   * @param reason why
   * @param written true if it is in the dead-letter table, false if there is none and it was
   *     deleted
   */
  default void deadLettered(
      String subscriber, Delivery delivery, FailureReason reason, boolean written) {}

  /**
   * A lease was found to be another owner's.
   *
   * @param subscriber the subscriber's name
   * @param delivery the message
   * @param phase in which write
   */
  default void leaseLost(String subscriber, Delivery delivery, Phase phase) {}

  /**
   * A write was repeated because its first answer was lost, and did not find the row: either the
   * first one took effect, or another owner has the row.
   *
   * @param subscriber the subscriber's name
   * @param delivery the message
   * @param phase in which write
   */
  default void outcomeUnknown(String subscriber, Delivery delivery, Phase phase) {}

  /**
   * Leases were extended.
   *
   * @param subscriber the subscriber's name
   * @param rows how many
   */
  default void renewed(String subscriber, int rows) {}

  /**
   * Leases were given back unused.
   *
   * @param subscriber the subscriber's name
   * @param rows how many
   */
  default void released(String subscriber, int rows) {}

  /**
   * LISTEN came into force.
   *
   * @param subscriber the subscriber's name
   * @param again true if it had been in force before
   */
  default void listenerConnected(String subscriber, boolean again) {}

  /**
   * LISTEN could not be set up, or was lost.
   *
   * @param subscriber the subscriber's name
   * @param cause why
   */
  default void listenerDisconnected(String subscriber, Throwable cause) {}

  /**
   * A statement failed and will be tried again.
   *
   * @param subscriber the subscriber's name
   * @param operation which one, by its verb
   * @param cause why
   */
  default void storeFailed(String subscriber, String operation, Throwable cause) {}

  /**
   * A handler ran past its timeout and was interrupted. The run counts as a failed attempt: the
   * message is retried, unless the retry policy gives it up.
   *
   * @param subscriber the subscriber's name
   * @param delivery the message
   */
  default void handlerTimedOut(String subscriber, Delivery delivery) {}

  /**
   * A drain ran past its timeout with something undone: a handler, an outcome, or rows to give
   * back.
   *
   * @param subscriber the subscriber's name
   * @param left how many rows were left to the end of their lease
   */
  default void drainTimedOut(String subscriber, int left) {}
}
