package dev.outbox4j.metrics;

import dev.outbox4j.FailureReason;
import dev.outbox4j.SubscriberEvents;
import dev.outbox4j.SubscriberHealth;
import dev.outbox4j.SubscriberHealth.InFlight;
import dev.outbox4j.SubscriberState;
import java.time.Duration;
import java.util.Optional;
import java.util.Set;

/** Makes health records and calls every method of an observer. */
final class Events {
  /** All that can happen does. */
  static final SubscriberEvents.Setup FULL = new SubscriberEvents.Setup(true, true, true, true);

  private Events() {}

  static SubscriberHealth health(SubscriberState state, SubscriberHealth.Listener listener) {
    return new SubscriberHealth(
        "s",
        state,
        Optional.empty(),
        Optional.empty(),
        Optional.empty(),
        false,
        Optional.empty(),
        listener,
        7,
        3,
        Optional.of(new InFlight("s", 1, Optional.empty(), Duration.ofMillis(1500))),
        Duration.ofMillis(250),
        2,
        Optional.of(new SubscriberHealth.Order(12, 4, 3)),
        Optional.of(Set.of("orders")));
  }

  static SubscriberHealth running() {
    return health(SubscriberState.RUNNING, SubscriberHealth.Listener.UP);
  }

  /** Tells of everything that can happen to a message and to its subscriber, once each. */
  static void all(SubscriberEvents events, String subscriber, FakeDelivery delivery) {
    events.claimed(subscriber, 5, Duration.ofMillis(2));
    events.claimed(subscriber, 0, Duration.ofMillis(1));
    events.dispatched(subscriber, delivery, Duration.ofSeconds(4));
    events.handled(subscriber, delivery, Duration.ofMillis(10), null);
    events.handled(subscriber, delivery, Duration.ofMillis(30), new IllegalStateException("x"));
    events.acked(subscriber, delivery);
    events.retried(subscriber, delivery, Duration.ofSeconds(1));
    events.rescheduled(subscriber, delivery, Duration.ofSeconds(1));
    for (FailureReason reason : FailureReason.values()) {
      events.deadLettered(subscriber, delivery, reason, true);
    }
    for (SubscriberEvents.Phase phase : SubscriberEvents.Phase.values()) {
      events.leaseLost(subscriber, delivery, phase);
      events.outcomeUnknown(subscriber, delivery, phase);
    }
    events.renewed(subscriber, 11);
    events.released(subscriber, 13);
    events.listenerConnected(subscriber, false);
    events.listenerConnected(subscriber, true);
    events.listenerDisconnected(subscriber, new IllegalStateException("x"));
    events.storeFailed(subscriber, "claim", new IllegalStateException("x"));
    events.handlerTimedOut(subscriber, delivery);
    events.drainTimedOut(subscriber, 4);
  }
}
