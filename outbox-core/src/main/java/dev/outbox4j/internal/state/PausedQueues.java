package dev.outbox4j.internal.state;

import java.util.Collection;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;

/**
 * The queues of which no message may begin. Thread-safe: a watch says which they are, workers look
 * before each message, and the fetcher before each turn.
 */
public final class PausedQueues {
  private volatile Set<String> queues;
  private final AtomicInteger changes = new AtomicInteger();
  private volatile Consumer<HeldRow> putOff = row -> {};
  private final List<Runnable> signals = new CopyOnWriteArrayList<>();

  private PausedQueues(Set<String> queues) {
    this.queues = queues;
  }

  /** No queue is paused, and none will be. */
  public static PausedQueues none() {
    return new PausedQueues(Set.of());
  }

  /** As long as nothing is known of them, queues count as paused. */
  public static PausedQueues unknown(Collection<String> queues) {
    return new PausedQueues(Set.copyOf(queues));
  }

  /** Sets who takes back what may not begin. */
  public void putOffTo(Consumer<HeldRow> source) {
    putOff = source;
  }

  /** Adds what wakes somebody who looks for changes. */
  public void signal(Runnable signal) {
    signals.add(signal);
  }

  public Set<String> queues() {
    return queues;
  }

  /** Other queues are paused than before. */
  public void set(Set<String> paused) {
    queues = Set.copyOf(paused);
    changes.incrementAndGet();
    signals.forEach(Runnable::run);
  }

  /** Returns how often that has changed. */
  public int changes() {
    return changes.get();
  }

  /** Tells whether a queue is paused. */
  public boolean has(String queue) {
    return queues.contains(queue);
  }

  /** Takes back a row whose queue is paused; false if it may begin. */
  public boolean putsOff(HeldRow row) {
    if (!has(row.queue())) {
      return false;
    }
    putOff(row);
    return true;
  }

  /** Takes back a row whose queue was found to be paused, and what comes after it. */
  public void putOff(HeldRow row) {
    putOff.accept(row);
  }
}
