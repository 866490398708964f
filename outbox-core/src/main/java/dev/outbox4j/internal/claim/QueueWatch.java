package dev.outbox4j.internal.claim;

import dev.outbox4j.internal.settings.SubscriberSettings;
import dev.outbox4j.spi.ClaimRequest.Idle;
import dev.outbox4j.spi.LookAhead;
import dev.outbox4j.spi.LookAhead.Watch;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * This subscriber's place among those of one queue, and how long it may sleep there. Confined to
 * the fetcher.
 *
 * <p>One subscriber of a queue is on watch: while it sleeps, publishers notify it, and it alone.
 * The others are in reserve: they poll at a medium pace, are woken by name when the one on watch
 * has no room for more, and take the watch when they find it vacant.
 *
 * <p>The protocol of falling asleep on watch: a claim announces the sleep in its own transaction. A
 * publisher whose statement runs after that commits sees it and notifies; one whose statement ran
 * before does not, and its rows may become visible at any time until its transaction ends. So polls
 * stay short until no transaction is left that was open when the announcement was in force; only
 * then may the waits grow to the longest. Transactions that had not written by then are not seen.
 * In read committed they see the announcement when they do, unless their publishing statement had
 * begun before it and wrote only after the margin; above read committed they notify without
 * looking.
 */
public final class QueueWatch {
  /**
   * So many claims that gave rows within {@link #BUSY_WITHIN} make a subscriber busy; one that is
   * asleep on watch also if they came in a row, however long each took.
   */
  private static final int BUSY_CLAIMS = 8;

  private static final long BUSY_WITHIN = TimeUnit.MILLISECONDS.toNanos(100);

  /** How long nothing more is said of this subscriber after that could not be written. */
  private static final long SILENT_FOR = TimeUnit.SECONDS.toNanos(5);

  private static final long UNSETTLED_WAIT = TimeUnit.MILLISECONDS.toNanos(20);
  private static final long LONG_UNSETTLED_WAIT = TimeUnit.MILLISECONDS.toNanos(100);
  private static final long LONG_UNSETTLED = TimeUnit.SECONDS.toNanos(2);
  private static final long MARGIN = TimeUnit.MILLISECONDS.toNanos(50);

  /** How long a busy subscriber keeps the watch without saying so again. */
  private static final Duration AWAKE_FOR = Duration.ofSeconds(6);

  private static final long AWAKE_AGAIN = TimeUnit.SECONDS.toNanos(2);
  private static final long TAKE_AGAIN = TimeUnit.SECONDS.toNanos(1);

  private enum Place {
    /** Not known to others. */
    NONE,
    /** In reserve. */
    RESERVE,
    /** On watch, and busy. */
    AWAKE,
    /** On watch, and asleep: publishers notify. */
    ASLEEP
  }

  private final long maxPoll;
  private final long reservePoll;
  private final Duration sleepFor;

  private Place place = Place.NONE;
  private final long[] gaveRowsAt = new long[BUSY_CLAIMS];
  private int gaveRows;
  private int gaveInARow;
  private int emptyClaims;
  private boolean silent;
  private long silentUntil;
  private Idle asked = Idle.UNCHANGED;
  private long saidAt;
  private boolean vacant;
  private long inForceSince;
  private long inForceUntil;
  private boolean settled;
  private @Nullable Long mark;

  /** Begins with a place that nobody knows of. */
  public QueueWatch(SubscriberSettings.Claiming settings) {
    this.maxPoll = settings.maxPoll().toNanos();
    this.reservePoll = Math.min(maxPoll, settings.maxPollUnheard().toNanos());
    this.sleepFor = Duration.ofNanos(2 * maxPoll).plusSeconds(1);
  }

  /** Returns what the next claim tells publishers, and asks beside rows if none are likely. */
  public Idle next(boolean listening, boolean rowsLikely, long now) {
    asked = choose(listening, rowsLikely, now);
    return asked;
  }

