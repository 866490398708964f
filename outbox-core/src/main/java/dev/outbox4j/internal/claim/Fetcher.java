package dev.outbox4j.internal.claim;

import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.SubscriberHealth;
import dev.outbox4j.internal.Loop;
import dev.outbox4j.internal.OneLine;
import dev.outbox4j.internal.run.Rows;
import dev.outbox4j.internal.run.WorkerPool;
import dev.outbox4j.internal.settings.SubscriberSettings;
import dev.outbox4j.internal.settle.Completer;
import dev.outbox4j.internal.state.Buffer;
import dev.outbox4j.internal.state.ClaimedBatch;
import dev.outbox4j.internal.state.EngineHealth.Operation;
import dev.outbox4j.internal.state.HeldRow;
import dev.outbox4j.internal.state.Prefetch;
import dev.outbox4j.internal.state.Shared;
import dev.outbox4j.spi.ClaimRequest;
import dev.outbox4j.spi.ClaimRequest.Idle;
import dev.outbox4j.spi.ClaimResult;
import dev.outbox4j.spi.ClaimedRow;
import dev.outbox4j.spi.OutboxStore;
import dev.outbox4j.spi.SlotStore;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Claims as many rows as workers can soon begin, on a loop of its own, and waits when there are
 * none. A round claims from each queue in turn; a queue whose claim fails holds up no other.
 */
public final class Fetcher implements RowSource {
  private static final Logger log = LoggerFactory.getLogger(Fetcher.class);

  /** After a short claim: so that a trickle of messages is claimed in handfuls, not one by one. */
  private static final long LINGER = TimeUnit.MILLISECONDS.toNanos(2);

  /** What was given back for a pause that is over already may still be on its way. */
  private static final Duration GIVEN_BACK = Duration.ofSeconds(1);

  private static final long WHILE_PAUSED = TimeUnit.SECONDS.toNanos(1);

  private final String owner;
  private final OutboxStore store;
  private final @Nullable SlotStore slots;
  private final boolean limited;
  private final Shared shared;
  private final SubscriberSettings.Claiming settings;
  private final Buffer buffer;
  private final WorkerPool pool;
  private final Prefetch prefetch;
  private final Completer completer;
  private final ListenState listen;
  private final LongSupplier clock;
  private final Loop loop;

  /** The drain waits for this loop no longer, nor for rows that it brings in. */
  private volatile boolean late;

  // confined to the loop
  private final List<QueueLane> lanes = new ArrayList<>();
  private final List<QueueLane> paused = new ArrayList<>();
  private final IdlePlan idlePlan;
  private final WatchHandOver handOver;
  private final RoomWait roomWait;
  private final ClaimSize size = new ClaimSize();
  private final Turns turns;
  private long claimedTotal;
  private boolean lastFull;
  private boolean resting;
  private boolean forRowsAlone;
  private int epoch;
  private int pauseChanges;

  public Fetcher(
      SubscriberSettings settings,
      String owner,
      Shared shared,
      Rows rows,
      Completer completer,
      ListenState listen,
      LongSupplier clock) {
    this.owner = owner;
    this.store = settings.store();
    this.slots = settings.slots();
    this.limited = !settings.claiming().limits().queues().isEmpty();
    this.shared = shared;
    this.settings = settings.claiming();
    this.buffer = rows.buffer();
    this.pool = rows.pool();
    this.prefetch = rows.prefetch();
    this.completer = completer;
    this.listen = listen;
    for (String queue : settings.queues()) {
      (shared.pauses().has(queue) ? paused : lanes).add(new QueueLane(queue, settings));
    }
    this.handOver = new WatchHandOver(store, owner, shared, listen, clock);
    this.idlePlan = new IdlePlan(lanes, settings.claiming());
    this.roomWait = new RoomWait(lanes, handOver, clock);
    this.clock = clock;
    this.turns = new Turns(settings.claiming().weights());
    this.loop = new Loop(shared.threads(), "fetcher", this::turn, this::survive);
    shared.room().signal(loop::signal);
    shared.pauses().signal(loop::signal);
    listen.signal(loop::signal);
  }

  @Override
  public void start() {
    loop.start();
  }

