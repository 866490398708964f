package dev.outbox4j.internal.state;

import dev.outbox4j.Delivery;
import dev.outbox4j.Outcome;
import dev.outbox4j.Payload;
import java.time.Duration;
import java.time.Instant;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** What users see of a row. */
public final class RowDelivery implements Delivery {
  private final HeldRow row;
  private volatile @Nullable Outcome decision;
  private volatile boolean ended;

  RowDelivery(HeldRow row) {
    this.row = row;
  }

  /** Returns what the handler has decided by the delivery, or null. */
  public @Nullable Outcome decision() {
    return decision;
  }

  /** Returns the last decision; what is decided from now on is refused. */
  public @Nullable Outcome end() {
    ended = true;
    return decision;
  }

  @Override
  public void decide(Outcome outcome) {
    decision = Objects.requireNonNull(outcome, "outcome"); // before it is asked, so seen or refused
    HandlerRun run = row.run();
    if (ended || (run != null && !run.isRunning())) {
      throw new IllegalStateException(
          this
              + " can no longer be decided: its run has ended, as the handler returned, its stage"
              + " completed, or handlerTimeout passed. Decide before that; a handler that decides"
              + " on another thread returns a CompletionStage that completes afterwards");
    }
  }

  @Override
  public Optional<Outcome> decided() {
    return Optional.ofNullable(decision);
  }

  @Override
  public boolean leaseLost() {
    return row.endedEarly(System.nanoTime());
  }

  @Override
  public Duration leaseLeft() {
    return row.leaseLeft(System.nanoTime());
  }

  @Override
  public boolean stopping() {
    return row.batch().stopping();
  }

  @Override
  public long id() {
    return row.id();
  }

  @Override
  public String queue() {
    return row.queue();
  }

  @Override
  public Optional<String> type() {
    return Optional.ofNullable(row.typeOrNull());
  }

  @Override
  public Optional<String> orderingKey() {
    return Optional.ofNullable(row.message().orderingKey());
  }

  @Override
  public Optional<String> timerId() {
    return Optional.ofNullable(row.message().timerId());
  }

  @Override
  public Payload payload() {
    return row.message().payload();
  }

  @Override
  public Map<String, String> headers() {
    return row.message().headers();
  }

  @Override
  public Instant createdAt() {
    return row.message().createdAt();
  }

  @Override
  public Instant availableAt() {
    return row.message().availableAt();
  }

  @Override
  public Optional<Instant> expiresAt() {
    return Optional.ofNullable(row.message().expiresAt());
  }

  @Override
  public int attempt() {
    return row.attempt();
  }

  @Override
  public int deliveries() {
    return row.deliveries();
  }

  @Override
  public long leaseToken() {
    return row.leaseToken();
  }

  @Override
  public String toString() {
    return row.toString();
  }
}
