package dev.outbox4j.internal;

import dev.outbox4j.Delivery;
import org.jspecify.annotations.Nullable;

/** The message that the calling thread handles. */
public final class CurrentDelivery implements AutoCloseable {
  private static final ThreadLocal<Delivery> CURRENT = new ThreadLocal<>();

  private final @Nullable Delivery outer;

  private CurrentDelivery(@Nullable Delivery outer) {
    this.outer = outer;
  }

  /** Returns it, or null if the thread handles none. */
  public static @Nullable Delivery get() {
    return CURRENT.get();
  }

  /** The thread handles a message until this is closed; null for several at once. */
  public static CurrentDelivery set(@Nullable Delivery delivery) {
    CurrentDelivery scope = new CurrentDelivery(CURRENT.get());
    put(delivery);
    return scope;
  }

  private static void put(@Nullable Delivery delivery) {
    if (delivery == null) {
      CURRENT.remove();
    } else {
      CURRENT.set(delivery);
    }
  }

  @Override
  public void close() {
    put(outer);
  }
}
