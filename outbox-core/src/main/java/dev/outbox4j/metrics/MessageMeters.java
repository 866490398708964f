package dev.outbox4j.metrics;

import dev.outbox4j.FailureReason;
import dev.outbox4j.SubscriberEvents.Setup;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.Timer;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The meters of one subscriber, queue and type; those of what can happen are there, at zero, from
 * the first message. Thread-safe.
 */
final class MessageMeters {
  final Counter acked;
  final Counter retried;
  final Counter rescheduled;
  final Timer succeeded;
  final Timer failed;
  final Timer dispatchAge;

  private final Registrar registrar;
  private final String[] tags;
  private final Map<FailureReason, Counter> terminal = new ConcurrentHashMap<>();
  private final Map<FailureReason, Counter> written = new ConcurrentHashMap<>();

  MessageMeters(Registrar registrar, String subscriber, String queue, String type) {
    this.registrar = registrar;
    this.tags = new String[] {subscriber, queue, type};
    acked = registrar.counter(Meters.ACKED, tags);
    retried = registrar.counter(Meters.NACKED_RETRIED, tags);
    rescheduled = registrar.counter(Meters.RESCHEDULED, tags);
    succeeded = registrar.timer(Meters.HANDLER, subscriber, queue, type, "success");
    failed = registrar.timer(Meters.HANDLER, subscriber, queue, type, "failure");
    dispatchAge = registrar.timer(Meters.DISPATCH_AGE, tags);
  }

  /** Registers what can happen in a subscriber that is set up so. */
  void expect(Setup setup) {
    if (setup.limitsHandlerTime()) {
      timedOut();
    }
    for (FailureReason reason : FailureReason.values()) {
      if (reason != FailureReason.MAX_DELIVERIES || setup.limitsDeliveries()) {
        terminal(reason);
        if (setup.keepsDeadLetters()) {
          written(reason);
        }
      }
    }
  }

  Counter timedOut() {
    return registrar.counter(Meters.HANDLER_TIMEOUT, tags);
  }

  Counter terminal(FailureReason reason) {
    return terminal.computeIfAbsent(reason, key -> of(Meters.NACKED_TERMINAL, key));
  }

  Counter written(FailureReason reason) {
    return written.computeIfAbsent(reason, key -> of(Meters.DLQ_WRITTEN, key));
  }

  private Counter of(Meters meter, FailureReason reason) {
    return registrar.counter(meter, tags[0], tags[1], tags[2], reason.code());
  }
}
