package dev.outbox4j.internal.order;

import dev.outbox4j.internal.OneLine;
import dev.outbox4j.internal.state.EngineHealth.Operation;
import dev.outbox4j.internal.state.Shared;
import dev.outbox4j.spi.OpenDeadLetters;
import dev.outbox4j.spi.OpenDeadLetters.OpenKey;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Keeps the keys of dead letters from going on until these are resolved, which it asks once a
 * second. Confined to the fetcher.
 */
final class DeadLetterHold {
  private static final Logger log = LoggerFactory.getLogger(DeadLetterHold.class);

  private static final long EVERY = TimeUnit.SECONDS.toNanos(1);
  private static final long PAUSE_IF_TOO_MANY = 5 * EVERY;
  private static final int MOST_KEYS = 1_000;

  private final String queue;
  private final OpenDeadLetters letters;
  private final KeyChains chains;
  private final Shared shared;
  private final int most;
  private long askedAt;
  private long adoptAt;

  /** There are buckets that could not be adopted, which health tells until they are. */
  private boolean owed;

  /**
   * Creates a hold.
   *
   * @param most how many keys may be on hold
   */
  DeadLetterHold(
      String queue, OpenDeadLetters letters, KeyChains chains, Shared shared, int most, long now) {
    this.queue = queue;
    this.letters = letters;
    this.chains = chains;
    this.shared = shared;
    this.most = most;
    this.askedAt = now - EVERY;
    this.adoptAt = now;
  }

  /** Tells whether buckets may be adopted, or it was tried in vain shortly before. */
  boolean mayAdopt(long now) {
    return now - adoptAt >= 0;
  }

  /**
   * Finds the keys of buckets of which nothing is known yet. Those that are more than may be on
   * hold would go on, so none of these buckets is read then.
   *
   * @return false if they are not known; then the buckets cannot be read yet
   */
  boolean adopt(Set<Integer> buckets, long now) {
    int room = Math.max(0, most - chains.onHold());
    owed = true;
    List<OpenKey> keys;
    try {
      keys = shared.connections().spendOnClaim(() -> letters.ofBuckets(queue, buckets, room + 1));
    } catch (RuntimeException failure) {
      adoptAt = now + EVERY;
      shared.health().failed(Operation.HOLD, failure);
      return false;
    }
    if (keys.size() > room) {
      adoptAt = now + PAUSE_IF_TOO_MANY;
      tellTooMany(buckets.size());
      return false;
    }
    keys.forEach(each -> chains.hold(each.key(), each.bucket(), each.firstId()));
    adopted();
    if (!keys.isEmpty()) {
      log.info(
          "[{}] {} key(s) of queue '{}' wait until their dead letters are resolved",
          shared.subscriber(),
          keys.size(),
          OneLine.of(queue));
    }
    return true;
  }

  private void tellTooMany(int buckets) {
    shared
        .health()
        .held(
            Operation.HOLD,
            "more than "
                + most
                + " ordering keys of queue '"
                + OneLine.of(queue)
                + "' wait for their dead letters; "
                + buckets
                + " bucket(s) are not read until some of these are resolved");
  }

  /** There is no bucket of which nothing is known. */
  void adopted() {
    if (owed) {
      owed = false;
      shared.health().succeeded(Operation.HOLD);
    }
  }

  /** Lets keys go on whose dead letters have been resolved; returns whether there were any. */
  boolean ask(long now) {
    if (now - askedAt < EVERY) {
      return false;
    }
    askedAt = now;
    Map<String, Long> asked = chains.nextOnHold(MOST_KEYS);
    if (asked.isEmpty()) {
      return false;
    }
    Set<String> open;
    try {
      open = shared.connections().spendOnClaim(() -> letters.among(queue, asked.keySet()));
    } catch (RuntimeException failure) {
      shared.health().failed(Operation.HOLD, failure);
      return false;
    }
    if (!owed) {
      shared.health().succeeded(Operation.HOLD);
    }
    asked.keySet().removeAll(open);
    asked.forEach(chains::release);
    return !asked.isEmpty();
  }

  /** Returns how long until it is asked again, or the longest time there is. */
  long untilDue(long now) {
    long asks = chains.onHold() == 0 ? Long.MAX_VALUE : Math.max(0, askedAt + EVERY - now);
    return adoptAt - now > 0 ? Math.min(asks, adoptAt - now) : asks;
  }
}
