package dev.outbox4j.triggers.metrics;

import java.util.List;
import org.jspecify.annotations.Nullable;

/** Every meter: its name, kind, unit, tags and meaning. A public contract. */
enum LockMeters implements Described {
  ACQUIRE(
      "timer",
      "outbox.lock.acquire",
      "seconds",
      Tag.OF_LOCK,
      "Time for which locks were waited for"),
  ACQUIRE_TIMEOUTS(
      "counter",
      "outbox.lock.acquire.timeouts",
      null,
      Tag.OF_LOCK,
      "Waits that ended by their timeout"),
  LOST("counter", "outbox.lock.lost", null, Tag.OF_LOCK, "Locks lost before they were released"),
  HEALTHY(
      "gauge",
      "outbox.lock.healthy",
      null,
      Tag.OF_APPLICATION,
      "1 while the health of the locks in memory is good, else 0"),
  HELD("gauge", "outbox.lock.held", null, Tag.OF_APPLICATION, "Locks that are held"),
  LISTENERS(
      "gauge",
      "outbox.lock.listeners",
      null,
      Tag.OF_APPLICATION,
      "Listeners whose work is done here; those that stand by are not counted"),
  WAITING("gauge", "outbox.lock.waiting", null, Tag.OF_APPLICATION, "Threads that wait for a lock");

  /** The keys of tags. */
  static final class Tag {
    static final String APPLICATION = "application";
    static final String LOCK = "lock";

    private static final List<String> OF_APPLICATION = List.of(APPLICATION);
    private static final List<String> OF_LOCK = List.of(APPLICATION, LOCK);

    private Tag() {}
  }

  @SuppressWarnings("ImmutableEnumChecker") // its list is a copy
  private final MeterFacts facts;

  LockMeters(String kind, String id, @Nullable String unit, List<String> tags, String description) {
    this.facts = new MeterFacts(kind, id, unit, tags, description);
  }

  @Override
  public MeterFacts facts() {
    return facts;
  }
}
