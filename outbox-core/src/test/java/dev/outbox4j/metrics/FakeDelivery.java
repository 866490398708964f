package dev.outbox4j.metrics;

import dev.outbox4j.Delivery;
import dev.outbox4j.Outcome;
import dev.outbox4j.Payload;
import java.time.Duration;
import java.time.Instant;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** A message of which only its queue and type may be read. */
record FakeDelivery(String queue, Optional<String> type) implements Delivery {
  FakeDelivery(String queue, @Nullable String type) {
    this(queue, Optional.ofNullable(type));
  }

  @Override
  public long id() {
    throw unread();
  }

  @Override
  public Optional<String> orderingKey() {
    throw unread();
  }

  @Override
  public Optional<String> timerId() {
    throw unread();
  }

  @Override
  public Payload payload() {
    throw unread();
  }

  @Override
  public Map<String, String> headers() {
    throw unread();
  }

  @Override
  public Instant createdAt() {
    throw unread();
  }

  @Override
  public Instant availableAt() {
    throw unread();
  }

  @Override
  public Optional<Instant> expiresAt() {
    throw unread();
  }

  @Override
  public int attempt() {
    throw unread();
  }

  @Override
  public int deliveries() {
    throw unread();
  }

  @Override
  public long leaseToken() {
    throw unread();
  }

  @Override
  public boolean leaseLost() {
    throw unread();
  }

  @Override
  public Duration leaseLeft() {
    throw unread();
  }

  @Override
  public boolean stopping() {
    throw unread();
  }

  @Override
  public void decide(Outcome outcome) {
    throw unread();
  }

  private static AssertionError unread() {
    return new AssertionError("Metrics read nothing of a message but its queue and type");
  }
}
