package dev.outbox4j;

import java.time.Duration;

/**
 * How many messages of a queue may begin, and when: what {@link OutboxSubscriber.Builder#rateLimit}
 * asks before each claim. {@code Resilience4jRateLimit} makes one of a resilience4j limiter.
 *
 * <p>A subscriber asks from one thread of its own, so a limit that one subscriber has needs no
 * locks. An implementation must return at once: while it blocks, nothing is claimed. What it throws
 * is taken for a failed claim.
 */
public interface RateLimit {
  /** What {@link #available()} returns while there is no limit: {@value}. */
  int NO_LIMIT = Integer.MAX_VALUE;

  /**
   * Returns how many messages may begin now, without taking them. No more are claimed than there
   * are free workers, unless there is {@linkplain #NO_LIMIT no limit} now.
   *
   * @return 0 or less if none may
   */
  int available();

  /**
   * Takes what begins now.
   *
   * @param messages 1 to what {@link #available()} returned last
   */
  void take(int messages);

  /**
   * Returns when to ask again after {@link #available()} has returned none.
   *
   * @return at least 1 ms; less is taken for 1 ms
   */
  Duration untilNext();
}
