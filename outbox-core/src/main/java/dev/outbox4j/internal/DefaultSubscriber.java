package dev.outbox4j.internal;

import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.SubscriberHealth;
import dev.outbox4j.spi.OutboxStore;

/** The one implementation of {@link OutboxSubscriber}. */
public final class DefaultSubscriber implements OutboxSubscriber {
  /** The pooled connections a subscriber holds at the peak. */
  public static final int CONNECTIONS = 2;

  private final SubscriberSettings settings;

  /** Keeps the settings; does no I/O. */
  public DefaultSubscriber(SubscriberSettings settings) {
    this.settings = settings;
  }

  /** {@return the store, to count who shares its pool} */
  public OutboxStore store() {
    return settings.store();
  }

  /** Says why a pool cannot serve so many subscribers. */
  public static OutboxException poolTooSmall(int limit, int subscribers) {
    return new OutboxException(
        "The pool has "
            + limit
            + " connection(s), too few for "
            + subscribers
            + " subscriber(s): each needs "
            + CONNECTIONS
            + " (one to claim, one to settle), whatever its workers; give the pool "
            + subscribers * CONNECTIONS
            + " or more, plus what the service itself uses");
  }

  @Override
  public String name() {
    return settings.name();
  }

  @Override
  public void start() {
    throw new IllegalStateException("engine pending");
  }

  @Override
  public void stop() {}

  @Override
  public SubscriberHealth health() {
    throw new IllegalStateException("engine pending");
  }
}
