package dev.outbox4j.timer.internal;

import java.time.Duration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.function.LongSupplier;

/** Timers of which another session holds rows: who is to be told, and when. For one thread. */
final class HeldTimers {
  private static final long FOR_A_MOMENT = Duration.ofSeconds(5).toNanos();
  private static final long UNTIL_TOLD_AGAIN = Duration.ofMinutes(1).toNanos();

  private final LongSupplier nanos;

  /** When each is told of next, unless it is free before. */
  private final Map<String, Long> tellAt = new HashMap<>();

  HeldTimers(LongSupplier nanos) {
    this.nanos = nanos;
  }

  /**
   * Notes which are held now.
   *
   * @param held their names
   * @return those that are held for long, each once a minute
   */
  Set<String> note(Set<String> held) {
    long now = nanos.getAsLong();
    tellAt.keySet().retainAll(held);
    held.forEach(timer -> tellAt.putIfAbsent(timer, now + FOR_A_MOMENT));
    Set<String> told = new HashSet<>();
    tellAt.replaceAll(
        (timer, at) -> {
          if (now - at < 0) {
            return at;
          }
          told.add(timer);
          return now + UNTIL_TOLD_AGAIN;
        });
    return told;
  }
}
