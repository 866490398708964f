package dev.outbox4j.internal.claim;

import dev.outbox4j.internal.state.EngineHealth;
import dev.outbox4j.internal.state.Shared;
import dev.outbox4j.spi.OutboxStore;
import java.util.function.LongSupplier;

/**
 * Gives the watch of a queue to another subscriber, since publishers must not count on one that
 * cannot claim. Confined to the fetcher.
 *
 * @param owner whose watch it is
 */
public record WatchHandOver(
    OutboxStore store, String owner, Shared shared, ListenState listen, LongSupplier clock) {

  /** Gives it up, if publishers count on this subscriber. */
  public void pass(String queue, QueueWatch watch) {
    if (!watch.isCountedOn()) {
      return;
    }
    watch.passed(clock.getAsLong());
    listen.watch(queue, false);
    try {
      shared.connections().spendOnSaying(() -> store.pass(queue, owner));
    } catch (RuntimeException failure) { // the others poll, and take the watch when it ends
      shared.health().noted("pass: " + EngineHealth.words(failure));
    }
  }
}
