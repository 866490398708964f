package dev.outbox4j.internal.order;

import dev.outbox4j.SubscriberHealth;
import dev.outbox4j.internal.Loop;
import dev.outbox4j.internal.claim.ListenState;
import dev.outbox4j.internal.claim.RowSource;
import dev.outbox4j.internal.claim.Turns;
import dev.outbox4j.internal.lease.Renewable;
import dev.outbox4j.internal.run.Rows;
import dev.outbox4j.internal.settings.SubscriberSettings;
import dev.outbox4j.internal.settle.Completer;
import dev.outbox4j.internal.state.EngineHealth.Operation;
import dev.outbox4j.internal.state.HeldRow;
import dev.outbox4j.internal.state.Shared;
import dev.outbox4j.spi.BucketStore;
import dev.outbox4j.spi.OutboxStore;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reads rows of ordered queues while there is room for more, on a loop of its own. A queue that
 * cannot be read holds up no other.
 */
public final class OrderedFetcher implements RowSource {
  private static final Logger log = LoggerFactory.getLogger(OrderedFetcher.class);

  /** After a short read: so that a trickle of messages is read in handfuls, not one by one. */
  private static final long LINGER = TimeUnit.MILLISECONDS.toNanos(2);

  /** Until it is looked again, whether or not somebody has said that there is room. */
  private static final long LONGEST_WAIT_FOR_ROOM = TimeUnit.MILLISECONDS.toNanos(500);

  private final String owner;
  private final OutboxStore store;
  private final Shared shared;
  private final Rows rows;
  private final ListenState listen;
  private final LongSupplier clock;
  private final List<OrderedLane> lanes = new ArrayList<>();
  private final long minPoll;
  private final Turns turns;
  private final Loop loop;

  /** The drain waits for this loop no longer, nor for rows that it brings in. */
  private volatile boolean late;

  // confined to the loop
  private int epoch;
  private int pauseChanges;
  private int emptyRounds;
  private long takenTotal;
  private boolean lastMore;

  /** The last round was to find rows, and has not learnt what comes when. */
  private boolean forRowsAlone;

  public OrderedFetcher(
      SubscriberSettings settings,
      String owner,
      BucketStore buckets,
      Shared shared,
      Rows rows,
      Completer completer,
      ListenState listen,
      LongSupplier clock) {
    this.owner = owner;
    this.store = settings.store();
    this.shared = shared;
    this.rows = rows;
    this.listen = listen;
    this.clock = clock;
    this.minPoll = settings.claiming().minPoll().toNanos();
    this.turns = new Turns(settings.claiming().weights());
    this.loop = new Loop(shared.threads(), "fetcher", this::turn, this::survive);
    for (String queue : settings.queues()) {
      lanes.add(
          new OrderedLane(
              queue,
              owner,
              settings,
              buckets,
              shared,
              rows,
              completer,
              listen,
              clock,
              loop::signal));
    }
    shared.room().signal(loop::signal);
    shared.pauses().signal(loop::signal);
    listen.signal(loop::signal);
  }

  /** Returns what the lease keeper keeps alive. */
  public List<Renewable> leases() {
    return lanes.stream().<Renewable>map(OrderedLane::leases).toList();
  }

  @Override
  public void start() {
    loop.start();
  }

  @Override
  public void stop() {
    loop.stop();
    lanes.forEach(OrderedLane::close);
  }

  @Override
  public boolean join(long deadline) {
    boolean ended = loop.join(deadline);
    late = !ended;
    return ended;
  }

  @Override
  public void giveBack(List<HeldRow> given) {
    for (HeldRow row : given) {
      if (!late) {
        lanes.get(0).withdrawn(List.of(row));
      } else if (row.withdraw()) {
        shared.registry().settle(row);
      }
    }
  }

  @Override
  public void putOff(HeldRow row) {
    lanes.stream()
        .filter(lane -> lane.queue().equals(row.queue()))
        .forEach(lane -> lane.putOff(row));
  }

  @Override
  public Optional<SubscriberHealth.Order> order() {
    return Optional.of(
        new SubscriberHealth.Order(
            lanes.stream().mapToInt(lane -> lane.leases().owned()).sum(),
            lanes.stream().mapToInt(OrderedLane::blockedKeys).sum(),
            lanes.stream().mapToInt(OrderedLane::keysOnHold).sum()));
  }

