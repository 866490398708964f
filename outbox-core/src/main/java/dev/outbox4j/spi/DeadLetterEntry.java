package dev.outbox4j.spi;

import dev.outbox4j.FailureReason;
import org.jspecify.annotations.Nullable;

/**
 * A terminal failure to write.
 *
 * @param lease the fence
 * @param reason why it is terminal
 * @param attempts handler runs that ended in failure, the last one included
 * @param exception the rendered exception or the handler's own words, bounded and storable; or null
 */
public record DeadLetterEntry(
    LeaseRef lease, FailureReason reason, int attempts, @Nullable String exception) {

  /** {@return the lease and the reason; not the exception's words, which may quote a payload} */
  @Override
  public String toString() {
    return "DeadLetterEntry[lease=" + lease + ", reason=" + reason + ", attempts=" + attempts + "]";
  }
}
