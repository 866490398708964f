package dev.outbox4j.test;

import dev.outbox4j.FailureReason;
import dev.outbox4j.spi.PayloadCodec;
import java.time.Instant;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * A message that failed for good.
 *
 * @param row the row as it was
 * @param reason why it is terminal
 * @param attempts handler runs that failed, the last one included
 * @param exception what was kept of the exception, or the handler's own words
 * @param failedAt when it was moved
 */
public record DeadLetter(
    OutboxRow row,
    FailureReason reason,
    int attempts,
    Optional<String> exception,
    Instant failedAt) {

  DeadLetter with(@Nullable PayloadCodec codec) {
    return new DeadLetter(row.with(codec), reason, attempts, exception, failedAt);
  }

  /** Returns what is known of it in a line. */
  @Override
  public String toString() {
    return row
        + ", dead-lettered as "
        + reason.code()
        + exception.flatMap(text -> text.lines().findFirst()).map(line -> ": " + line).orElse("");
  }
}
