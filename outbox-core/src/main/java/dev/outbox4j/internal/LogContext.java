package dev.outbox4j.internal;

import dev.outbox4j.Delivery;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.slf4j.MDC;
import org.slf4j.helpers.NOPMDCAdapter;

/**
 * Names the message in the log lines of the thread that runs its handler, as long as it does.
 * Confined to that thread.
 */
final class LogContext implements AutoCloseable {
  private static final LogContext NONE = new LogContext(Map.of());

  private static final int MOST_BYTES = 300;

  private final Map<String, @Nullable String> before;

  private LogContext(Map<String, @Nullable String> before) {
    this.before = before;
  }

  static LogContext of(Delivery delivery) {
    if (MDC.getMDCAdapter() == null || MDC.getMDCAdapter() instanceof NOPMDCAdapter) {
      return NONE;
    }
    LogContext context = new LogContext(new HashMap<>());
    context.put("outbox.queue", delivery.queue());
    context.put("outbox.type", delivery.type().orElse(null));
    context.put("outbox.id", Long.toString(delivery.id()));
    context.put("outbox.correlation_id", delivery.correlationId().orElse(null));
    return context;
  }

  private void put(String key, @Nullable String value) {
    before.put(key, MDC.get(key));
    set(key, value == null ? null : Utf8.bounded(OneLine.of(value), MOST_BYTES));
  }

  private static void set(String key, @Nullable String value) {
    if (value == null) {
      MDC.remove(key);
    } else {
      MDC.put(key, value);
    }
  }

  /** Whatever the thread was about before: it may be a user's. */
  @Override
  public void close() {
    before.forEach(LogContext::set);
  }
}
