package dev.outbox4j.internal.settle;

import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.OutboxStoreException.Fault;
import dev.outbox4j.SubscriberEvents.Phase;
import dev.outbox4j.internal.Backoff;
import dev.outbox4j.internal.state.EngineHealth;
import dev.outbox4j.internal.state.EngineHealth.Operation;
import dev.outbox4j.internal.state.HeldRow;
import dev.outbox4j.internal.state.HeldRows;
import dev.outbox4j.internal.state.Shared;
import dev.outbox4j.spi.Written;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Writes the settlements of one kind and one queue in groups. Confined to the completer's thread,
 * but for {@link #waiting()} and {@link #parked()}.
 *
 * <p>One row must hold back no other. A row that another session has locked waits by itself and
 * comes with the next ones again. A group that the server refuses is halved until what is refused
 * stands alone and waits aside; the search takes a bounded share of the thread's time and goes on a
 * while later with the rows that are still untried. Rows that wait, but for those given back, stay
 * under renewed leases; none of them counts against the room for claims; what exceeds the room for
 * waiting is given to {@link Kind#tooMany}.
 *
 * <p>Acks of one key of an ordered queue are written in the order in which they came: those behind
 * one that waits wait as well. The key goes no further, so they are few; none of an ordered queue
 * is left out, since whatever has no room to wait counts against the room for claims.
 *
 * <p>A failure that seems to concern the server and not a row is taken for one of a row when the
 * same group has failed by it twice while others succeed.
 */
final class GroupWriter {
  private static final Logger log = LoggerFactory.getLogger(GroupWriter.class);

  /** What {@link #flush} returns if nothing is left to be tried. */
  static final long NOTHING = TimeUnit.HOURS.toNanos(1);

  private static final int MOST_HELD = 1_000;

  /** Of an ordered queue, with those that were handled before it was known that they must wait. */
  private static final int MOST_HELD_IN_ORDER = 10_000;

  /**
   * A lock of less is nothing to tell of, and nothing is given up for it: a claim of another
   * process locks rows for as long as it takes, if it comes to them just as they are leased.
   */
  private static final long SHORT_LOCK = TimeUnit.SECONDS.toNanos(2);

  /** How many statements may be refused before the search for the refused rows pauses. */
  private static final int MAX_REFUSALS = 24;

  /** How long a search lasts, however fast or slow the server. */
  private static final long LONGEST_SEARCH = TimeUnit.MILLISECONDS.toNanos(50);

  /** Searching takes one part in so many of the thread's time, unless a statement takes long. */
  private static final int COST_SHARE = 10;

  private static final long SHORTEST_PAUSE = TimeUnit.MILLISECONDS.toNanos(10);
  private static final long LONGEST_PAUSE = TimeUnit.SECONDS.toNanos(2);
  private static final long LONGEST_ASIDE = TimeUnit.MINUTES.toNanos(2);

  /** Answers lost in a row, while other statements succeed, that are taken for a row's fault. */
  private static final int LOST_ANSWERS = 3;

  private final Kind kind;
  private final String queue;
  private final Shared shared;
  private final HeldRows registry;
  private final EngineHealth health;
  private final long mostHeldBytes;

  /** To be tried now. A row leaves it only when it is settled or waits elsewhere. */
  private final RowQueue fresh = new RowQueue();

  /** Waiting for the search to go on; not refused alone. */
  private final RowQueue untried = new RowQueue();

  /** Waiting for another session to let go of them; not refused. */
  private final RowQueue locked = new RowQueue();

  /** Waiting: refused alone. */
  private final RowQueue aside = new RowQueue();

  /**
   * Taken from one of these and not yet put into another, or settled: refused alone, but perhaps
   * not by its own fault; or left by an Error.
   */
  private final RowQueue between = new RowQueue();

  /** Waiting for an earlier one of their key. */
  private final KeyTurns turns = new KeyTurns(this::heldBack);

  /** What is fresh may not be in the order in which it came. */
  private boolean mixed;

  private final Backoff blockedBackoff = new Backoff();
  private final Backoff lockedBackoff = new Backoff();
  private final Backoff asideBackoff = new Backoff();
  private boolean blocked;
  private long blockedUntil;
  private long untriedDueAt;
  private long lockedDueAt;
  private long asideDueAt;
  private int asideSize;
  private int searchSize;
  private int failuresInRow;
  private int lostInRow;
  private long lostSince;
  private boolean troubled;
  private boolean triedWhileStopping;
  private int parked;
  private long heldBytes;
  private volatile int waitingCount;
  private volatile int parkedCount;

  /** What is written, and what becomes of it. */
  interface Kind {
    Operation operation();

    Phase phase();

    int maxGroup();

    /** Sends one statement. */
    Written write(List<HeldRow> rows);

    /** Rows were written. */
    void written(List<HeldRow> rows);

    /** Rows were let go of, as other messages were published in their place. */
    void replaced(List<HeldRow> rows);

    /** There is no room for one more row to wait: takes the first of a queue out of it. */
    void tooMany(RowQueue from);
  }

  GroupWriter(Kind kind, String queue, Shared shared, long mostHeldBytes) {
    this.kind = kind;
    this.queue = queue;
    this.shared = shared;
    this.registry = shared.registry();
    this.health = shared.health();
    this.mostHeldBytes = mostHeldBytes;
    this.searchSize = kind.maxGroup();
    this.asideSize = kind.maxGroup();
  }

  void add(HeldRow row) {
    if (isOfBucket(row)) {
      turns.came(row);
    }
    fresh.addLast(row);
  }

  Operation operation() {
    return kind.operation();
  }

  /** Returns how many rows wait because they could not be written. Thread-safe. */
  int waiting() {
    return waitingCount;
  }

  /** Returns how many of them do not count in the registry. */
  int parked() {
    return parkedCount;
  }

  /** Tells whether something could not be written and is still to be. */
  boolean troubled() {
    return troubled;
  }

  /**
   * Tells whether nothing is left to write; when stopping, one more try of what waits is enough,
   * but for what has been locked for a moment only.
   */
  boolean idle(boolean stopping) {
    return fresh.isEmpty()
        && between.isEmpty()
        && (held() == 0
            || (stopping && triedWhileStopping && untried.isEmpty() && !isLockedForAMoment()));
  }

  private boolean isLockedForAMoment() {
    long now = System.nanoTime();
    return locked.first(locked.size()).stream().anyMatch(row -> now - row.busySince < SHORT_LOCK);
  }

  private int held() {
    return untried.size() + locked.size() + aside.size() + turns.size();
  }

  int fresh() {
    return fresh.size();
  }

  /** Writes what there is and returns how long until it wants to try again. */
  long flush(boolean stopping) {
    tryAgain();
    if (fresh.isEmpty() && held() == 0) {
      return NOTHING;
    }
    long now = System.nanoTime();
    boolean lastTry = stopping && !triedWhileStopping;
    if (!blocked || now - blockedUntil >= 0 || lastTry) {
      triedWhileStopping |= stopping;
      attempt(now, lastTry);
    }
    if (blocked && kind.phase() == Phase.DEAD_LETTER) {
      holdFresh(); // claims go on while the dead-letter table is broken
    }
    troubled = blocked || held() > 0;
    parkedCount = parked;
    waitingCount = held() + (blocked ? fresh.size() : 0);
    return untilNext(System.nanoTime());
  }

  private long untilNext(long now) {
    long wait = NOTHING;
    if (blocked) {
      return Math.max(1, blockedUntil - now);
    }
    if (!fresh.isEmpty()) {
      wait = 0;
    }
    if (!untried.isEmpty()) {
      wait = Math.min(wait, Math.max(1, untriedDueAt - now));
    }
    if (!locked.isEmpty()) {
      wait = Math.min(wait, Math.max(1, lockedDueAt - now));
    }
    if (!aside.isEmpty()) {
      wait = Math.min(wait, Math.max(1, asideDueAt - now));
    }
    return wait;
  }

  /** Rows tried by as many statements as may be refused in one go. */
  private static final class Attempt {
    long begunAt;
    boolean trouble;
    boolean succeeded;
    int refusals;

    Attempt(long begunAt) {
      this.begunAt = begunAt;
    }

    /** What comes now has a time of its own. */
    void next() {
      begunAt = System.nanoTime();
      refusals = 0;
    }

    boolean stopped() {
      return trouble
          || refusals >= MAX_REFUSALS
          || (refusals > 0 && System.nanoTime() - begunAt > LONGEST_SEARCH);
    }
  }

  private void attempt(long now, boolean lastTry) {
    Attempt attempt = new Attempt(now);
    int asideBefore = aside.size();
    boolean asideDue = asideBefore > 0 && (lastTry || now - asideDueAt >= 0);
    boolean untriedDue = lastTry || blocked || now - untriedDueAt >= 0;
    boolean searching = !untried.isEmpty();
    if (!locked.isEmpty() && (lastTry || now - lockedDueAt >= 0)) {
      mixed = true;
      fresh.addAll(locked);
      lockedDueAt = now + lockedBackoff.nextNanos();
    }
    writeFresh(attempt);
    if (!between.isEmpty() && !attempt.trouble && !attempt.succeeded) {
      attempt.next(); // else what stands alone would keep all others from being tried
    }
    if (untriedDue || !searching) {
      long searchBegunAt = System.nanoTime();
      search(attempt);
      if (!untried.isEmpty()) {
        long cost = System.nanoTime() - searchBegunAt;
        untriedDueAt =
            searchBegunAt + Math.max(SHORTEST_PAUSE, Math.min(COST_SHARE * cost, LONGEST_PAUSE));
      }
    }
    if (asideDue && !attempt.trouble) {
      long begunAt = System.nanoTime();
      attempt.next();
      writeAside(attempt, Math.min(asideBefore, aside.size()));
      long cost = System.nanoTime() - begunAt;
      asideDueAt =
          System.nanoTime()
              + Math.max(asideBackoff.nextNanos(), Math.min(COST_SHARE * cost, LONGEST_ASIDE));
    }
    end(attempt);
  }

  private void end(Attempt attempt) {
    long now = System.nanoTime();
    blocked = attempt.trouble;
    if (attempt.succeeded) {
      failuresInRow = 0;
      if (untried.isEmpty()) { // else the search goes on by what is known
        lostInRow = 0;
      }
      while (!between.isEmpty()) {
        hold(between, aside);
      }
    } else if (!between.isEmpty()) { // nothing succeeds, so it is not the rows
      blocked = true;
    }
    tryAgain();
    if (blocked) {
      blockedUntil = now + blockedBackoff.nextNanos();
    } else {
      blockedBackoff.reset();
    }
    if (untried.isEmpty()) {
      searchSize = kind.maxGroup();
    }
    if (locked.isEmpty()) {
      lockedBackoff.reset();
    }
    if (aside.isEmpty()) {
      asideBackoff.reset();
      asideSize = kind.maxGroup();
    }
  }

  /** Adds to those that are fresh what is to be tried again, and what waits for none. */
  private void tryAgain() {
    mixed |= turns.letGo(fresh, untried, locked, aside, between) || !between.isEmpty();
    fresh.addAll(between);
  }

  private void writeFresh(Attempt attempt) {
    while (hasFresh() && !attempt.trouble) {
      List<HeldRow> group = fresh.first(kind.maxGroup());
      if (!attempt.stopped() && write(group, fresh, attempt)) {
        continue;
      }
      if (attempt.trouble) {
        return;
      }
      if (!fresh.isEmpty() && fresh.peekFirst() == group.get(0)) { // else it stood alone
        searchSize = Math.max(1, Math.min(searchSize, group.size() / 2));
        for (int i = 0; i < group.size(); i++) {
          leaveUntried();
        }
      }
    }
  }

  /**
   * Tells whether a row may be written; those of keys that have an older one in trouble may not.
   */
  private boolean hasFresh() {
    mixed &= !fresh.isEmpty();
    if ((mixed || held() + between.size() > 0) && isInOrder(fresh)) {
      turns.holdBack(fresh, untried, locked, aside, between);
    }
    return !fresh.isEmpty();
  }

  private boolean hasUntried() {
    if (isInOrder(untried)) {
      turns.holdBack(untried, fresh, locked, aside, between);
    }
    return !untried.isEmpty();
  }

  private boolean isInOrder(RowQueue rows) {
    HeldRow first = rows.peekFirst();
    return first != null && isOfBucket(first);
  }

  /**
   * Acks of a key of an ordered queue are written in their order; all else leaves its row there.
   */
  private boolean isInOrder(HeldRow row) {
    return isOfBucket(row) && row.keyInOrder() != null;
  }

  private boolean isOfBucket(HeldRow row) {
    return kind.phase() == Phase.ACK && row.lease().bucket() != null;
  }

  /** Halves what was refused as a group until what is refused stands alone. */
  private void search(Attempt attempt) {
    while (hasUntried() && !attempt.stopped()) {
      List<HeldRow> group = untried.first(searchSize);
      if (write(group, untried, attempt)) {
        searchSize = Math.min(2 * searchSize, kind.maxGroup());
      } else if (!attempt.trouble) {
        searchSize = Math.max(1, group.size() / 2);
      }
    }
  }

  /**
   * They are known to be refused: tried together and, if that fails, one by one. The size of the
   * groups is kept, since each round has time for one refusal only where that takes long.
   */
  private void writeAside(Attempt attempt, int count) {
    for (int left = count; left > 0 && !attempt.stopped(); ) {
      List<HeldRow> group = aside.first(Math.min(asideSize, left));
      if (write(group, aside, attempt)) {
        left -= group.size();
        asideSize = Math.min(2 * asideSize, kind.maxGroup());
      } else if (group.size() == 1) {
        HeldRow row = aside.removeFirst();
        aside.addLast(row);
        if (!row.parked && fits(row)) { // there was no room before
          park(row);
        }
        left--;
      } else {
        asideSize = 1;
      }
    }
  }

  /** Sends one statement for rows at the head of a queue; false if it failed. */
  private boolean write(List<HeldRow> group, RowQueue from, Attempt attempt) {
    Written written;
    try {
      written = shared.connections().spend(() -> kind.write(group));
    } catch (RuntimeException | Error thrown) {
      failed(group, from, thrown, attempt);
      return false;
    }
    attempt.succeeded |= !written.done().isEmpty();
    Predicate<HeldRow> isDone = Fence.among(group, written.done());
    Predicate<HeldRow> isBusy = Fence.among(group, written.busy());
    Predicate<HeldRow> isReplaced = Fence.among(group, written.replaced());
    List<HeldRow> done = new ArrayList<>(written.done().size());
    List<HeldRow> missing = new ArrayList<>();
    List<HeldRow> replaced = new ArrayList<>(0);
    List<HeldRow> settled = new ArrayList<>(group.size());
    for (HeldRow row : group) {
      if (!isBusy.test(row)) {
        row.missing = !isDone.test(row) && !isReplaced.test(row);
        (row.missing ? missing : isReplaced.test(row) ? replaced : done).add(row);
        settled.add(row);
        unpark(row); // before it ends, so that it is counted once
      }
    }
    if (settled.size() < group.size() && isInOrder(from)) { // before others of their key go on
      group.stream().filter(isBusy).forEach(HeldRow::tellUnwritten);
    }
    registry.settle(settled); // first what must be: to tell of it may fail
    RowQueue behind = new RowQueue();
    Set<String> lockedKeys = new HashSet<>(0);
    try {
      for (HeldRow row : group) {
        if (!isBusy.test(row)) {
          from.removeFirst();
        } else if (isInOrder(row) && !lockedKeys.add(Objects.requireNonNull(row.keyInOrder()))) {
          behind.addLast(from.removeFirst());
        } else {
          busy(row, from);
        }
      }
    } finally {
      turns.add(behind);
    }
    missing.forEach(row -> Fence.reportMissing(shared, row, kind.phase()));
    kind.written(done);
    if (!replaced.isEmpty()) {
      kind.replaced(replaced);
    }
    shared.room().settled();
    return true;
  }

  private void busy(HeldRow row, RowQueue from) {
    long now = System.nanoTime();
    if (row.busySince == 0) {
      row.busySince = now;
      lockedBackoff.reset(); // a lock may be short
      long due = now + lockedBackoff.nextNanos();
      lockedDueAt = locked.isEmpty() || due - lockedDueAt < 0 ? due : lockedDueAt;
    }
    boolean isShort = now - row.busySince < SHORT_LOCK;
    if (isShort && !row.parked && !fits(row)) {
      locked.addLast(from.removeFirst()); // and counts against the room for claims
      return;
    }
    if (!hold(from, locked) || isShort) {
      return;
    }
    health.held(
        kind.operation(),
        "row "
            + row.id()
            + " of queue '"
            + queue
            + "' has been locked by another session since "
            + Instant.now().minusNanos(now - row.busySince).truncatedTo(ChronoUnit.SECONDS)
            + "; it is written once the lock is gone: look for an open transaction that locked it");
  }

  private void failed(List<HeldRow> group, RowQueue from, Throwable thrown, Attempt attempt) {
    health.failed(kind.operation(), thrown);
    OutboxStoreException failure = Fence.asStoreException(thrown);
    if (failure.outcomeUnknown()) {
      group.forEach(row -> row.outcomeUnknown = true);
    }
    if (!concernsRows(failure, from)) {
      attempt.trouble = true;
      return;
    }
    attempt.refusals++;
    if (group.size() == 1 && from != aside) {
      HeldRow row = group.get(0);
      if (isInOrder(row)) {
        row.tellUnwritten();
      }
      if (failure.fault() == Fault.ROW) {
        refused(row, failure, hold(from, aside));
      } else {
        unpark(from.removeFirst());
        between.addLast(row);
      }
    }
  }

  /** Tells whether a smaller group may succeed. */
  private boolean concernsRows(OutboxStoreException failure, RowQueue from) {
    Fault fault = failure.fault();
    if (fault == Fault.ROW || fault == Fault.TIMEOUT || from == aside) {
      return true; // what waits aside is known to be at fault itself
    }
    boolean answered = !failure.outcomeUnknown() && fault != Fault.CONNECTION;
    if (!answered) {
      if (lostInRow++ == 0) {
        lostSince = System.nanoTime();
      }
      return lostInRow >= LOST_ANSWERS && shared.connections().succeededSince(lostSince);
    }
    if (from == fresh) {
      failuresInRow++;
    }
    return failuresInRow > 1 || from != fresh;
  }

  private void refused(HeldRow row, OutboxStoreException failure, boolean kept) {
    shared
        .warnings()
        .error(
            log,
            kind.operation().verb(),
            "the {} of {} cannot be written{}: {}",
            kind.operation().verb(),
            row,
            kept ? "; it is kept and tried again" : "", // else that has its own line
            failure.getMessage());
  }

  private void holdFresh() {
    while (!fresh.isEmpty()) {
      leaveUntried();
    }
  }

  /** Only dead letters make way for claims before it is known which of them are refused. */
  private void leaveUntried() {
    if (kind.phase() == Phase.DEAD_LETTER) {
      hold(fresh, untried);
    } else {
      untried.addLast(fresh.removeFirst());
    }
  }

  /**
   * Keeps the first row of a queue for a later try. If there is no room, the one that has been
   * waiting aside for longest makes way; false if there is no room even so.
   */
  private boolean hold(RowQueue from, RowQueue where) {
    HeldRow row = Objects.requireNonNull(from.peekFirst());
    if (row.parked) {
      where.addLast(from.removeFirst());
      return true;
    }
    if (!fits(row) && isOfBucket(row)) {
      where.addLast(from.removeFirst()); // it counts against the room, and is never left out
      return true;
    }
    while (!fits(row) && from != aside && firstAsideIsParked()) {
      giveUp(aside);
    }
    if (!fits(row)) {
      giveUp(from);
      return false;
    }
    where.addLast(from.removeFirst());
    park(row);
    return true;
  }

  private void heldBack(HeldRow row) {
    row.tellUnwritten();
    if (!row.parked && fits(row)) { // else it counts against the room
      park(row);
    }
  }

  private void park(HeldRow row) {
    row.parked = true;
    parked++;
    heldBytes += row.bytes();
    registry.parked(row);
    shared.room().settled();
  }

  private boolean firstAsideIsParked() {
    HeldRow first = aside.peekFirst();
    return first != null && first.parked && !isOfBucket(first);
  }

  private void giveUp(RowQueue from) {
    unpark(Objects.requireNonNull(from.peekFirst()));
    kind.tooMany(from);
  }

  private boolean fits(HeldRow row) {
    int most = isOfBucket(row) ? MOST_HELD_IN_ORDER : MOST_HELD;
    return parked < most && (parked == 0 || heldBytes + row.bytes() <= mostHeldBytes);
  }

  /** The row is no longer among those that wait, if it was. */
  private void unpark(HeldRow row) {
    if (!row.parked) {
      return;
    }
    row.parked = false;
    parked--;
    heldBytes -= row.bytes();
    registry.unparked(row);
  }
}
