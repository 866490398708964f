package dev.outbox4j.testing;

import dev.outbox4j.Delivery;
import dev.outbox4j.Outcome;
import dev.outbox4j.Payload;
import java.time.Duration;
import java.time.Instant;
import java.util.Map;
import java.util.Optional;

/** A message of which nothing may be read but what whoever implements it says. */
public interface UnreadDelivery extends Delivery {
  @Override
  default Optional<Outcome> decided() {
    throw unread();
  }

  @Override
  default long id() {
    throw unread();
  }

  @Override
  default String queue() {
    throw unread();
  }

  @Override
  default Optional<String> type() {
    throw unread();
  }

  @Override
  default Optional<String> orderingKey() {
    throw unread();
  }

  @Override
  default Optional<String> timerId() {
    throw unread();
  }

  @Override
  default Payload payload() {
    throw unread();
  }

  @Override
  default Map<String, String> headers() {
    throw unread();
  }

  @Override
  default Instant createdAt() {
    throw unread();
  }

  @Override
  default Instant availableAt() {
    throw unread();
  }

  @Override
  default Optional<Instant> expiresAt() {
    throw unread();
  }

  @Override
  default int attempt() {
    throw unread();
  }

  @Override
  default int deliveries() {
    throw unread();
  }

  @Override
  default long leaseToken() {
    throw unread();
  }

  @Override
  default boolean leaseLost() {
    throw unread();
  }

  @Override
  default Duration leaseLeft() {
    throw unread();
  }

  @Override
  default boolean stopping() {
    throw unread();
  }

  @Override
  default void decide(Outcome outcome) {
    throw unread();
  }

  private static AssertionError unread() {
    return new AssertionError("This is not to be read of a message here");
  }
}
