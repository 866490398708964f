package dev.outbox4j.poller.internal;

import dev.outbox4j.poller.HeldBack;
import dev.outbox4j.poller.PollerFailure;
import dev.outbox4j.poller.PollerHealth;
import dev.outbox4j.poller.PollerHealth.State;
import dev.outbox4j.poller.Position;
import dev.outbox4j.poller.TickResult;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** What a node knows of a poller. Thread-safe. */
final class NodeState {
  private static final int MOST_WARNINGS = 10;

  private final String name;

  // guarded by this
  private State state = State.NEW;
  private @Nullable Instant lastTick;
  private @Nullable Instant lastSuccess;
  private @Nullable Instant failingSince;
  private @Nullable PollerFailure failure;
  private @Nullable String reason;
  private int failures;
  private @Nullable Duration lag;
  private long lagAt;
  private @Nullable Lease lease;
  private Optional<HeldBack> heldBack = Optional.empty();
  private @Nullable Position position;
  private List<String> warnings = List.of();
  private final Deque<String> latestWarnings = new ArrayDeque<>();

  NodeState(String name) {
    this.name = name;
  }

  synchronized void described(List<String> found) {
    warnings = List.copyOf(found);
  }

  /** What was found while it is followed; the latest ones are kept. */
  synchronized void warned(String warning) {
    latestWarnings.add(warning);
    if (latestWarnings.size() > MOST_WARNINGS) {
      latestWarnings.removeFirst();
    }
  }

  synchronized void at(Position now) {
    position = now;
  }

  synchronized void heldBack(Optional<HeldBack> by) {
    heldBack = by;
  }

  /** How old what is handled is. What was handled at a time stays so, whoever knows less. */
  synchronized void lag(Duration now) {
    Duration before = currentLag();
    if (before == null || now.compareTo(before) < 0) {
      lag = now;
      lagAt = System.nanoTime();
    }
  }

  /** As it is on record, also if it is not known there. */
  private void lagOnRecord(StateRow row) {
    lag = row.lag();
    lagAt = System.nanoTime();
  }

  /** By the monotonic clock, as the other one may be set. */
  private @Nullable Duration currentLag() {
    Duration then = lag;
    return then == null ? null : then.plusNanos(System.nanoTime() - lagAt);
  }

  /** A look has succeeded that found the lease free. */
  synchronized void succeeded() {
    lastSuccess = Instant.now();
    forgetFailure();
  }

  private void forgetFailure() {
    failingSince = null;
    failure = null;
    reason = null;
    failures = 0;
  }

  /** The lease that this node has; null once it has none. */
  synchronized void holds(@Nullable Lease held) {
    lease = held;
  }

  /**
   * What another node wrote, or did not. That the lease was not to be had is no success: when a
   * look succeeded last is on record.
   */
  synchronized void others(State now, TickResult.Outcome outcome, StateRow row) {
    state = now;
    boolean isFinished = outcome == TickResult.Outcome.FINISHED;
    lastSuccess = isFinished ? Instant.now() : onRecord(row.sinceSuccess());
    heldBack = Optional.empty();
    lagOnRecord(row);
    failingSince = row.failingSince().orElse(null);
    failure = row.failure().orElse(null);
    reason = row.reason().orElse(null);
    failures = row.failures();
  }

  /** By this process's clock. */
  private @Nullable Instant onRecord(@Nullable Duration since) {
    return since == null ? lastSuccess : Instant.now().minus(since);
  }

  synchronized void acquired(StateRow row) {
    state = State.ACTIVE;
    lagOnRecord(row);
    if (failingSince == null || row.failingSince().isPresent()) {
      failingSince = row.failingSince().orElse(null);
      failure = row.failure().orElse(null);
      reason = row.reason().orElse(null);
      failures = row.failures();
    }
  }

  synchronized void failed(PollerFailure step, String why) {
    if (failingSince == null) {
      failingSince = Instant.now();
    }
    failure = step;
    reason = why;
    failures++;
  }

  synchronized void ticked(TickResult result) {
    lastTick = Instant.now();
    if (result.outcome() == TickResult.Outcome.FINISHED) {
      state = State.FINISHED;
      lag = null; // nothing is to be handled any more
    }
  }

  synchronized void stopped() {
    state = State.STOPPED;
  }

  synchronized PollerHealth health() {
    List<String> allWarnings = new ArrayList<>(warnings);
    allWarnings.addAll(latestWarnings);
    return new PollerHealth(
        name,
        state,
        Optional.ofNullable(lastTick),
        Optional.ofNullable(lastSuccess),
        Optional.ofNullable(failingSince),
        Optional.ofNullable(failingSince == null ? null : failure),
        Optional.ofNullable(failingSince == null ? null : reason),
        failingSince == null ? 0 : failures,
        Optional.ofNullable(currentLag()),
        Optional.ofNullable(lease).map(Lease::sinceRenewal),
        heldBack,
        Optional.ofNullable(position),
        allWarnings);
  }
}
