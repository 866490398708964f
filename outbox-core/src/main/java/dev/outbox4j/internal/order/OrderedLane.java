package dev.outbox4j.internal.order;

import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.SubscriberEvents.Phase;
import dev.outbox4j.internal.Backoff;
import dev.outbox4j.internal.ByteBudget;
import dev.outbox4j.internal.Durations;
import dev.outbox4j.internal.OneLine;
import dev.outbox4j.internal.claim.ListenState;
import dev.outbox4j.internal.claim.QueueWatch;
import dev.outbox4j.internal.claim.WatchHandOver;
import dev.outbox4j.internal.run.Rows;
import dev.outbox4j.internal.settings.SubscriberSettings;
import dev.outbox4j.internal.settle.Completer;
import dev.outbox4j.internal.state.ClaimedBatch;
import dev.outbox4j.internal.state.EngineHealth.Operation;
import dev.outbox4j.internal.state.HeldRow;
import dev.outbox4j.internal.state.Shared;
import dev.outbox4j.spi.BucketLease;
import dev.outbox4j.spi.BucketStore;
import dev.outbox4j.spi.BucketStore.DueRange;
import dev.outbox4j.spi.BucketStore.KeyRange;
import dev.outbox4j.spi.BucketStore.Owned;
import dev.outbox4j.spi.BucketStore.Portion;
import dev.outbox4j.spi.BucketStore.Range;
import dev.outbox4j.spi.BucketStore.Read;
import dev.outbox4j.spi.BucketStore.ReadRequest;
import dev.outbox4j.spi.ClaimRequest.Idle;
import dev.outbox4j.spi.ClaimedRow;
import dev.outbox4j.spi.History;
import dev.outbox4j.spi.LeaseRef;
import dev.outbox4j.spi.LookAhead;
import dev.outbox4j.spi.OpenDeadLetters;
import dev.outbox4j.spi.ScanBound;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.LongSupplier;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reads one ordered queue. Confined to the fetcher, but for what buckets and chains call.
 *
 * <p>Each bucket is read in the order of ids, above the place that was reached. Four things lie
 * below it or are passed by: rows of keys that hold all they may are read by their key; rows that
 * are to be looked at again are read by their id; rows that fall due are found by their due
 * instant; and rows that were committed late are found by walking through what lies below. What
 * these find is read by id like the rest, so that a row that is held already is never taken twice.
 */
final class OrderedLane implements BucketLeases.Changes, KeyChains.Out {
  private static final Logger log = LoggerFactory.getLogger(OrderedLane.class);

  private static final int MOST_IDS = 500;
  private static final int MOST_KEYS = 500;
  private static final int MOST_UNWANTED = 1_000;
  private static final int MOST_BLOCKED = 100_000;
  private static final int FIND_LIMIT = 500;

  /** Little more is looked for while so many keys and rows are known that are to be read. */
  private static final int MOST_FOUND = 10_000;

  private static final int FIND_LIMIT_IF_CROWDED = 8;
  private static final long PAUSE_IF_CROWDED = TimeUnit.SECONDS.toNanos(2);

  private static final int LEAST_SCAN = 1_000;

  /** So many ids below its place are looked through before a row of a key begins. */
  private static final long LOOK_BACK = 20_000;

  private static final long PART_WIDTH = 1_000_000;
  private static final long SECOND = TimeUnit.SECONDS.toNanos(1);

  /** Rows due within it are remembered; the store finds those that are due later. */
  private static final Duration SOON = Duration.ofSeconds(2);

  private static final Duration SWEEP_LIMIT = Duration.ofMillis(500);

  private final String queue;
  private final String owner;
  private final BucketStore store;
  private final Shared shared;
  private final Rows rows;
  private final Completer completer;
  private final ListenState listen;
  private final LongSupplier clock;
  private final Runnable signal;
  private final int workers;
  private final HeldOfQueue held;
  private final KeyChains chains;
  private final BucketLeases leases;
  private final QueueWatch watch;
  private final WatchHandOver handOver;
  private final Agenda agenda = new Agenda();
  private final Backoff backoff = new Backoff();
  private final int keyLimit;

  /** The largest payload of the last ranges; the greatest number if there was no room for one. */
  private long largest = Long.MAX_VALUE;

  /** The last ranges had nothing but rows that are not due yet. */
  private boolean passesBy;

  /** When it was last looked for rows that are not known. */
  private long lookedAt;

  /** There was more of this bucket than the last read could give; or null. */
  private @Nullable Integer backlogged;

  private final Map<Integer, BucketScan> scans = new TreeMap<>();

  /** Buckets whose keys were forgotten, by whoever keeps the leases: they are read anew. */
  private final Set<Integer> forgotten = ConcurrentHashMap.newKeySet();

