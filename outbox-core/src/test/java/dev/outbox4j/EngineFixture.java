package dev.outbox4j;

import dev.outbox4j.testing.InMemoryStore;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AfterEach;

/** A subscriber on a store in memory, whose operations can be made to fail, block or lie. */
abstract class EngineFixture {
  final InMemoryStore store = new InMemoryStore(Clock.systemUTC());
  OutboxSubscriber subscriber;

  @AfterEach
  void stop() {
    if (subscriber != null) {
      subscriber.stop();
    }
  }

  OutboxSubscriber.Builder builder() {
    return OutboxSubscriber.builder("orders")
        .store(store)
        .deadLetters(store.deadLetters())
        .gracefulTimeout(Duration.ofMillis(300))
        .maxDeliveries(50);
  }

  final void start(OutboxSubscriber.Builder builder) {
    subscriber = builder.build();
    subscriber.start();
  }

  final void publish(String type) {
    store.publish(OutboxMessage.to("orders").type(type).body("x").build());
  }

  final void publish(String type, int count) {
    for (int i = 0; i < count; i++) {
      publish(type);
    }
  }

  static boolean ended(Instant lease) {
    return lease.isBefore(Clock.systemUTC().instant());
  }

  static void awaitIgnoringInterrupts(CountDownLatch latch) {
    boolean done = false;
    while (!done) {
      try {
        latch.await();
        done = true;
      } catch (InterruptedException ignoredOnPurpose) {
        done = latch.getCount() == 0;
      }
    }
  }
}
