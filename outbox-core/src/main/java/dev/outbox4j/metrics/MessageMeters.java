package dev.outbox4j.metrics;

import dev.outbox4j.FailureReason;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.Timer;
import java.util.EnumMap;
import java.util.Map;
import java.util.Objects;

/** The meters of one subscriber, queue and type; all are there, at zero, from the first message. */
final class MessageMeters {
  final Counter acked;
  final Counter retried;
  final Counter rescheduled;
  final Counter timedOut;
  final Timer succeeded;
  final Timer failed;
  final Timer dispatchAge;
  private final Map<FailureReason, Counter> terminal = new EnumMap<>(FailureReason.class);
  private final Map<FailureReason, Counter> written = new EnumMap<>(FailureReason.class);

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
      terminal.put(reason, registrar.counter(Meters.NACKED_TERMINAL, tags));
      written.put(reason, registrar.counter(Meters.DLQ_WRITTEN, tags));
    }
  }

  Counter terminal(FailureReason reason) {
    return Objects.requireNonNull(terminal.get(reason));
  }

  Counter written(FailureReason reason) {
    return Objects.requireNonNull(written.get(reason));
  }
}
