package dev.outbox4j.internal.order;

import dev.outbox4j.internal.Durations;
import dev.outbox4j.internal.state.HeldRow;
import dev.outbox4j.internal.state.RowFollower;
import dev.outbox4j.internal.state.Settlement;
import dev.outbox4j.spi.BucketStore;
import dev.outbox4j.spi.BucketStore.KeyRange;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.IntToLongFunction;
import java.util.function.LongSupplier;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * Lets the rows of one ordering key through one at a time, in the order of their ids. Rows without
 * a key go through at once. Thread-safe: one lock, held for no longer than it takes to link rows.
 *
 * <p>A key's <em>chain</em> holds a bounded number of rows; it knows from which id on there may be
 * more, and these are read again, by their key, once there is room. A row that is to be handled
 * again blocks its chain, which then holds no other row, until it is due and was read again.
 */
final class KeyChains implements RowFollower {
  private static final long NONE = -1;
  private static final long ALL_READ = Long.MAX_VALUE;

  private final int mostWaiting;
  private final int mostBlocked;
  private final Out out;
  private final LongSupplier clock;

  // guarded by this
  private final Map<String, Chain> chains = new HashMap<>();
  private final Set<Chain> hungry = new LinkedHashSet<>();
  private final Map<Long, Chain> blocked = new HashMap<>();

  /** Keys of which rows are found but not wanted: loading them would be in vain. */
  private final Set<String> unwanted = new LinkedHashSet<>();

  private boolean closed;

  /** What becomes of rows. Called without the lock. */
  interface Out {
    /** A row may be handled now. */
    void ready(HeldRow row);

    /** Rows are not to be handled from memory: they are withdrawn. */
    void withdrawn(List<HeldRow> rows);

    /** A row is to be read again then; its key waits for it, if it has one. */
    void again(HeldRow row, long at);

    /** There is room to read more of some key. */
    void hungry();
  }

  /** The rows of one key. */
  private static final class Chain {
    private final String key;
    private final int bucket;
    private final Deque<HeldRow> waiting = new ArrayDeque<>(2);
    private @Nullable HeldRow running;
    private int expected;
    private long blockedBy = NONE;
    private long moreFrom = ALL_READ;

    Chain(String key, int bucket) {
      this.key = key;
      this.bucket = bucket;
    }

    boolean isBlocked() {
      return blockedBy != NONE;
    }

    void moreFrom(long id) {
      moreFrom = Math.min(moreFrom, id);
    }

    boolean isEmpty() {
      return running == null
          && waiting.isEmpty()
          && expected == 0
          && !isBlocked()
          && moreFrom == ALL_READ;
    }
  }

  KeyChains(int mostWaiting, int mostBlocked, Out out, LongSupplier clock) {
    this.mostWaiting = mostWaiting;
    this.mostBlocked = mostBlocked;
    this.out = out;
    this.clock = clock;
  }

  /**
   * Tells whether a row is to be held, which {@link #admit} then must do; else it is known that
   * there is more of its key.
   */
  synchronized boolean expect(BucketStore.Row read) {
    String key = read.row().message().orderingKey();
    if (key == null) {
      return true;
    }
    long id = read.row().lease().id();
    Chain chain = chains.computeIfAbsent(key, each -> new Chain(each, read.bucket()));
    if (chain.isBlocked()) {
      if (chain.blockedBy != id) {
        chain.moreFrom(id);
        return false;
      }
      unblock(chain);
    } else if (id >= chain.moreFrom) {
      return false;
    } else if (chain.waiting.size() + chain.expected >= mostWaiting) {
      chain.moreFrom(id);
      return false;
    }
    chain.expected++;
    return true;
  }

  /** Holds a row that was expected. */
  void admit(HeldRow admitted) {
    HeldRow row = admitted;
    String key = row.message().orderingKey();
    HeldRow next;
    if (key == null) {
      next = row;
    } else {
      synchronized (this) {
        Chain chain = chains.get(key);
        if (chain == null || closed) { // its bucket was given up meanwhile
          next = null;
        } else {
          chain.expected--;
          if (row.state() != HeldRow.State.SETTLED) { // withdrawn, and so forgotten, meanwhile
            insert(chain, row);
          } else {
            chain.moreFrom(row.id());
          }
          next = next(chain);
          changed(chain);
          row = null;
        }
      }
    }
    if (next != null) {
      out.ready(next);
    } else if (row != null) {
      out.withdrawn(List.of(row));
    }
  }

