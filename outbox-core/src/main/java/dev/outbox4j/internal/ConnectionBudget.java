package dev.outbox4j.internal;

import java.util.concurrent.Semaphore;
import java.util.function.Supplier;

/**
 * Keeps a subscriber at two pooled connections, whichever of its threads ask. Thread-safe and fair,
 * so that claims, writes and renewals all get their turn.
 */
final class ConnectionBudget {
  private final Semaphore permits = new Semaphore(DefaultSubscriber.CONNECTIONS, true);

  <T> T spend(Supplier<T> statement) {
    permits.acquireUninterruptibly(); // bounded by the statements that hold the permits
    try {
      return statement.get();
    } finally {
      permits.release();
    }
  }
}
