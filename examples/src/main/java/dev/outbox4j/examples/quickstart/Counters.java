package dev.outbox4j.examples.quickstart;

import dev.outbox4j.Delivery;
import dev.outbox4j.FailureReason;
import dev.outbox4j.SubscriberEvents;
import java.time.Duration;
import java.util.concurrent.atomic.LongAdder;

/** Counts what the subscribers do, for the progress lines. Thread-safe. */
final class Counters implements SubscriberEvents {
  final LongAdder acked = new LongAdder();
  final LongAdder retried = new LongAdder();
  final LongAdder deadLettered = new LongAdder();

  @Override
  public void acked(String subscriber, Delivery delivery) {
    acked.increment();
  }

  @Override
  public void retried(String subscriber, Delivery delivery, Duration delay) {
    retried.increment();
  }

  @Override
  public void deadLettered(
      String subscriber, Delivery delivery, FailureReason reason, boolean written) {
    deadLettered.increment();
  }
}
