package dev.outbox4j.testing;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.Payload;
import dev.outbox4j.spi.ClaimRequest;
import dev.outbox4j.spi.ClaimRequest.Idle;
import dev.outbox4j.spi.ClaimRequest.QueueScan;
import dev.outbox4j.spi.ClaimResult;
import dev.outbox4j.spi.ClaimedRow;
import dev.outbox4j.spi.DeadLetterEntry;
import dev.outbox4j.spi.DeadLetters;
import dev.outbox4j.spi.LeaseRef;
import dev.outbox4j.spi.LookAhead;
import dev.outbox4j.spi.NotificationSource;
import dev.outbox4j.spi.OutboxStore;
import dev.outbox4j.spi.RescheduleUpdate;
import dev.outbox4j.spi.RetryUpdate;
import dev.outbox4j.spi.ScanBound;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * An {@link OutboxStore} in memory with the semantics of the PostgreSQL store, on a clock of the
 * test's choice. Thread-safe; each operation is atomic. There are no open transactions, so a {@link
 * LookAhead} always tells that all are over.
 */
public final class InMemoryStore implements OutboxStore {
  private static final String CHANNEL = "outbox_memory";
  private static final Comparator<@Nullable Instant> SOONEST =
      Comparator.nullsLast(Comparator.naturalOrder());

  private final Clock clock;
  private final Map<String, NavigableMap<ScanBound, InMemoryRow>> queues = new HashMap<>();
  private final Map<Long, InMemoryRow> rows = new TreeMap<>();
  private final Map<String, Map<String, Instant>> sleepers = new HashMap<>();
  private final List<DeadRow> dead = new ArrayList<>();
  private final List<NotificationSource.Listener> listeners = new CopyOnWriteArrayList<>();
  private volatile Consumer<String> before = operation -> {};
  private volatile Consumer<String> after = operation -> {};
  private volatile OptionalInt connectionLimit = OptionalInt.empty();
  private long lastId;

  /** Creates an empty store. */
  public InMemoryStore(Clock clock) {
    this.clock = clock;
  }

  /**
   * Publishes a message at once.
   *
   * @param message its body must be a {@link Payload} or a String
   * @return the new row's id, or empty if a live row of the same queue and timer id exists
   */
  public OptionalLong publish(OutboxMessage message) {
    Payload payload = payload(message.body());
    InMemoryRow row;
    boolean wake;
    synchronized (this) {
      if (message.timerId() != null
          && rows.values().stream().anyMatch(other -> sameTimer(other.message, message))) {
        return OptionalLong.empty();
      }
      Instant now = now();
      Duration delay = message.deliverIn();
      Instant at = message.deliverAt();
      Instant due = at != null ? micros(at) : delay != null ? micros(now.plus(delay)) : now;
      row = new InMemoryRow(++lastId, message, payload, now, due);
      rows.put(row.id, row);
      queue(message.queue()).put(row.place(), row);
      wake = sleepsPast(message.queue(), due);
    }
    if (wake) {
      listeners.forEach(listener -> listener.notified(message.queue()));
    }
    return OptionalLong.of(row.id);
  }

  /** Returns the rows as they stand, by id. */
  public synchronized List<StoredRow> rows() {
    return rows.values().stream().map(InMemoryRow::view).toList();
  }

  /** Returns a row as it stands. */
  public synchronized StoredRow row(long id) {
    InMemoryRow row = rows.get(id);
    if (row == null) {
      throw new AssertionError("There is no row " + id);
    }
    return row.view();
  }

  /** Returns the dead letters, oldest first. */
  public synchronized List<DeadRow> deadRows() {
    return List.copyOf(dead);
  }

  /** Tells whether an owner has announced that it sleeps on a queue and its time is not up. */
  public synchronized boolean sleeps(String owner, String queue) {
    Instant wakeAt = sleepers.getOrDefault(queue, Map.of()).get(owner);
    return wakeAt != null && wakeAt.isAfter(now());
  }

