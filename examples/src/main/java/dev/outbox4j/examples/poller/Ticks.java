package dev.outbox4j.examples.poller;

import dev.outbox4j.examples.run.Waits;
import dev.outbox4j.poller.HeldBack;
import dev.outbox4j.poller.PollerEvents;
import dev.outbox4j.poller.PollerHealth;
import dev.outbox4j.poller.PollersHealth;
import dev.outbox4j.poller.TickResult;
import java.time.Duration;
import java.util.Optional;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** Tells whoever waits of each tick, and notes the longest wait for an open transaction. */
final class Ticks implements PollerEvents {
  private final Waits waits;

  // guarded by this
  private @Nullable Supplier<PollersHealth> health;
  private @Nullable HeldBack longest;

  Ticks(Waits waits) {
    this.waits = waits;
  }

  @Override
  public synchronized void started(String application, Supplier<PollersHealth> health) {
    this.health = health;
  }

  @Override
  public void ticked(String application, String poller, Duration took, TickResult result) {
    note();
    waits.happened();
  }

  private synchronized void note() {
    if (health != null) {
      health.get().pollers().stream()
          .map(PollerHealth::heldBack)
          .flatMap(Optional::stream)
          .forEach(this::note);
    }
  }

  private synchronized void note(HeldBack held) {
    if (longest == null || longest.delay().compareTo(held.delay()) < 0) {
      longest = held;
    }
  }

  /** {@return the longest wait that was seen at a tick, if there was one} */
  synchronized Optional<HeldBack> longestWait() {
    return Optional.ofNullable(longest);
  }
}
