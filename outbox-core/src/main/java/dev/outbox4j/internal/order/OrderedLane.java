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
import dev.outbox4j.internal.settings.HandlerTable;
import dev.outbox4j.internal.settings.SubscriberSettings;
import dev.outbox4j.internal.settle.Completer;
import dev.outbox4j.internal.state.EngineHealth.Operation;
import dev.outbox4j.internal.state.HeldRow;
import dev.outbox4j.internal.state.Shared;
import dev.outbox4j.spi.BucketStore;
import dev.outbox4j.spi.BucketStore.DueRange;
import dev.outbox4j.spi.BucketStore.KeyRange;
import dev.outbox4j.spi.BucketStore.Owned;
import dev.outbox4j.spi.BucketStore.Portion;
import dev.outbox4j.spi.BucketStore.Range;
import dev.outbox4j.spi.BucketStore.Read;
import dev.outbox4j.spi.BucketStore.ReadRequest;
import dev.outbox4j.spi.ClaimRequest.Idle;
import dev.outbox4j.spi.LookAhead;
import dev.outbox4j.spi.OpenDeadLetters;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
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
final class OrderedLane implements BucketLeases.Changes {
  private static final Logger log = LoggerFactory.getLogger(OrderedLane.class);

  private static final int MOST_IDS = 500;
  private static final int MOST_KEYS = 500;
  private static final int MOST_UNWANTED = 1_000;
  private static final int MOST_BLOCKED = 100_000;
  private static final int FIND_LIMIT = 500;

  private static final int FIND_LIMIT_IF_CROWDED = 8;
  private static final long PAUSE_IF_CROWDED = TimeUnit.SECONDS.toNanos(2);

  /** So many ids below its place are looked through before a row of a key begins. */
  private static final long LOOK_BACK = 20_000;

  private static final long SECOND = TimeUnit.SECONDS.toNanos(1);

  private static final Duration SWEEP_LIMIT = Duration.ofMillis(500);

  private final String queue;
  private final String owner;
  private final BucketStore store;
  private final Shared shared;
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

  /** When it was last looked for rows that are not known. */
  private long lookedAt;

