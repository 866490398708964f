package dev.outbox4j.test.internal;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.Payload;
import dev.outbox4j.spi.ClaimedRow;
import dev.outbox4j.spi.History;
import dev.outbox4j.spi.LeaseRef;
import dev.outbox4j.spi.RetryUpdate;
import dev.outbox4j.spi.ScanBound;
import dev.outbox4j.spi.StoredMessage;
import java.time.Duration;
import java.time.Instant;
import org.jspecify.annotations.Nullable;

/** A row, guarded by its store. */
final class MemoryRow {
  final long id;
  final OutboxMessage message;
  private final Payload payload;
  private final Instant createdAt;
  private Instant availableAt;
  private final @Nullable Instant expiresAt;
  private @Nullable Instant leaseUntil;
  private @Nullable Instant leasedAt;
  private long leaseToken;
  private @Nullable String leasedBy;
  private int deliveries;
  private int attempts;
  private @Nullable Instant firstAttemptAt;
  private @Nullable Instant lastAttemptAt;
  private @Nullable String lastError;
  private @Nullable MemoryRow next;

  MemoryRow(long id, OutboxMessage message, Payload payload, Instant now, Instant availableAt) {
    this.id = id;
    this.message = message;
    this.payload = payload;
    this.createdAt = now;
    this.availableAt = availableAt;
    this.expiresAt =
        message
            .expiresAt()
            .or(() -> message.expiresIn().map(availableAt::plus))
            .map(MemoryStore::micros)
            .orElse(null);
  }

  /** Another message takes this one's place once its lease is over. */
  void replaceBy(MemoryRow next) {
    this.next = next;
  }

  /** Returns what was published in this one's place while it was leased; null if nothing was. */
  @Nullable MemoryRow next() {
    return next;
  }

  /** Returns when a message is due that takes this one's place: one that is due keeps its place. */
  Instant dueInPlace(Instant due, Instant now) {
    Instant known = next == null ? availableAt : next.availableAt;
    return due.isAfter(now) || due.isBefore(known) ? due : known;
  }

  /** Makes a message that waits no longer for the one before it due. */
  void dueFrom(Instant now) {
    availableAt = availableAt.isBefore(now) ? now : availableAt;
  }

  ScanBound place() {
    return new ScanBound(availableAt, id);
  }

  boolean claimable(Instant now) {
    return !availableAt.isAfter(now) && !isHeld(now);
  }

  boolean isHeld(Instant now) {
    return leaseUntil != null && !leaseUntil.isBefore(now);
  }

  /** Returns when the lease of a due row runs out; null if it is not due or not held. */
  @Nullable Instant heldUntil(Instant now) {
    return availableAt.isAfter(now) || claimable(now) ? null : leaseUntil;
  }

  ClaimedRow claim(Instant now, Duration lease, String owner) {
    leaseUntil = now.plus(lease);
    leasedAt = now;
    leaseToken++;
    leasedBy = owner;
    deliveries++;
    return new ClaimedRow(
        new LeaseRef(message.queue(), id, leaseToken),
        new StoredMessage(
            message.type().orElse(null),
            message.orderingKey().orElse(null),
            message.timerId().orElse(null),
            payload,
            message.headers(),
            createdAt,
            availableAt,
            expiresAt),
        new History(
            deliveries,
            attempts,
            firstAttemptAt == null ? Duration.ZERO : Duration.between(firstAttemptAt, now),
            Duration.between(createdAt, now)));
  }

  long size() {
    return payload.size();
  }

  boolean isHeldBy(LeaseRef lease) {
    return leaseUntil != null
        && leaseToken == lease.token()
        && message.queue().equals(lease.queue());
  }

  void retry(Instant now, RetryUpdate update) {
    unlease();
    availableAt = now.plus(update.delay());
    lastError = update.error();
    if (update.counted()) {
      attempts++;
      firstAttemptAt = firstAttemptAt == null ? now : firstAttemptAt;
      lastAttemptAt = now;
    }
    if (update.givesBack()) {
      deliveries = Math.max(deliveries - 1, 0);
    }
  }

  void reschedule(Instant now, Duration delay) {
    unlease();
    availableAt = now.plus(delay);
    deliveries = 0;
    attempts = 0;
    firstAttemptAt = null;
    lastAttemptAt = null;
    lastError = null;
  }

  void renew(Instant now, Duration lease) {
    leaseUntil = now.plus(lease);
  }

  void release() {
    unlease();
    deliveries = Math.max(0, deliveries - 1);
  }

  private void unlease() {
    leaseUntil = null;
    leasedAt = null;
    leasedBy = null;
  }

  StoredRow view() {
    return new StoredRow(
        id,
        message.queue(),
        message.type().orElse(null),
        message.orderingKey().orElse(null),
        message.timerId().orElse(null),
        payload,
        message.headers(),
        createdAt,
        availableAt,
        leaseUntil,
        leasedAt,
        leaseToken,
        leasedBy,
        deliveries,
        attempts,
        firstAttemptAt,
        lastAttemptAt,
        lastError,
        expiresAt);
  }
}