  /** The next claim says nothing and asks nothing. */
  Idle nextQuiet() {
    asked = Idle.UNCHANGED;
    return asked;
  }

  private Idle choose(boolean listening, boolean rowsLikely, long now) {
    if (!listening) {
      if (place != Place.NONE) {
        place = Place.NONE;
        return Idle.awake(Duration.ZERO);
      }
      return rowsLikely ? Idle.UNCHANGED : Idle.LOOK_AHEAD;
    }
    if (onWatch() && now - saidAt > (place == Place.ASLEEP ? 2 * maxPoll : AWAKE_FOR.toNanos())) {
      place = Place.NONE; // what was said has run out meanwhile
    }
    if (silent && now - silentUntil < 0) {
      return rowsLikely ? Idle.UNCHANGED : Idle.LOOK_AHEAD;
    }
    silent = false;
    if (isBusy(now)) {
      return busy(now);
    }
    if (rowsLikely) {
      return Idle.UNCHANGED;
    }
    return switch (place) {
      case NONE -> emptyClaims > 0 ? sleep(now) : Idle.LOOK_AHEAD;
      case AWAKE -> sleep(now);
      case ASLEEP -> now - saidAt > maxPoll / 2 ? sleep(now) : Idle.lookAhead(question(now));
      case RESERVE -> vacant || now - saidAt > maxPoll / 2 ? sleep(now) : Idle.LOOK_AHEAD;
    };
  }

  /** Tells whether rows keep coming, so that polls find them as soon as notifications would. */
  private boolean isBusy(long now) {
    if (gaveRows == 0) {
      return false;
    }
    if (place == Place.AWAKE) { // ends later than it begins
      return gaveInARow > 0 || now - gaveRowsAt[(gaveRows - 1) % BUSY_CLAIMS] < BUSY_WITHIN;
    }
    // only who is notified: in reserve, and with slow handlers, each claim may give rows for long
    return (gaveInARow >= BUSY_CLAIMS && place == Place.ASLEEP)
        || (gaveRows >= BUSY_CLAIMS && now - gaveRowsAt[gaveRows % BUSY_CLAIMS] < BUSY_WITHIN);
  }

  /**
   * Keeps the watch if it is mine, and takes it if nobody has it: the others need not wake then.
   */
  private Idle busy(long now) {
    return switch (place) {
      case ASLEEP -> awake(now);
      case AWAKE -> {
        if (now - saidAt > AWAKE_AGAIN) {
          yield awake(now);
        }
        // it may have lost the watch meanwhile, which keeping it does not tell
        yield asked.mode() == Idle.Mode.AWAKE ? Idle.LOOK_AHEAD : Idle.UNCHANGED;
      }
      case NONE -> now - saidAt > TAKE_AGAIN || saidAt == 0 ? sleep(now) : Idle.UNCHANGED;
      case RESERVE -> vacant ? sleep(now) : Idle.UNCHANGED;
    };
  }

  private Idle awake(long now) {
    saidAt = now;
    return Idle.awake(AWAKE_FOR);
  }

  private Idle sleep(long now) {
    saidAt = now;
    return Idle.sleep(sleepFor, place == Place.ASLEEP ? question(now) : null);
  }

  private @Nullable Long question(long now) {
    if (settled || now - inForceSince <= MARGIN) {
      return null;
    }
    return mark == null ? Long.valueOf(Idle.NEW_MARK) : mark;
  }

  /**
   * The claim failed: what it was to say may not be in force. It may be what could not be written,
   * such as for somebody's lock, so it is not tried again at once: rows must be claimed meanwhile.
   */
  public void failed(long now) {
    if (saysSomething()) {
      silent = true;
      silentUntil = now + SILENT_FOR;
    }
    forgotten();
  }

  /** What was said is not in force any more. */
  public void forgotten() {
    place = Place.NONE;
    saidAt = 0;
  }

