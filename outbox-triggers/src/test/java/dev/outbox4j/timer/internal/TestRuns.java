package dev.outbox4j.timer.internal;

import dev.outbox4j.Delivery;
import dev.outbox4j.Outcome;
import dev.outbox4j.Payload;
import dev.outbox4j.timer.Cause;
import dev.outbox4j.timer.Timer;
import java.time.Duration;
import java.time.Instant;
import java.util.Map;
import java.util.Optional;

/** Attempts at runs, as if they had been read. */
final class TestRuns {
  private TestRuns() {}

  static StartedRun attempt(Timer timer, Instant instant, Instant begun) {
    return attempt(timer, instant, begun, new Message(1, false, false));
  }

  static StartedRun attempt(Timer timer, Instant instant, Instant begun, Message message) {
    return new StartedRun(
        timer, 1, instant, Cause.SCHEDULED, instant, 0, begun, 1, Optional.empty(), message, false);
  }

  /** A message of which only the lease and the stop may be read. */
  record Message(long leaseToken, boolean leaseLost, boolean stopping) implements Delivery {
    @Override
    public long id() {
      throw unread();
    }

    @Override
    public String queue() {
      throw unread();
    }

    @Override
    public Optional<String> type() {
      throw unread();
    }

    @Override
    public Optional<String> orderingKey() {
      throw unread();
    }

    @Override
    public Optional<String> timerId() {
      throw unread();
    }

    @Override
    public Payload payload() {
      throw unread();
    }

    @Override
    public Map<String, String> headers() {
      throw unread();
    }

    @Override
    public Instant createdAt() {
      throw unread();
    }

    @Override
    public Instant availableAt() {
      throw unread();
    }

    @Override
    public Optional<Instant> expiresAt() {
      throw unread();
    }

    @Override
    public int attempt() {
      throw unread();
    }

    @Override
    public int deliveries() {
      throw unread();
    }

    @Override
    public Duration leaseLeft() {
      throw unread();
    }

    @Override
    public void decide(Outcome outcome) {
      throw unread();
    }

    private static AssertionError unread() {
      return new AssertionError("A run tells nothing else of its message by itself");
    }
  }
}
