package dev.outbox4j.internal.order;

import dev.outbox4j.internal.OneLine;
import dev.outbox4j.internal.lease.Renewable;
import dev.outbox4j.internal.settings.SubscriberSettings;
import dev.outbox4j.internal.state.EngineHealth.Operation;
import dev.outbox4j.internal.state.Lease;
import dev.outbox4j.internal.state.Shared;
import dev.outbox4j.spi.BucketStore;
import dev.outbox4j.spi.BucketStore.Join;
import dev.outbox4j.spi.BucketStore.Owned;
import dev.outbox4j.spi.BucketStore.Ownership;
import java.time.Duration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Which buckets of one queue this subscriber owns. Joined once a second, and so renewed, by the
 * lease keeper; thread-safe for the others.
 *
 * <p>All buckets are promised by one lease. Who has more than its share gives some up: it reads
 * nothing more of them, and lets go of each once no row of it is held any more.
 */
final class BucketLeases implements Renewable {
  private static final Logger log = LoggerFactory.getLogger(BucketLeases.class);

  private static final long JOIN_EVERY = TimeUnit.SECONDS.toNanos(1);

  private final String queue;
  private final String owner;
  private final BucketStore store;
  private final Shared shared;
  private final Duration length;
  private final LongSupplier clock;
  private final Changes changes;
  private final Lease lease;
  private final long joinEvery;
  private final long longestWait;
  private boolean joined; // confined to the keeper
  private long joinAt;
  private volatile boolean ended;

  // guarded by this
  private final Map<Integer, Owned> owned = new HashMap<>();
  private final Map<Integer, Long> giving = new HashMap<>();

  /**
   * Of those that are being given up: a statement that gives them had no answer, and may run at any
   * time. They are given once more, and so come back with another epoch, if they do.
   */
  private final Set<Integer> inDoubt = new HashSet<>();

  private final Set<Integer> restedUntilAsked = new HashSet<>();

  /** What follows when buckets come and go. Called by the keeper, without the lock. */
  interface Changes {
    /** Rows of these buckets are not to be begun any more. */
    void withdraw(Set<Integer> buckets);

    /** These buckets are another owner's: what is held of them is lost. */
    void lost(Set<Integer> buckets);

    /** There are buckets to read from. */
    void gained();

    /** Of which buckets rows are held. */
    Set<Integer> held();

    /** The greatest id that was read. */
    long seenUpTo();
  }

  BucketLeases(
      String queue,
      String owner,
      SubscriberSettings settings,
      BucketStore store,
      Shared shared,
      Changes changes,
      LongSupplier clock) {
    this.queue = queue;
    this.owner = owner;
    this.store = store;
    this.shared = shared;
    this.changes = changes;
    this.clock = clock;
    this.length = settings.claiming().lease();
    this.lease = new Lease(clock.getAsLong(), 0);
    this.joinEvery = Math.min(JOIN_EVERY, length.toNanos() / 4);
    this.longestWait = Math.min(JOIN_EVERY, length.toNanos() / 8);
    this.joinAt = clock.getAsLong();
  }

  /** Returns the lease of all buckets. */
  Lease lease() {
    return lease;
  }

  @Override
  public void renewDue() {
    if (ended || clock.getAsLong() - joinAt < 0) {
      return;
    }
    List<Owned> given = drained();
    long sentAt = clock.getAsLong();
    Ownership ownership;
    try {
      ownership =
          shared
              .connections()
              .spendOnRenewal(
                  longestWait,
                  () -> store.join(new Join(queue, owner, length, given, changes.seenUpTo())));
    } catch (RuntimeException | Error failure) {
      doubt(given);
      joinAt = clock.getAsLong() + joinEvery / 4;
      if (failure instanceof Error error) {
        throw error;
      }
      shared.health().failed(Operation.RENEW, failure);
      return;
    }
    joinAt = sentAt + joinEvery;
    shared.health().succeeded(Operation.RENEW);
    learn(ownership, given, sentAt);
  }

  /** Returns the buckets to give up: nobody can take a row of them any more. */
  private List<Owned> drained() {
    Set<Integer> held = changes.held();
    synchronized (this) {
      return owned.values().stream()
          .filter(each -> giving.containsKey(each.bucket()) && !held.contains(each.bucket()))
          .toList();
    }
  }

  private synchronized void doubt(List<Owned> given) {
    given.stream().map(Owned::bucket).filter(owned::containsKey).forEach(inDoubt::add);
  }

