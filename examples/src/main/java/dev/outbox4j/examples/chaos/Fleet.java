package dev.outbox4j.examples.chaos;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** The processes of a run: four subscribers and two publishers, each replaced when it is killed. */
final class Fleet {
  static final int SUBSCRIBERS = 4;
  private static final int PUBLISHERS = 2;
  private static final long SKEW_SECONDS = 600;
  private static final long LONGEST_START_SECONDS = 60;
  private static final long LONGEST_STOP_SECONDS = 45;
  private static final Duration LOOK_AGAIN = Duration.ofMillis(20);

  private final Path logs;
  private final Routes routes;
  private final long leaseSeconds;
  private final int perSecond;
  private final Optional<Path> fakeClocks;
  private final Worker[] subscribers = new Worker[SUBSCRIBERS];
  private final Worker[] publishers = new Worker[PUBLISHERS];
  private final List<Worker> replaced = new ArrayList<>();
  private final List<String> problems = new ArrayList<>();
  private final Map<String, Long> clockOffsets = new TreeMap<>();
  private int threadsLeft;
  private int connectionsLeft;
  private int incarnation;
  private long startedAt;

  /**
   * Ports: what stands for the server on the way of each. Without a pooler, its port is 0; effects
   * go to the server itself, by both of its ports.
   */
  record Routes(int pools, int pooler, int listen, String effects) {
    int pool(boolean pooled) {
      return pooled ? pooler : pools;
    }
  }

  Fleet(Path logs, Routes routes, long leaseSeconds, int perSecond, Optional<Path> fakeClocks) {
    this.logs = logs;
    this.routes = routes;
    this.leaseSeconds = leaseSeconds;
    this.perSecond = perSecond;
    this.fakeClocks = fakeClocks;
  }

  void start() throws IOException {
    for (int i = 0; i < SUBSCRIBERS; i++) {
      startSubscriber(i);
    }
    startedAt = System.currentTimeMillis();
    for (int i = 0; i < PUBLISHERS; i++) {
      startPublisher(i);
    }
  }

  /** The library that makes a process's clock wrong, if it is installed. */
  static Optional<Path> clockFaker() {
    return Stream.of("x86_64", "aarch64")
        .map(cpu -> Path.of("/usr/lib/" + cpu + "-linux-gnu/faketime/libfaketime.so.1"))
        .filter(Files::exists)
        .findFirst();
  }

  void startSubscriber(int slot) throws IOException {
    String name = "s" + slot + "." + ++incarnation;
    if (subscribers[slot] != null) {
      replaced.add(subscribers[slot]);
    }
    subscribers[slot] =
        Worker.start(
            name,
            logs,
            Subscriber.class,
            skew(slot),
            name,
            Integer.toString(routes.pool(pooled(slot))),
            Integer.toString(routes.listen()),
            routes.effects(),
            Long.toString(leaseSeconds),
            Boolean.toString(pooled(slot)),
            listener(slot),
            Integer.toString(routes.pools()));
  }

  /** Starts a subscriber where one has ended. */
  void restoreSubscriber(int slot) throws IOException {
    if (!subscribers[slot].alive()) {
      startSubscriber(slot);
    }
  }

  /** The user by which a subscriber's LISTEN session is known on the server. */
  static String listener(int slot) {
    return "listener" + slot;
  }

  /** Every other process goes through the pooler, so that each fault meets both. */
  private boolean pooled(int slot) {
    return routes.pooler() != 0 && slot % 2 == 1;
  }

  /** The second subscriber's clock is ten minutes fast, the third one's ten minutes slow. */
  private Map<String, String> skew(int slot) {
    if (skewSeconds(slot) == 0) {
      return Map.of();
    }
    return Map.of(
        "LD_PRELOAD",
        fakeClocks.orElseThrow().toString(),
        "FAKETIME",
        "%+ds".formatted(skewSeconds(slot)),
        "FAKETIME_DONT_FAKE_MONOTONIC",
        "1",
        "DONT_FAKE_MONOTONIC", // the name before 0.9.10
        "1",
        "FAKETIME_FORCE_MONOTONIC_FIX", // which would make every timed wait of a JVM end at once
        "0");
  }

  private long skewSeconds(int slot) {
    if (fakeClocks.isEmpty()) {
      return 0;
    }
    return slot == 1 ? SKEW_SECONDS : slot == 2 ? -SKEW_SECONDS : 0;
  }

  /** Returns the number of the first message of the new process. */
  long startPublisher(int slot) throws IOException {
    if (publishers[slot] != null) {
      replaced.add(publishers[slot]);
    }
    publishers[slot] =
        Worker.start(
            "publisher-" + slot + "." + ++incarnation,
            logs,
            Publisher.class,
            Map.of(),
            Integer.toString(routes.pool(pooled(slot))),
            Boolean.toString(pooled(slot)),
            Integer.toString(slot),
            Integer.toString(incarnation),
            Integer.toString(perSecond / PUBLISHERS),
            Long.toString(startedAt),
            Acknowledged.file(logs, slot, incarnation).toString());
    return Publisher.first(slot, incarnation);
  }