  /**
   * Calls back with each operation's verb before it does anything; what is thrown is its result.
   */
  public void beforeEach(Consumer<String> hook) {
    before = hook;
  }

  /** Calls back after each operation took effect: what is thrown is an answer that was lost. */
  public void afterEach(Consumer<String> hook) {
    after = hook;
  }

  /** Makes the store tell that it can borrow so many connections at once. */
  public void connectionLimit(int limit) {
    connectionLimit = OptionalInt.of(limit);
  }

  /** Returns a source that notifies on the publishing or releasing thread. */
  public NotificationSource notifications() {
    return (channel, listener) -> {
      if (!channel.equals(CHANNEL)) {
        throw new IllegalArgumentException("The channel is " + CHANNEL + ", not " + channel);
      }
      listeners.add(listener);
      listener.connected();
      return () -> listeners.remove(listener);
    };
  }

  /** Returns dead letters kept in this store; see {@link #deadRows()}. */
  public DeadLetters deadLetters() {
    return store -> {
      if (store != this) {
        throw new IllegalArgumentException("These dead letters serve only their own store");
      }
      return entries ->
          write("dead-letter", entries, DeadLetterEntry::lease, (row, entry) -> bury(row, entry));
    };
  }

  private void bury(InMemoryRow row, DeadLetterEntry entry) {
    dead.add(new DeadRow(row.view(), entry.reason(), entry.attempts(), entry.exception(), now()));
    rows.remove(row.id);
  }

  @Override
  public ClaimResult claim(ClaimRequest request) {
    before.accept("claim");
    ClaimResult result;
    synchronized (this) {
      Instant now = now();
      List<ClaimedRow> claimed = new ArrayList<>();
      for (QueueScan scan : request.queues()) {
        scan(scan, request, now, claimed);
      }
      result = new ClaimResult(List.copyOf(claimed), idle(request, now));
    }
    after.accept("claim");
    return result;
  }

  private void scan(QueueScan scan, ClaimRequest request, Instant now, List<ClaimedRow> claimed) {
    ScanBound above = scan.above();
    NavigableMap<ScanBound, InMemoryRow> all = queue(scan.queue());
    Collection<InMemoryRow> due = above == null ? all.values() : all.tailMap(above, false).values();
    for (InMemoryRow row : due) {
      if (claimed.size() == request.limit() || row.place().availableAt().isAfter(now)) {
        return;
      }
      if (row.claimable(now)) {
        claimed.add(row.claim(now, request.lease(), request.owner()));
      }
    }
  }

  private @Nullable LookAhead idle(ClaimRequest request, Instant now) {
    Idle idle = request.idle();
    switch (idle.mode()) {
      case UNCHANGED -> {
        return null;
      }
      case AWAKE -> {
        awake(request.owner());
        return null;
      }
      case SLEEP ->
          request
              .queues()
              .forEach(
                  scan ->
                      sleepers
                          .computeIfAbsent(scan.queue(), key -> new HashMap<>())
                          .put(request.owner(), now.plus(idle.wakeIn())));
      case LOOK_AHEAD -> {}
    }
    Instant next = null;
    for (QueueScan scan : request.queues()) {
      ScanBound place = queue(scan.queue()).higherKey(new ScanBound(now, Long.MAX_VALUE));
      if (place != null && SOONEST.compare(place.availableAt(), next) < 0) {
        next = place.availableAt();
      }
      if (request.queues().stream().allMatch(one -> one.above() == null)) {
        for (InMemoryRow row : queue(scan.queue()).values()) {
          Instant free = row.heldUntil(now);
          if (free != null && SOONEST.compare(free, next) < 0) {
            next = free;
          }
        }
      }
    }
    return new LookAhead(next == null ? null : Duration.between(now, next), 1, 1);
  }

