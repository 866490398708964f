package dev.outbox4j.examples.chaos;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** The processes of a run: four subscribers and two publishers, each replaced when it is killed. */
final class Fleet {
  private static final int SUBSCRIBERS = 4;
  private static final int PUBLISHERS = 2;
  private static final long NUMBERS_EACH = 1_000_000_000L;
  private static final Path FAKETIME =
      Path.of("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1");

  private final Path logs;
  private final int poolPort;
  private final int listenPort;
  private final int poolerPort;
  private final long leaseSeconds;
  private final int perSecond;
  private final Worker[] subscribers = new Worker[SUBSCRIBERS];
  private final Worker[] publishers = new Worker[PUBLISHERS];
  private final List<String> problems = new ArrayList<>();
  private int incarnation;

  /** Port 0 for the pooler means that there is none. */
  Fleet(Path logs, int poolPort, int listenPort, int poolerPort, long leaseSeconds, int perSecond) {
    this.logs = logs;
    this.poolPort = poolPort;
    this.listenPort = listenPort;
    this.poolerPort = poolerPort;
    this.leaseSeconds = leaseSeconds;
    this.perSecond = perSecond;
  }

  void start() throws IOException {
    for (int i = 0; i < SUBSCRIBERS; i++) {
      startSubscriber(i);
    }
    for (int i = 0; i < PUBLISHERS; i++) {
      startPublisher(i);
    }
  }

  static boolean clocksCanBeFaked() {
    return Files.exists(FAKETIME);
  }

  void startSubscriber(int slot) throws IOException {
    boolean pooler = slot == 3 && poolerPort != 0;
    subscribers[slot] =
        Worker.start(
            "s" + slot + "." + ++incarnation,
            logs,
            Subscriber.class,
            skew(slot),
            "s" + slot + "." + incarnation,
            Integer.toString(pooler ? poolerPort : poolPort),
            Integer.toString(listenPort),
            Long.toString(leaseSeconds),
            Boolean.toString(pooler));
  }

  /** The second subscriber's clock is ten minutes fast, the third one's ten minutes slow. */
  private static Map<String, String> skew(int slot) {
    if (!clocksCanBeFaked() || (slot != 1 && slot != 2)) {
      return Map.of();
    }
    return Map.of(
        "LD_PRELOAD",
        FAKETIME.toString(),
        "FAKETIME",
        slot == 1 ? "+600s" : "-600s",
        "FAKETIME_DONT_FAKE_MONOTONIC",
        "1",
        "DONT_FAKE_MONOTONIC",
        "1");
  }

  void startPublisher(int slot) throws IOException {
    publishers[slot] =
        Worker.start(
            "publisher-" + slot + "-" + ++incarnation,
            logs,
            Publisher.class,
            Map.of(),
            Integer.toString(poolPort),
            Long.toString(incarnation * NUMBERS_EACH),
            Integer.toString(perSecond / PUBLISHERS));
  }

  Worker subscriber(int slot) {
    return subscribers[slot];
  }

  Worker publisher(int slot) {
    return publishers[slot];
  }

  int size() {
    return SUBSCRIBERS;
  }

  int publisherCount() {
    return PUBLISHERS;
  }

  /** Subscribers that ended although nobody stopped or killed them. */
  List<String> deadSubscribers() {
    List<String> dead = new ArrayList<>();
    for (Worker subscriber : subscribers) {
      if (!subscriber.alive()) {
        dead.add(subscriber.name());
      }
    }
    return dead;
  }

  void stopPublishers() throws InterruptedException {
    for (Worker publisher : publishers) {
      publisher.kill();
    }
  }

  void stopSubscriber(int slot) throws IOException, InterruptedException {
    Worker subscriber = subscribers[slot];
    if (!subscriber.stopGracefully(30)) {
      problems.add(subscriber.name() + " did not stop cleanly");
      subscriber.kill();
    }
  }

  void killAll() throws InterruptedException {
    for (Worker worker : subscribers) {
      if (worker != null) {
        worker.kill();
      }
    }
    for (Worker worker : publishers) {
      if (worker != null) {
        worker.kill();
      }
    }
  }

  List<String> problems() {
    return problems;
  }
}
