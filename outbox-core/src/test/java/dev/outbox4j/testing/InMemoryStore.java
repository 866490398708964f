package dev.outbox4j.testing;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.OutboxStoreException.Fault;
import dev.outbox4j.Payload;
import dev.outbox4j.spi.ClaimRequest;
import dev.outbox4j.spi.ClaimRequest.Idle;
import dev.outbox4j.spi.ClaimRequest.Range;
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
import dev.outbox4j.spi.Written;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.NavigableSet;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * An {@link OutboxStore} in memory with the semantics of the PostgreSQL store, on a clock of the
 * test's choice. Thread-safe; each operation is atomic.
 */
public final class InMemoryStore implements OutboxStore {
  private static final String CHANNEL = "outbox_memory";

  /** Refused rows at which a claim ends. */
  private static final int MOST_REFUSED = 100;

  private static final Comparator<@Nullable Instant> SOONEST =
      Comparator.nullsLast(Comparator.naturalOrder());

  private final Clock clock;
  private final Map<String, NavigableMap<ScanBound, InMemoryRow>> queues = new HashMap<>();
  private final Map<Long, InMemoryRow> rows = new TreeMap<>();
  private final Watches watches = new Watches();
  private final List<DeadRow> dead = new ArrayList<>();
  private final List<NotificationSource.Listener> listeners = new CopyOnWriteArrayList<>();
  private final Map<String, Integer> calls = new TreeMap<>();
  private final Set<Long> locked = new HashSet<>();
  private final Set<Long> refused = new HashSet<>();
  private final Map<Long, Fault> failing = new HashMap<>();
  private final NavigableSet<Long> openTransactions = new TreeSet<>();
  private volatile Consumer<String> before = operation -> {};
  private volatile Consumer<String> after = operation -> {};
  private volatile Consumer<ClaimRequest> beforeClaim = request -> {};
  private volatile Function<Range, Duration> claimCost = range -> Duration.ZERO;
  private volatile OptionalInt connectionLimit = OptionalInt.empty();
  private volatile Duration networkTimeout = Duration.ofSeconds(15);
  private long lastId;
  private long lastTransaction;

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
      if (message.timerId().isPresent()
          && rows.values().stream().anyMatch(other -> sameTimer(other.message, message))) {
        return OptionalLong.empty();
      }
      Instant now = now();
      Instant due =
          message
              .deliverAt()
              .or(() -> message.deliverIn().map(now::plus))
              .map(InMemoryStore::micros)
              .orElse(now);
      row = new InMemoryRow(++lastId, message, payload, now, due);
      rows.put(row.id, row);
      queue(message.queue()).put(row.place(), row);
      wake = watches.anySleepsPast(message.queue(), due);
    }
    if (wake) {
      notifyAll(message.queue());
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

  /** Tells whether an owner is on watch of a queue and asleep, so that publishers notify it. */
  public synchronized boolean sleeps(String owner, String queue) {
    return watches.sleeps(queue, owner, now());
  }

  /** Tells how often an operation was called, by its verb. */
  public synchronized int calls(String operation) {
    return calls.getOrDefault(operation, 0);
  }

  /** Locks a row as a stranger's transaction does: it is not claimed, and writes find it busy. */
  public synchronized void lock(long id) {
    locked.add(id);
  }

  /** Takes a {@link #lock} back. */
  public synchronized void unlock(long id) {
    locked.remove(id);
  }

  /** Refuses to write a lease to a row, as a trigger that raises does. */
  public synchronized void refuseLease(long id) {
    refused.add(id);
  }

  /** Fails all writes that name a row, the dead letter's included, until {@link #mend}. */
  public synchronized void failWrites(long id, Fault fault) {
    failing.put(id, fault);
  }

  /** Takes {@link #refuseLease} and {@link #failWrites} back. */
  public synchronized void mend(long id) {
    refused.remove(id);
    failing.remove(id);
  }

  /** Begins a transaction that stays open, and returns its number. */
  public synchronized long openTransaction() {
    openTransactions.add(++lastTransaction);
    return lastTransaction;
  }

  /** Ends a transaction. */
  public synchronized void endTransaction(long number) {
    openTransactions.remove(number);
  }

  /**
   * Makes the store tell how long claims over a range take. No time goes by, but a claim whose time
   * limit, or the network timeout, is less than that fails as one that the server ended.
   */
  public void claimCost(Function<Range, Duration> cost) {
    claimCost = cost;
  }

  /** Sets the network timeout. */
  public void networkTimeout(Duration timeout) {
    networkTimeout = timeout;
  }

  /**
   * Calls back with each operation's verb before it does anything; what is thrown is its result.
   */
  public void beforeEach(Consumer<String> hook) {
    before = hook;
  }

  /** Calls back with each claim before it does anything; what is thrown is its result. */
  public void beforeEachClaim(Consumer<ClaimRequest> hook) {
    beforeClaim = hook;
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
    begin("claim");
    beforeClaim.accept(request);
    ClaimResult result;
    synchronized (this) {
      refuseSlowClaim(request);
      Instant now = now();
      long mark = mark(request.idle());
      result = scan(request, now);
      result =
          new ClaimResult(
              result.rows(),
              result.full(),
              idle(request, now, mark),
              result.at(),
              result.refused(),
              result.refusedUpTo());
    }
    after.accept("claim");
    return result;
  }

  private void refuseSlowClaim(ClaimRequest request) {
    Duration cost = claimCost.apply(request.range());
    Duration limit = request.timeLimit() == null ? networkTimeout : request.timeLimit();
    if (cost.compareTo(limit) > 0) {
      throw new OutboxStoreException(
          "claim failed: it takes " + cost + " and may take " + limit, Fault.TIMEOUT, false, null);
    }
  }

  private ClaimResult scan(ClaimRequest request, Instant now) {
    List<ClaimedRow> claimed = new ArrayList<>();
    Set<Long> refusals = new HashSet<>();
    ScanBound refusedUpTo = null;
    long bytes = 0;
    boolean full = false;
    for (InMemoryRow row : List.copyOf(within(request).values())) {
      if (row.place().availableAt().isAfter(now)) {
        break;
      }
      if (!row.claimable(now) || locked.contains(row.id)) {
        continue;
      }
      if (refused.contains(row.id)) {
        refusals.add(row.id);
        refusedUpTo = row.place();
        if (refusals.size() == MOST_REFUSED) {
          full = true;
          break;
        }
        continue;
      }
      bytes += row.size();
      if (bytes > request.maxBytes() && !claimed.isEmpty()) {
        full = true;
        break;
      }
      claimed.add(row.claim(now, request.lease(), request.owner()));
      if (claimed.size() == request.limit()) {
        full = true;
        break;
      }
    }
    return new ClaimResult(claimed, full, null, now, refusals, refusedUpTo);
  }

  private NavigableMap<ScanBound, InMemoryRow> within(ClaimRequest request) {
    NavigableMap<ScanBound, InMemoryRow> all = queue(request.queue());
    ScanBound above = request.range().above();
    ScanBound upTo = request.range().upTo();
    if (above != null && upTo != null && above.compareTo(upTo) >= 0) {
      return new TreeMap<>();
    }
    NavigableMap<ScanBound, InMemoryRow> high = above == null ? all : all.tailMap(above, false);
    return upTo == null ? high : high.headMap(upTo, true);
  }

  /** Gives a new mark before the claim looks, as late as a transaction of its own would begin. */
  private long mark(Idle idle) {
    boolean asked = idle.mode() == Idle.Mode.SLEEP || idle.mode() == Idle.Mode.LOOK_AHEAD;
    Long mark = idle.mark();
    return asked && mark != null && mark == Idle.NEW_MARK ? ++lastTransaction : 0;
  }

  private @Nullable LookAhead idle(ClaimRequest request, Instant now, long mark) {
    Idle idle = request.idle();
    String queue = request.queue();
    switch (idle.mode()) {
      case UNCHANGED -> {
        return null;
      }
      case AWAKE -> {
        watches.awake(queue, request.owner(), now, idle.wakeIn());
        return null;
      }
      case SLEEP -> watches.sleep(queue, request.owner(), now, idle.wakeIn());
      case LOOK_AHEAD -> {}
    }
    Instant next = nextDue(request, now);
    Long asked = idle.mark();
    boolean settled =
        asked != null
            && asked != Idle.NEW_MARK
            && (openTransactions.isEmpty() || openTransactions.first() > asked);
    return new LookAhead(
        next == null ? null : Duration.between(now, next),
        watches.watch(queue, request.owner(), now),
        mark,
        settled);
  }

  private @Nullable Instant nextDue(ClaimRequest request, Instant now) {
    NavigableMap<ScanBound, InMemoryRow> all = queue(request.queue());
    ScanBound later = all.higherKey(new ScanBound(now, Long.MAX_VALUE));
    Instant next = later == null ? null : later.availableAt();
    if (request.range().equals(Range.ALL)) {
      for (InMemoryRow row : all.values()) {
        Instant free = row.heldUntil(now);
        if (free != null && SOONEST.compare(free, next) < 0) {
          next = free;
        }
      }
    }
    return next;
  }

  @Override
  public Written ack(List<LeaseRef> leases) {
    return write("ack", leases, Function.identity(), (row, lease) -> rows.remove(row.id));
  }

  @Override
  public Written retry(List<RetryUpdate> updates) {
    return writeAndWake(
        "retry", updates, RetryUpdate::lease, (row, update) -> row.retry(now(), update));
  }

  @Override
  public Written reschedule(List<RescheduleUpdate> updates) {
    return writeAndWake(
        "reschedule",
        updates,
        RescheduleUpdate::lease,
        (row, update) -> row.reschedule(now(), update.delay()));
  }

  @Override
  public Written renew(List<LeaseRef> leases, Duration lease) {
    return write("renew", leases, Function.identity(), (row, ref) -> row.renew(now(), lease));
  }

  @Override
  public Written release(List<LeaseRef> leases) {
    return writeAndWake("release", leases, Function.identity(), (row, lease) -> row.release());
  }

  /** Writes rows that stay, and tells who sleeps past the instant at which one is due. */
  private <T> Written writeAndWake(
      String operation,
      List<T> updates,
      Function<T, LeaseRef> lease,
      BiConsumer<InMemoryRow, T> effect) {
    Set<String> awaited = new LinkedHashSet<>();
    Written written =
        write(
            operation,
            updates,
            lease,
            (row, update) -> {
              effect.accept(row, update);
              Instant due = row.place().availableAt();
              Instant now = now();
              String queue = lease.apply(update).queue();
              if (watches.anySleepsPast(queue, due.isBefore(now) ? now : due)) {
                awaited.add(queue);
              }
            });
    awaited.forEach(this::notifyAll);
    return written;
  }

  @Override
  public void pass(String queue, String owner) {
    begin("pass");
    Optional<String> woken;
    synchronized (this) {
      woken = watches.pass(queue, owner, now());
    }
    woken.ifPresent(this::wake);
    after.accept("pass");
  }

  @Override
  public void forget(String owner) {
    begin("forget");
    List<String> woken;
    synchronized (this) {
      woken = watches.forget(owner, now());
    }
    woken.forEach(this::wake);
    after.accept("forget");
  }

  private void wake(String owner) {
    notifyAll(NotificationSource.BY_NAME + owner);
  }

  private void notifyAll(String payload) {
    listeners.forEach(listener -> listener.notified(payload));
  }

  private void begin(String operation) {
    synchronized (this) {
      calls.merge(operation, 1, Integer::sum);
    }
    before.accept(operation);
  }

  private <T> Written write(
      String operation,
      List<T> updates,
      Function<T, LeaseRef> lease,
      BiConsumer<InMemoryRow, T> effect) {
    List<LeaseRef> leases = updates.stream().map(lease).toList();
    if (leases.stream().map(LeaseRef::queue).distinct().count() != 1) {
      throw new IllegalArgumentException("A write is of one queue, and this one is of " + leases);
    }
    begin(operation);
    Set<Long> changed = new LinkedHashSet<>();
    Set<Long> busy = new LinkedHashSet<>();
    synchronized (this) {
      leases.forEach(ref -> failIfTold(operation, ref.id()));
      for (T update : updates) {
        LeaseRef ref = lease.apply(update);
        InMemoryRow row = rows.get(ref.id());
        if (row == null || !row.isHeldBy(ref)) {
          continue;
        }
        if (locked.contains(ref.id())) {
          busy.add(ref.id());
        } else if (changed.add(ref.id())) {
          queue(ref.queue()).remove(row.place());
          effect.accept(row, update);
          if (rows.containsKey(row.id)) {
            queue(ref.queue()).put(row.place(), row);
          }
        }
      }
    }
    after.accept(operation);
    return new Written(changed, busy);
  }

  private void failIfTold(String operation, long id) {
    Fault fault = failing.get(id);
    if (fault != null) {
      throw new OutboxStoreException(operation + " failed: row " + id, fault, false, null);
    }
  }

  @Override
  public Duration networkTimeout() {
    return networkTimeout;
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
