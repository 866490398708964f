package dev.outbox4j.internal.order;

import dev.outbox4j.spi.BucketStore.Range;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/**
 * Looks through what lies below the places that were read, for rows that were committed late. Ids
 * that no open transaction can have any more are settled: they are looked through once a minute,
 * the others all the time. Confined to the fetcher, but for the greatest id.
 *
 * <p>An id settles once it was seen at one mark, and all transactions have ended that were there at
 * a later one: a transaction takes an id a moment before the server counts it as one that writes.
 */
final class LateRows {
  private static final long SECOND = TimeUnit.SECONDS.toNanos(1);
  private static final long SAMPLE_EVERY = SECOND / 2;

  private final LongSupplier clock;
  private final IdWalk young;
  private final IdWalk all;

  /** Written by the fetcher alone. */
  private volatile long greatest;

  private long settled;
  private long settlesWithPass;
  private long settlesNext;
  private long sampled;
  private long sampledBefore;
  private long mark;
  private long sampledAt;
  private boolean walkedLast;

  LateRows(LongSupplier clock) {
    long now = clock.getAsLong();
    this.clock = clock;
    this.young = new IdWalk(SECOND / 20, SECOND, 20, now, now);
    this.all = new IdWalk(60 * SECOND, 60 * SECOND, 50, now, now + 60 * SECOND);
    this.sampledAt = now - SECOND;
  }

  /** Returns the greatest id that was read. */
  long greatest() {
    return greatest;
  }

  /** Returns up to which id all that was committed has been found. */
  long settled() {
    return settled;
  }

  void seen(long id) {
    greatest = Math.max(greatest, id);
  }

  /** What was committed late meanwhile is not known. */
  void nothingIsSettled() {
    settled = 0;
    settlesWithPass = 0; // the pass that is under way began without it
  }

  /** Tells whether to walk on; not twice without a read in between. */
  boolean takeTurn(long now) {
    walkedLast = !walkedLast && (isYoungDue(now) || all.isDue(0, settled, now));
    return walkedLast;
  }

  private boolean isYoungDue(long now) {
    return young.isDue(settled, greatest, now);
  }

  /** A part of a walk, and what becomes of it. */
  final class Step {
    private final boolean isYoung;
    private final IdWalk walk;
    private final long begunAt;
    private final List<Range> ranges;

    private Step(boolean isYoung, Collection<BucketScan> scans, long now) {
      this.isYoung = isYoung;
      this.walk = isYoung ? young : all;
      this.begunAt = now;
      if (isYoung && !walk.isWalking()) {
        settlesWithPass = settlesNext;
      }
      this.ranges = isYoung ? walk.next(settled, greatest, scans) : walk.next(0, settled, scans);
    }

    List<Range> ranges() {
      return ranges;
    }

    /** Looked through, up to an id; the greatest there is if nothing was left out. */
    void passed(long seenTo, boolean foundRows) {
      long now = clock.getAsLong();
      if (walk.passed(seenTo, foundRows, now - begunAt, now) && isYoung) {
        settled = Math.max(settled, settlesWithPass);
      }
    }

    /** The server ended it for its time limit. */
    void timedOut() {
      long now = clock.getAsLong();
      walk.timedOut(now - begunAt, now);
    }
  }

  Step next(Collection<BucketScan> scans, long now) {
    return new Step(isYoungDue(now), scans, now);
  }

  /** Tells whether the next read is to bring a mark: the transaction that comes next. */
  boolean wantsMark(long now) {
    return greatest > settled && mark == 0 && now - sampledAt >= SAMPLE_EVERY;
  }

  /**
   * Takes a mark.
   *
   * @param newest an id that was there at the mark, and may not have been read yet; 0 for none
   */
  void marked(long next, long newest, long now) {
    sampledBefore = sampled;
    sampled = Math.max(greatest, newest);
    mark = next;
    sampledAt = now;
  }

  /**
   * Learns the oldest transaction that is open: what was there half a second before the mark, it
   * cannot add to.
   */
  void oldestIs(long oldest, long now) {
    if (mark != 0 && oldest >= mark) {
      settlesNext = sampledBefore;
      mark = 0;
      young.restart(now);
    }
  }

  /** Settled ids are looked through as soon as what that costs allows. */
  void lookEverywhere(long now) {
    all.beginEarly(now);
  }

  long untilDue(long now) {
    long wait = Math.min(young.untilDue(settled, greatest, now), all.untilDue(0, settled, now));
    return mark == 0 && greatest > settled ? Math.min(wait, SAMPLE_EVERY) : wait;
  }
}
