package dev.outbox4j;

import java.time.Duration;
import java.util.Objects;

/**
 * What becomes of a message after its handler. Immutable. It takes effect when the handler returns
 * it, or hands it to {@link Delivery#decide}; making one does nothing.
 */
@CheckReturnValue
public sealed interface Outcome {

  /** {@return the outcome that the message is done and its row deleted} */
  static Outcome ack() {
    return Ack.INSTANCE;
  }

  /** {@return the outcome of a failed attempt: due again after the retry policy's delay} */
  static Outcome retry() {
    return new Retry("retry asked for by the handler");
  }

  /**
   * Returns the outcome of a failed attempt: due again after the retry policy's delay.
   *
   * @param why kept as the row's last error, for people
   * @return the outcome
   */
  static Outcome retry(String why) {
    return new Retry(why);
  }

  /**
   * Returns the outcome of a failed attempt: due again after this delay instead of the policy's. It
   * counts as an attempt, so a policy that is exhausted still ends in the dead-letter table.
   *
   * @param delay zero to 36,500 days, counted by the server's clock
   * @return the outcome
   */
  static Outcome retryAfter(Duration delay) {
    return new RetryAfter(delay);
  }

  /**
   * Returns the outcome that nothing failed but the message is to come again after the delay; its
   * attempts start from zero.
   *
   * @param delay zero to 36,500 days, counted by the server's clock
   * @return the outcome
   */
  static Outcome reschedule(Duration delay) {
    return new Reschedule(delay);
  }

  /**
   * Returns the outcome that the message is left to other subscribers: it is due again after the
   * delay, and neither its deliveries nor its attempts change, so that it may be left as often as
   * it takes. What a transactional handler wrote is rolled back. It is written, too, if a stop has
   * interrupted the handler and this comes before the stop is over, as an ack is.
   *
   * @param delay zero to 36,500 days, counted by the server's clock
   * @return the outcome
   */
  static Outcome leave(Duration delay) {
    return new Leave(delay);
  }

  /**
   * Returns the outcome that the message is terminal by decision: dead-lettered as {@code
   * rejected}.
   *
   * @param reason kept with the dead letter, for people
   * @return the outcome
   */
  static Outcome reject(String reason) {
    return new Reject(reason);
  }

  /** Done; the row is deleted. */
  enum Ack implements Outcome {
    /** The only value. */
    INSTANCE
  }

  /**
   * Failed; due again after the retry policy's delay.
   *
   * @param why kept as the row's last error
   */
  record Retry(String why) implements Outcome {
    /** Checks the components. */
    public Retry {
      Objects.requireNonNull(why, "why");
    }
  }

  /**
   * Failed; due again after a delay of the handler's choice.
   *
   * @param delay zero to 36,500 days
   */
  record RetryAfter(Duration delay) implements Outcome {
    /** Checks the components. */
    public RetryAfter {
      Check.delay("delay", delay);
    }
  }

  /**
   * Not failed; due again after the delay, attempts from zero.
   *
   * @param delay zero to 36,500 days
   */
  record Reschedule(Duration delay) implements Outcome {
    /** Checks the components. */
    public Reschedule {
      Check.delay("delay", delay);
    }
  }

  /**
   * Left to other subscribers; due again after the delay, and else as it was.
   *
   * @param delay zero to 36,500 days
   */
  record Leave(Duration delay) implements Outcome {
    /** Checks the components. */
    public Leave {
      Check.delay("delay", delay);
    }
  }

  /**
   * Terminal by decision.
   *
   * @param reason kept with the dead letter
   */
  record Reject(String reason) implements Outcome {
    /** Checks the components. */
    public Reject {
      Objects.requireNonNull(reason, "reason");
    }
  }
}