  /** What broke while rows were taken or handed on: nothing that is in memory can be relied on. */
  private final AtomicReference<@Nullable Throwable> broken = new AtomicReference<>();

  private final DeliveryCounts deliveries;
  private final Reservation reservation;
  private final DueLook dueLook;
  private final @Nullable DeadLetterHold hold;
  private final LateRows late;
  private long partWidth = PART_WIDTH;

  private boolean failing;
  private long retryAt;
  private boolean paused;

  OrderedLane(
      String queue,
      String owner,
      SubscriberSettings settings,
      BucketStore store,
      Shared shared,
      Rows rows,
      Completer completer,
      ListenState listen,
      LongSupplier clock,
      Runnable signal) {
    this.queue = queue;
    this.owner = owner;
    this.store = store;
    this.shared = shared;
    this.rows = rows;
    this.completer = completer;
    this.listen = listen;
    this.clock = clock;
    this.signal = signal;
    this.held = new HeldOfQueue(queue, shared.registry());
    this.workers = settings.work().workers();
    // so that keys which run leave room for others
    int most = 8 * settings.claiming().batchSize() / (2 * workers);
    this.keyLimit = Math.max(2, Math.min(100, most));
    KeyChains.Limits limits =
        new KeyChains.Limits(keyLimit, ByteBudget.claimed() / (2L * workers), MOST_BLOCKED);
    OpenDeadLetters open = settings.openDeadLetters();
    this.chains = new KeyChains(limits, open != null, this, clock);
    this.leases = new BucketLeases(queue, owner, settings, store, shared, this, clock);
    this.watch = new QueueWatch(settings.claiming());
    this.handOver = new WatchHandOver(settings.store(), owner, shared, listen, clock);
    long now = clock.getAsLong();
    this.late = new LateRows(clock);
    this.deliveries =
        new DeliveryCounts(store, shared, chains, agenda, this::withdrawn, clock, 4 * workers);
    this.reservation = new Reservation(queue, owner, store, shared, clock);
    this.dueLook = new DueLook(now);
    this.hold =
        open == null ? null : new DeadLetterHold(queue, open, chains, shared, MOST_BLOCKED, now);
    this.retryAt = now;
    this.lookedAt = now;
    this.paused = shared.pauses().has(queue);
  }

  String queue() {
    return queue;
  }

  BucketLeases leases() {
    return leases;
  }

  QueueWatch watch() {
    return watch;
  }

  // what the fetcher asks

  /** What a turn gave: how many rows, and whether there may be more to read at once. */
  record Turn(int rows, boolean more, boolean read) {
    static final Turn NOTHING = new Turn(0, false, false);

    Turn(int rows, boolean more) {
      this(rows, more, true);
    }
  }

  boolean mayRead(long now) {
    return !failing || now - retryAt >= 0;
  }

  void failed(long now) {
    watch.failed(now);
    failing = true;
    retryAt = now + backoff.nextNanos();
  }

  boolean isFailing() {
    return failing;
  }

  boolean isPaused() {
    return paused;
  }

  /** Heeds whether the queue is paused. Its buckets are kept, and read anew when it is resumed. */
  void pauseOrResume() {
    boolean before = paused;
    paused = shared.pauses().has(queue);
    if (paused && !before) {
      scans.clear();
      forget(held());
      handOver.pass(queue, watch);
    } else if (before && !paused) {
      watch.forgotten();
    }
  }

  /** Reads once. */
  Turn turn(int room, long bytes, boolean rowsLikely) {
    long now = clock.getAsLong();
    if (!adopt(now)) {
      return Turn.NOTHING;
    }
    boolean released = hold != null && hold.ask(now);
    if (mayLook(now) && late.takeTurn(now)) {
      Turn swept = sweep(now);
      boolean owesRead =
          rowsLikely || released || scans.values().stream().anyMatch(BucketScan::isFresh);
      return new Turn(0, swept.more() || owesRead, swept.read());
    }
    return read(room, bytes, rowsLikely, now);
  }

  /** Takes notice of which buckets there are; false if there is none. */
  private boolean adopt(long now) {
    startOver();
    Map<Integer, Owned> readable = leases.readable();
    scans.values().removeIf(scan -> !scan.owned().isSameAs(readable.get(scan.bucket())));
    for (Integer bucket : List.copyOf(forgotten)) {
      forgotten.remove(bucket);
      scans.remove(bucket);
    }
    List<Owned> adopted =
        readable.values().stream().filter(each -> !scans.containsKey(each.bucket())).toList();
    if (!adopted.isEmpty()) {
      Set<Integer> buckets = adopted.stream().map(Owned::bucket).collect(Collectors.toSet());
      forget(buckets); // such as what was blocked before a gap in the lease
      List<HeldRow> before = held.of(buckets);
      awaitRunning(before, now);
      if (hold == null || hold.adopt(buckets, now)) {
        adopted.forEach(owned -> adopt(owned, before));
      }
    }
    return !scans.isEmpty();
  }

