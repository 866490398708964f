package dev.outbox4j.postgres.notify;

import dev.outbox4j.spi.NotificationSource.Listener;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

/** Keeps what it is told, in order. */
final class RecordingListener implements Listener {
  static final String UP = "connected";
  static final String DOWN = "disconnected";

  private final List<String> events = new CopyOnWriteArrayList<>();
  private final List<String> payloads = new CopyOnWriteArrayList<>();
  private final List<Throwable> causes = new CopyOnWriteArrayList<>();

  @Override
  public void connected() {
    events.add(UP);
  }

  @Override
  public void notified(String payload) {
    payloads.add(payload);
  }

  @Override
  public void disconnected(Throwable cause) {
    causes.add(cause);
    events.add(DOWN);
  }

  /** Returns connects and disconnects in order, with repeated ones once. */
  List<String> changes() {
    List<String> changes = new CopyOnWriteArrayList<>();
    for (String event : events) {
      if (changes.isEmpty() || !changes.get(changes.size() - 1).equals(event)) {
        changes.add(event);
      }
    }
    return changes;
  }

  long count(String event) {
    return events.stream().filter(event::equals).count();
  }

  int size() {
    return events.size() + payloads.size();
  }

  List<String> payloads() {
    return payloads;
  }

  List<Throwable> causes() {
    return causes;
  }
}