  /** Tells whether the last claim wrote more than leases. */
  boolean saysSomething() {
    return asked.mode() == Idle.Mode.SLEEP || asked.mode() == Idle.Mode.AWAKE;
  }

  /** Another subscriber has woken this one by name: it gave the watch up. */
  void called() {
    if (place == Place.RESERVE) {
      vacant = true;
    }
  }

  /** Learns from a claim. */
  public void claimed(int rows, @Nullable LookAhead ahead, long now) {
    if (rows > 0) {
      gaveRowsAt[gaveRows++ % BUSY_CLAIMS] = now;
      if (gaveRows == 2 * BUSY_CLAIMS) {
        gaveRows = BUSY_CLAIMS; // the same places, and no overflow
      }
      gaveInARow = Math.min(gaveInARow + 1, BUSY_CLAIMS);
      emptyClaims = 0;
    } else {
      gaveInARow = 0;
      emptyClaims = Math.min(emptyClaims + 1, 30);
    }
    if (asked.mode() == Idle.Mode.AWAKE && place == Place.ASLEEP) {
      place = Place.AWAKE;
    }
    if (ahead == null) {
      return;
    }
    vacant = ahead.watch() == Watch.VACANT;
    if (asked.mode() == Idle.Mode.SLEEP) {
      if (slept(ahead, now)) {
        return; // what it asked besides was about the announcement before
      }
    } else if ((place == Place.ASLEEP || place == Place.AWAKE) && ahead.watch() != Watch.MINE) {
      place = Place.NONE;
    }
    if (place == Place.ASLEEP && asked.mark() != null) {
      if (mark == null) {
        mark = ahead.mark();
      } else {
        settled = ahead.settled();
      }
    }
  }

  /** Returns whether an announcement has come into force that was not so before. */
  private boolean slept(LookAhead ahead, long now) {
    if (ahead.watch() != Watch.MINE) {
      place = Place.RESERVE;
      return false;
    }
    // the claim may have waited for a connection while the announcement ran out
    boolean anew = place != Place.ASLEEP || now - inForceUntil > 0;
    inForceUntil = saidAt + sleepFor.toNanos();
    if (anew) {
      place = Place.ASLEEP;
      inForceSince = now; // its transaction has committed; what the claim saw was before that
      settled = false;
      mark = null;
    }
    return anew;
  }

  /** Tells whether publishers notify this subscriber, so that it must hear them. */
  public boolean asleep() {
    return place == Place.ASLEEP;
  }

  boolean inReserve() {
    return place == Place.RESERVE && !vacant;
  }

  /**
   * Tells whether the others count on this subscriber: it is on watch, or was woken to take the
   * watch.
   */
  boolean isCountedOn() {
    return onWatch() || (place == Place.RESERVE && vacant);
  }

  /** Tells whether this subscriber is on watch. */
  boolean onWatch() {
    return place == Place.AWAKE || place == Place.ASLEEP;
  }

  /** The watch was given up, and is not taken back at once. */
  void passed(long now) {
    place = Place.NONE;
    vacant = false;
    saidAt = now;
  }

  /** Returns how long a wait may be, counting on what will wake it. */
  public long longestWait(boolean listening, long now) {
    if (!listening) {
      return reservePoll;
    }
    return switch (place) {
      case RESERVE -> vacant ? 0 : reservePoll;
      case NONE -> silent ? reservePoll : UNSETTLED_WAIT; // no publisher knows of the sleep yet
      case AWAKE -> UNSETTLED_WAIT;
      case ASLEEP -> {
        if (settled) { // never past the announcement, which may have run on meanwhile
          yield Math.max(0, Math.min(maxPoll, inForceUntil - now));
        }
        yield now - inForceSince < LONG_UNSETTLED ? UNSETTLED_WAIT : LONG_UNSETTLED_WAIT;
      }
    };
  }
}