  /** What still runs from before goes first, whatever else of its key comes up. */
  private void awaitRunning(List<HeldRow> before, long now) {
    for (HeldRow row : before) {
      String key = row.message().orderingKey();
      if (key != null && row.state() != HeldRow.State.SETTLED) {
        chains.waits(key, HeldOfQueue.bucketOf(row).bucket(), row.id());
        agenda.add(row.id(), now + SECOND);
      }
    }
  }

  private void adopt(Owned owned, List<HeldRow> before) {
    List<HeldRow> ofBucket =
        before.stream()
            .filter(row -> HeldOfQueue.bucketOf(row).bucket() == owned.bucket())
            .toList();
    scans.put(owned.bucket(), new BucketScan(owned, ofBucket));
    deliveries.startOver();
    reservation.forget(); // as its name may have been purged
    late.seen(owned.seenUpTo());
    late.nothingIsSettled();
    dueLook.restart();
  }

  private void startOver() {
    Throwable failure = broken.getAndSet(null);
    if (failure == null) {
      return;
    }
    shared.health().failed(Operation.CLAIM, failure);
    Set<Integer> buckets = new HashSet<>(scans.keySet());
    buckets.addAll(held());
    scans.clear();
    forget(buckets);
  }

  /** Returns these rows, which are due, and those that are found to have fallen due. */
  private List<Long> withFound(List<Long> dueIds, int most, long now) {
    try {
      look(now);
    } catch (RuntimeException | Error failure) {
      dueIds.forEach(id -> agenda.add(id, now));
      throw failure;
    }
    Set<Long> all = new LinkedHashSet<>(dueIds); // one that was taken may have been found as well
    all.addAll(agenda.takeDue(now, most - dueIds.size()));
    return new ArrayList<>(all);
  }

  private boolean isCrowded() {
    return chains.hungry() + agenda.found() >= MOST_FOUND;
  }

  /** Tells whether to look for rows that are not known; seldom, while many are. */
  private boolean mayLook(long now) {
    return !isCrowded() || now - lookedAt >= PAUSE_IF_CROWDED;
  }

  private int findLimit() {
    return isCrowded() ? FIND_LIMIT_IF_CROWDED : FIND_LIMIT;
  }

  /** Looks for rows that have fallen due. */
  private void look(long now) {
    lookedAt = now;
    List<DueRange> due = dueLook.next(scans, now);
    Answer answer;
    try {
      answer = ask(finding(List.of(), due, findLimit(), dueLook.limit()), now);
    } catch (OutboxStoreException failure) {
      if (failure.fault() != OutboxStoreException.Fault.TIMEOUT) {
        throw failure;
      }
      long ended = clock.getAsLong();
      dueLook.timedOut(due.size(), ended - now, ended);
      return;
    }
    long ended = clock.getAsLong();
    dueLook.looked(answer.exhausted, ended - now, ended);
  }

  private ReadRequest finding(
      List<Range> sweep, List<DueRange> due, int limit, @Nullable Duration timeLimit) {
    return ReadRequest.finding(queue, owner, sweep, due, limit, timeLimit);
  }

  private Turn sweep(long now) {
    lookedAt = now;
    LateRows.Step step = late.next(scans.values(), now);
    Turn turn = Turn.NOTHING;
    long seenTo = Long.MAX_VALUE;
    if (!step.ranges().isEmpty()) {
      Answer answer;
      try {
        answer = ask(finding(step.ranges(), List.of(), findLimit(), SWEEP_LIMIT), now);
      } catch (OutboxStoreException failure) {
        if (failure.fault() != OutboxStoreException.Fault.TIMEOUT) {
          throw failure;
        }
        step.timedOut();
        return Turn.NOTHING;
      }
      turn = new Turn(0, answer.found > 0);
      seenTo = answer.sweptTo;
    }
    step.passed(seenTo, turn.more());
    return turn;
  }

