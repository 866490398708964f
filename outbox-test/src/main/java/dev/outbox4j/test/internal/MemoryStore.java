package dev.outbox4j.test.internal;

import dev.outbox4j.IfLive;
import dev.outbox4j.OutboxMessage;
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
import dev.outbox4j.spi.SlotStore;
import dev.outbox4j.spi.Written;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.BiConsumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * An {@link OutboxStore} in memory with the semantics of the PostgreSQL store, on a clock of the
 * test's choice. Thread-safe; each operation is atomic.
 *
 * <p>A subclass may make it fail, block or lie, by the methods that do nothing here. Its state is
 * guarded by this object.
 */
public class MemoryStore implements OutboxStore {
  private static final String CHANNEL = "outbox_memory";

  /** Refused rows at which a claim ends. */
  private static final int MOST_REFUSED = 100;

  /** There is no network, so a short one: a long one would be warned of beside a short lease. */
  private static final Duration NETWORK_TIMEOUT = Duration.ofSeconds(1);

  private final Clock clock;
  private final Map<String, NavigableMap<ScanBound, MemoryRow>> queues = new HashMap<>();
  private final Map<Long, MemoryRow> rows = new TreeMap<>();
  private final Watches watches = new Watches();
  private final List<DeadRow> dead = new ArrayList<>();
  private final DedupKeys dedupKeys = new DedupKeys();
  private final Slots slots = new Slots();
  private final List<NotificationSource.Listener> listeners = new CopyOnWriteArrayList<>();
  private long lastId;
  private long lastTransaction;

  /** Creates an empty store. */
  public MemoryStore(Clock clock) {
    this.clock = clock;
  }

  /**
   * Publishes a message at once.
   *
   * @param message its body must be a {@link Payload} or a String
   * @return the new row's id, or empty if a live row of the same queue and timer id exists, or a
   *     message of the same queue and dedup key was published within the window
   */
  public OptionalLong publish(OutboxMessage message) {
    Payload payload = payload(message.body());
    MemoryRow row;
    boolean wake;
    synchronized (this) {
      Instant now = now();
      Instant due = due(message, now);
      MemoryRow live = live(message);
      if (live != null && message.ifLive() == IfLive.DROP) {
        return OptionalLong.empty();
      }
      if (message.dedupKey().isPresent()
          && !dedupKeys.take(message, lastId + 1, now, rows::containsKey)) {
        return OptionalLong.empty();
      }
      due = live == null ? due : live.dueInPlace(due, now);
      row = new MemoryRow(++lastId, message, payload, now, due);
      if (live != null && live.isHeld(now)) {
        live.replaceBy(row);
        return OptionalLong.of(row.id);
      }
      if (live != null) {
        remove(live);
      }
      add(row);
      wake = watches.anySleepsPast(message.queue(), due);
    }
    if (wake) {
      notifyAll(message.queue());
    }
    return OptionalLong.of(row.id);
  }

  private @Nullable MemoryRow live(OutboxMessage message) {
    return message.timerId().isEmpty()
        ? null
        : rows.values().stream()
            .filter(other -> sameTimer(other.message, message))
            .findAny()
            .orElse(null);
  }

  private void add(MemoryRow row) {
    rows.put(row.id, row);
    queue(row.message.queue()).put(row.place(), row);
  }

  /** Lets the message come that was published in the place of one whose lease has ended. */
  private void handOver(MemoryRow row, MemoryRow next) {
    remove(row);
    add(next);
  }

  /** Whoever had them is gone. */
  private void handOverLeft(String queue, Instant now) {
    for (MemoryRow row : List.copyOf(queue(queue).values())) {
      MemoryRow next = row.next();
      if (next != null && !row.isHeld(now) && !isLocked(row.id)) {
        handOver(row, next);
      }
    }
  }

  /** Returns a row as a message makes it, which is published at an instant. */
  public static StoredRow newRow(long id, OutboxMessage message, Instant at) {
    Instant now = micros(at);
    return new MemoryRow(id, message, payload(message.body()), now, due(message, now)).view();
  }

  private static Instant due(OutboxMessage message, Instant now) {
    return message
        .deliverAt()
        .or(() -> message.deliverIn().map(now::plus))
        .map(MemoryStore::micros)
        .orElse(now);
  }

  /** Returns the rows as they stand, by id. */
  public synchronized List<StoredRow> rows() {
    return rows.values().stream().map(MemoryRow::view).toList();
  }

