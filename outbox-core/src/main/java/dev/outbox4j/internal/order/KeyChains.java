package dev.outbox4j.internal.order;

import dev.outbox4j.internal.Durations;
import dev.outbox4j.internal.state.HeldRow;
import dev.outbox4j.internal.state.RowFollower;
import dev.outbox4j.internal.state.Settlement;
import dev.outbox4j.spi.BucketStore;
import dev.outbox4j.spi.BucketStore.KeyRange;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.IntToLongFunction;
import java.util.function.LongSupplier;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * Lets the rows of one ordering key through one at a time, in the order of their ids. Rows without
 * a key go through at once. Thread-safe: one lock, held for no longer than it takes to link rows.
 *
 * <p>A key's <em>chain</em> holds a bounded number of rows; it knows from which id on there may be
 * more, and these are read again, by their key, once there is room. No row from that id on waits in
 * the chain. A row that is to be handled again blocks its chain, in which then no other row waits,
 * until it is due and was read again, or until an older one is found, which goes before it. One
 * that became a dead letter may put its chain on hold, which then waits until it is released.
 */
final class KeyChains implements RowFollower {
  private static final long NONE = -1;
  private static final long NEVER = 0;
  private static final long ALL_READ = Long.MAX_VALUE;
  private static final long UNDECIDED = TimeUnit.SECONDS.toNanos(1);

  private final Limits limits;
  private final boolean holdsOnDeadLetter;
  private final Predicate<HeldRow> isTransactional;
  private final Out out;
  private final LongSupplier clock;

  // guarded by this
  private final Map<String, Chain> chains = new HashMap<>();
  private final Set<Chain> hungry = new LinkedHashSet<>();

  /** By the rows that they wait for. */
  private final Map<Long, Chain> blocked = new HashMap<>();

  /**
   * By their keys, as ids of dead letters may be those of rows; those that were asked for longest
   * ago come first.
   */
  private final Map<String, Chain> onHold = new LinkedHashMap<>();

  private long holds;

  /** Keys of which rows are found but not wanted: loading them would be in vain. */
  private final Set<String> unwanted = new LinkedHashSet<>();

  private boolean closed;

  /**
   * How much may be held.
   *
   * @param rows of one key, waiting
   * @param bytes of one key, waiting; one row may be larger
   * @param blocked keys that wait for a row to be handled again, or are on hold
   */
  record Limits(int rows, long bytes, int blocked) {}

  /** What becomes of rows. Called without the lock. */
  interface Out {
    /** Rows may be handled now, at once. */
    void ready(List<HeldRow> rows);

    /** Rows are not to be handled from memory: they are withdrawn. */
    void withdrawn(List<HeldRow> rows);

    /** A row is to be read again then; its key waits for it, if it has one. */
    void again(HeldRow row, long at);

    /** There is room to read more of some key. */
    void hungry();

    /** A row became a dead letter, and its key is on hold. */
    void onHold(HeldRow row);

    /** A row could not be handed on: what is known of its key cannot be relied on. */
    void broken(Throwable failure);
  }

  /** The rows of one key. */
  private static final class Chain {
    private final String key;
    private final int bucket;
    private final WaitingRows waiting = new WaitingRows();
    private @Nullable HeldRow running;

    /** The last one that was acked, until that is written. */
    private @Nullable HeldRow acked;

    /** Acked rows that cannot be written for now, and rows of an earlier time as owner. */
    private Set<HeldRow> awaited = Set.of();

    private int expected;
    private long expectedBytes;
    private long largest;
    private boolean waitsUntilIdle;
    private long blockedBy = NONE;
    private @Nullable Long lookAt;
    private @Nullable Long lookedAt;
    private long onHoldSince = NEVER;
    private long moreFrom = ALL_READ;

    /** What the row has that was read from there on and had no room. */
    private long needed;

    Chain(String key, int bucket) {
      this.key = key;
      this.bucket = bucket;
    }

    boolean isBlocked() {
      return blockedBy != NONE;
    }

    /** Tells whether its rows may begin, one after the other. */
    boolean mayGoOn() {
      return !isBlocked() && awaited.isEmpty();
    }

    boolean isAwaitingOnly() {
      return !isBlocked() && !awaited.isEmpty();
    }

    boolean isOnHold() {
      return onHoldSince != NEVER;
    }

    /** Tells whether it goes on once that row has been read. */
    boolean waitsFor(long id) {
      return blockedBy == id && !isOnHold();
    }

