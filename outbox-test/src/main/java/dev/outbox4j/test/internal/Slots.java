package dev.outbox4j.test.internal;

import dev.outbox4j.spi.LeaseRef;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;
import java.util.function.Predicate;

/** The slots of queues, each with the lease that has taken it last. Guarded by its store. */
final class Slots {
  private final Map<String, NavigableMap<Integer, LeaseRef>> queues = new HashMap<>();

  /** Makes those that are missing, and returns how many were. */
  int open(String queue, int slots) {
    NavigableMap<Integer, LeaseRef> all = of(queue);
    int before = all.size();
    for (int slot = 1; slot <= slots; slot++) {
      all.putIfAbsent(slot, new LeaseRef(queue, 0, 0));
    }
    return all.size() - before;
  }

  /** Returns the slots that are free, up to a number. */
  List<Integer> free(String queue, int slots, Predicate<LeaseRef> held) {
    return of(queue).headMap(slots, true).entrySet().stream()
        .filter(slot -> !held.test(slot.getValue()))
        .map(Map.Entry::getKey)
        .toList();
  }

  void take(String queue, int slot, LeaseRef lease) {
    of(queue).put(slot, lease);
  }

  private NavigableMap<Integer, LeaseRef> of(String queue) {
    return queues.computeIfAbsent(queue, none -> new TreeMap<>());
  }
}
