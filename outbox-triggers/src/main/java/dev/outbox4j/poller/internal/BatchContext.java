package dev.outbox4j.poller.internal;

import dev.outbox4j.poller.PollContext;
import dev.outbox4j.poller.Poller;
import dev.outbox4j.poller.Position;
import java.time.Duration;
import java.util.function.BooleanSupplier;

/**
 * What a handler knows of its batch.
 *
 * @param poller the poller
 * @param attempt which attempt
 * @param before the position before the batch
 * @param after the position after it
 * @param lease the lease
 * @param stops whether the node stops
 * @param isRedriven whether the row was in quarantine
 */
record BatchContext(
    Poller poller,
    int attempt,
    Position before,
    Position after,
    Lease lease,
    BooleanSupplier stops,
    boolean isRedriven)
    implements PollContext {
  @Override
  public long token() {
    return lease.token();
  }

  @Override
  public Duration leaseRemaining() {
    return lease.remaining();
  }

  @Override
  public boolean isLeaseLost() {
    return lease.isLost();
  }

  @Override
  public boolean isStopping() {
    return stops.getAsBoolean();
  }
}