    /** Tells whether there may be older rows than the one that it waits for. */
    boolean isPreceded() {
      return isBlocked() && !isOnHold() && moreFrom < blockedBy;
    }

    /** What waits from this id on is read again: what precedes it may be among it. */
    void readAgainFrom(long id, List<HeldRow> withdrawn) {
      moreFrom = Math.min(moreFrom, id);
      waiting.removeFrom(id, withdrawn);
    }

    boolean holds(long id) {
      HeldRow now = running;
      return (now != null && now.id() == id)
          || waiting.hasId(id)
          || awaited.stream().anyMatch(row -> row.id() == id);
    }

    int rows() {
      return waiting.count() + expected;
    }

    long bytes() {
      return waiting.bytes() + expectedBytes;
    }

    void expect(long bytes) {
      expected++;
      expectedBytes += bytes;
      largest = Math.max(largest, bytes);
    }

    void expected(long bytes) {
      expected--;
      expectedBytes -= bytes;
    }

    boolean isIdle() {
      return running == null && waiting.isEmpty() && expected == 0;
    }

    boolean isEmpty() {
      return isIdle() && !isBlocked() && moreFrom == ALL_READ && acked == null && awaited.isEmpty();
    }

    /** Tells whether it waited for the row to be written. */
    boolean wrote(HeldRow row) {
      boolean waited = acked == row || awaited.contains(row);
      if (acked == row) {
        acked = null;
      }
      if (!awaited.isEmpty()) {
        awaited.remove(row);
      }
      return waited;
    }

    void await(HeldRow row) {
      if (awaited.isEmpty()) {
        awaited = new HashSet<>();
      }
      awaited.add(row);
    }
  }

  KeyChains(
      Limits limits,
      boolean holdsOnDeadLetter,
      Predicate<HeldRow> isTransactional,
      Out out,
      LongSupplier clock) {
    this.limits = limits;
    this.holdsOnDeadLetter = holdsOnDeadLetter;
    this.isTransactional = isTransactional;
    this.out = out;
    this.clock = clock;
  }

  /**
   * Tells whether a row is to be held, which {@link #admit} then must do; else it is known that
   * there is more of its key.
   */
  boolean expect(BucketStore.Row read) {
    String key = read.row().message().orderingKey();
    if (key == null) {
      return true;
    }
    long id = read.row().lease().id();
    int bytes = read.row().message().payload().size();
    List<HeldRow> withdrawn = new ArrayList<>(0);
    synchronized (this) {
      Chain chain = chain(key, read.bucket());
      if (chain.waitsFor(id)) {
        unblock(chain);
      }
      if (chain.mayGoOn() && id < chain.moreFrom) {
        if (hasRoom(chain, bytes)) {
          chain.expect(bytes);
          return true;
        }
        chain.needed = bytes;
      }
      chain.readAgainFrom(id, withdrawn);
      changed(chain);
    }
    out.withdrawn(withdrawn);
    return false;
  }

  private boolean hasRoom(Chain chain, int bytes) {
    int rows = chain.rows();
    return rows == 0 || (rows < limits.rows() && chain.bytes() + bytes <= limits.bytes());
  }

  private Chain chain(String key, int bucket) {
    return chains.computeIfAbsent(key, each -> new Chain(each, bucket));
  }

  /**
   * Holds rows that were expected, but for those whose keys have come to wait for others meanwhile.
   */
  void admit(List<HeldRow> rows) {
    List<HeldRow> ready = new ArrayList<>(rows.size());
    List<HeldRow> withdrawn = new ArrayList<>(0);
    synchronized (this) {
      for (HeldRow row : rows) {
        String key = row.message().orderingKey();
        HeldRow next = key == null ? row : admit(key, row, withdrawn);
        if (next != null) {
          ready.add(next);
        }
      }
    }
    out.withdrawn(withdrawn);
    out.ready(ready);
  }

  /** Returns the row of the key that may be handled now, if any. */
  private @Nullable HeldRow admit(String key, HeldRow row, List<HeldRow> withdrawn) {
    Chain chain = chains.get(key);
    if (chain == null || closed) { // its bucket was given up meanwhile
      withdrawn.add(row);
      return null;
    }
    chain.expected(row.bytes());
    boolean settled = row.state() == HeldRow.State.SETTLED; // withdrawn, and so forgotten
    if (settled || !chain.mayGoOn() || row.id() >= chain.moreFrom) {
      withdrawn.add(row);
      chain.readAgainFrom(row.id(), withdrawn);
    } else {
      chain.waiting.add(row);
    }
    HeldRow next = next(chain);
    changed(chain);
    return next;
  }

