package dev.outbox4j.poller.internal;

import dev.outbox4j.internal.EngineThreads;
import dev.outbox4j.internal.Loop;
import dev.outbox4j.internal.Warnings;
import dev.outbox4j.poller.Poller;
import dev.outbox4j.poller.PollerFailure;
import dev.outbox4j.poller.PollerHealth;
import dev.outbox4j.poller.TickResult;
import dev.outbox4j.postgres.PostgresOutbox;
import java.time.Duration;
import java.util.concurrent.locks.LockSupport;
import javax.sql.DataSource;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One poller of a node, and the thread on which it ticks. Each tick is followed by another one an
 * interval after its begin. Thread-safe.
 */
public final class PollerNode {
  /** For how long the position of a batch is tried to be written; for the lease, if longer. */
  public static final Duration PATIENCE = Duration.ofSeconds(30);

  private static final Logger log = LoggerFactory.getLogger(PollerNode.class);
  private static final long LEAST_WAIT = Duration.ofMillis(1).toNanos();
  private static final long LEAST_WAIT_WHEN_FINISHED = Duration.ofSeconds(1).toNanos();
  private static final long LONGEST_WAIT_AFTER_A_FAILURE = Duration.ofSeconds(5).toNanos();

  private final Poller poller;
  private final NodeState state;
  private final PollerTick tick;
  private final Loop loop;
  private final Waits waits = new Waits();
  private int failures; // confined to the loop's thread

  /** A tick waits on the loop's thread, or on that of whoever ticks by hand. */
  private static final class Waits implements Pauses {
    private volatile boolean stopping;
    private volatile boolean interrupted;

    @Override
    public void pause(long nanos) {
      long until = System.nanoTime() + nanos;
      for (long left = nanos; left > 0 && !stopping; left = until - System.nanoTime()) {
        LockSupport.parkNanos(this, left);
        if (Thread.currentThread().isInterrupted()) {
          return; // by whoever ticks by hand, and is told by the next connection
        }
      }
    }

    @Override
    public boolean isStopping() {
      return stopping;
    }

    @Override
    public boolean isInterrupted() {
      return interrupted;
    }
  }

  /**
   * What is the same for all pollers of a node.
   *
   * @param outbox where the pollers are on record
   * @param application whose pollers
   * @param node the node's name
   * @param threads makes the threads
   * @param warnings limits the log
   * @param observer told of ticks and batches
   * @param patience for how long a position is tried to be written; for the lease, if longer
   */
  public record Shared(
      PostgresOutbox outbox,
      String application,
      String node,
      EngineThreads threads,
      Warnings warnings,
      Observer observer,
      Duration patience) {}

  /**
   * Creates what is not started; does no I/O.
   *
   * @param shared what is the same for all
   * @param renewals renews leases
   * @param poller the definition
   * @param dataSource where its source is
   * @param handler what it is for
   */
  PollerNode(
      Shared shared, Renewals renewals, Poller poller, DataSource dataSource, HandlerCall handler) {
    this.poller = poller;
    this.state = new NodeState(poller.name());
    PollerLog lines = new PollerLog(shared.warnings(), shared.application(), poller.name());
    PollerStore store =
        new PollerStore(
            shared.outbox(), shared.application(), poller.name(), shared.node(), poller.lease());
    this.tick =
        new PollerTick(
            poller,
            shared.application(),
            store,
            new FollowedSource(
                new SourceDatabase(dataSource),
                poller,
                warning -> {
                  lines.warned(warning);
                  state.warned(warning);
                }),
            new Batches(
                poller,
                shared.application(),
                store,
                handler,
                shared.observer(),
                lines,
                waits,
                shared.patience()),
            renewals,
            shared.observer(),
            lines,
            state,
            waits);
    this.loop =
        new Loop(
            shared.threads(),
            "poller-" + poller.name(),
            woken -> step(),
            failure ->
                shared
                    .warnings()
                    .error(
                        log,
                        poller.name() + " loop",
                        "poller {}: a tick ended as none should, and is tried again",
                        poller.name(),
                        failure));
  }

  private long step() {
    if (waits.stopping) {
      return Loop.END;
    }
    long begun = System.nanoTime();
    TickResult result = tick.tick();
    if (waits.stopping) {
      return Loop.END;
    }
    long took = System.nanoTime() - begun;
    return Math.max(LEAST_WAIT, interval(result) - took);
  }

  private long interval(TickResult result) {
    long interval = poller.pollInterval().toNanos();
    if (result.outcome() == TickResult.Outcome.FINISHED) {
      return Math.max(interval, LEAST_WAIT_WHEN_FINISHED);
    }
    boolean isFailure =
        result.outcome() == TickResult.Outcome.FAILED
            && result.failure().filter(step -> step == PollerFailure.HANDLER).isEmpty();
    failures = isFailure ? Math.min(failures + 1, 10) : 0;
    if (!isFailure) {
      return interval;
    }
    // an interval of a millisecond is not to hammer a server that is in trouble
    long backoff = Duration.ofMillis(50).toNanos() << failures;
    return Math.max(interval, Math.min(LONGEST_WAIT_AFTER_A_FAILURE, backoff));
  }

  /** Begins to tick. */
  void start() {
    loop.start();
  }

  /** No batch begins any more. */
  void stop() {
    waits.stopping = true;
    loop.stop();
  }

  /** Returns whether the thread has ended by a time of the monotonic clock. */
  boolean join(long deadline) {
    return loop.join(deadline);
  }

  /** Interrupts the handler, and whatever else is waited for. */
  void interrupt() {
    waits.interrupted = true;
    loop.interrupt();
  }

  /** Leaves the thread alone; it ends after what it does. */
  void abandon() {
    loop.abandon();
  }

  void ended() {
    state.stopped();
  }

  /** {@return what became of one tick on this thread} */
  public TickResult tick() {
    return tick.tick();
  }

  /** {@return what the first batch would be} */
  public TickResult dryTick() {
    return tick.dry();
  }

  /** {@return the definition} */
  public Poller poller() {
    return poller;
  }

  /** {@return what is known of it} */
  public PollerHealth health() {
    return state.health();
  }

  @Override
  public String toString() {
    return "PollerNode[" + poller.name() + "]";
  }
}