  /** Returns a row as it stands. */
  public synchronized StoredRow row(long id) {
    MemoryRow row = rows.get(id);
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

  /** Counts the rows of a queue that are due, held or not. */
  public synchronized int due(String queue) {
    return queue(queue).headMap(new ScanBound(now(), Long.MAX_VALUE), true).size();
  }

  /** Deletes the row of a timer id, unless it is held; false if there is none, or it is. */
  public synchronized boolean cancelTimer(String queue, String timerId) {
    Instant now = now();
    Optional<MemoryRow> timer =
        queue(queue).values().stream()
            .filter(row -> row.message.timerId().filter(timerId::equals).isPresent())
            .filter(row -> !row.isHeld(now))
            .findAny();
    timer.ifPresent(this::remove);
    return timer.isPresent();
  }

  /** Wakes all that listen, since the clock was set. */
  public void wakeAll() {
    List<String> names;
    synchronized (this) {
      names = List.copyOf(queues.keySet());
    }
    names.forEach(this::notifyAll);
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

  private void bury(MemoryRow row, DeadLetterEntry entry) {
    dead.add(new DeadRow(row.view(), entry.reason(), entry.attempts(), entry.exception(), now()));
    rows.remove(row.id);
  }

  private void remove(MemoryRow row) {
    queue(row.message.queue()).remove(row.place());
    rows.remove(row.id);
  }

  /** Called before an operation does anything; what it throws is the operation's result. */
  protected void before(String operation) {}

  /** Called once an operation took effect; what it throws is an answer that was lost. */
  protected void after(String operation) {}

  /** Called before a claim does anything; what it throws is the claim's result. */
  protected void beforeClaim(ClaimRequest request) {}

  /** Called before a claim looks, in its transaction; what it throws is the claim's result. */
  protected void checkClaim(ClaimRequest request) {}

  /**
   * Called before a write looks, in its transaction, for each row; what it throws is the result.
   */
  protected void checkWrite(String operation, long id) {}

  /** Tells whether a stranger's transaction has locked a row: it is passed by. */
  protected boolean isLocked(long id) {
    return false;
  }

  /** Tells whether a lease cannot be written to a row. */
  protected boolean refusesLease(long id) {
    return false;
  }

  /** Tells whether all transactions have ended that were begun up to a number. */
  protected boolean haveEnded(long number) {
    return true;
  }

  /** Begins a transaction, and returns its number. */
  protected final synchronized long beginTransaction() {
    return ++lastTransaction;
  }

  @Override
  public ClaimResult claim(ClaimRequest request) {
    before("claim");
    beforeClaim(request);
    ClaimResult result;
    synchronized (this) {
      checkClaim(request);
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
              result.refusedUpTo(),
              result.outOfSlots());
    }
    after("claim");
    return result;
  }

  private ClaimResult scan(ClaimRequest request, Instant now) {
    List<ClaimedRow> claimed = new ArrayList<>();
    Set<Long> refusals = new HashSet<>();
    ScanBound refusedUpTo = null;
    long bytes = 0;
    boolean full = false;
    boolean outOfSlots = false;
    List<Integer> free = freeSlots(request, now);
    handOverLeft(request.queue(), now);
    for (MemoryRow row : List.copyOf(within(request).values())) {
      if (row.place().availableAt().isAfter(now)) {
        break;
      }
      if (!row.claimable(now) || isLocked(row.id)) {
        continue;
      }
      if (request.slots() > 0 && claimed.size() == free.size()) {
        outOfSlots = true;
        full = true;
        break;
      }
      if (refusesLease(row.id)) {
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
      if (request.slots() > 0) {
        int slot = free.get(claimed.size() - 1);
        slots.take(request.queue(), slot, claimed.get(claimed.size() - 1).lease());
      }
      if (claimed.size() == request.limit()) {
        full = true;
        break;
      }
    }
    return new ClaimResult(claimed, full, null, now, refusals, refusedUpTo, outOfSlots);
  }

  private List<Integer> freeSlots(ClaimRequest request, Instant now) {
    return slots.free(
        request.queue(),
        request.slots(),
        lease -> {
          MemoryRow row = rows.get(lease.id());
          return row != null && row.isHeldBy(lease) && row.isHeld(now);
        });
  }

  private NavigableMap<ScanBound, MemoryRow> within(ClaimRequest request) {
    NavigableMap<ScanBound, MemoryRow> all = queue(request.queue());
    ScanBound above = request.range().above();
    ScanBound upTo = request.range().upTo();
    if (above != null && upTo != null && above.compareTo(upTo) >= 0) {
      return new TreeMap<>();
    }
    NavigableMap<ScanBound, MemoryRow> high = above == null ? all : all.tailMap(above, false);
    return upTo == null ? high : high.headMap(upTo, true);
  }

  /** Gives a new mark before the claim looks, as late as a transaction of its own would begin. */
  private long mark(Idle idle) {
    boolean asked = idle.mode() == Idle.Mode.SLEEP || idle.mode() == Idle.Mode.LOOK_AHEAD;
    Long mark = idle.mark();
    return asked && mark != null && mark == Idle.NEW_MARK ? beginTransaction() : 0;
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
    boolean settled = asked != null && asked != Idle.NEW_MARK && haveEnded(asked);
    return new LookAhead(
        next == null ? null : Duration.between(now, next),
        watches.watch(queue, request.owner(), now),
        mark,
        settled);
  }

  private @Nullable Instant nextDue(ClaimRequest request, Instant now) {
    NavigableMap<ScanBound, MemoryRow> all = queue(request.queue());
    ScanBound later = all.higherKey(new ScanBound(now, Long.MAX_VALUE));
    Instant next = later == null ? null : later.availableAt();
    if (request.range().equals(Range.ALL)) {
      for (MemoryRow row : all.values()) {
        Instant free = row.heldUntil(now);
        if (free != null && (next == null || free.isBefore(next))) {
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
      BiConsumer<MemoryRow, T> effect) {
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
    before("pass");
    Optional<String> woken;
    synchronized (this) {
      woken = watches.pass(queue, owner, now());
    }
    woken.ifPresent(this::wake);
    after("pass");
  }

  @Override
  public Optional<SlotStore> slots() {
    return Optional.of(
        (queue, most) -> {
          synchronized (this) {
            return slots.open(queue, most);
          }
        });
  }

  @Override
  public void forget(String owner) {
    before("forget");
    List<String> woken;
    synchronized (this) {
      woken = watches.forget(owner, now());
    }
    woken.forEach(this::wake);
    after("forget");
  }

  @Override
  public void send(String payload) {
    before("send");
    notifyAll(payload);
    after("send");
  }

  private void wake(String owner) {
    notifyAll(NotificationSource.BY_NAME + owner);
  }

  private void notifyAll(String payload) {
    listeners.forEach(listener -> listener.notified(payload));
  }

  private <T> Written write(
      String operation,
      List<T> updates,
      Function<T, LeaseRef> lease,
      BiConsumer<MemoryRow, T> effect) {
    List<LeaseRef> leases = updates.stream().map(lease).toList();
    if (leases.stream().map(LeaseRef::queue).distinct().count() != 1) {
      throw new IllegalArgumentException("A write is of one queue, and this one is of " + leases);
    }
    before(operation);
    Set<Long> changed = new LinkedHashSet<>();
    Set<Long> busy = new LinkedHashSet<>();
    Set<Long> replaced = new LinkedHashSet<>();
    synchronized (this) {
      leases.forEach(ref -> checkWrite(operation, ref.id()));
      for (T update : updates) {
        LeaseRef ref = lease.apply(update);
        MemoryRow row = rows.get(ref.id());
        if (row == null || !row.isHeldBy(ref)) {
          continue;
        }
        if (isLocked(ref.id())) {
          busy.add(ref.id());
        } else if (row.next() != null && !operation.equals("renew")) {
          row.next().dueFrom(now());
          handOver(row, row.next());
          replaced.add(ref.id());
        } else if (changed.add(ref.id())) {
          queue(ref.queue()).remove(row.place());
          effect.accept(row, update);
          if (rows.containsKey(row.id)) {
            queue(ref.queue()).put(row.place(), row);
          }
        }
      }
    }
    if (!replaced.isEmpty()) {
      notifyAll(leases.get(0).queue());
    }
    after(operation);
    return new Written(changed, busy, replaced);
  }

  @Override
  public Duration networkTimeout() {
    return NETWORK_TIMEOUT;
  }

  @Override
  public String channel() {
    return CHANNEL;
  }

  @Override
  public OptionalInt connectionLimit() {
    return OptionalInt.empty();
  }

  @Override
  public Object connectionSource() {
    return this;
  }

  private NavigableMap<ScanBound, MemoryRow> queue(String name) {
    return queues.computeIfAbsent(name, key -> new TreeMap<>());
  }

  private Instant now() {
    return micros(clock.instant());
  }

  static Instant micros(Instant instant) {
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
