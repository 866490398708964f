package dev.outbox4j.monitor.internal;

import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;

/** The executions whose checks run on this node, or are being committed. Thread-safe. */
public final class RunningChecks {
  private final Set<Key> running = ConcurrentHashMap.newKeySet();

  private volatile Consumer<Duration> expiring = in -> {};

  private record Key(String id, long execution) {}

  /** Is told of each check of an instance that expires, in what time. */
  void onExpiring(Consumer<Duration> listener) {
    expiring = listener;
  }

  void begins(Instance instance) {
    running.add(new Key(instance.id(), instance.execution()));
    Duration in = instance.untilExpiry();
    if (in != null) {
      expiring.accept(in);
    }
  }

  void ends(Instance instance) {
    running.remove(new Key(instance.id(), instance.execution()));
  }

  boolean has(String id, long execution) {
    return running.contains(new Key(id, execution));
  }
}
