package dev.outbox4j.internal;

import dev.outbox4j.spi.SubscriberEvents;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Tells observers, and keeps what they throw away from delivery. Thread-safe. */
final class GuardedEvents {
  private static final Logger log = LoggerFactory.getLogger(GuardedEvents.class);
  private static final long LOG_EVERY = 1_000;

  private final String subscriber;
  private final List<SubscriberEvents> observers;
  private final AtomicLong failures = new AtomicLong();

  GuardedEvents(String subscriber, List<SubscriberEvents> observers) {
    this.subscriber = subscriber;
    this.observers = observers;
  }

  void tell(Consumer<SubscriberEvents> event) {
    for (SubscriberEvents observer : observers) {
      try {
        event.accept(observer);
      } catch (Throwable thrown) { // user code: whatever it throws must not touch delivery
        if (failures.getAndIncrement() % LOG_EVERY == 0) {
          log.warn(
              "[{}] observer {} failed ({} failures so far); delivery goes on",
              subscriber,
              observer.getClass().getName(),
              failures.get(),
              WithoutWords.of(thrown));
        }
      }
    }
  }

  boolean isEmpty() {
    return observers.isEmpty();
  }
}