  private Turn read(int room, long bytes, boolean rowsLikely, long now) {
    boolean counts =
        deliveries.countedLast()
            || scans.values().stream()
                .anyMatch(scan -> scan.isFresh() && scan.mayHaveBegun(scan.place() + 1));
    int limit = counts ? Math.min(room, deliveries.most()) : room;
    Set<String> unwanted = chains.unwanted(MOST_UNWANTED);
    List<Portion> portions = List.of();
    if (chains.isFull()) {
      tellFull();
    } else {
      portions = portions(unwanted.isEmpty() && !passesBy ? limit : Math.max(limit, LEAST_SCAN));
    }
    int mostIds = Math.min(MOST_IDS, limit);
    List<Long> dueIds = agenda.takeDue(now, mostIds);
    if (dueIds.size() < mostIds && mayLook(now) && dueLook.isDue(now)) { // else the known is first
      dueIds = withFound(dueIds, mostIds, now);
    }
    List<KeyRange> keys = hungry(Math.min(MOST_KEYS, limit));
    int ofEachKey = Math.max(1, limit / Math.max(1, keys.size()));
    List<Long> ids = notHeld(dueIds, now);
    boolean portionsAlone =
        keys.isEmpty()
            && ids.isEmpty()
            && portions.stream().mapToInt(Portion::limit).sum() <= limit;
    long rowBytes = portionsAlone && largest <= bytes / limit ? bytes / limit : 0;
    boolean mark = late.wantsMark(now);
    boolean busy = rowsLikely || !keys.isEmpty() || !ids.isEmpty();
    Idle idle = watch.next(listen.up(), busy, now);
    if (mark && idle.mode() == Idle.Mode.UNCHANGED) {
      idle = Idle.LOOK_AHEAD; // which tells the mark
    }
    ReadRequest request =
        new ReadRequest(
            queue,
            owner,
            portions,
            limit,
            unwanted,
            keys,
            Math.min(ofEachKey, chains.rowsThatFit(keys)),
            ids,
            List.of(),
            List.of(),
            FIND_LIMIT,
            bytes,
            rowBytes,
            idle,
            mark,
            mark ? backlogged : null,
            null);
    listen.watch(queue, request.idle().mode() == Idle.Mode.SLEEP || watch.asleep());
    Answer answer;
    try {
      answer = ask(request, now);
    } catch (RuntimeException | Error failure) {
      ids.forEach(id -> agenda.add(id, now)); // they are taken off when they have been read
      if (failure instanceof OutboxStoreException known
          && known.fault() == OutboxStoreException.Fault.TIMEOUT) {
        readInSmallerParts();
      }
      throw failure;
    }
    long ended = clock.getAsLong();
    learn(request, answer, ended);
    listen.watch(queue, watch.asleep());
    boolean more = answer.more || !hungry(1).isEmpty();
    if (rowsLikely && answer.taken == 0 && !more) {
      late.lookEverywhere(ended); // somebody may have put a row back, far below
    }
    return new Turn(answer.taken, more);
  }

  /**
   * Shares the rows that may be read among the buckets: most of them among those of which there is
   * known to be more, and of each other bucket a few.
   */
  private List<Portion> portions(int most) {
    int all = scans.size();
    int full = (int) scans.values().stream().filter(BucketScan::isFull).count();
    int few = Math.max(1, most / (full == 0 ? all : 8 * all));
    int many = Math.max(few, (most - few * (all - full)) / Math.max(1, full));
    int least = most / Math.max(1, full); // if there is room for less than a row of each
    List<Portion> portions = new ArrayList<>(all);
    for (BucketScan scan : scans.values()) {
      portions.add(new Portion(scan.next(partWidth), scan.isFull() ? Math.max(many, least) : few));
    }
    return portions;
  }

  private List<KeyRange> hungry(int most) {
    return chains.hungry(most, this::readUpTo);
  }

  private void tellFull() {
    shared
        .warnings()
        .warn(
            log,
            "full " + queue,
            "[{}] {} keys of queue '{}' wait for a retry or for a dead letter; no new row is read"
                + " until some of them go on",
            shared.subscriber(),
            MOST_BLOCKED,
            OneLine.of(queue));
  }

  /**
   * Leaves out rows whose handlers still run, from an earlier time as owner. Chains tell when they
   * have ended; what that misses is found by looking again.
   */
  private List<Long> notHeld(List<Long> ids, long now) {
    if (ids.isEmpty()) {
      return ids;
    }
    Set<Long> known = held.epochs().keySet();
    List<Long> others = new ArrayList<>(ids.size());
    for (Long id : ids) {
      if (known.contains(id)) {
        agenda.add(id, now + SECOND);
      } else {
        others.add(id);
      }
    }
    return others;
  }

  private long readUpTo(int bucket) {
    BucketScan scan = scans.get(bucket);
    return scan == null ? 0 : scan.place();
  }

  /** There is much that cannot be handled, such as rows that are dead or not due. */
  private void readInSmallerParts() {
    partWidth = Math.max(LEAST_SCAN, partWidth / 8);
    long greatest = shared.connections().spendOnClaim(() -> store.greatestId());
    scans.values().forEach(scan -> scan.readInParts(greatest));
  }

  private void learn(ReadRequest request, Answer answer, long now) {
    failing = false;
    backoff.reset();
    LookAhead ahead = answer.read.lookAhead();
    watch.claimed(answer.taken, ahead, now);
    if (ahead != null) {
      Duration next = ahead.nextDueIn();
      dueLook.nextAt(next == null ? null : now + Durations.saturatedNanos(next));
    }
    late.oldestIs(answer.read.oldest(), now);
    if (request.mark()) {
      late.marked(answer.read.mark(), answer.read.newest(), now);
    }
  }

