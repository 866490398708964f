package dev.outbox4j.internal.state;

import dev.outbox4j.internal.OneLine;
import dev.outbox4j.internal.Utf8;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.slf4j.MDC;
import org.slf4j.helpers.NOPMDCAdapter;

/**
 * Names a message in the log lines of the thread that runs its handler, or says what became of it.
 * Confined to that thread.
 */
public final class LogContext implements AutoCloseable {
  private static final int MOST_BYTES = 300;
  private static final List<String> KEYS =
      List.of("outbox.queue", "outbox.type", "outbox.id", "outbox.correlation_id");
  private static final LogContext NONE = new LogContext(0);

  private final @Nullable String[] before;

  private LogContext(int keys) {
    this.before = new String[keys];
  }

  /** Begins, on the calling thread; of one row among others its id is not named. */
  public static LogContext of(HeldRow row, boolean alone) {
    if (MDC.getMDCAdapter() == null || MDC.getMDCAdapter() instanceof NOPMDCAdapter) {
      return NONE;
    }
    LogContext context = new LogContext(KEYS.size());
    context.put(0, row.queue());
    context.put(1, row.typeOrNull());
    context.put(2, alone ? Long.toString(row.id()) : null);
    context.put(3, alone ? row.delivery().correlationId().orElse(null) : null);
    return context;
  }

  private void put(int key, @Nullable String value) {
    before[key] = MDC.get(KEYS.get(key));
    set(key, value == null ? null : Utf8.bounded(OneLine.of(value), MOST_BYTES));
  }

  private static void set(int key, @Nullable String value) {
    if (value == null) {
      MDC.remove(KEYS.get(key));
    } else {
      MDC.put(KEYS.get(key), value);
    }
  }

  /** Whatever the thread was about before: it may be a user's. */
  @Override
  public void close() {
    for (int key = 0; key < before.length; key++) {
      set(key, before[key]);
    }
  }
}
