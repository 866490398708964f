package dev.outbox4j.internal.run;

import dev.outbox4j.internal.settings.SubscriberSettings;
import java.util.function.BooleanSupplier;

/**
 * Knows for which subscriber the calling thread runs a handler, or what belongs to its run: an
 * observer, a retry policy, a renderer.
 */
public final class HandlerThread {
  private static final ThreadLocal<SubscriberSettings> SUBSCRIBER = new ThreadLocal<>();

  private HandlerThread() {}

  /** Runs a handler; a handler that runs another subscriber's handler is told apart. */
  static boolean run(SubscriberSettings subscriber, BooleanSupplier handler) {
    SubscriberSettings outer = SUBSCRIBER.get();
    SUBSCRIBER.set(subscriber);
    try {
      return handler.getAsBoolean();
    } finally {
      if (outer == null) {
        SUBSCRIBER.remove();
      } else {
        SUBSCRIBER.set(outer);
      }
    }
  }

  /** Tells whether the calling thread runs a handler of this very subscriber. */
  @SuppressWarnings("ReferenceEquality") // two subscribers may have equal settings
  public static boolean isOf(SubscriberSettings subscriber) {
    return SUBSCRIBER.get() == subscriber;
  }
}