  /** A row that was expected is not held after all: it is read again. */
  synchronized void unexpected(@Nullable String key, long id) {
    Chain chain = key == null ? null : chains.get(key);
    if (chain != null) {
      chain.expected--;
      chain.moreFrom(id);
      changed(chain);
    }
  }

  private static void insert(Chain chain, HeldRow row) {
    Deque<HeldRow> later = new ArrayDeque<>(0);
    while (!chain.waiting.isEmpty() && chain.waiting.getLast().id() > row.id()) {
      later.addFirst(chain.waiting.removeLast()); // it was committed late, or is handled again
    }
    chain.waiting.addLast(row);
    chain.waiting.addAll(later);
  }

  /** Takes the row that is to be handled now, if any. */
  private @Nullable HeldRow next(Chain chain) {
    if (chain.running != null || chain.isBlocked() || closed) {
      return null;
    }
    chain.running = chain.waiting.pollFirst();
    return chain.running;
  }

  private void changed(Chain chain) {
    boolean wants =
        !chain.isBlocked()
            && chain.moreFrom != ALL_READ
            && chain.waiting.size() + chain.expected <= mostWaiting / 2;
    if (wants) {
      hungry.add(chain);
    } else {
      hungry.remove(chain);
    }
    if (chain.isBlocked() || chain.moreFrom != ALL_READ) {
      unwanted.add(chain.key);
    } else {
      unwanted.remove(chain.key);
    }
    if (chain.isEmpty()) {
      chains.remove(chain.key, chain);
    }
  }

  /** A row that was read is not due, though it was handled before: its key waits for it. */
  synchronized void waits(String key, int bucket, long id) {
    Chain chain = chains.computeIfAbsent(key, each -> new Chain(each, bucket));
    if (chain.isBlocked() || chain.running != null || !chain.waiting.isEmpty()) {
      if (chain.blockedBy != id) {
        chain.moreFrom(id);
      }
    } else {
      block(chain, id);
    }
    changed(chain);
  }

  /** A row of a key was found and not loaded. */
  synchronized void more(String key, int bucket, long id) {
    Chain chain = chains.computeIfAbsent(key, each -> new Chain(each, bucket));
    if (chain.blockedBy != id) {
      chain.moreFrom(id);
    }
    changed(chain);
  }

  /** A row that was to be read again is not there any more; its key goes on. */
  synchronized void gone(long id) {
    Chain chain = blocked.get(id);
    if (chain != null) {
      unblock(chain);
      chain.moreFrom(id);
      changed(chain);
    }
  }

  /**
   * Tells whether a row that was found will be read with its key, so that it need not be looked at
   * by itself.
   */
  synchronized boolean knowsOfMore(String key, long id) {
    Chain chain = chains.get(key);
    if (chain == null || chain.blockedBy == id) {
      return false;
    }
    if (chain.isBlocked()) {
      chain.moreFrom(id);
      changed(chain);
    }
    return id >= chain.moreFrom;
  }

  /**
   * Lets a key wait for a row that is held from an earlier time; false if it is one of the chain's
   * own.
   */
  synchronized boolean waitsForStranger(String key, int bucket, long id) {
    Chain chain = chains.get(key);
    if (chain != null) {
      return chain.blockedBy == id;
    }
    waits(key, bucket, id);
    return true;
  }

  /**
   * Returns the parts of keys that are to be read.
   *
   * @param most how many, at most
   * @param readUpTo up to which id a bucket was read; what lies above is read with the bucket
   */
  synchronized List<KeyRange> hungry(int most, IntToLongFunction readUpTo) {
    List<KeyRange> ranges = new ArrayList<>();
    for (Chain chain : hungry) {
      if (ranges.size() == most) {
        break;
      }
      ranges.add(new KeyRange(chain.key, chain.moreFrom - 1, readUpTo.applyAsLong(chain.bucket)));
    }
    return ranges;
  }

  /**
   * The rows of a key are about to be expected, as they were read by {@link #hungry}.
   *
   * @return false if that is not wanted any more
   */
  synchronized boolean beginKey(KeyRange range) {
    Chain chain = chains.get(range.key());
    if (chain == null || chain.isBlocked() || chain.moreFrom != range.above() + 1) {
      return false;
    }
    chain.moreFrom = ALL_READ;
    return true;
  }