  private final BucketScans scans = new BucketScans();
  private final RangePlan plan = new RangePlan();
  private final ChainOut out;
  private final DeliveryCounts deliveries;
  private final Reservation reservation;
  private final DueLook dueLook;
  private final @Nullable DeadLetterHold hold;
  private final LateRows late;
  private final Taking.Known known;

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
    this.out = new ChainOut(queue, shared, rows, completer, agenda, clock, signal);
    HandlerTable handlers = settings.handlers();
    this.chains =
        new KeyChains(
            limits,
            open != null,
            row -> handlers.isTransactional(row.message().type()),
            out,
            clock);
    this.leases = new BucketLeases(queue, owner, settings, store, shared, this, clock);
    this.watch = new QueueWatch(settings.claiming());
    this.handOver = new WatchHandOver(settings.store(), owner, shared, listen, clock);
    long now = clock.getAsLong();
    this.late = new LateRows(clock);
    this.deliveries =
        new DeliveryCounts(store, shared, chains, agenda, out::withdrawn, clock, 4 * workers);
    this.reservation = new Reservation(queue, owner, store, shared, clock);
    this.dueLook = new DueLook(now);
    this.hold =
        open == null ? null : new DeadLetterHold(queue, open, chains, shared, MOST_BLOCKED, now);
    this.known =
        new Taking.Known(
            queue, scans, leases, chains, agenda, late, dueLook, plan, shared.registry());
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
      boolean owesRead = rowsLikely || released || scans.anyIsFresh();
      return new Turn(0, swept.more() || owesRead, swept.read());
    }
    return read(room, bytes, rowsLikely, now);
  }

  /** Takes notice of which buckets there are; false if there is none. */
  private boolean adopt(long now) {
    startOver();
    List<Owned> owned = scans.heed(leases.readable());
    if (!owned.isEmpty()) {
      adopt(owned, now);
    } else if (hold != null) {
      hold.adopted();
    }
    return !scans.isEmpty();
  }

  private void adopt(List<Owned> adopted, long now) {
    if (hold != null && !hold.mayAdopt(now)) {
      return;
    }
    Set<Integer> buckets = adopted.stream().map(Owned::bucket).collect(Collectors.toSet());
    forget(buckets); // such as what was blocked before a gap in the lease
    List<HeldRow> before = held.of(buckets);
    chains.await(before); // whatever else of their keys comes up
    if (hold == null || hold.adopt(buckets, now)) {
      adopted.forEach(owned -> begin(owned, before));
    }
  }

  private void begin(Owned owned, List<HeldRow> before) {
    List<HeldRow> ofBucket =
        before.stream()
            .filter(row -> HeldOfQueue.bucketOf(row).bucket() == owned.bucket())
            .toList();
    scans.begin(new BucketScan(owned, ofBucket));
    deliveries.startOver();
    reservation.forget(); // as its name may have been purged
    late.seen(owned.seenUpTo());
    late.nothingIsSettled();
    dueLook.restart();
  }

  private void startOver() {
    Throwable failure = out.takeBroken();
    if (failure == null) {
      return;
    }
    shared.health().failed(Operation.CLAIM, failure);
    Set<Integer> buckets = new HashSet<>(scans.byBucket().keySet());
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
    return chains.hungry() + agenda.found() >= Taking.MOST_FOUND;
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
    List<DueRange> due = dueLook.next(scans.byBucket(), now);
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
    LateRows.Step step = late.next(scans.all(), now);
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
    boolean counts = deliveries.countedLast() || scans.nextMayHaveBegun();
    int limit = counts ? Math.min(room, deliveries.most()) : room;
    Set<String> unwanted = chains.unwanted(MOST_UNWANTED);
    List<Portion> portions = List.of();
    if (chains.isFull()) {
      tellFull();
    } else {
      portions = plan.portions(scans.all(), limit, !unwanted.isEmpty());
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
    long rowBytes = portionsAlone ? plan.rowBytes(bytes, limit) : 0;
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
            mark ? plan.backlogged() : null,
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
    if (rowsLikely && answer.taken() == 0 && !more) {
      late.lookEverywhere(ended); // somebody may have put a row back, far below
    }
    return new Turn(answer.taken(), more);
  }

  private List<KeyRange> hungry(int most) {
    return chains.hungry(most, scans::readUpTo);
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

  /** There is much that cannot be handled, such as rows that are dead or not due. */
  private void readInSmallerParts() {
    plan.readInSmallerParts();
    long greatest = shared.connections().spendOnClaim(() -> store.greatestId());
    scans.all().forEach(scan -> scan.readInParts(greatest));
  }

  private void learn(ReadRequest request, Answer answer, long now) {
    failing = false;
    backoff.reset();
    LookAhead ahead = answer.read.lookAhead();
    watch.claimed(answer.taken(), ahead, now);
    if (ahead != null) {
      Duration next = ahead.nextDueIn();
      dueLook.nextAt(next == null ? null : now + Durations.saturatedNanos(next));
    }
    late.oldestIs(answer.read.oldest(), now);
    if (request.mark()) {
      late.marked(answer.read.mark(), answer.read.newest(), now);
    }
  }

  private Answer ask(ReadRequest request, long now) {
    Map<Long, Long> mayBeHeld = held(request);
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
      return take(
          new Taking(known, request, read, mayBeHeld, sentAt[0], clock.getAsLong()), request);
    } catch (RuntimeException | Error failure) {
      out.broken(failure);
      throw failure;
    }
  }

  private Answer take(Taking taking, ReadRequest request) {
    Answer answer = taking.take();
    if (mayHaveMoreBelow(request)) {
      lookBack(answer);
    }
    chains.admit(stillRead(deliveries.counted(answer.rows)));
    return answer;
  }

  /**
   * Leaves out rows whose bucket a worker had to give back while they were taken: what goes before
   * them was withdrawn, maybe before they were held.
   */
  private List<HeldRow> stillRead(List<HeldRow> taken) {
    if (!scans.anyIsForgotten()) {
      return taken;
    }
    List<HeldRow> forgotten = new ArrayList<>();
    List<HeldRow> others = new ArrayList<>(taken.size());
    for (HeldRow row : taken) {
      boolean isForgotten = scans.isForgotten(HeldOfQueue.bucketOf(row).bucket());
      (isForgotten ? forgotten : others).add(row);
    }
    withdrawn(forgotten);
    return others;
  }

  /** Not all ids up to the place of some bucket are settled. */
  private boolean mayHaveMoreBelow(ReadRequest request) {
    long settled = late.settled();
    return request.isOfPortionsAlone()
        ? request.portions().stream().anyMatch(portion -> portion.range().above() > settled)
        : scans.all().stream().anyMatch(scan -> scan.place() > settled);
  }

  /**
   * What was committed late, before one of these rows was published, lies below the place and goes
   * before it. It is seen now if that row was seen. What lies where more of its key is to be read
   * is found then.
   */
  private void lookBack(Answer answer) {
    List<Range> below = new ArrayList<>();
    answer
        .before()
        .forEach(
            (bucket, rows) -> {
              long from = Math.max(late.settled(), rows.place() - LOOK_BACK);
              if (from < rows.upTo()) {
                below.add(new Range(bucket, from, rows.upTo()));
              }
            });
    List<Range> rest = below;
    while (!rest.isEmpty()) {
      Answer found = ask(finding(rest, List.of(), FIND_LIMIT, null), clock.getAsLong());
      answer.more |= found.found > 0;
      rest = found.rest(rest);
    }
  }

  /**
   * Returns the rows that are held and may be in the answer, each with its epoch. Above its place a
   * bucket has none but those that were held before it was read, or were read by their ids.
   */
  private Map<Long, Long> held(ReadRequest request) {
    if (!request.isOfPortionsAlone()) {
      return held.epochs();
    }
    Map<Long, Long> above = new HashMap<>();
    for (BucketScan scan : scans.all()) {
      scan.heldAbove().forEach(row -> above.put(row.id(), HeldOfQueue.bucketOf(row).epoch()));
    }
    return above;
  }

  private void reserve(Read read) {
    long greatest = 0;
    for (BucketStore.Row row : read.rows()) {
      if (row.loaded()) {
        greatest = Math.max(greatest, row.row().lease().id());
      }
    }
    if (greatest > 0) {
      reservation.cover(greatest);
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

  /** Takes back rows that chains dropped, or that no worker begins. On any thread. */
  void withdrawn(List<HeldRow> rows) {
    out.withdrawn(rows);
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
    try {
      scans.forget(buckets, () -> forget(buckets));
    } finally {
      signal.run();
    }
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
