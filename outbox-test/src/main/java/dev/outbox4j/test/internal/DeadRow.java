package dev.outbox4j.test.internal;

import dev.outbox4j.FailureReason;
import java.time.Instant;
import org.jspecify.annotations.Nullable;

/** A dead letter of an {@link MemoryStore}: the row as it was, and why it died. */
public record DeadRow(
    StoredRow row,
    FailureReason reason,
    int attempts,
    @Nullable String exception,
    Instant failedAt) {}