  /** What was made of a read. */
  private static final class Answer {
    private final Read read;
    private int taken;
    private int found;
    private boolean more;
    private long sweptTo = Long.MAX_VALUE;

    /** Buckets of which there is no more to find that is due. */
    private final Set<Integer> exhausted = new HashSet<>();

    Answer(Read read) {
      this.read = read;
    }
  }

  private Answer ask(ReadRequest request, long now) {
    Map<Long, Long> known = known(request);
    long[] sentAt = {now};
    Read read =
        shared
            .connections()
            .spendOnClaim(
                () -> {
                  sentAt[0] = clock.getAsLong();
                  return store.read(request);
                });
    shared
        .events()
        .claimed(
            (int) read.rows().stream().filter(BucketStore.Row::loaded).count(),
            Duration.ofNanos(clock.getAsLong() - sentAt[0]));
    reserve(read);
    try {
      return new Taking(request, read, known, sentAt[0]).take();
    } catch (RuntimeException | Error failure) {
      broken(failure);
      throw failure;
    }
  }

  /**
   * Returns the rows that are held and may be in the answer, each with its epoch. Above its place a
   * bucket has none but those that were held before it was read, or were read by their ids.
   */
  private Map<Long, Long> known(ReadRequest request) {
    if (!request.isOfPortionsAlone()) {
      return held.epochs();
    }
    Map<Long, Long> known = new HashMap<>();
    for (BucketScan scan : scans.values()) {
      scan.heldAbove().forEach(row -> known.put(row.id(), HeldOfQueue.bucketOf(row).epoch()));
    }
    return known;
  }

  private void reserve(Read read) {
    long greatest = 0;
    for (BucketStore.Row row : read.rows()) {
      if (row.loaded()) {
        greatest = Math.max(greatest, row.row().lease().id());
      }
    }
    reservation.cover(greatest);
  }

  /** Takes what was read. */
  private final class Taking {
    private final ReadRequest request;
    private final Answer answer;
    private final Map<Long, Long> held;
    private final long sentAt;
    private final long now = clock.getAsLong();
    private final List<ClaimedRow> accepted = new ArrayList<>();
    private final Map<Integer, OfBucket> buckets = new HashMap<>();
    private final Set<Long> missing = new HashSet<>();

    /** What the answer has of one bucket. */
    private static final class OfBucket {
      private final @Nullable BucketScan scan;
      private final boolean mine;
      private int inRange;
      private int swept;
      private int due;
      private boolean ended;

      /** Rows with keys came of its range, also such as wait for others of their key. */
      private boolean keyed;

      OfBucket(@Nullable BucketScan scan, boolean mine) {
        this.scan = scan;
        this.mine = mine;
      }

      /** Of a bucket that is read. */
      BucketScan scan() {
        return Objects.requireNonNull(scan);
      }
    }

    private int inRanges;
    private int dueInRanges;
    private long largestInRanges;

    Taking(ReadRequest request, Read read, Map<Long, Long> held, long sentAt) {
      this.request = request;
      this.answer = new Answer(read);
      this.held = held;
      this.sentAt = sentAt;
      missing.addAll(request.ids());
    }

    Answer take() {
      boolean inParts =
          request.portions().stream().anyMatch(each -> each.range().upTo() < Long.MAX_VALUE);
      if (inParts) {
        partWidth = Math.min(PART_WIDTH, 2 * partWidth);
      }
      List<HeldRow> taken = leases.undisturbed(this::takeReadable);
      if (mayHaveMoreBelow()) {
        lookBack(taken);
      }
      for (HeldRow row : deliveries.counted(taken)) {
        chains.admit(row);
      }
      answer.taken = taken.size();
      return answer;
    }

    /** Not all ids up to the place of some bucket are settled. */
    private boolean mayHaveMoreBelow() {
      long settled = late.settled();
      return request.isOfPortionsAlone()
          ? request.portions().stream().anyMatch(portion -> portion.range().above() > settled)
          : scans.values().stream().anyMatch(scan -> scan.place() > settled);
    }