  /** A row that was expected is not held after all: it is read again, before those that follow. */
  void unexpected(HeldRow row) {
    String key = row.message().orderingKey();
    List<HeldRow> withdrawn = new ArrayList<>(0);
    synchronized (this) {
      Chain chain = key == null ? null : chains.get(key);
      if (chain != null) {
        chain.expected(row.bytes());
        chain.readAgainFrom(row.id(), withdrawn);
        changed(chain);
      }
    }
    out.withdrawn(withdrawn);
  }

  /**
   * Takes the row that is to be handled now, if any. None begins while acks of the key cannot be
   * written, and none whose own transaction would be committed before they are.
   */
  private @Nullable HeldRow next(Chain chain) {
    if (chain.running != null || !chain.mayGoOn() || closed) {
      return null;
    }
    HeldRow first = chain.waiting.peekFirst();
    if (first == null || (chain.acked != null && isTransactional.test(first))) {
      return null;
    }
    chain.running = chain.waiting.takeFirst();
    return chain.running;
  }

  private void changed(Chain chain) {
    if (chain.isPreceded()) { // then that row is read again after them
      unblock(chain);
    }
    boolean wants =
        chain.mayGoOn()
            && chain.moreFrom != ALL_READ
            && (!chain.waitsUntilIdle || chain.isIdle())
            && chain.rows() <= limits.rows() / 2
            && chain.bytes() <= limits.bytes() / 2
            && (chain.rows() == 0 || chain.bytes() + chain.needed <= limits.bytes());
    if (wants) {
      hungry.add(chain);
    } else {
      hungry.remove(chain);
    }
    if (!chain.mayGoOn() || chain.moreFrom != ALL_READ) {
      unwanted.add(chain.key);
    } else {
      unwanted.remove(chain.key);
    }
    if (chain.isEmpty()) {
      chains.remove(chain.key, chain);
    }
  }

  /**
   * Rows are held from an earlier time as owner: nothing of their keys begins until all of these
   * have ended, and then they are read again, as what was decided of them may have changed nothing.
   */
  void await(List<HeldRow> before) {
    List<HeldRow> withdrawn = new ArrayList<>(0);
    synchronized (this) {
      for (HeldRow row : before) {
        String key = row.message().orderingKey();
        if (key != null && row.state() != HeldRow.State.SETTLED) { // else nobody tells of its end
          Chain chain = chain(key, HeldOfQueue.bucketOf(row).bucket());
          chain.await(row);
          chain.readAgainFrom(row.id(), withdrawn);
          changed(chain);
        }
      }
    }
    out.withdrawn(withdrawn);
  }

  /** A row was handled before and cannot be handled now: its key waits for it. */
  void waits(String key, int bucket, long id) {
    List<HeldRow> withdrawn = new ArrayList<>(0);
    synchronized (this) {
      waits(chain(key, bucket), id, withdrawn);
    }
    out.withdrawn(withdrawn);
  }

  /** Blocks a key, now or when it has come to the row; returns whether it is blocked by it. */
  private boolean waits(Chain chain, long id, List<HeldRow> withdrawn) {
    if (chain.waitsFor(id)) {
      return true;
    }
    boolean now = chain.isIdle() && !chain.isBlocked() && id <= chain.moreFrom;
    if (now) {
      block(chain, id);
      chain.moreFrom = Math.max(chain.moreFrom, id + 1);
    } else {
      chain.readAgainFrom(id, withdrawn);
      chain.waitsUntilIdle = true;
    }
    changed(chain);
    return now;
  }

  /**
   * A row of a key was found and not loaded.
   *
   * @return true if its key waits for that very row, which is to be looked at now
   */
  boolean more(String key, int bucket, long id) {
    List<HeldRow> withdrawn = new ArrayList<>(0);
    synchronized (this) {
      Chain chain = chain(key, bucket);
      if (chain.waitsFor(id)) {
        return true;
      }
      chain.readAgainFrom(id, withdrawn);
      changed(chain);
    }
    out.withdrawn(withdrawn);
    return false;
  }

