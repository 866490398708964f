package dev.outbox4j.internal.state;

import dev.outbox4j.FailureReason;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/** What is to be written for a message whose outcome is decided. Immutable. */
public sealed interface Settlement {

  /** Delete the row. */
  enum Ack implements Settlement {
    INSTANCE
  }

  /** Give the lease back: no handler has begun. */
  enum Release implements Settlement {
    INSTANCE
  }

  /**
   * Make the row due again.
   *
   * @param counted whether a handler's run failed
   * @param givesBack whether the delivery is not to count
   * @param attempt for the log; null if that is told elsewhere
   */
  record Retry(
      Duration delay,
      String error,
      boolean counted,
      boolean givesBack,
      @Nullable FailedAttempt attempt)
      implements Settlement {
    public Retry(Duration delay, String error) {
      this(delay, error, true, false, null);
    }

    /** For want of room; the message is not to blame. */
    public static Retry putOff(Duration delay, String error, boolean counted) {
      return new Retry(delay, error, counted, true, null);
    }
  }

  /**
   * What the log says of an attempt that is followed by another.
   *
   * @param most how many there may be
   * @param why it failed
   */
  record FailedAttempt(int most, String why) {}

  /** Make the row due again; nothing failed. */
  record Reschedule(Duration delay) implements Settlement {}

  /** Make the row due again as if it had not been delivered. */
  record Leave(Duration delay) implements Settlement {
    /**
     * Kept as the row's last error. A store adds {@link #SINCE} and when the row was left first
     * since anything else became of it, and {@link #AT_DELIVERY} and how many deliveries count: one
     * more does if somebody died of it.
     */
    public static final String ERROR = "left to other subscribers";

    public static final String SINCE = ERROR + " since ";
    public static final String AT_DELIVERY = " at delivery ";
  }

  /**
   * Move the row to the dead letters, or delete it where there are none.
   *
   * @param exception kept with the dead letter
   * @param why the same for the log
   */
  record DeadLetter(FailureReason reason, int attempts, @Nullable String exception, String why)
      implements Settlement {}
}
