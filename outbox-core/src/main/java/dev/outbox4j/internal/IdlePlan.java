package dev.outbox4j.internal;

import dev.outbox4j.spi.ClaimRequest.Idle;
import dev.outbox4j.spi.LookAhead;
import java.time.Duration;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * How long an idle fetcher waits, and what it tells publishers meanwhile. Confined to the fetcher.
 *
 * <p>The protocol of falling asleep: a claim that finds nothing announces the sleep in its own
 * transaction. A publisher whose statement runs after that commits sees it and notifies; one whose
 * statement ran before does not, and its rows may become visible at any time until its transaction
 * ends. So polls stay short until no transaction is left that was open when the announcement was in
 * force; only then may the waits double up to the longest. Transactions that had not written by
 * then are not seen. In read committed they see the announcement when they do, unless their
 * publishing statement had begun before it and wrote only after the margin; above read committed
 * they notify without looking.
 */
final class IdlePlan {
  private static final int BUSY_CLAIMS = 8;
  private static final long UNSETTLED_WAIT = TimeUnit.MILLISECONDS.toNanos(20);
  private static final long LONG_UNSETTLED_WAIT = TimeUnit.MILLISECONDS.toNanos(100);
  private static final long LONG_UNSETTLED = TimeUnit.SECONDS.toNanos(2);
  private static final long MARGIN = TimeUnit.MILLISECONDS.toNanos(50);
  private static final long DUE_MEANWHILE_WAIT = TimeUnit.MILLISECONDS.toNanos(1);

  private final long minPoll;
  private final long maxPoll;
  private final long maxPollUnheard;

  private int emptyClaims;
  private int busyClaims;
  private boolean announced;
  private long announcedAt;
  private boolean inForce;
  private long inForceSince;
  private long askedAt;
  private boolean settled;
  private boolean horizonKnown;
  private long horizon;
  private boolean dueKnown;
  private long dueAt;

  IdlePlan(SubscriberSettings.Claiming settings) {
    this.minPoll = settings.minPoll().toNanos();
    this.maxPoll = settings.maxPoll().toNanos();
    this.maxPollUnheard = Math.min(maxPoll, settings.maxPollUnheard().toNanos());
  }

  /** Returns what the next claim tells publishers, and asks beside rows if none are likely. */
  Idle announcement(boolean listening, boolean rowsLikely, long now) {
    askedAt = now;
    if (announced && (busyClaims >= BUSY_CLAIMS || !listening)) {
      announced = false;
      return Idle.AWAKE;
    }
    if (rowsLikely || busyClaims >= BUSY_CLAIMS) {
      return Idle.UNCHANGED;
    }
    if (!listening) {
      return Idle.LOOK_AHEAD;
    }
    if (announced ? now - announcedAt > maxPoll / 2 : emptyClaims > 0) {
      if (!announced || now - announcedAt > 2 * maxPoll) { // new, or run out meanwhile
        announced = true;
        inForce = false;
        settled = false;
        horizonKnown = false;
      }
      announcedAt = now; // refreshed: it must outlast the longest wait
      return Idle.sleep(Duration.ofNanos(2 * maxPoll).plusSeconds(1));
    }
    return Idle.LOOK_AHEAD;
  }

  /** The announcement may not be in force: the claim that carried it failed. */
  void unannounced() {
    announced = false;
  }

  /** Learns from a claim. */
  void claimed(int rows, @Nullable LookAhead ahead, long now) {
    if (rows > 0) {
      busyClaims++;
      emptyClaims = 0;
    } else {
      busyClaims = 0;
      emptyClaims = Math.min(emptyClaims + 1, 30);
    }
    boolean announcing = announced && !inForce;
    if (announcing) {
      inForce = true; // its transaction has committed; what the claim itself saw was before that
      inForceSince = now;
    }
    if (ahead == null) {
      return;
    }
    Duration next = ahead.nextDueIn();
    dueKnown = next != null;
    if (next != null) {
      dueAt = now + Completer.saturatedNanos(next);
    }
    if (announced && !announcing && !settled && askedAt - inForceSince > MARGIN) {
      if (!horizonKnown) {
        horizonKnown = true;
        horizon = ahead.nextTransaction();
      }
      settled = ahead.oldestTransaction() >= horizon;
    }
  }

  /** Notes a row that this subscriber itself made due later. */
  void dueAt(long at) {
    if (!dueKnown || at - dueAt < 0) {
      dueKnown = true;
      dueAt = at;
    }
  }

  /** Returns how long to wait after a claim that found nothing, unless a notification comes. */
  long wait(boolean listening, long now) {
    long ceiling = listening ? maxPoll : maxPollUnheard;
    long wait = minPoll;
    for (int i = 1; i < emptyClaims && wait < ceiling; i++) {
      wait *= 2;
    }
    wait = (long) (Math.min(wait, ceiling) * ThreadLocalRandom.current().nextDouble(0.8, 1.0));
    if (listening && !announced) {
      wait = Math.min(wait, UNSETTLED_WAIT); // no publisher knows of the sleep yet
    } else if (listening && !settled) {
      wait =
          Math.min(
              wait, now - inForceSince < LONG_UNSETTLED ? UNSETTLED_WAIT : LONG_UNSETTLED_WAIT);
    }
    if (dueKnown) {
      long untilDue = dueAt - now;
      if (untilDue <= 0) {
        dueKnown = false; // due since, or another subscriber's by now: the next claim tells
        untilDue = DUE_MEANWHILE_WAIT;
      }
      wait = Math.min(wait, untilDue);
    }
    return wait;
  }
}
