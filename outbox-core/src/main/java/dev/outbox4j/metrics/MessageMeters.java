package dev.outbox4j.metrics;

import dev.outbox4j.FailureReason;
import dev.outbox4j.spi.SubscriberEvents.Phase;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.Timer;
import java.util.Locale;

/** The meters of one subscriber, queue and type; all are there, at zero, from the first message. */
final class MessageMeters {
  final Counter acked;
  final Counter retried;
  final Counter rescheduled;
  final Counter timedOut;
  final Timer succeeded;
  final Timer failed;
  final Timer dispatchAge;
  private final Counter[] terminal = new Counter[FailureReason.values().length];
  private final Counter[] written = new Counter[terminal.length];
  private final Counter[] lost = new Counter[Phase.values().length];
  private final Counter[] unknown = new Counter[lost.length];

  MessageMeters(Registrar registrar, String subscriber, String queue, String type) {
    acked = registrar.counter(Meters.ACKED, subscriber, queue, type);
    retried = registrar.counter(Meters.NACKED_RETRIED, subscriber, queue, type);
    rescheduled = registrar.counter(Meters.RESCHEDULED, subscriber, queue, type);
    timedOut = registrar.counter(Meters.HANDLER_TIMEOUT, subscriber, queue, type);
    succeeded = registrar.timer(Meters.HANDLER, subscriber, queue, type, "success");
    failed = registrar.timer(Meters.HANDLER, subscriber, queue, type, "failure");
    dispatchAge = registrar.timer(Meters.DISPATCH_AGE, subscriber, queue, type);
    for (FailureReason reason : FailureReason.values()) {
      String[] tags = {subscriber, queue, type, reason.code()};
      terminal[reason.ordinal()] = registrar.counter(Meters.NACKED_TERMINAL, tags);
      written[reason.ordinal()] = registrar.counter(Meters.DLQ_WRITTEN, tags);
    }
    for (Phase phase : Phase.values()) {
      String[] tags = {subscriber, queue, type, phase.name().toLowerCase(Locale.ROOT)};
      lost[phase.ordinal()] = registrar.counter(Meters.LEASE_LOST, tags);
      unknown[phase.ordinal()] = registrar.counter(Meters.OUTCOME_UNKNOWN, tags);
    }
  }

  Counter terminal(FailureReason reason) {
    return terminal[reason.ordinal()];
  }

  Counter written(FailureReason reason) {
    return written[reason.ordinal()];
  }

  Counter lost(Phase phase) {
    return lost[phase.ordinal()];
  }

  Counter unknown(Phase phase) {
    return unknown[phase.ordinal()];
  }
}
