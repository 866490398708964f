package dev.outbox4j.internal;

import dev.outbox4j.internal.Vitals.Operation;
import dev.outbox4j.spi.ClaimRequest;
import dev.outbox4j.spi.ClaimRequest.Idle;
import dev.outbox4j.spi.ClaimResult;
import dev.outbox4j.spi.OutboxStore;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Claims as many rows as workers can soon begin, on a thread of its own, and waits wisely when
 * there are none. Its loop survives every failure until it is told to stop.
 */
final class Fetcher implements Runnable {
  /** After a short claim: so that a trickle of messages is claimed in handfuls, not one by one. */
  private static final long LINGER = TimeUnit.MILLISECONDS.toNanos(2);

  private static final long LONGEST_ROOM_WAIT = TimeUnit.MILLISECONDS.toNanos(500);
  private static final long NOTHING_DUE = Long.MAX_VALUE;

  private final String subscriber;
  private final String owner;
  private final OutboxStore store;
  private final ConnectionBudget connections;
  private final SubscriberSettings.Claiming settings;
  private final int mostInFlight;
  private final Holdings holdings;
  private final Vitals vitals;
  private final Listening listening;
  private final Wakeup wakeup;

  private final AtomicLong dueAgainAt = new AtomicLong(NOTHING_DUE);
  private volatile boolean waitingForRoom;
  private volatile boolean stopping;

  // confined to the fetcher's thread
  private final QueueScans scans;
  private final IdlePlan idle;
  private final Prefetch prefetch;
  private final Backoff backoff = new Backoff();
  private long claimedTotal;
  private boolean lastFull;
  private boolean woken;
  private int epoch;

  /** Where claimed rows are kept and run. */
  record Holdings(InFlightRegistry registry, Buffer buffer, WorkerPool pool) {}

  Fetcher(
      SubscriberSettings settings,
      String owner,
      ConnectionBudget connections,
      Holdings holdings,
      Vitals vitals,
      Listening listening,
      Wakeup wakeup) {
    this.subscriber = settings.name();
    this.owner = owner;
    this.store = settings.store();
    this.connections = connections;
    this.settings = settings.claiming();
    this.mostInFlight = settings.work().workers() + 8 * this.settings.batchSize();
    this.holdings = holdings;
    this.vitals = vitals;
    this.listening = listening;
    this.wakeup = wakeup;
    this.scans = new QueueScans(settings.queues());
    this.idle = new IdlePlan(this.settings);
    this.prefetch = new Prefetch(settings.work().workers(), this.settings.batchSize());
  }

  /** Ends the loop after the claim under way. */
  void stop() {
    stopping = true;
    wakeup.signal();
  }

  /**
   * A worker took a row, or rows were settled: there may be room. Called per row, so it is cheap.
   */
  void roomMayBeFree() {
    if (waitingForRoom && room() > 0) {
      waitingForRoom = false;
      wakeup.signal();
    }
  }

  /** A row was made due again after so many nanoseconds. */
  void dueAgainIn(long nanos) {
    long at = System.nanoTime() + nanos;
    long before = dueAgainAt.getAndAccumulate(at, Fetcher::earlier);
    if (before == NOTHING_DUE || at - before < 0) {
      wakeup.signal();
    }
  }

  private static long earlier(long known, long at) {
    return known == NOTHING_DUE || at - known < 0 ? at : known;
  }

  @Override
  public void run() {
    wakeup.own();
    while (!stopping) {
      try {
        int room = awaitRoom();
        if (room > 0) {
          claimOnce(room);
        }
        holdings.pool().kick(holdings.buffer().size());
      } catch (Throwable failure) { // whatever it is, polling goes on
        survive(failure);
      }
    }
  }

  private void survive(Throwable failure) {
    try {
      idle.unannounced();
      vitals.failed(Operation.CLAIM, failure);
      pause(backoff.nextNanos());
    } catch (Throwable worse) { // such as no memory even for that
      pause(LONGEST_ROOM_WAIT);
    }
  }