  /**
   * All rows that were read of a key have been expected.
   *
   * @param from where there may be more, or null if all were read
   */
  synchronized void endKey(String key, @Nullable Long from) {
    Chain chain = chains.get(key);
    if (chain != null) {
      if (from != null) {
        chain.moreFrom(from);
      }
      hungry.remove(chain); // to the end of those that are hungry
      changed(chain);
    }
  }

  /** Returns keys whose rows are not to be loaded by ranges, at most so many. */
  synchronized Set<String> unwanted(int most) {
    return unwanted.stream().limit(most).collect(Collectors.toSet());
  }

  /** Tells whether too many keys wait for a row. */
  synchronized boolean isFull() {
    return blocked.size() >= mostBlocked;
  }

  /** Returns how many keys wait for a row that is to be handled again. */
  synchronized int blocked() {
    return blocked.size();
  }

  private void block(Chain chain, long id) {
    if (chain.isBlocked()) {
      unblock(chain);
    }
    chain.blockedBy = id;
    blocked.put(id, chain);
  }

  private void unblock(Chain chain) {
    blocked.remove(chain.blockedBy);
    chain.blockedBy = NONE;
  }

  /** An ack is enough to go on with the key; whatever else it is must have been written. */
  @Override
  public void decided(HeldRow row) {
    String key = row.message().orderingKey();
    if (key != null && row.settlementOrNull() == Settlement.Ack.INSTANCE) {
      goOn(key, row);
    }
  }

  private void goOn(String key, HeldRow row) {
    HeldRow next = null;
    boolean wants = false;
    synchronized (this) {
      Chain chain = chains.get(key);
      if (chain != null && chain.running == row) {
        chain.running = null;
        next = next(chain);
        changed(chain);
        wants = hungry.contains(chain);
      }
    }
    if (next != null) {
      out.ready(next);
    }
    if (wants) {
      out.hungry();
    }
  }

  @Override
  public void settled(HeldRow row) {
    String key = row.message().orderingKey();
    Settlement settlement = row.settlementOrNull();
    if (settlement == Settlement.Ack.INSTANCE || settlement instanceof Settlement.DeadLetter) {
      if (key != null) {
        goOn(key, row);
      }
      return;
    }
    long at = clock.getAsLong();
    if (settlement instanceof Settlement.Retry retry) {
      at += Durations.saturatedNanos(retry.delay());
    } else if (settlement instanceof Settlement.Reschedule reschedule) {
      at += Durations.saturatedNanos(reschedule.delay());
    }
    if (key == null || blockedBy(key, row)) {
      out.again(row, at);
    }
  }

  /** Returns false if the row is none that its key is at. */
  private boolean blockedBy(String key, HeldRow row) {
    List<HeldRow> others;
    synchronized (this) {
      Chain chain = chains.get(key);
      if (chain == null || closed) {
        return false;
      }
      if (chain.running != row) {
        if (chain.waiting.remove(row)) { // its lease was over before its turn
          chain.moreFrom(row.id());
          changed(chain);
        }
        return false;
      }
      chain.running = null;
      block(chain, row.id());
      others = withdrawn(chain);
      changed(chain);
    }
    out.withdrawn(others);
    return true;
  }

  /** Takes the rows out that wait; they are read again. */
  private static List<HeldRow> withdrawn(Chain chain) {
    List<HeldRow> rows = new ArrayList<>(chain.waiting);
    chain.waiting.clear();
    rows.stream().mapToLong(HeldRow::id).min().ifPresent(chain::moreFrom);
    return rows;
  }

  /** Forgets the keys of buckets that are another owner's. */
  void drop(Set<Integer> buckets) {
    List<HeldRow> rows = new ArrayList<>();
    synchronized (this) {
      for (Iterator<Chain> all = chains.values().iterator(); all.hasNext(); ) {
        Chain chain = all.next();
        if (buckets.contains(chain.bucket)) {
          rows.addAll(withdrawn(chain));
          hungry.remove(chain);
          unwanted.remove(chain.key);
          if (chain.isBlocked()) {
            unblock(chain);
          }
          all.remove();
        }
      }
    }
    out.withdrawn(rows);
  }

  /** Lets nothing through from now on. */
  void close() {
    List<HeldRow> rows = new ArrayList<>();
    synchronized (this) {
      closed = true;
      chains.values().forEach(chain -> rows.addAll(withdrawn(chain)));
      hungry.clear();
    }
    out.withdrawn(rows);
  }
}
