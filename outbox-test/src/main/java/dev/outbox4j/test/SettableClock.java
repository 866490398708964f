package dev.outbox4j.test;

import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicReference;

/**
 * A clock that moves only when told to. Thread-safe. Hand it to the service under test as well, so
 * that it and the outbox agree on the time.
 */
public final class SettableClock extends Clock {
  private final AtomicReference<Instant> now;
  private final List<Runnable> watchers;
  private final ZoneId zone;

  /** Creates a clock that stands at the instant of its making, in UTC. */
  public SettableClock() {
    this(Clock.systemUTC().instant());
  }

  /**
   * Creates a clock in UTC.
   *
   * @param now where it stands
   */
  public SettableClock(Instant now) {
    this(
        new AtomicReference<>(Objects.requireNonNull(now, "now")),
        new CopyOnWriteArrayList<>(),
        ZoneOffset.UTC);
  }

  private SettableClock(AtomicReference<Instant> now, List<Runnable> watchers, ZoneId zone) {
    this.now = now;
    this.watchers = watchers;
    this.zone = zone;
  }

  /**
   * Moves the clock.
   *
   * @param by how far; less than zero moves it back
   */
  public void advance(Duration by) {
    now.updateAndGet(instant -> instant.plus(by));
    watchers.forEach(Runnable::run);
  }

  /**
   * Sets the clock.
   *
   * @param instant where it stands from now on
   */
  public void set(Instant instant) {
    now.set(Objects.requireNonNull(instant, "instant"));
    watchers.forEach(Runnable::run);
  }

  /** Calls back, on the thread that moves the clock, once it has moved. */
  void onChange(Runnable watcher) {
    watchers.add(watcher);
  }

  @Override
  public Instant instant() {
    return Objects.requireNonNull(now.get());
  }

  @Override
  public ZoneId getZone() {
    return zone;
  }

  /**
   * Returns this clock in another zone: one moves with the other.
   *
   * @param zone the zone
   * @return the same clock, to be read in that zone
   */
  @Override
  public SettableClock withZone(ZoneId zone) {
    return new SettableClock(now, watchers, Objects.requireNonNull(zone, "zone"));
  }

  @Override
  public String toString() {
    return "SettableClock[" + instant() + "," + zone + "]";
  }
}