  /** Returns how many rows there is room for; the room may change meanwhile, so it is read once. */
  private int awaitRoom() {
    int room = room();
    if (room > 0) {
      return room;
    }
    waitingForRoom = true;
    try {
      if (room() <= 0) {
        wakeup.await(LONGEST_ROOM_WAIT);
      }
    } finally {
      waitingForRoom = false;
    }
    return stopping ? 0 : room();
  }

  private int room() {
    int waiting = holdings.buffer().size();
    int free = holdings.pool().idle();
    int ahead = prefetch.target();
    if (free == 0 && waiting > ahead / 2) {
      return 0; // claims of a useful size, not one for each row that is taken
    }
    int room = Math.min(free + ahead - waiting, settings.batchSize());
    return Math.min(room, mostInFlight - holdings.registry().rows());
  }

  private void claimOnce(int limit) {
    long now = System.nanoTime();
    if (listening.epoch() != epoch) {
      epoch = listening.epoch();
      idle.unannounced(); // the server may have restarted, and sleepers do not survive that
    }
    boolean forRowsAlone = woken;
    woken = false;
    Idle announcement = idle.announcement(listening.up(), lastFull || forRowsAlone, now);
    ClaimRequest request =
        new ClaimRequest(scans.next(now), limit, settings.lease(), owner, announcement);
    long[] sentAt = new long[1];
    ClaimResult result =
        connections.spend(
            () -> {
              sentAt[0] =
                  System.nanoTime(); // the lease begins after this, whatever the wait before
              return stopping ? new ClaimResult(List.of(), null) : store.claim(request);
            });
    if (stopping && result.rows().isEmpty()) {
      return; // the stop came while others held the connections, and nothing was sent
    }
    long answeredAt = System.nanoTime();
    backoff.reset();
    vitals.claimed();
    int rows = result.rows().size();
    vitals.tell(
        observer -> observer.claimed(subscriber, rows, Duration.ofNanos(answeredAt - sentAt[0])));
    boolean ranDry = holdings.buffer().isEmpty();
    if (rows > 0) {
      LeaseBatch batch = new LeaseBatch(result.rows(), sentAt[0], settings.lease().toNanos());
      holdings.registry().add(batch);
      holdings.buffer().add(batch);
      claimedTotal += rows;
      holdings.pool().kick(rows);
    }
    boolean full = rows >= limit;
    prefetch.learn(answeredAt, claimedTotal - holdings.buffer().size(), full && ranDry);
    scans.claimed(result.rows(), full, sentAt[0], answeredAt);
    idle.claimed(rows, result.lookAhead(), answeredAt);
    lastFull = full;
    if (!full) {
      rest(rows, forRowsAlone);
    }
  }

  private void rest(int rows, boolean lookedForRowsAlone) {
    if (rows > 0) {
      pause(LINGER);
      return;
    }
    long now = System.nanoTime();
    long dueAgain = dueAgainAt.getAndSet(NOTHING_DUE);
    if (dueAgain != NOTHING_DUE) {
      idle.dueAt(dueAgain);
    }
    long wait = idle.wait(listening.up(), now);
    if (scans.lookedAboveOnly()) {
      wait = Math.min(wait, scans.untilSweep(now)); // empty above the bound is not empty
    }
    if (!holdings.buffer().isEmpty()) {
      wait = Math.min(wait, LONGEST_ROOM_WAIT); // the executor refused: offer the rows again soon
    }
    if (lookedForRowsAlone) {
      wait = Math.min(wait, LINGER); // what woke it may be due soon, which the next claim tells
    }
    // rows are there, most likely: the claim that fetches them is spared all other questions
    woken = wakeup.await(wait) && !lookedForRowsAlone;
  }

  /** Waits without hearing wake-ups, which stay pending; a stop ends it at its next look. */
  private void pause(long nanos) {
    long until = System.nanoTime() + nanos;
    for (long left = nanos; left > 0 && !stopping; left = until - System.nanoTime()) {
      java.util.concurrent.locks.LockSupport.parkNanos(this, left);
      Thread.interrupted(); // whoever interrupts an engine thread means: look again
    }
  }
}