    /**
     * What was committed late, before one of these rows was published, lies below the place and
     * goes before it. It is seen now if that row was seen.
     */
    private void lookBack(List<HeldRow> taken) {
      Map<Integer, Long> places = new TreeMap<>();
      for (HeldRow row : taken) {
        if (row.message().orderingKey() != null) {
          int bucket = HeldOfQueue.bucketOf(row).bucket();
          places.computeIfAbsent(bucket, OrderedLane.this::readUpTo);
        }
      }
      buckets.forEach(
          (bucket, found) -> {
            if (found.keyed) {
              places.putIfAbsent(bucket, 0L);
            }
          });
      for (Portion portion : request.portions()) {
        Range range = portion.range();
        places.computeIfPresent(range.bucket(), (bucket, place) -> range.above());
      }
      List<Range> below = new ArrayList<>();
      places.forEach(
          (bucket, place) -> {
            long from = Math.max(late.settled(), place - LOOK_BACK);
            if (from < place) {
              below.add(new Range(bucket, from, place));
            }
          });
      while (!below.isEmpty()) {
        Answer found = ask(finding(below, List.of(), FIND_LIMIT, null), now);
        answer.more |= found.found > 0;
        below.removeIf(range -> range.upTo() <= found.sweptTo);
        below.replaceAll(
            range ->
                new Range(range.bucket(), Math.max(range.above(), found.sweptTo), range.upTo()));
      }
    }

    /** While no bucket can come or go. */
    private List<HeldRow> takeReadable(Map<Integer, Owned> readable) {
      takeKeys(readable); // first: what ranges give of these keys comes after it
      for (BucketStore.Row row : answer.read.rows()) {
        OfBucket bucket = of(row.bucket(), readable);
        switch (row.part()) {
          case KEY -> {
            // taken
          }
          case ID -> {
            missing.remove(id(row));
            if (bucket.mine) {
              single(bucket.scan(), row);
            } else if (bucket.scan != null) {
              agenda.add(id(row), now + SECOND); // the lease is over, and may be renewed
            }
          }
          case RANGE -> {
            inRanges++;
            if (bucket.mine) {
              range(bucket, row);
            }
          }
          case SWEEP -> {
            bucket.swept++;
            if (bucket.swept >= request.findLimit()) {
              answer.sweptTo = Math.min(answer.sweptTo, id(row));
            }
            if (bucket.mine) {
              found(row);
            }
          }
          case DUE -> {
            bucket.due++;
            if (bucket.mine) {
              found(row);
              due(bucket.scan(), row);
            }
          }
          default -> throw new AssertionError(row.part());
        }
      }
      endParts(readable);
      missing.forEach(chains::gone);
      answer.more |= !missing.isEmpty(); // keys that waited for them go on
      return hold();
    }

    private OfBucket of(int bucket, Map<Integer, Owned> readable) {
      return buckets.computeIfAbsent(
          bucket,
          each -> {
            BucketScan scan = scans.get(each);
            Owned owned = readable.get(each);
            return new OfBucket(
                scan, scan != null && scan.owned().isSameAs(owned) && !forgotten.contains(each));
          });
    }

    /** Takes the rows of each key that was asked for; of some nothing may be left. */
    private void takeKeys(Map<Integer, Owned> readable) {
      Map<String, List<BucketStore.Row>> found = new HashMap<>();
      for (BucketStore.Row row : answer.read.rows()) {
        String key = row.row().message().orderingKey();
        if (row.part() == BucketStore.Part.KEY && key != null) {
          found.computeIfAbsent(key, each -> new ArrayList<>()).add(row);
        }
      }
      for (KeyRange range : request.keys()) {
        List<BucketStore.Row> ofKey = found.getOrDefault(range.key(), List.of());
        boolean mine = ofKey.stream().allMatch(row -> of(row.bucket(), readable).mine);
        if (mine && chains.beginKey(range)) {
          ofKey.forEach(row -> ofKey(of(row.bucket(), readable).scan(), row));
          boolean full = ofKey.size() >= request.keyLimit();
          chains.endKey(
              range.key(), full ? Long.valueOf(id(ofKey.get(ofKey.size() - 1)) + 1) : null);
        }
      }
    }

    private long id(BucketStore.Row row) {
      return row.row().lease().id();
    }

    private void endParts(Map<Integer, Owned> readable) {
      if (!request.portions().isEmpty()) {
        passesBy = inRanges > 0 && dueInRanges == 0;
        largest = inRanges > 0 ? largestInRanges : largest;
        backlogged = null;
      }
      for (Portion portion : request.portions()) {
        Range range = portion.range();
        OfBucket bucket = of(range.bucket(), readable);
        if (!bucket.mine) {
          answer.more = true; // it is read anew, or is another's
          continue;
        }
        BucketScan scan = bucket.scan();
        scan.full(bucket.inRange >= portion.limit() || bucket.ended);
        if (scan.isFull()) {
          answer.more = true;
          backlogged = range.bucket();
        } else if (range.upTo() == Long.MAX_VALUE) {
          scan.caughtUp();
        } else {
          scan.read(range.upTo());
          answer.more = true;
        }
      }
      for (DueRange range : request.due()) {
        OfBucket bucket = of(range.bucket(), readable);
        boolean all = bucket.due < request.findLimit();
        if (bucket.mine && all) {
          bucket.scan().dueSeen(DueLook.after(answer.read.at()));
        }
        if (all || !bucket.mine) { // what is another's now is looked at when it comes back
          answer.exhausted.add(range.bucket());
        }
      }
      answer.more |= dueLook.hasMore(now) || answer.found > 0;
    }

