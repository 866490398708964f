package dev.outbox4j.testing;

import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.concurrent.atomic.AtomicReference;

/** A clock that moves only when told to. Thread-safe. */
public final class SettableClock extends Clock {
  private final AtomicReference<Instant> now;

  /** Creates a clock that stands at an arbitrary instant. */
  public SettableClock() {
    this(Instant.parse("2030-01-01T00:00:00Z"));
  }

  /** Creates a clock that stands at the given instant. */
  public SettableClock(Instant now) {
    this.now = new AtomicReference<>(now);
  }

  /** Moves the clock. */
  public void advance(Duration by) {
    now.updateAndGet(instant -> instant.plus(by));
  }

  /** Sets the clock. */
  public void set(Instant instant) {
    now.set(instant);
  }

  @Override
  public Instant instant() {
    return now.get();
  }

  @Override
  public ZoneId getZone() {
    return ZoneOffset.UTC;
  }

  @Override
  public Clock withZone(ZoneId zone) {
    throw new UnsupportedOperationException("A settable clock has no zone of its own");
  }
}
