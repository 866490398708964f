package dev.outbox4j.internal.lease;

import dev.outbox4j.internal.Loop;
import dev.outbox4j.internal.RedactedThrowable;
import dev.outbox4j.internal.run.HandlerTimeouts;
import dev.outbox4j.internal.run.StuckWorkers;
import dev.outbox4j.internal.settings.SubscriberSettings;
import dev.outbox4j.internal.state.EngineHealth.Operation;
import dev.outbox4j.internal.state.Shared;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Keeps alive what is held under leases, and watches handlers' timeouts; on a loop of its own, so
 * that neither waits for a handler, a claim or an ack.
 */
public final class LeaseKeeper {
  private static final Logger log = LoggerFactory.getLogger(LeaseKeeper.class);

  private static final long SHORTEST_TICK = TimeUnit.MILLISECONDS.toNanos(5);
  private static final long LONGEST_TICK = TimeUnit.SECONDS.toNanos(1);

  /** What failed is tried again after a second, here or elsewhere. */
  private static final Duration TRANSACTIONS_OWED = Duration.ofSeconds(10);

  private final Shared shared;
  private final List<Renewable> held;
  private final HandlerTimeouts timeouts;
  private final StuckWorkers stuck;
  private final Loop loop;
  private final long tick;

  public LeaseKeeper(
      SubscriberSettings settings,
      Shared shared,
      List<Renewable> held,
      HandlerTimeouts timeouts,
      StuckWorkers stuck) {
    this.shared = shared;
    this.held = List.copyOf(held);
    this.timeouts = timeouts;
    this.stuck = stuck;
    this.loop = new Loop(shared.threads(), "lease-keeper", this::keep, this::survive);
    long finest = Math.min(settings.claiming().lease().toNanos() / 8, timeouts.finest());
    this.tick = Math.max(SHORTEST_TICK, Math.min(LONGEST_TICK, finest));
  }

  public void start() {
    loop.start();
  }

  public void stop() {
    loop.stop();
  }

  public void join(long deadline) {
    loop.join(deadline);
  }

  private long keep(boolean woken) {
    if (loop.stopping()) {
      return Loop.END;
    }
    try {
      timeouts.endOverdue(System.nanoTime());
    } catch (RuntimeException failure) { // must not keep leases from being renewed
      log.error(
          "[{}] a handler past its timeout could not be ended",
          shared.subscriber(),
          RedactedThrowable.of(failure));
    }
    for (Renewable lease : held) {
      lease.renewDue();
    }
    shared.tellOfLostStatements();
    shared.health().forget(Operation.TRANSACTION, TRANSACTIONS_OWED);
    stuck.look(System.nanoTime());
    return tick;
  }

  private void survive(Throwable failure) {
    shared.health().failed(Operation.RENEW, failure);
  }
}