    private void range(OfBucket bucket, BucketStore.Row row) {
      bucket.inRange++;
      if (bucket.ended) {
        return;
      }
      dueInRanges += row.due().isZero() ? 1 : 0;
      String key = row.row().message().orderingKey();
      if (!row.loaded()
          && row.due().isZero()
          && !(key != null && request.skippedKeys().contains(key))) {
        bucket.ended = true; // it did not fit: read on from here
        largestInRanges = Long.MAX_VALUE;
        return;
      }
      long id = id(row);
      bucket.scan().read(id);
      late.seen(id);
      if (key != null && row.due().isZero()) {
        bucket.keyed = true;
      }
      if (row.loaded()) {
        largestInRanges = Math.max(largestInRanges, row.row().message().payload().size());
        accept(bucket.scan(), row);
      } else if (row.due().isZero()) {
        more(row);
      } else {
        later(row);
      }
    }

    private void ofKey(BucketScan scan, BucketStore.Row row) {
      if (row.loaded()) {
        accept(scan, row);
      } else if (row.due().isZero()) {
        more(row);
      } else {
        later(row);
      }
    }

    private void single(BucketScan scan, BucketStore.Row row) {
      if (row.row().message().orderingKey() != null && id(row) > scan.place()) {
        return; // its bucket came back meanwhile: it is read in its turn
      }
      if (row.loaded()) {
        accept(scan, row);
      } else if (row.due().isZero()) {
        agenda.add(id(row), now); // it did not fit
      } else {
        later(row);
      }
    }

    private void due(BucketScan scan, BucketStore.Row row) {
      ScanBound place = new ScanBound(row.row().message().availableAt(), id(row));
      ScanBound before = scan.duePlace();
      if (before == null || before.compareTo(place) < 0) {
        scan.dueSeen(place);
      }
    }

    /** It is not due. */
    private void later(BucketStore.Row row) {
      String key = row.row().message().orderingKey();
      boolean blocks = false;
      if (key != null && row.moved()) {
        blocks = true;
        chains.waits(key, row.bucket(), id(row));
      }
      if (blocks || isLeased(row) || (row.due().compareTo(SOON) <= 0 && !isFoundAnyway(row))) {
        agenda.add(id(row), now + Durations.saturatedNanos(row.due()));
      }
    }

    /** By somebody who claims row by row: no look at what falls due finds it. */
    private boolean isLeased(BucketStore.Row row) {
      return !row.row().message().availableAt().isAfter(answer.read.at());
    }

    /** Tells whether to let a look find it when it is due, as so many rows are remembered. */
    private boolean isFoundAnyway(BucketStore.Row row) {
      Instant later = row.row().message().createdAt().plusSeconds(1);
      return agenda.size() >= MOST_FOUND && row.row().message().availableAt().isAfter(later);
    }

    private void found(BucketStore.Row row) {
      if (held.containsKey(id(row)) || id(row) > readUpTo(row.bucket())) {
        return; // or it is found in its turn
      }
      if (!row.due().isZero()) {
        later(row);
        return;
      }
      String key = row.row().message().orderingKey();
      if (agenda.has(id(row)) || (key != null && chains.isKnown(key, id(row)))) {
        return; // it waits for its time, or for its turn
      }
      if (key == null || chains.more(key, row.bucket(), id(row))) {
        agenda.addFound(id(row), now);
      }
      answer.found++;
    }

    private void more(BucketStore.Row row) {
      String key = Objects.requireNonNull(row.row().message().orderingKey());
      if (chains.more(key, row.bucket(), id(row))) {
        agenda.add(id(row), now);
      }
    }

    private void accept(BucketScan scan, BucketStore.Row row) {
      String key = row.row().message().orderingKey();
      Long epoch = held.isEmpty() ? null : held.get(id(row));
      if (epoch != null) {
        boolean again =
            key == null ? epoch != scan.owned().epoch() : chains.isHeld(key, row.bucket(), id(row));
        if (again) {
          agenda.add(id(row), now + SECOND);
        }
        return;
      }
      if (!chains.expect(row)) {
        return;
      }
      ClaimedRow read = row.row();
      boolean counted = scan.mayHaveBegun(id(row));
      LeaseRef lease =
          new LeaseRef(
              queue,
              id(row),
              read.lease().token(),
              new BucketLease(row.bucket(), scan.owned().epoch(), counted));
      History before = read.history();
      History history =
          new History(
              before.deliveries() + 1, before.attempts(), before.sinceFirstAttempt(), before.age());
      accepted.add(new ClaimedRow(lease, read.message(), history));
      if (!request.isOfPortionsAlone()) {
        held.put(id(row), scan.owned().epoch()); // it may come twice, by its id and with its bucket
      }
    }

