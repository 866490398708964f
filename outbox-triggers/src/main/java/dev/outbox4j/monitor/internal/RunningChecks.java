package dev.outbox4j.monitor.internal;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** The executions whose checks run on this node. Thread-safe. */
public final class RunningChecks {
  private final Set<Key> running = ConcurrentHashMap.newKeySet();

  private record Key(String id, long execution) {}

  void begins(Instance instance) {
    running.add(new Key(instance.id(), instance.execution()));
  }

  void ends(Instance instance) {
    running.remove(new Key(instance.id(), instance.execution()));
  }

  boolean has(String id, long execution) {
    return running.contains(new Key(id, execution));
  }
}