  /** Ends the loop after the claim under way. */
  @Override
  public void stop() {
    loop.stop();
  }

  @Override
  public boolean join(long deadline) {
    boolean ended = loop.join(deadline);
    late = !ended;
    return ended;
  }

  /** Nothing is claimed from a paused queue, and nobody counts on this subscriber there. */
  private void heedPauses() {
    int changes = shared.pauses().changes();
    if (changes == pauseChanges) {
      return;
    }
    List<QueueLane> all = new ArrayList<>(lanes);
    all.addAll(paused);
    lanes.clear();
    for (QueueLane lane : all) {
      if (!shared.pauses().has(lane.queue())) {
        lanes.add(lane);
        paused.remove(lane);
        lane.watch().forgotten();
      } else if (!paused.contains(lane)) {
        paused.add(lane);
        handOver.pass(lane.queue(), lane.watch());
      }
    }
    if (lanes.stream().noneMatch(QueueLane::isFailing)) {
      shared.health().succeeded(Operation.CLAIM); // else a claim is owed that nobody will try
    }
    shared.room().dueAgainIn(GIVEN_BACK.toNanos());
    pool.kick(buffer.size()); // so that workers give back what may not begin
    pauseChanges = changes;
  }

  /** Claims, or finds that it cannot; returns how long to wait then. */
  long turn(boolean woken) {
    if (loop.stopping()) {
      forget();
      return Loop.END;
    }
    heedPauses();
    shared.tellOfLostStatements();
    if (listen.takeCalled()) {
      lanes.forEach(lane -> lane.watch().called());
    }
    if (shared.room().takeSettled()) {
      lanes.forEach(lane -> lane.limits().settled());
    }
    if (lanes.isEmpty()) {
      pool.kick(buffer.size());
      return WHILE_PAUSED;
    }
    boolean rowsLikely = woken && resting && !forRowsAlone;
    resting = false;
    boolean refused = pool.rejecting() && !buffer.isEmpty();
    if (refused) {
      shared.health().held(Operation.CLAIM, "the executor takes no handlers; rows wait for it");
    }
    if (refused || shared.room().rows() <= 0) {
      return waitForRoom(refused);
    }
    roomWait.end();
    forRowsAlone = rowsLikely;
    long wait = round();
    pool.kick(buffer.size());
    return wait;
  }

  private long waitForRoom(boolean refused) {
    pool.kick(buffer.size());
    if (!shared.room().await() && !(refused && pool.rejecting())) {
      return 0;
    }
    return roomWait.next();
  }

  /** Claims from each queue; returns how long to wait. */
  private long round() {
    if (listen.epoch() != epoch) {
      epoch = listen.epoch();
      lanes.forEach(lane -> lane.watch().forgotten()); // a server that restarted knows no sleepers
    }
    boolean ranDry = buffer.isEmpty();
    long begunAt = clock.getAsLong();
    int rows = 0;
    boolean tried = false;
    int succeeded = 0;
    boolean full = false;
    boolean waited = false;
    RuntimeException failure = null;
    if (limited) {
      shared.room().watchLimited(); // what is settled from now on may be missed below
    }
    int first = lanes.size() == 1 ? 0 : turns.first(queues());
    for (int i = 0; i < lanes.size() && !loop.stopping() && !(full && turns.areWeighted()); i++) {
      int limit = shared.room().rows();
      if (limit <= 0) {
        full = true;
        break;
      }
      QueueLane lane = lanes.get((first + i) % lanes.size());
      if (lanes.size() > 1 && !lane.mayClaim(begunAt)) {
        continue;
      }
      try {
        int room = lane.limits().isLimited() ? roomOf(lane, limit, begunAt) : limit;
        if (room <= 0) {
          waited = true;
          if (lane.limits().isFullForLong(begunAt)) {
            handOver.pass(lane.queue(), lane.watch());
          }
          continue;
        }
        tried = true;
        ClaimResult result = claim(lane, room);
        if (result != null) {
          rows += result.rows().size();
          full |= result.full() && !result.outOfSlots();
        }
        succeeded++;
      } catch (RuntimeException | Error thrown) {
        lane.failed(maybeBySize(thrown), clock.getAsLong());
        if (thrown instanceof Error error) {
          throw error;
        }
        failure = (RuntimeException) thrown;
      }
    }
    shared.room().awaitSettled(limited && lanes.stream().anyMatch(this::hasReachedItsLimit));
    if (failure != null) {
      if (succeeded == 0) {
        throw failure;
      }
      shared.health().failed(Operation.CLAIM, failure);
    }
    if (succeeded > 0) {
      shared.health().claimed(lanes.stream().noneMatch(QueueLane::isFailing));
    } else if (!tried && !waited) {
      loop.pause(LINGER); // all have failed only just now
    }
    long handled = claimedTotal - buffer.size() - pool.running();
    prefetch.learn(clock.getAsLong(), handled, full && ranDry);
    idlePlan.round(rows);
    lastFull = full;
    return full ? 0 : rest(rows);
  }

