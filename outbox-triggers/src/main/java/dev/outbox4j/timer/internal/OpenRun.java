package dev.outbox4j.timer.internal;

import dev.outbox4j.timer.Cause;
import java.time.Instant;

/**
 * A run that has not ended.
 *
 * @param id its key
 * @param instant the one it is for
 * @param cause why it was made
 * @param request what was asked for, or which deployment; empty for what came by itself
 * @param begun whether it has a message; else it waits
 */
public record OpenRun(long id, Instant instant, Cause cause, String request, boolean begun) {
  RunKey key() {
    return new RunKey(instant, cause, request);
  }
}