  /**
   * A row that a key waits for.
   *
   * @param id the row
   * @param at when to look at it
   */
  record Look(long id, long at) {}

  /**
   * More of a key is there. If it waits for a row, that may be gone: a timer that was cancelled, or
   * has been published anew. So it is looked at, though it is not due, but not all the time.
   *
   * @param pause how long after the last look
   * @return when to look; null if that is known, or the key waits for none
   */
  synchronized @Nullable Look look(String key, long now, long pause) {
    Chain chain = chains.get(key);
    if (chain == null || !chain.isBlocked() || chain.isOnHold()) {
      return null;
    }
    Long next = chain.lookAt;
    if (next == null || next - now <= 0) {
      chain.lookedAt = next;
      next = null;
    }
    Long last = chain.lookedAt;
    long at = last == null || now - last >= pause ? now : last + pause;
    if (next != null && next - at <= 0) {
      return null;
    }
    chain.lookAt = at;
    return new Look(chain.blockedBy, at);
  }

  /** Tells whether it is known that there is a row of a key, which is read in its turn. */
  synchronized boolean isKnown(String key, long id) {
    Chain chain = chains.get(key);
    return chain != null && id >= chain.moreFrom && !chain.waitsFor(id);
  }

  /** A row that was to be read again is not there any more; its key goes on. */
  synchronized void gone(long id) {
    Chain chain = blocked.get(id);
    if (chain != null) { // in which nothing waits
      unblock(chain);
      chain.moreFrom = Math.min(chain.moreFrom, id);
      changed(chain);
    }
  }