  @Override
  public void release() {
    lanes.forEach(lane -> lane.leases().end());
  }

  private void heedPauses() {
    int changes = shared.pauses().changes();
    if (changes == pauseChanges) {
      return;
    }
    lanes.forEach(OrderedLane::pauseOrResume);
    if (lanes.stream().noneMatch(lane -> !lane.isPaused() && lane.isFailing())) {
      shared.health().succeeded(Operation.CLAIM); // else a read is owed that nobody will try
    }
    rows.pool().kick(rows.buffer().size()); // so that workers give back what may not begin
    pauseChanges = changes;
  }

  private long turn(boolean woken) {
    if (loop.stopping()) {
      forget();
      return Loop.END;
    }
    heedPauses();
    shared.tellOfLostStatements();
    if (listen.epoch() != epoch) {
      epoch = listen.epoch();
      lanes.forEach(lane -> lane.watch().forgotten());
    }
    boolean refused = rows.pool().rejecting() && !rows.buffer().isEmpty();
    if (refused) {
      shared.health().held(Operation.CLAIM, "the executor takes no handlers; rows wait for it");
    }
    if (refused || shared.room().rows() <= 0) {
      rows.pool().kick(rows.buffer().size());
      return shared.room().await() || refused ? LONGEST_WAIT_FOR_ROOM : 0;
    }
    return round(woken);
  }

  private long round(boolean woken) {
    boolean ranDry = rows.buffer().isEmpty();
    long begunAt = clock.getAsLong();
    int taken = 0;
    boolean more = false;
    boolean read = false;
    boolean rowsLikely = (woken || lastMore) && !forRowsAlone;
    RuntimeException failure = null;
    int first = lanes.size() == 1 ? 0 : turns.first(queues());
    for (int i = 0; i < lanes.size() && !loop.stopping() && !(more && turns.areWeighted()); i++) {
      int room = shared.room().rows();
      if (room <= 0) {
        more = true;
        break;
      }
      OrderedLane lane = lanes.get((first + i) % lanes.size());
      if (lane.isPaused() || !lane.mayRead(begunAt)) {
        continue;
      }
      try {
        OrderedLane.Turn turn = lane.turn(room, Math.max(1, shared.room().bytes()), rowsLikely);
        taken += turn.rows();
        more |= turn.more();
        read |= turn.read();
      } catch (RuntimeException | Error thrown) {
        lane.failed(clock.getAsLong());
        if (thrown instanceof Error error) {
          throw error;
        }
        failure = (RuntimeException) thrown;
      }
    }
    if (failure != null) {
      shared.health().failed(Operation.CLAIM, failure);
    } else if (read) {
      shared
          .health()
          .claimed(lanes.stream().noneMatch(lane -> !lane.isPaused() && lane.isFailing()));
    }
    if (read) {
      rows.prefetch().takes(clock.getAsLong() - begunAt);
    }
    takenTotal += taken;
    shared.room().mayBeFree();
    rows.prefetch().learn(clock.getAsLong(), takenTotal - shared.registry().rows(), more && ranDry);
    emptyRounds = taken > 0 ? 0 : Math.min(emptyRounds + 1, 30);
    lastMore = more;
    forRowsAlone = rowsLikely && taken == 0 && !more;
    if (more || forRowsAlone) {
      return 0;
    }
    if (taken > 0) {
      loop.pause(LINGER);
      return 0;
    }
    long now = clock.getAsLong();
    Long dueAgain = shared.room().takeDueAgainAt();
    if (dueAgain != null) {
      lanes.forEach(lane -> lane.dueAt(dueAgain));
    }
    long idle = minPoll;
    for (int i = 1; i < emptyRounds && idle < TimeUnit.HOURS.toNanos(1); i++) {
      idle *= 2;
    }
    long wait = read ? Math.min(idle, listen.prove(this::send, clock)) : idle;
    for (OrderedLane lane : lanes) {
      if (lane.isPaused()) {
        continue;
      }
      wait = Math.min(wait, lane.untilNext(listen.up(), idle, now));
    }
    return Math.max(0, wait);
  }

  private List<String> queues() {
    return lanes.stream().map(OrderedLane::queue).toList();
  }

  private void survive(Throwable failure) {
    lanes.forEach(lane -> lane.watch().forgotten());
    shared.health().failed(Operation.CLAIM, failure);
  }

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
