package dev.outbox4j.job;

import dev.outbox4j.Delivery;
import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.Outcome;
import dev.outbox4j.internal.settings.Terminal;
import dev.outbox4j.internal.settings.Yielding;
import dev.outbox4j.triggers.internal.LeftToOthers;
import java.time.Duration;
import java.time.Instant;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Leaves jobs of types that have no handler here to other processes: of an older version, of a
 * newer one, or with other handlers. Their budgets are not spent. This process claims nothing for a
 * moment whenever such jobs fall due, or it would often be the first to claim them again. What
 * nobody has taken for a day fails. Thread-safe.
 */
final class LeftJobs implements Yielding {
  static final Duration LONGEST = Duration.ofHours(24);

  /** In an ordered queue, where no other process could have it meanwhile. */
  private static final Duration SHORTEST_OF_ORDERED = Duration.ofMillis(100);

  /** Of a job that others have let pass a few times, so that moments are not all the time. */
  private static final Duration SHORTEST_WAIT = Duration.ofSeconds(1);

  private static final Duration MOMENT = Duration.ofMillis(100);

  /** Between two looks for others, of all types. */
  private static final Duration AGAIN = Duration.ofMillis(250);

  private static final Duration AGAIN_IF_HANDLED = Duration.ofSeconds(10);

  /** It is no attempt that others have made, and is not made again. */
  static final class NobodyHandlesIt extends OutboxException implements Terminal {
    private static final long serialVersionUID = 1L;

    NobodyHandlesIt(String message) {
      super(message);
    }
  }

  private static final Logger log = LoggerFactory.getLogger(LeftJobs.class);

  private final JobStore store;
  private final String queue;
  private final Set<String> known;
  private final LeftToOthers left = new LeftToOthers();
  private final AtomicLong lookAt = new AtomicLong(System.nanoTime());
  private final Map<String, Long> handledUntil = new ConcurrentHashMap<>(); // as far as is known

  // guarded by this
  private final TreeSet<Long> moments = new TreeSet<>(); // when they begin; never before the origin
  private final long origin = System.nanoTime();
  private boolean asked; // never where the queue is ordered

  /**
   * Creates it; does no I/O.
   *
   * @param known types of which it is no surprise
   */
  LeftJobs(JobStore store, String queue, Set<String> known) {
    this.store = store;
    this.queue = queue;
    this.known = Set.copyOf(known);
  }

  Outcome leave(Delivery delivery) {
    String type =
        delivery
            .type()
            .orElseThrow(
                () ->
                    new OutboxException(
                        "a message of job queue '%s' has no type, so no handler can have it"
                            .formatted(queue)));
    if (isOld(delivery)) {
      throw new NobodyHandlesIt(
          "no process has handled a job of type '%s' for %s, and this one has no handler of it; add"
                  .formatted(type, LONGEST)
              + " one by on(...), and replay the dead letter");
    }
    if (left.isNew(type)) {
      String words =
          "jobs of queue '{}': type '{}' has no handler here, so its jobs are left to other"
              + " processes";
      if (known.contains(type)) {
        log.info(words, queue, type);
      } else {
        log.warn(words, queue, type);
      }
    }
    if (isAsked()) {
      lookForOthers(type);
    }
    // another number of deliveries: somebody else had it meanwhile
    return Outcome.leave(delay(left.leave(type, delivery.id(), delivery.deliveries())));
  }

  private synchronized boolean isAsked() {
    return asked;
  }

  /** Who has handlers of the type may only be busy. */
  private void lookForOthers(String type) {
    long now = System.nanoTime();
    Long until = handledUntil.get(type);
    long next = lookAt.get();
    if ((until != null && now - until < 0)
        || now - next < 0
        || !lookAt.compareAndSet(next, now + AGAIN.toNanos())) {
      return; // known, or another thread does it
    }
    try {
      for (String handled : store.handledLately()) {
        left.handled(handled);
        handledUntil.put(handled, now + AGAIN_IF_HANDLED.toNanos());
      }
    } catch (OutboxStoreException e) {
      log.debug("jobs of queue '{}': whether others handle '{}' is not known", queue, type, e);
    }
  }

  /** What waits falls due together, so that there are few moments. */
  private synchronized Duration delay(Duration wanted) {
    if (!asked) {
      return wanted.compareTo(SHORTEST_OF_ORDERED) < 0 ? SHORTEST_OF_ORDERED : wanted;
    }
    if (wanted.isZero()) {
      return wanted; // nothing is claimed for a moment from now on
    }
    long now = now();
    long wait = Math.max(wanted.toNanos(), SHORTEST_WAIT.toNanos());
    Long due = moments.ceiling(now + wait / 2);
    if (due == null || due > now + wait) {
      due = now + wait;
      moments.add(due);
    }
    return Duration.ofNanos(due - now);
  }

  private long now() {
    return System.nanoTime() - origin;
  }

  /**
   * One that was published later cannot have been left for so long, which takes no statement. The
   * time counts from when it was left first since others had it, or since it was due.
   */
  private boolean isOld(Delivery delivery) {
    if (Duration.between(delivery.createdAt(), Instant.now()).compareTo(LONGEST) <= 0) {
      return false;
    }
    try {
      return store
          .leftFor(delivery.id(), delivery.deliveries() - 1)
          .filter(age -> age.compareTo(LONGEST) > 0)
          .isPresent();
    } catch (OutboxStoreException e) {
      log.debug("jobs of queue '{}': the age of message {} is not known", queue, delivery.id(), e);
      return false;
    }
  }

  /** {@return the types of which a job was left lately, in order} */
  Set<String> types() {
    return left.types();
  }

  @Override
  public synchronized int available() {
    asked = true;
    return left.available() > 0 && ofMoment() <= 0 ? NO_LIMIT : 0;
  }

  @Override
  public void take(int messages) {
    left.take(messages);
  }

  @Override
  public synchronized Duration untilNext() {
    Duration moment = Duration.ofNanos(Math.max(0, ofMoment()));
    Duration first = left.untilNext();
    return first.compareTo(moment) > 0 ? first : moment;
  }

  /** How much is left of a moment; 0 or less outside of one. */
  private long ofMoment() {
    long now = now();
    moments.headSet(now - MOMENT.toNanos(), true).clear();
    return moments.isEmpty() || moments.first() > now
        ? 0
        : moments.first() + MOMENT.toNanos() - now;
  }
}
