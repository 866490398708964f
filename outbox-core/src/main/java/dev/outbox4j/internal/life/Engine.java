package dev.outbox4j.internal.life;

import dev.outbox4j.SubscriberHealth;
import dev.outbox4j.SubscriberState;
import dev.outbox4j.internal.ByteBudget;
import dev.outbox4j.internal.EngineThreads;
import dev.outbox4j.internal.OneLine;
import dev.outbox4j.internal.Warnings;
import dev.outbox4j.internal.claim.Fetcher;
import dev.outbox4j.internal.claim.ListenState;
import dev.outbox4j.internal.claim.PauseWatch;
import dev.outbox4j.internal.claim.RowSource;
import dev.outbox4j.internal.lease.LeaseKeeper;
import dev.outbox4j.internal.lease.Renewable;
import dev.outbox4j.internal.lease.RowLeases;
import dev.outbox4j.internal.order.OrderedFetcher;
import dev.outbox4j.internal.run.DeliveryTask;
import dev.outbox4j.internal.run.HandlerTimeouts;
import dev.outbox4j.internal.run.OutcomeApplier;
import dev.outbox4j.internal.run.Rows;
import dev.outbox4j.internal.run.StuckWorkers;
import dev.outbox4j.internal.run.WorkerPool;
import dev.outbox4j.internal.settings.SubscriberSettings;
import dev.outbox4j.internal.settle.Completer;
import dev.outbox4j.internal.state.Buffer;
import dev.outbox4j.internal.state.ClaimedBatch;
import dev.outbox4j.internal.state.ConnectionBudget;
import dev.outbox4j.internal.state.EngineHealth;
import dev.outbox4j.internal.state.Events;
import dev.outbox4j.internal.state.HandlerRun;
import dev.outbox4j.internal.state.HeldRow;
import dev.outbox4j.internal.state.HeldRows;
import dev.outbox4j.internal.state.PausedQueues;
import dev.outbox4j.internal.state.Permits;
import dev.outbox4j.internal.state.Prefetch;
import dev.outbox4j.internal.state.Room;
import dev.outbox4j.internal.state.Shared;
import dev.outbox4j.spi.BucketStore;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One run of a subscriber, from start to stop: makes the parts, owns their loops, and drains them
 * in order.
 */
public final class Engine implements Lifecycle.Run {
  private static final Logger log = LoggerFactory.getLogger(Engine.class);

  /** What writing the last outcomes and giving rows back may take beyond the graceful timeout. */
  private static final long FLUSH_NANOS = TimeUnit.SECONDS.toNanos(2);

  /** What the renewal under way may take after that. */
  private static final long LAST_RENEWAL_NANOS = TimeUnit.SECONDS.toNanos(1);

  private static final long LAST_EVENTS_NANOS = TimeUnit.MILLISECONDS.toNanos(500);

  private final SubscriberSettings settings;
  private final Shared shared;
  private final Buffer buffer;
  private final Completer completer;
  private final DeliveryTask task;
  private final WorkerPool pool;
  private final ListenState listen;
  private final RowSource fetcher;
  private final @Nullable PauseWatch pauses;
  private final StuckWorkers stuck;
  private final LeaseKeeper keeper;
  private final HandlerTimeouts timeouts;

  Engine(SubscriberSettings settings, String owner, EngineThreads threads) {
    this.settings = settings;
    String name = settings.name();
    int batchSize = settings.claiming().batchSize();
    Permits permits = new Permits(settings.work().workers());
    HeldRows registry = new HeldRows(settings.claiming().limits().queues());
    this.buffer = new Buffer();
    Prefetch prefetch =
        new Prefetch(permits.total(), batchSize, settings.handlers().largestBatch());
    Room room = new Room(registry, buffer, permits, prefetch, batchSize, ByteBudget.claimed());
    Events events = new Events(name, threads, settings.observers());
    this.shared =
        new Shared(
            name,
            owner,
            threads,
            new ConnectionBudget(
                settings.claiming().lease(),
                settings.store().networkTimeout(),
                settings.connections()),
            registry,
            room,
            new EngineHealth(name, events),
            events,
            new Warnings(name),
            settings.pauses() == null
                ? PausedQueues.none()
                : PausedQueues.unknown(settings.queues()));
    this.completer = new Completer(settings, shared);
    OutcomeApplier outcomes = new OutcomeApplier(name, settings.failing());
    DeliveryTask task = new DeliveryTask(settings, outcomes, completer, shared, prefetch, buffer);
    this.pool = new WorkerPool(settings, shared, permits, buffer, prefetch, task);
    task.whenHandedOn(() -> pool.kick(1));
    this.task = task;
    this.listen = new ListenState(name, owner, settings.source(), events, shared.health());
    Rows rows = new Rows(buffer, pool, prefetch);
    List<Renewable> leases;
    BucketStore buckets = settings.buckets();
    if (buckets == null) {
      this.fetcher =
          new Fetcher(settings, owner, shared, rows, completer, listen, System::nanoTime);
      leases = List.of(new RowLeases(settings, shared, completer, prefetch));
    } else {
      OrderedFetcher ordered =
          new OrderedFetcher(
              settings, owner, buckets, shared, rows, completer, listen, System::nanoTime);
      this.fetcher = ordered;
      leases = ordered.leases();
    }
    this.pauses = PauseWatch.of(settings, shared, listen, System::nanoTime);
    shared.pauses().putOffTo(fetcher::putOff);
    this.timeouts = new HandlerTimeouts(settings, shared, completer, outcomes);
    this.stuck =
        new StuckWorkers(
            name,
            registry,
            permits.total(),
            () -> pool.running() >= permits.total(),
            timeouts::oldestOverdue,
            System.nanoTime());
    this.keeper = new LeaseKeeper(settings, shared, leases, timeouts, stuck);
  }