  Worker subscriber(int slot) {
    return subscribers[slot];
  }

  List<String> subscriberNames() {
    return Arrays.stream(subscribers).map(Worker::name).toList();
  }

  /** Of those that go through the pooler. */
  List<String> pooledSubscriberNames() {
    return IntStream.range(0, SUBSCRIBERS)
        .filter(this::pooled)
        .mapToObj(slot -> subscribers[slot].name())
        .toList();
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

  void orderSubscribers(String order) throws IOException {
    for (Worker subscriber : subscribers) {
      subscriber.order(order);
    }
  }

  void orderPublishers(String order) throws IOException {
    for (Worker publisher : publishers) {
      publisher.order(order);
    }
  }

  /** What each subscriber last said of its health, if anything. */
  List<String> health() throws IOException {
    List<String> said = new ArrayList<>();
    for (Worker subscriber : subscribers) {
      said.add(subscriber.health().orElse("nothing"));
    }
    return said;
  }

  /** What all processes have counted since the start of the run, those included that ended. */
  Map<Tally.Count, Long> tally() throws IOException {
    Map<Tally.Count, Long> all = new EnumMap<>(Tally.Count.class);
    List<Worker> every = new ArrayList<>(replaced);
    every.addAll(Arrays.asList(subscribers));
    every.addAll(Arrays.asList(publishers));
    for (Worker worker : every) {
      worker.tally().forEach((count, number) -> all.merge(count, number, Long::sum));
    }
    return all;
  }

  /** How many times the subscribers that run now have counted it, each by itself. */
  List<Long> tallyOfEach(Tally.Count count) throws IOException {
    List<Long> each = new ArrayList<>();
    for (Worker subscriber : subscribers) {
      each.add(subscriber.tally().getOrDefault(count, 0L));
    }
    return each;
  }

  /** What is wrong with subscribers by their own words, or with their clocks. */
  List<String> ailing() throws IOException {
    List<String> ailing = new ArrayList<>();
    for (int slot = 0; slot < SUBSCRIBERS; slot++) {
      Worker subscriber = subscribers[slot];
      String health = subscriber.health().orElse("nothing");
      if (!health.equals("up")) {
        ailing.add(subscriber.name() + " says " + health);
        continue;
      }
      long offset = subscriber.clockOffset().orElseThrow();
      clockOffsets.put("s" + slot, offset);
      if (Math.abs(offset - skewSeconds(slot)) > LONGEST_START_SECONDS) {
        ailing.add(subscriber.name() + "'s clock is " + offset + " s off");
      }
    }
    return ailing;
  }

  /** By how many seconds the clocks of the subscribers were off, as they themselves saw it. */
  Map<String, Long> clockOffsets() {
    return clockOffsets;
  }

  /** How many sessions each may have on the server. */
  Map<String, Integer> sessionLimits() {
    Map<String, Integer> limits = new HashMap<>();
    for (int slot = 0; slot < SUBSCRIBERS; slot++) {
      limits.put(listener(slot), Subscriber.LISTENERS);
      limits.put(subscribers[slot].name(), Subscriber.POOL);
      limits.put(subscribers[slot].name() + "-effects", Subscriber.EFFECTS);
      limits.put(Subscriber.transactional(subscribers[slot].name()), Subscriber.TRANSACTIONS);
      limits.put(Subscriber.ordered(subscribers[slot].name()), Subscriber.POOL);
      limits.put(Subscriber.bounded(subscribers[slot].name()), Subscriber.POOL);
      limits.put(Subscriber.quiet(subscribers[slot].name()), Subscriber.QUIET_CONNECTIONS);
    }
    for (Worker publisher : publishers) {
      limits.put(publisher.name(), Publisher.POOL);
    }
    limits.put(Sessions.POOLER, Pooler.CONNECTIONS);
    return limits;
  }

  /** A pattern of the application names that go through the pooler; empty if there is none. */
  String pooledNames() {
    return routes.pooler() == 0 ? "" : "^(s|publisher-)[13579][.][0-9]+[bot]?$";
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

  /**
   * Stops one gracefully, once it runs: before, it has nothing to stop by. Tells whether it came to
   * its end.
   */
  boolean stopSubscriber(int slot) throws IOException, InterruptedException {
    Worker subscriber = subscribers[slot];
    long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(LONGEST_STOP_SECONDS);
    while (subscriber.health().isEmpty() && System.nanoTime() < until) {
      Watch.pause(LOOK_AGAIN);
    }
    Optional<Leftovers> left = subscriber.stop(LONGEST_STOP_SECONDS);
    if (left.isEmpty()) {
      problems.add(
          subscriber.name() + " did not come to its end within " + LONGEST_STOP_SECONDS + " s");
    } else {
      threadsLeft += left.get().threads() > 0 ? 1 : 0;
      connectionsLeft += left.get().connections();
    }
    return left.isPresent();
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

  /** How many subscribers stopped with threads of the framework left. */
  int threadsLeft() {
    return threadsLeft;
  }

  /** How many connections subscribers had left when they had stopped. */
  int connectionsLeft() {
    return connectionsLeft;
  }
}
