package dev.outbox4j.internal.order;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.jspecify.annotations.Nullable;

/**
 * Single rows that are to be looked at again, and when. Rows may be added by any thread; the rest
 * is confined to the fetcher.
 */
final class Agenda {
  private static final long NOTHING = Long.MAX_VALUE;

  private static final int MOST_OUTDATED = 1_000;

  private final Queue<Entry> added = new ConcurrentLinkedQueue<>();
  private final PriorityQueue<Entry> entries =
      new PriorityQueue<>(Comparator.comparingLong(Entry::at));

  /** For each row the entry that counts: the earliest. */
  private final Map<Long, Entry> earliest = new HashMap<>();

  private int found;

  private record Entry(long id, long at, boolean isFound) {}

  /** Adds a row. Thread-safe. */
  void add(long id, long at) {
    added.add(new Entry(id, at, false));
  }

  /** Adds a row of which nobody knew before it was looked for. Thread-safe. */
  void addFound(long id, long at) {
    added.add(new Entry(id, at, true));
  }

  /** Returns how many rows there are that were looked for and found. */
  int found() {
    sort();
    return found;
  }

  /** Takes the rows that are to be looked at now, at most so many. */
  List<Long> takeDue(long now, int most) {
    sort();
    List<Long> due = new ArrayList<>();
    while (due.size() < most) {
      Entry first = entries.peek();
      if (first == null || first.at() - now > 0) {
        break;
      }
      entries.remove();
      if (earliest.remove(first.id(), first)) {
        due.add(first.id());
        count(first, -1);
      }
    }
    return due;
  }

  /** Returns how long until a row is to be looked at, or the longest time there is. */
  long untilDue(long now) {
    sort();
    Entry first = entries.peek();
    return first == null ? NOTHING : Math.max(0, first.at() - now);
  }

  /** Tells whether a row is to be looked at again. */
  boolean has(long id) {
    sort();
    return earliest.containsKey(id);
  }

  int size() {
    return earliest.size();
  }

  /** Returns how many entries there are, those that do not count any more among them. */
  int entries() {
    return entries.size();
  }

  private void sort() {
    for (Entry entry = added.poll(); entry != null; entry = added.poll()) {
      Entry known = earliest.get(entry.id());
      if (known == null || entry.at() - known.at() < 0) {
        earliest.put(entry.id(), entry);
        entries.add(entry);
        count(known, -1);
        count(entry, 1);
      }
    }
    if (entries.size() > 2 * earliest.size() + MOST_OUTDATED) { // of rows looked at before
      entries.clear();
      entries.addAll(earliest.values());
    }
  }

  private void count(@Nullable Entry entry, int more) {
    if (entry != null && entry.isFound()) {
      found += more;
    }
  }
}