    private List<HeldRow> hold() {
      if (accepted.isEmpty()) {
        return List.of();
      }
      List<HeldRow> taken = new ArrayList<>(accepted.size());
      ClaimedBatch batch = new ClaimedBatch(queue, accepted, sentAt, leases.lease(), chains);
      for (int i = 0; i < batch.size(); i++) {
        HeldRow row = Objects.requireNonNull(batch.at(i));
        taken.add(row);
        if (!request.isOfPortionsAlone()) {
          Objects.requireNonNull(buckets.get(HeldOfQueue.bucketOf(row).bucket())).scan().took(row);
        }
      }
      shared.registry().add(batch);
      return taken;
    }
  }

  /** Returns how long until there is something to do, unless a signal comes. */
  long untilNext(boolean listening, long idleWait, long now) {
    if (failing) {
      return Math.max(0, retryAt - now);
    }
    if (scans.isEmpty()) {
      return SECOND; // woken when there is a bucket
    }
    long wait = Math.min(idleWait, watch.longestWait(listening, now));
    wait = Math.min(wait, agenda.untilDue(now));
    long unknown = Math.min(late.untilDue(now), dueLook.untilDue(now));
    wait = Math.min(wait, mayLook(now) ? unknown : lookedAt + PAUSE_IF_CROWDED - now);
    return hold == null ? wait : Math.min(wait, hold.untilDue(now));
  }

  void dueAt(long at) {
    dueLook.alsoAt(at);
  }

  int blockedKeys() {
    return chains.blocked();
  }

  int keysOnHold() {
    return chains.onHold();
  }

  /** Lets no more rows through; those that wait are withdrawn. */
  void close() {
    chains.close();
  }

  // what chains call, on any thread

  @Override
  public void ready(HeldRow row) {
    if (rows.buffer().add(row)) {
      rows.pool().kick(1);
    } else {
      withdrawn(List.of(row));
    }
  }

  @Override
  public void withdrawn(List<HeldRow> withdrawn) {
    List<HeldRow> settled = new ArrayList<>(withdrawn.size());
    for (HeldRow row : withdrawn) {
      if (HeldOfQueue.bucketOf(row).counted()) {
        if (row.giveBack()) {
          completer.complete(row);
        }
      } else if (row.withdraw()) {
        settled.add(row);
      }
    }
    if (!settled.isEmpty()) {
      shared.registry().settle(settled);
      shared.room().mayBeFree();
    }
  }

  @Override
  public void again(HeldRow row, long at) {
    boolean soon = at - clock.getAsLong() <= SOON.toNanos();
    if (soon || row.message().orderingKey() != null) { // else it is found when it falls due
      agenda.add(row.id(), at);
      signal.run();
    }
  }

  @Override
  public void hungry() {
    signal.run();
  }

  @Override
  public void onHold(HeldRow row) {
    shared
        .warnings()
        .warn(
            log,
            "hold " + queue,
            "[{}] {}: its ordering key waits until the dead letter is resolved",
            shared.subscriber(),
            row);
    signal.run(); // from now on it is asked
  }

  @Override
  public void broken(Throwable failure) {
    broken.compareAndSet(null, failure);
    signal.run();
  }

  // what buckets call, on the lease keeper's thread

  @Override
  public Set<Integer> held() {
    return held.buckets();
  }

  @Override
  public long seenUpTo() {
    return late.greatest();
  }

  @Override
  public void withdraw(Set<Integer> buckets) {
    forgotten.addAll(buckets);
    forget(buckets);
    forgotten.addAll(buckets); // what was read anew in between has been forgotten as well
    signal.run();
  }

  private void forget(Set<Integer> buckets) {
    chains.drop(buckets);
    withdrawn(
        held.of(buckets).stream().filter(row -> row.state() == HeldRow.State.WAITING).toList());
  }

  /** A row may not begin, and so none that comes after it. On any thread. */
  void putOff(HeldRow row) {
    withdraw(Set.of(HeldOfQueue.bucketOf(row).bucket()));
  }

  @Override
  public void lost(Set<Integer> buckets) {
    withdraw(buckets);
    for (HeldRow row : held.of(buckets)) {
      row.lose();
      if (row.running() != null) {
        log.warn(
            "[{}] {}: lease lost while its handler runs; what it decides changes nothing",
            shared.subscriber(),
            row);
        shared.events().leaseLost(row, Phase.RENEW);
      }
    }
  }

  @Override
  public void gained() {
    signal.run();
  }
}