  /**
   * A row was read that is held already. If it is none that the chain runs, has or awaits, such as
   * one whose ack is on its way, the key waits for it, once it comes to it.
   *
   * @return true if the row is to be looked at again
   */
  boolean isHeld(String key, int bucket, long id) {
    List<HeldRow> withdrawn = new ArrayList<>(0);
    boolean waits;
    synchronized (this) {
      Chain chain = chain(key, bucket);
      waits = !chain.holds(id) && waits(chain, id, withdrawn);
    }
    out.withdrawn(withdrawn);
    return waits;
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
      long upTo = readUpTo.applyAsLong(chain.bucket);
      if (chain.moreFrom <= upTo) { // else its bucket is not read now
        ranges.add(new KeyRange(chain.key, chain.moreFrom - 1, upTo));
      }
    }
    return ranges;
  }

  /** Returns how many keys there are of which more is to be read. */
  synchronized int hungry() {
    return hungry.size();
  }

  /** Returns how many rows of each of these keys fit, if they are like those before. */
  synchronized int rowsThatFit(List<KeyRange> ranges) {
    long most = limits.rows();
    for (KeyRange range : ranges) {
      Chain chain = chains.get(range.key());
      if (chain != null) {
        most = Math.min(most, limits.bytes() / Math.max(1, chain.largest));
      }
    }
    return (int) Math.max(1, most);
  }

  /**
   * The rows of a key are about to be expected, as they were read by {@link #hungry}.
   *
   * @return false if that is not wanted any more
   */
  synchronized boolean beginKey(KeyRange range) {
    Chain chain = chains.get(range.key());
    if (chain == null || !chain.mayGoOn() || chain.moreFrom != range.above() + 1) {
      return false;
    }
    chain.moreFrom = ALL_READ;
    chain.waitsUntilIdle = false;
    chain.needed = 0;
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
      if (from != null) { // above all that wait
        chain.moreFrom = Math.min(chain.moreFrom, from);
      }
      hungry.remove(chain); // to the end of those that are hungry
      changed(chain);
    }
  }

  /**
   * Returns the id from which on rows of a key are read by the key; the greatest there is if none
   * are. Other threads may lower it. Only the fetcher raises it: by that read, or by one if the key
   * waits for that very row. So what lies above is found before what follows it.
   */
  synchronized long moreFrom(String key) {
    Chain chain = chains.get(key);
    return chain == null ? ALL_READ : chain.moreFrom;
  }

  /** Returns keys whose rows are not to be loaded by ranges, at most so many. */
  synchronized Set<String> unwanted(int most) {
    return unwanted.stream().limit(most).collect(Collectors.toSet());
  }

  /** Tells whether too many keys wait for a row. */
  synchronized boolean isFull() {
    return blocked.size() + onHold.size() >= limits.blocked();
  }

  /** Returns how many keys wait for a row that is to be handled again, or to be written. */
  synchronized int blocked() {
    long awaiting = chains.values().stream().filter(Chain::isAwaitingOnly).count();
    return blocked.size() + (int) awaiting;
  }

  /** Returns how many keys are on hold. */
  synchronized int onHold() {
    return onHold.size();
  }

  /** Puts a key on hold until it is released. A row of it that runs ends, and no other begins. */
  void hold(String key, int bucket, long id) {
    List<HeldRow> withdrawn = new ArrayList<>(0);
    synchronized (this) {
      if (!closed) {
        hold(chain(key, bucket), id, withdrawn);
      }
    }
    out.withdrawn(withdrawn);
  }

  private void hold(Chain chain, long id, List<HeldRow> withdrawn) {
    long first = chain.isOnHold() ? Math.min(id, chain.blockedBy) : id;
    if (chain.isBlocked()) { // such as by a row that it comes back to
      chain.moreFrom = Math.min(chain.moreFrom, chain.blockedBy);
      unblock(chain);
    }
    chain.blockedBy = first;
    chain.onHoldSince = ++holds;
    onHold.put(chain.key, chain);
    withdraw(chain, withdrawn);
    changed(chain);
  }

  /**
   * Returns keys that are on hold, other ones each time until all have been returned.
   *
   * @param most how many, at most
   * @return each with since when, for {@link #release}
   */
  synchronized Map<String, Long> nextOnHold(int most) {
    Map<String, Long> next = new HashMap<>();
    for (String key : onHold.keySet().stream().limit(most).toList()) {
      Chain chain = Objects.requireNonNull(onHold.remove(key));
      onHold.put(key, chain); // behind the others
      next.put(key, chain.onHoldSince);
    }
    return next;
  }

  /** Lets a key go on, unless it was put on hold anew since. */
  synchronized void release(String key, long since) {
    Chain chain = onHold.get(key);
    if (chain != null && chain.onHoldSince == since) {
      chain.moreFrom = Math.min(chain.moreFrom, chain.blockedBy);
      unblock(chain);
      changed(chain);
    }
  }

  private void block(Chain chain, long id) {
    if (chain.isBlocked()) {
      unblock(chain);
    }
    chain.blockedBy = id;
    chain.lookAt = null;
    chain.lookedAt = null;
    blocked.put(id, chain);
  }

  private void unblock(Chain chain) {
    blocked.remove(chain.blockedBy, chain);
    chain.blockedBy = NONE;
    if (chain.isOnHold()) {
      chain.onHoldSince = NEVER;
      onHold.remove(chain.key);
    }
  }

  /** An ack is enough to go on with the key; whatever else it is must have been written. */
  @Override
  public void decided(HeldRow row) {
    String key = row.message().orderingKey();
    if (key != null && row.settlementOrNull() == Settlement.Ack.INSTANCE) {
      try {
        goOn(key, row, false);
      } catch (RuntimeException | Error failure) { // what was decided is written even so
        out.broken(failure);
      }
    }
  }

  @Override
  public void unwritten(HeldRow row) {
    String key = row.message().orderingKey();
    if (key != null) {
      try {
        awaitAck(key, row);
      } catch (RuntimeException | Error failure) {
        out.broken(failure);
      }
    }
  }

  /** What waits is let go of: it would take room from other keys for as long. */
  private void awaitAck(String key, HeldRow row) {
    List<HeldRow> withdrawn = new ArrayList<>(0);
    synchronized (this) {
      Chain chain = chains.get(key);
      // else it is of an earlier time, or has just been written
      if (chain != null && row.state() != HeldRow.State.SETTLED) {
        chain.await(row);
        withdraw(chain, withdrawn);
        changed(chain);
      }
    }
    out.withdrawn(withdrawn);
  }

  private void goOn(String key, HeldRow row, boolean isWritten) {
    HeldRow next = null;
    boolean wants = false;
    synchronized (this) {
      Chain chain = chains.get(key);
      boolean isNext = chain != null && isWritten && chain.wrote(row);
      if (chain != null && chain.running == row) {
        chain.running = null;
        if (!isWritten) {
          chain.acked = row;
        }
        isNext = true;
      }
      if (chain != null && isNext) {
        next = next(chain);
        changed(chain);
        wants = hungry.contains(chain);
      }
    }
    if (next != null) {
      out.ready(List.of(next));
    }
    if (wants) {
      out.hungry();
    }
  }

  @Override
  public void settled(HeldRow row) {
    try {
      goOnAfter(row);
    } catch (RuntimeException | Error failure) {
      out.broken(failure);
    }
  }

  private void goOnAfter(HeldRow row) {
    String key = row.message().orderingKey();
    Settlement settlement = row.settlementOrNull();
    boolean dead = settlement instanceof Settlement.DeadLetter;
    if (dead && key != null && holdsOnDeadLetter && !row.knownLost()) {
      hold(key, row);
      return;
    }
    if ((row.run() != null || key != null) && isOfAnEarlierTime(key, row)) {
      if (key != null) {
        goOn(key, row, true); // it may have waited for this one to be written
      }
      out.again(row, clock.getAsLong()); // it is there still, whatever its handler decided
      return;
    }
    if (dead || settlement == Settlement.Ack.INSTANCE) {
      if (key != null) {
        goOn(key, row, true);
      }
      if (row.missing) { // it is gone, or it is there still and nobody knows why
        out.again(row, clock.getAsLong() + UNDECIDED);
      }
      return;
    }
    long at = clock.getAsLong();
    if (row.missing) { // there may be nothing to wait for
      at += UNDECIDED;
    } else if (settlement instanceof Settlement.Retry retry) {
      at += Durations.saturatedNanos(retry.delay());
    } else if (settlement instanceof Settlement.Reschedule reschedule) {
      at += Durations.saturatedNanos(reschedule.delay());
    } else if (settlement instanceof Settlement.Leave leave) {
      at += Durations.saturatedNanos(leave.delay());
    } else if (settlement == null && (row.run() != null || key == null)) {
      at += UNDECIDED; // its handler ran, or could not begin, and it is there still
    }
    if (key == null || blockedBy(key, row)) {
      out.again(row, at);
    }
  }

  private void hold(String key, HeldRow row) {
    List<HeldRow> withdrawn = new ArrayList<>(0);
    synchronized (this) {
      if (!closed) {
        Chain chain = chain(key, HeldOfQueue.bucketOf(row).bucket());
        if (chain.running == row) {
          chain.running = null;
        }
        chain.wrote(row);
        hold(chain, row.id(), withdrawn);
      }
    }
    out.withdrawn(withdrawn);
    out.onHold(row);
  }

  /** Tells whether a row was forgotten with its bucket while its handler ran, and is awaited. */
  private synchronized boolean isOfAnEarlierTime(@Nullable String key, HeldRow row) {
    if (key == null) {
      return row.knownLost();
    }
    Chain chain = chains.get(key);
    return chain != null && chain.running != row && chain.blockedBy == row.id();
  }

  /** Returns false if the row is none that its key is at. */
  private boolean blockedBy(String key, HeldRow row) {
    List<HeldRow> withdrawn = new ArrayList<>(0);
    boolean blocks;
    boolean wants;
    synchronized (this) {
      Chain chain = chains.get(key);
      if (chain == null || closed) {
        return false;
      }
      chain.wrote(row);
      blocks = chain.running == row;
      if (blocks && chain.isOnHold()) {
        chain.running = null;
        chain.readAgainFrom(row.id(), withdrawn);
        blocks = false; // its key goes on when it is released
      } else if (blocks) {
        chain.running = null;
        block(chain, row.id());
        withdraw(chain, withdrawn);
      } else if (chain.waiting.remove(row)) { // its lease was over before its turn
        chain.readAgainFrom(row.id(), withdrawn);
      }
      changed(chain);
      wants = hungry.contains(chain);
    }
    out.withdrawn(withdrawn);
    if (wants) {
      out.hungry();
    }
    return blocks;
  }

  /** Takes the rows out that wait; they are read again. */
  private static void withdraw(Chain chain, List<HeldRow> withdrawn) {
    Long first = chain.waiting.firstId();
    if (first != null) {
      chain.readAgainFrom(first, withdrawn);
    }
  }

  /** Forgets the keys of buckets that are another owner's. */
  void drop(Set<Integer> buckets) {
    List<HeldRow> rows = new ArrayList<>();
    synchronized (this) {
      for (Iterator<Chain> all = chains.values().iterator(); all.hasNext(); ) {
        Chain chain = all.next();
        if (buckets.contains(chain.bucket)) {
          withdraw(chain, rows);
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
      chains.values().forEach(chain -> withdraw(chain, rows));
      hungry.clear();
    }
    out.withdrawn(rows);
  }
}
