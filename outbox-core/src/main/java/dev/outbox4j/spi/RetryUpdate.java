package dev.outbox4j.spi;

import java.time.Duration;

/**
 * A failure to write: the row is due again after the delay and its lease is given up.
 *
 * @param lease the fence
 * @param delay zero or more, added to the server's clock
 * @param error what went wrong, bounded and storable
 * @param counted true if a handler's run failed: then attempts grow by one
 * @param givesBack true if the delivery is not to count, as the message is not to blame
 */
public record RetryUpdate(
    LeaseRef lease, Duration delay, String error, boolean counted, boolean givesBack) {

  /**
   * A failed run of a handler.
   *
   * @param lease the fence
   * @param delay zero or more, added to the server's clock
   * @param error what went wrong, bounded and storable
   */
  public RetryUpdate(LeaseRef lease, Duration delay, String error) {
    this(lease, delay, error, true, false);
  }

  /** {@return the lease and the delay; not the error's words, which may quote a payload} */
  @Override
  public String toString() {
    return "RetryUpdate[lease=" + lease + ", delay=" + delay + "]";
  }
}
