package dev.outbox4j.timer.internal;

import dev.outbox4j.Outcome;
import dev.outbox4j.testing.UnreadDelivery;
import dev.outbox4j.timer.Cause;
import dev.outbox4j.timer.Timer;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
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
  record Message(long leaseToken, boolean leaseLost, boolean stopping, List<Outcome> decisions)
      implements UnreadDelivery {
    Message(long leaseToken, boolean leaseLost, boolean stopping) {
      this(leaseToken, leaseLost, stopping, new ArrayList<>());
    }

    @Override
    public void decide(Outcome outcome) {
      decisions.add(outcome);
    }

    @Override
    public Optional<Outcome> decided() {
      return decisions.isEmpty()
          ? Optional.empty()
          : Optional.of(decisions.get(decisions.size() - 1));
    }
  }
}
