package dev.outbox4j.dlq.engine;

import dev.outbox4j.Delivery;
import dev.outbox4j.SubscriberEvents;
import dev.outbox4j.SubscriberHealth;
import java.time.Duration;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** Fails wherever it can. */
final class ThrowingEvents implements SubscriberEvents {
  @Override
  public void started(String subscriber, Setup setup, Supplier<SubscriberHealth> health) {
    throw new IllegalStateException("started");
  }

  @Override
  public void claimed(String subscriber, int rows, Duration took) {
    throw new IllegalStateException("claimed");
  }

  @Override
  public void dispatched(String subscriber, Delivery delivery, Duration age) {
    throw new AssertionError("dispatched");
  }

  @Override
  public void handled(
      String subscriber, Delivery delivery, Duration took, @Nullable Throwable failure) {
    throw new IllegalStateException("handled");
  }

  @Override
  public void acked(String subscriber, Delivery delivery) {
    throw new StackOverflowError("acked");
  }

  @Override
  public void stopped(String subscriber) {
    throw new IllegalStateException("stopped");
  }
}
