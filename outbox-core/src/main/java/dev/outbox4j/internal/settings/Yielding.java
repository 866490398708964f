package dev.outbox4j.internal.settings;

import dev.outbox4j.RateLimit;
import java.time.Duration;

/**
 * A limit by which a subscriber of the library's own lets others go first. It holds beside a limit
 * of the user's, and not in ordered queues, where nobody else can claim what a subscriber owns.
 */
public interface Yielding extends RateLimit {
  /**
   * Adds a limit of the user's.
   *
   * @param limit asked once this one lets pass
   * @return both
   */
  default RateLimit and(RateLimit limit) {
    return new Both(this, limit);
  }

  /**
   * Two limits.
   *
   * @param first what lets others go first
   * @param second the user's
   */
  record Both(Yielding first, RateLimit second) implements RateLimit {
    @Override
    public int available() {
      return first.available() <= 0 ? 0 : second.available();
    }

    @Override
    public void take(int messages) {
      first.take(messages);
      second.take(messages);
    }

    @Override
    public Duration untilNext() {
      return first.available() <= 0 ? first.untilNext() : second.untilNext();
    }
  }
}
