package dev.outbox4j.spi;

import java.time.Duration;

/**
 * A failure to write: the row is due again after the delay and its lease is given up.
 *
 * @param lease the fence
 * @param delay zero or more, added to the server's clock
 * @param error what went wrong, bounded and storable
 * @param counted true if a handler's run failed: then attempts grow by one. Otherwise the delivery
 *     is given back, as it was for nothing
 */
public record RetryUpdate(LeaseRef lease, Duration delay, String error, boolean counted) {

  /**
   * A failed run of a handler.
   *
   * @param lease the fence
   * @param delay zero or more, added to the server's clock
   * @param error what went wrong, bounded and storable
   */
  public RetryUpdate(LeaseRef lease, Duration delay, String error) {
    this(lease, delay, error, true);
  }

  /** {@return the lease and the delay; not the error's words, which may quote a payload} */
  @Override
  public String toString() {
    return "RetryUpdate[lease=" + lease + ", delay=" + delay + "]";
  }
}
