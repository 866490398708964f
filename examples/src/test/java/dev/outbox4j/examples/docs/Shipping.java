package dev.outbox4j.examples.docs;

import dev.outbox4j.Delivery;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.Outcome;
import dev.outbox4j.RetryPolicy;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

/** A service whose tests are samples: it ships what was ordered. */
final class Shipping {
  final List<String> shipped = new CopyOnWriteArrayList<>();
  volatile boolean carrierOpen = true;

  // tag::subscribe
  void subscribe(OutboxSubscriber.Builder subscriber) {
    subscriber
        .on("order.placed", Checkout.Order.class, this::ship)
        .retry(RetryPolicy.constant(Duration.ofMinutes(5)).attempts(3));
  }

  // end::subscribe

  Outcome ship(Checkout.Order order, Delivery delivery) {
    if (order.item().isBlank()) {
      return Outcome.reject("nothing to ship");
    }
    if (!carrierOpen) {
      throw new IllegalStateException("the carrier does not answer");
    }
    shipped.add(order.id());
    return Outcome.ack();
  }
}
