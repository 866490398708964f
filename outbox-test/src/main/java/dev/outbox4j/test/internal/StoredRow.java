package dev.outbox4j.test.internal;

import dev.outbox4j.Payload;
import java.time.Instant;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** A row of an {@link MemoryStore} as it stands: the columns of the outbox table. */
public record StoredRow(
    long id,
    String queue,
    @Nullable String type,
    @Nullable String orderingKey,
    @Nullable String timerId,
    Payload payload,
    Map<String, String> headers,
    Instant createdAt,
    Instant availableAt,
    @Nullable Instant leaseUntil,
    @Nullable Instant leasedAt,
    long leaseToken,
    @Nullable String leasedBy,
    int deliveries,
    int attempts,
    @Nullable Instant firstAttemptAt,
    @Nullable Instant lastAttemptAt,
    @Nullable String lastError,
    @Nullable Instant expiresAt) {}
