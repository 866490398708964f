package dev.outbox4j.internal;

import org.jspecify.annotations.Nullable;

/** Knows for which subscriber the calling thread runs a handler. */
final class HandlerThread {
  private static final ThreadLocal<SubscriberSettings> SUBSCRIBER = new ThreadLocal<>();

  private HandlerThread() {}

  /** Runs a handler; a handler that runs another subscriber's handler is told apart. */
  static @Nullable Object run(SubscriberSettings subscriber, HandlerTable.Call handler)
      throws Exception {
    SubscriberSettings outer = SUBSCRIBER.get();
    SUBSCRIBER.set(subscriber);
    try {
      return handler.run();
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
  static boolean isOf(SubscriberSettings subscriber) {
    return SUBSCRIBER.get() == subscriber;
  }
}