  @Override
  public Set<Long> ack(List<LeaseRef> leases) {
    return write("ack", leases, Function.identity(), (row, lease) -> rows.remove(row.id));
  }

  @Override
  public Set<Long> retry(List<RetryUpdate> updates) {
    return writeAndWake(
        "retry", updates, RetryUpdate::lease, (row, update) -> row.retry(now(), update));
  }

  @Override
  public Set<Long> reschedule(List<RescheduleUpdate> updates) {
    return writeAndWake(
        "reschedule",
        updates,
        RescheduleUpdate::lease,
        (row, update) -> row.reschedule(now(), update.delay()));
  }

  @Override
  public Set<Long> renew(List<LeaseRef> leases, Duration lease) {
    return write("renew", leases, Function.identity(), (row, ref) -> row.renew(now(), lease));
  }

  @Override
  public Set<Long> release(List<LeaseRef> leases) {
    return writeAndWake("release", leases, Function.identity(), (row, lease) -> row.release());
  }

  /** Writes rows that stay, and tells who sleeps past the instant at which one is due. */
  private <T> Set<Long> writeAndWake(
      String operation,
      List<T> updates,
      Function<T, LeaseRef> lease,
      BiConsumer<InMemoryRow, T> effect) {
    Set<String> awaited = new LinkedHashSet<>();
    Set<Long> ids =
        write(
            operation,
            updates,
            lease,
            (row, update) -> {
              effect.accept(row, update);
              Instant due = row.place().availableAt();
              Instant now = now();
              String queue = lease.apply(update).queue();
              if (sleepsPast(queue, due.isBefore(now) ? now : due)) {
                awaited.add(queue);
              }
            });
    awaited.forEach(queue -> listeners.forEach(listener -> listener.notified(queue)));
    return ids;
  }

  @Override
  public void forget(String owner) {
    before.accept("forget");
    synchronized (this) {
      awake(owner);
    }
    after.accept("forget");
  }

  private void awake(String owner) {
    sleepers.values().forEach(owners -> owners.remove(owner));
  }

  private <T> Set<Long> write(
      String operation,
      List<T> updates,
      Function<T, LeaseRef> lease,
      BiConsumer<InMemoryRow, T> effect) {
    before.accept(operation);
    Set<Long> changed = new LinkedHashSet<>();
    synchronized (this) {
      for (T update : updates) {
        LeaseRef ref = lease.apply(update);
        InMemoryRow row = rows.get(ref.id());
        if (row != null && row.isHeldBy(ref) && changed.add(ref.id())) {
          queue(ref.queue()).remove(row.place());
          effect.accept(row, update);
          if (rows.containsKey(row.id)) {
            queue(ref.queue()).put(row.place(), row);
          }
        }
      }
    }
    after.accept(operation);
    return changed;
  }

  @Override
  public String channel() {
    return CHANNEL;
  }

  @Override
  public OptionalInt connectionLimit() {
    return connectionLimit;
  }

  @Override
  public Object connectionSource() {
    return this;
  }

  private NavigableMap<ScanBound, InMemoryRow> queue(String name) {
    return queues.computeIfAbsent(name, key -> new TreeMap<>());
  }

  private boolean sleepsPast(String queue, Instant due) {
    return sleepers.getOrDefault(queue, Map.of()).values().stream().anyMatch(due::isBefore);
  }

  private Instant now() {
    return micros(clock.instant());
  }

  private static Instant micros(Instant instant) {
    return instant.truncatedTo(ChronoUnit.MICROS);
  }

  private static boolean sameTimer(OutboxMessage one, OutboxMessage other) {
    return one.queue().equals(other.queue()) && other.timerId().equals(one.timerId());
  }

  private static Payload payload(Object body) {
    if (body instanceof Payload payload) {
      return payload;
    }
    if (body instanceof String text) {
      return Payload.ofText(text);
    }
    throw new IllegalArgumentException("Give the body as a Payload or a String");
  }
}