  private List<String> queues() {
    return lanes.stream().map(QueueLane::queue).toList();
  }

  private boolean hasReachedItsLimit(QueueLane lane) {
    return lane.limits().waits();
  }

  /** Returns how many rows of a limited queue may be claimed. */
  private int roomOf(QueueLane lane, int limit, long now) {
    return Math.min(limit, lane.limits().room(shared.registry().rowsOf(lane.queue()), now));
  }

  /** Makes slots that are missing; they are there after the first time. */
  private void openSlots(QueueLane lane) {
    SlotStore store = slots;
    if (store != null && lane.limits().mayBeMissing(clock.getAsLong())) {
      int wanted = lane.limits().slots();
      int opened = shared.connections().spendOnClaim(() -> store.open(lane.queue(), wanted));
      lane.limits().opened(clock.getAsLong());
      if (opened > 0) {
        lane.limits().settled();
      }
    }
  }

  /** Claims from one queue; null if the server ended a sweep for its time limit. */
  private @Nullable ClaimResult claim(QueueLane lane, int room) {
    long now = clock.getAsLong();
    QueueScan.Plan plan = lane.scan().next(now, lane.watch().inReserve());
    Idle idle =
        plan.quiet()
            ? lane.watch().nextQuiet()
            : lane.watch().next(listen.up(), lastFull || forRowsAlone, now);
    long bytes = Math.max(1, shared.room().bytes());
    ClaimRequest request =
        new ClaimRequest(
            lane.queue(),
            plan.range(),
            lane.limited(size.rows(room, bytes)),
            bytes,
            settings.lease(),
            owner,
            idle,
            plan.timeLimit(),
            lane.limits().slots());
    // from before its commit on: a notification may come before the answer
    listen.watch(lane.queue(), idle.mode() == Idle.Mode.SLEEP || lane.watch().asleep());
    long[] sentAt = {now};
    ClaimResult result;
    try {
      result =
          shared
              .connections()
              .spendOnClaim(
                  () -> {
                    if (loop.stopping()) {
                      return null; // nothing was sent
                    }
                    sentAt[0] = clock.getAsLong(); // the lease begins after this
                    return store.claim(request);
                  });
    } catch (OutboxStoreException failure) {
      if (failure.fault() == OutboxStoreException.Fault.TIMEOUT
          && !lane.watch().saysSomething() // else it may be that which took so long
          && lane.scan().timedOut(sentAt[0], clock.getAsLong())) {
        sweepTooLong(lane);
        return null;
      }
      throw failure;
    }
    if (result == null) {
      return null;
    }
    long answeredAt = clock.getAsLong();
    shared.events().claimed(result.rows().size(), Duration.ofNanos(answeredAt - sentAt[0]));
    hold(lane.queue(), result.rows(), sentAt[0]);
    lane.claimed(result, plan.quiet(), sentAt[0], answeredAt);
    listen.watch(lane.queue(), lane.watch().asleep());
    if (!result.refused().isEmpty()) {
      refused(lane, result);
    }
    openSlots(lane);
    return result;
  }

  /** An answer that was too large to hold ends in an error, or never arrives. */
  private static boolean maybeBySize(Throwable failure) {
    return !(failure instanceof OutboxStoreException known)
        || known.outcomeUnknown()
        || known.fault() == OutboxStoreException.Fault.TIMEOUT;
  }