  @Override
  public void start() {
    listen.open(settings.store().channel()); // first: if the source refuses, nothing has begun
    try {
      shared.events().start();
      completer.start();
      task.start();
      keeper.start();
      if (pauses != null) {
        pauses.start();
      }
      fetcher.start();
    } catch (Error noThread) { // the machine has no more of them: end those that began
      drain();
      throw noThread;
    }
  }

  /**
   * Drains; returns true if nothing was left behind. Each wait is bounded, so that a database which
   * does not answer cannot hold up the stop; what hangs then ends behind it.
   */
  @Override
  public boolean drain() {
    long deadline = System.nanoTime() + settings.stopping().gracefulTimeout().toNanos();
    shared.registry().stop();
    if (pauses != null) {
      pauses.stop();
    }
    fetcher.stop();
    fetcher.giveBack(buffer.close());
    task.close();
    boolean quiet = pool.awaitQuiet(deadline, timeouts::deciding);
    if (!quiet) {
      completer.acksOnly();
      timeouts.endWithStop();
    }
    pool.shutdown(!quiet);
    timeouts.shutdown();
    boolean fetched = fetcher.join(deadline + FLUSH_NANOS);
    if (pauses != null) {
      pauses.join(deadline + FLUSH_NANOS);
    }
    completer.stop();
    boolean flushed =
        completer.join(Math.max(deadline + FLUSH_NANOS, System.nanoTime() + FLUSH_NANOS / 8));
    if (!flushed) {
      completer.giveUp();
    }
    keeper.stop();
    keeper.join(System.nanoTime() + LAST_RENEWAL_NANOS);
    fetcher.release();
    listen.close();
    int left = shared.registry().rows() + completer.parked();
    boolean clean = fetched && quiet && flushed && left == 0;
    if (!clean) {
      log.warn(
          "[{}] drain ended with {}; handlers finished: {}, outcomes written and rows given back: {},"
              + " last claim answered: {}, graceful timeout {}{}",
          settings.name(),
          left == 0
              ? "no row left, but not in time"
              : left
                  + " row(s) left to the end of their lease ("
                  + settings.claiming().lease()
                  + ")",
          quiet,
          flushed,
          fetched,
          settings.stopping().gracefulTimeout(),
          quiet ? "" : oldest().map(Engine::words).orElse(""));
      if (!quiet || !flushed || !fetched) {
        shared.events().drainTimedOut(left);
      }
    }
    shared.events().stop(System.nanoTime() + LAST_EVENTS_NANOS);
    return clean;
  }

  SubscriberHealth health(SubscriberState state) {
    EngineHealth.Failure failure = shared.health().lastFailure();
    Optional<Instant> failingSince = failingSince();
    return new SubscriberHealth(
        settings.name(),
        state,
        Optional.ofNullable(shared.health().lastClaimAt()),
        Optional.ofNullable(failure).map(EngineHealth.Failure::at),
        Optional.ofNullable(failure).map(EngineHealth.Failure::text),
        failingSince.isPresent(),
        failingSince,
        listen.state(),
        shared.registry().rows(),
        pool.running(),
        oldest(),
        stuck.stuckFor(System.nanoTime()),
        completer.deadLettersWaiting(),
        fetcher.order(),
        settings.pauses() == null ? Optional.empty() : Optional.of(shared.pauses().queues()));
  }

  private Optional<Instant> failingSince() {
    long hanging = shared.connections().hangingNanos();
    return Stream.of(
            Optional.ofNullable(shared.health().failingSince()),
            hanging > 0
                ? Optional.of(Instant.now().minusNanos(hanging))
                : Optional.<Instant>empty())
        .flatMap(Optional::stream)
        .min(Instant::compareTo);
  }

  private static String words(SubscriberHealth.InFlight oldest) {
    return "; the oldest is message %d of queue '%s', type %s"
        .formatted(
            oldest.id(), OneLine.of(oldest.queue()), OneLine.of(oldest.type().orElse("none")));
  }

  private Optional<SubscriberHealth.InFlight> oldest() {
    HeldRow oldest = null;
    for (ClaimedBatch batch : shared.registry().batches()) {
      HeldRow first = batch.firstLeft();
      if (first != null && (oldest == null || batch.claimedAt() - oldest.batch().claimedAt() < 0)) {
        oldest = first;
      }
    }
    HandlerRun overdue = timeouts.oldestOverdue();
    if (overdue != null
        && (oldest == null || overdue.row().batch().claimedAt() - oldest.batch().claimedAt() < 0)) {
      oldest = overdue.row();
    }
    return Optional.ofNullable(oldest)
        .map(
            row ->
                new SubscriberHealth.InFlight(
                    row.queue(),
                    row.id(),
                    Optional.ofNullable(row.typeOrNull()),
                    Duration.ofNanos(System.nanoTime() - row.batch().claimedAt())));
  }

  @Override
  public void stopped() {
    shared.events().stopped();
  }

  Events events() {
    return shared.events();
  }
}
