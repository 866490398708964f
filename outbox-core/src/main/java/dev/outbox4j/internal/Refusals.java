package dev.outbox4j.internal;

import dev.outbox4j.internal.Vitals.Operation;
import java.time.Duration;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;

/**
 * Ends what health tells of the completer's writes once nothing is left of them to be written,
 * since no later write of the kind may ever come and show that it works. Confined to the
 * completer's thread.
 *
 * <p>A row that the server refused is not left, either, but comes again when its lease ends, and
 * may be refused again. So a refusal is told for two leases.
 */
final class Refusals {
  private static final List<Operation> WRITES =
      List.of(Operation.ACK, Operation.RETRY, Operation.RESCHEDULE);

  private final Vitals vitals;
  private final long toldNanos;
  private final Map<Operation, Long> lastAt = new EnumMap<>(Operation.class);

  Refusals(Vitals vitals, Duration lease) {
    this.vitals = vitals;
    this.toldNanos = 2 * Completer.saturatedNanos(lease);
  }

  /** A row's outcome cannot be written. */
  void refused(Operation operation) {
    lastAt.put(operation, System.nanoTime());
  }

  /** Nothing waits to be written but dead letters. */
  void nothingOwed() {
    if (!vitals.failing()) {
      lastAt.clear();
      return;
    }
    for (Operation operation : WRITES) {
      Long at = lastAt.get(operation);
      if (at == null || System.nanoTime() - at >= toldNanos) {
        lastAt.remove(operation);
        vitals.succeeded(operation);
      }
    }
  }

  /** Returns how long the completer may sleep at most, so that this is asked again. */
  long longestWait(long wait) {
    long longest = wait;
    for (long at : lastAt.values()) {
      longest = Math.min(longest, Math.max(1, at + toldNanos - System.nanoTime()));
    }
    return longest;
  }
}