  private void hold(String queue, List<ClaimedRow> rows, long sentAt) {
    if (rows.isEmpty()) {
      return;
    }
    ClaimedBatch batch = new ClaimedBatch(queue, rows, sentAt, settings.lease().toNanos());
    try {
      shared.registry().add(batch);
      buffer.add(batch);
    } catch (RuntimeException | Error noMemory) { // else its leases were renewed for ever
      shared.registry().withdraw(batch);
      throw noMemory;
    }
    claimedTotal += rows.size();
    size.learn(batch.size(), batch.bytes());
    if (loop.stopping()) {
      giveBack(buffer.close());
    } else {
      pool.kick(rows.size());
    }
  }

  @Override
  public void giveBack(List<HeldRow> rows) {
    List<HeldRow> given = rows.stream().filter(HeldRow::giveBack).toList();
    if (late) {
      releaseDirectly(given);
    } else {
      given.forEach(completer::complete);
    }
  }

  @Override
  public void putOff(HeldRow row) {
    giveBack(List.of(row));
  }

  /** The completer has ended: one try, and else the leases end by themselves. */
  private void releaseDirectly(List<HeldRow> rows) {
    try {
      int released = store.release(rows.stream().map(HeldRow::lease).toList()).done().size();
      log.debug("[{}] released {} of {} rows", shared.subscriber(), released, rows.size());
      rows.forEach(shared.registry()::settle);
    } catch (RuntimeException failure) {
      log.debug(
          "[{}] {} row(s) are left to the end of their lease",
          shared.subscriber(),
          rows.size(),
          failure);
    }
  }

  private void refused(QueueLane lane, ClaimResult result) {
    shared
        .warnings()
        .error(
            log,
            "refused " + lane.queue(),
            "the server refuses to lease row(s) {} of queue '{}'; they are left alone: look for a trigger or constraint of yours on the table",
            result.refused(),
            OneLine.of(lane.queue()));
    shared
        .health()
        .noted(
            "claim: the server refuses to lease row(s) "
                + result.refused()
                + " of queue '"
                + OneLine.of(lane.queue())
                + "': look for a trigger or constraint of yours on the table");
  }

  private void sweepTooLong(QueueLane lane) {
    shared
        .warnings()
        .warn(
            log,
            "sweep " + lane.queue(),
            "looking through queue '{}' as a whole takes too long; it is looked through in parts,"
                + " and new messages go on: look for large payloads, for a lock, or for what keeps vacuum"
                + " from the table (an old transaction, a replication slot, a prepared transaction)",
            OneLine.of(lane.queue()));
  }

  private long rest(int rows) {
    if (rows > 0 && !idlePlan.inReserve()) {
      loop.pause(LINGER);
      return 0;
    }
    long now = clock.getAsLong();
    Long dueAgain = shared.room().takeDueAgainAt();
    if (dueAgain != null) {
      lanes.forEach(lane -> lane.dueAt(dueAgain));
    }
    long unproved = listen.prove(this::send, clock);
    long wait = Math.min(unproved, idlePlan.nextWait(listen.up(), now));
    if (!buffer.isEmpty()) {
      wait = Math.min(wait, RoomWait.LONGEST); // the executor refused: offer the rows again soon
    }
    if (forRowsAlone) {
      wait = Math.min(wait, LINGER); // what woke it may be due soon, which the next claim tells
    }
    resting = true;
    return Math.max(0, wait);
  }

  /** A turn has thrown. */
  void survive(Throwable failure) {
    lanes.forEach(lane -> lane.watch().forgotten());
    shared.health().failed(Operation.CLAIM, failure);
  }

  /** Each row has a lease of its own, and nothing is left but those. */
  @Override
  public Optional<SubscriberHealth.Order> order() {
    return Optional.empty();
  }

  @Override
  public void release() {}

  private void send(String notification) {
    shared.connections().spendOnSaying(() -> store.send(notification));
  }

  private void forget() {
    try {
      shared.connections().spendOnSaying(() -> store.forget(owner));
    } catch (RuntimeException harmless) {
      log.debug(
          "[{}] the sleeper's announcement runs out by itself", shared.subscriber(), harmless);
    }
  }
}
