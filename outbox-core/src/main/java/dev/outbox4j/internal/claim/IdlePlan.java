package dev.outbox4j.internal.claim;

import dev.outbox4j.internal.settings.SubscriberSettings;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;

/** How long a fetcher waits that has found nothing more to do. Confined to the fetcher. */
final class IdlePlan {
  private static final long DUE_MEANWHILE_WAIT = TimeUnit.MILLISECONDS.toNanos(1);

  private final List<QueueLane> lanes;
  private final long minPoll;
  private int emptyRounds;

  IdlePlan(List<QueueLane> lanes, SubscriberSettings.Claiming settings) {
    this.lanes = lanes;
    this.minPoll = settings.minPoll().toNanos();
  }

  /** Learns how many rows a round of claims gave. */
  void round(int rows) {
    emptyRounds = rows > 0 ? 0 : Math.min(emptyRounds + 1, 30);
  }

  /** Tells whether others are on watch everywhere, and take what comes. */
  boolean inReserve() {
    return lanes.stream().allMatch(lane -> lane.watch().inReserve());
  }

  /** Returns how long to wait, unless a signal comes. */
  long nextWait(boolean listening, long now) {
    long ceiling = Long.MAX_VALUE;
    long due = Long.MAX_VALUE;
    long sweep = Long.MAX_VALUE;
    long retry = Long.MAX_VALUE;
    for (QueueLane lane : lanes) {
      if (lane.awaitsTry()) {
        retry = Math.min(retry, lane.untilTry(now));
        continue;
      }
      ceiling = Math.min(ceiling, lane.watch().longestWait(listening, now));
      if (lane.watch().inReserve()) {
        continue; // who is on watch looks after what falls due and what lies below the bound
      }
      due = Math.min(due, Math.max(DUE_MEANWHILE_WAIT, lane.untilDue(now)));
      if (lane.scan().lookedAtAPart()) {
        sweep = Math.min(sweep, lane.scan().untilSweep(now)); // empty there is not empty
      }
    }
    if (ceiling == Long.MAX_VALUE) { // all fail, or have reached their limits
      return retry;
    }
    long wait = inReserve() ? ceiling : Math.min(ceiling, doubled(ceiling));
    wait = (long) (wait * ThreadLocalRandom.current().nextDouble(0.8, 1.0));
    return Math.min(Math.min(wait, retry), Math.min(due, sweep));
  }

  private long doubled(long ceiling) {
    long wait = minPoll;
    for (int i = 1; i < emptyRounds && wait < ceiling; i++) {
      wait *= 2;
    }
    return wait;
  }
}