  private void learn(Ownership ownership, List<Owned> given, long sentAt) {
    Set<Integer> lost = new HashSet<>();
    Set<Integer> withdrawn = new HashSet<>();
    Map<Integer, Owned> readBefore;
    boolean gained;
    synchronized (this) {
      readBefore = readable();
      lease.renewed(sentAt, length.toNanos());
      Map<Integer, Owned> now = new HashMap<>();
      ownership.owned().forEach(each -> now.put(each.bucket(), each));
      for (Owned before : List.copyOf(owned.values())) {
        Owned after = now.get(before.bucket());
        if (!before.isSameAs(after)) {
          if (!given.contains(before)) {
            lost.add(before.bucket());
          }
          owned.remove(before.bucket());
          giving.remove(before.bucket());
          inDoubt.remove(before.bucket());
        }
      }
    }
    if (!lost.isEmpty()) {
      log.warn(
          "[{}] {} bucket(s) of queue '{}' were taken by another subscriber, since their lease ran out",
          shared.subscriber(),
          lost.size(),
          OneLine.of(queue));
      changes.lost(lost);
    }
    synchronized (this) { // only now: what comes again must not be taken for what was lost
      ownership.owned().forEach(each -> owned.put(each.bucket(), each));
      withdrawn.addAll(balance(ownership));
      gained =
          readable().values().stream()
              .anyMatch(each -> !each.isSameAs(readBefore.get(each.bucket())));
    }
    if (!withdrawn.isEmpty()) {
      changes.withdraw(withdrawn);
    }
    if (gained) {
      changes.gained();
    }
    tell(ownership);
  }

  /** Decides which buckets to give up; returns those that are new among them. */
  private Set<Integer> balance(Ownership ownership) {
    int most =
        ownership.rowByRow() != null
            ? 0 // who claims row by row does not look who owns a bucket
            : -Math.floorDiv(-ownership.buckets(), Math.max(1, ownership.owners()));
    long now = clock.getAsLong();
    int excess = owned.size() - most;
    if (excess <= 0) {
      giving.keySet().retainAll(inDoubt);
      restedUntilAsked.clear();
      return Set.of();
    }
    // a bucket whose handlers do not end goes on meanwhile, and another one is tried
    giving
        .entrySet()
        .removeIf(
            each -> {
              boolean tooLong =
                  now - each.getValue() >= length.toNanos() && !inDoubt.contains(each.getKey());
              if (tooLong) {
                restedUntilAsked.add(each.getKey());
              }
              return tooLong;
            });
    Set<Integer> chosen = new HashSet<>();
    Set<Integer> candidates = new TreeSet<>(owned.keySet());
    candidates.removeAll(giving.keySet());
    if (candidates.size() - restedUntilAsked.size() < excess - giving.size()) {
      restedUntilAsked.clear();
    }
    candidates.removeAll(restedUntilAsked);
    for (Integer bucket : candidates) {
      if (giving.size() >= excess) {
        break;
      }
      giving.put(bucket, now);
      chosen.add(bucket);
    }
    return chosen;
  }

  private void tell(Ownership ownership) {
    String other = ownership.rowByRow();
    if (other == null) {
      shared.health().succeeded(Operation.ORDER);
    }
    if (ownership.buckets() == 0) {
      shared
          .health()
          .held(
              Operation.CLAIM,
              "queue '"
                  + OneLine.of(queue)
                  + "' is not set up to be ordered: run its migration, OrderedMigrations.of(...), or with Spring Boot name it in outbox4j.ordered-queues");
    } else if (other != null) {
      String text =
          "subscriber '"
              + OneLine.of(other)
              + "' claims queue '"
              + OneLine.of(queue)
              + "' row by row, which keeps no order: stop it, or build it with ordered() as well (with Spring Boot: outbox4j.ordered-queues);"
              + " no bucket is taken meanwhile, and those that are owned are given up";
      shared.health().held(Operation.ORDER, text);
    } else if (!joined) {
      log.info(
          "[{}] owns {} of {} buckets of queue '{}'",
          shared.subscriber(),
          ownership.owned().size(),
          ownership.buckets(),
          OneLine.of(queue));
    }
    joined = true;
  }

  /** Returns how many buckets are owned, those that are being given up included. */
  synchronized int owned() {
    return owned.size();
  }

  /** Returns the buckets to read from; none once the lease is over. */
  synchronized Map<Integer, Owned> readable() {
    if (ended || clock.getAsLong() - lease.expiresAt() >= 0) {
      return Map.of();
    }
    Map<Integer, Owned> readable = new HashMap<>(owned);
    readable.keySet().removeAll(giving.keySet());
    return readable;
  }

  /** Takes rows of buckets that are read now; while it does, no bucket can come or go. */
  synchronized <T> T undisturbed(Function<Map<Integer, Owned>, T> action) {
    return action.apply(readable());
  }

  /** Gives up everything but what rows are still held of. */
  void end() {
    ended = true;
    Set<Integer> held = changes.held();
    synchronized (this) {
      owned.clear();
      giving.clear();
      inDoubt.clear();
    }
    if (!joined) {
      return;
    }
    try {
      shared.connections().spendOnSaying(() -> store.leave(queue, owner, held, changes.seenUpTo()));
    } catch (RuntimeException harmless) {
      log.debug(
          "[{}] the buckets of queue '{}' are free when their lease ends",
          shared.subscriber(),
          OneLine.of(queue),
          harmless);
    }
  }
}
