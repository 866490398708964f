package dev.outbox4j;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.spi.SubscriberEvents;
import dev.outbox4j.testing.CapturedLogs;
import dev.outbox4j.testing.InMemoryStore;
import java.time.Clock;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Renderers, observers and executors of the user's hold up no more than their own message. */
class ForeignCodeTest {
  private final InMemoryStore store = new InMemoryStore(Clock.systemUTC());
  private final CountDownLatch never = new CountDownLatch(1);
  private OutboxSubscriber subscriber;

  @AfterEach
  void stop() {
    never.countDown();
    if (subscriber != null) {
      subscriber.stop();
    }
  }

  private OutboxSubscriber.Builder builder() {
    return OutboxSubscriber.builder("orders")
        .store(store)
        .poll(Duration.ofMillis(5), Duration.ofMillis(20))
        .gracefulTimeout(Duration.ofMillis(300));
  }

  private void start(OutboxSubscriber.Builder builder) {
    subscriber = builder.build();
    subscriber.start();
  }

  private void publish(String type, int count) {
    for (int i = 0; i < count; i++) {
      store.publish(OutboxMessage.to("orders").type(type).body("x").build());
    }
  }

  @Test
  void aRendererThatBlocksOnATimedOutHandlerKeepsNoLeaseFromBeingRenewed() {
    Map<Long, AtomicInteger> runs = new ConcurrentHashMap<>();
    CountDownLatch rendering = new CountDownLatch(1);
    publish("hangs", 1);
    publish("slow", 3);
    start(
        builder()
            .workers(4)
            .lease(Duration.ofMillis(400))
            .handlerTimeout(Duration.ofMillis(100))
            .renderExceptions(
                failure -> {
                  rendering.countDown();
                  awaitQuietly(never);
                  return "late";
                })
            .on(
                "hangs",
                (payload, delivery) -> {
                  runs.computeIfAbsent(delivery.id(), id -> new AtomicInteger()).incrementAndGet();
                  never.await();
                })
            .on(
                "slow",
                (payload, delivery) -> {
                  runs.computeIfAbsent(delivery.id(), id -> new AtomicInteger()).incrementAndGet();
                }));
    await().until(() -> rendering.getCount() == 0);
    long tokens = store.rows().get(0).leaseToken();
    int renewals = store.calls("renew");
    await().until(() -> store.calls("renew") >= renewals + 6); // three leases
    assertThat(store.rows()).singleElement().extracting("leaseToken").isEqualTo(tokens);
    assertThat(runs.values()).allSatisfy(times -> assertThat(times).hasValue(1));
  }

  @Test
  void anObserverThatBlocksHoldsUpNoClaimAndNoAck() {
    publish("t", 3_000);
    start(
        builder()
            .observe(
                new SubscriberEvents() {
                  @Override
                  public void acked(String name, Delivery delivery) {
                    awaitQuietly(never);
                  }
                })
            .on("t", (payload, delivery) -> {}));
    await().untilAsserted(() -> assertThat(store.rows()).isEmpty());
  }

  @Test
  void payloadsThatAnObserverHasYetToBeToldOfAreBoundedInMemory() {
    AtomicInteger told = new AtomicInteger();
    OutboxMessage large = OutboxMessage.to("orders").type("t").body(new byte[512 << 10]).build();
    int published = 200;
    for (int i = 0; i < published; i++) {
      store.publish(large);
    }
    try (CapturedLogs logs = new CapturedLogs()) {
      start(
          builder()
              .gracefulTimeout(Duration.ofSeconds(10))
              .observe(
                  new SubscriberEvents() {
                    @Override
                    public void acked(String name, Delivery delivery) {
                      told.incrementAndGet();
                      awaitQuietly(never);
                    }
                  })
              .on("t", (payload, delivery) -> {}));
      await().untilAsserted(() -> assertThat(store.rows()).isEmpty());
      never.countDown();
      subscriber.stop();
      assertThat(logs.lines()).anyMatch(line -> line.contains("event(s) were not told"));
    }
    assertThat(told.get()).isPositive().isLessThan(published / 2);
  }

  @Test
  void anExecutorThatRunsTasksOnTheCallersThreadIsRefusedAloudAndKeepsNoClaimWaiting() {
    AtomicInteger handled = new AtomicInteger();
    try (CapturedLogs logs = new CapturedLogs()) {
      publish("t", 3);
      start(
          builder()
              .executor(Runnable::run)
              .on(
                  "t",
                  (payload, delivery) -> {
                    handled.incrementAndGet();
                  }));
      await()
          .untilAsserted(
              () ->
                  assertThat(logs.lines())
                      .anyMatch(line -> line.contains("on the thread that hands them over")));
      await().until(() -> subscriber.health().failing());
      assertThat(handled).hasValue(0);
      assertThat(store.rows()).hasSize(3);
    }
  }

  @Test
  void aBacklogLetsOtherTasksOfASharedExecutorHaveTheirTurn() throws Exception {
    ExecutorService shared = Executors.newSingleThreadExecutor();
    try {
      AtomicInteger handled = new AtomicInteger();
      publish("t", 20_000);
      start(
          builder()
              .workers(1)
              .executor(shared)
              .on(
                  "t",
                  (payload, delivery) -> {
                    handled.incrementAndGet();
                    awaitQuietly(never, Duration.ofMillis(1));
                  }));
      await().until(() -> handled.get() > 0);
      shared.submit(() -> {}).get(5, TimeUnit.SECONDS);
      assertThat(handled).hasValueLessThan(20_000);
    } finally {
      subscriber.stop();
      shared.shutdownNow();
    }
  }

  @Test
  void workersHaveTheLoaderOfWhereTheSubscriberWasBuiltWhoeverMakesThem() throws Exception {
    AtomicReference<Thread> worker = new AtomicReference<>();
    ClassLoader loader = new ClassLoader(getClass().getClassLoader()) {};
    Thread.currentThread().setContextClassLoader(loader);
    try {
      subscriber =
          builder()
              .on(
                  "t",
                  (payload, delivery) -> {
                    worker.set(Thread.currentThread());
                  })
              .build();
    } finally {
      Thread.currentThread().setContextClassLoader(getClass().getClassLoader());
    }
    ForkJoinPool.commonPool().submit(subscriber::start).get(5, TimeUnit.SECONDS); // daemons
    publish("t", 1);
    await().until(() -> worker.get() != null);
    assertThat(worker.get().isDaemon()).isFalse();
    assertThat(worker.get().getContextClassLoader()).isSameAs(loader);
  }

  @Test
  void aTerminalFailureWithoutDeadLettersLeavesAnErrorThatNamesTheMessage() {
    try (CapturedLogs logs = new CapturedLogs()) {
      publish("fails", 1);
      long id = store.rows().get(0).id();
      start(
          builder()
              .retry(RetryPolicy.none())
              .on(
                  "fails",
                  (Payload payload, Delivery delivery) -> {
                    throw new IllegalStateException("secret");
                  }));
      await().untilAsserted(() -> assertThat(store.rows()).isEmpty());
      assertThat(logs.lines())
          .anyMatch(
              line ->
                  line.startsWith("ERROR")
                      && line.contains("message " + id + " of queue 'orders', type fails")
                      && line.contains("DELETED")
                      && line.contains("retry_terminal, 1 attempt(s)"))
          .noneMatch(line -> line.contains("secret"));
    }
  }

  @Test
  void aTerminalFailureThatIsDeadLetteredLeavesAWarningThatNamesTheMessage() {
    try (CapturedLogs logs = new CapturedLogs()) {
      publish("fails", 1);
      long id = store.rows().get(0).id();
      start(
          builder()
              .deadLetters(store.deadLetters())
              .retry(RetryPolicy.none())
              .on(
                  "fails",
                  (Payload payload, Delivery delivery) -> {
                    throw new IllegalStateException("secret");
                  }));
      await()
          .untilAsserted(
              () ->
                  assertThat(logs.lines())
                      .anyMatch(
                          line ->
                              line.startsWith("WARN")
                                  && line.contains("message " + id + " of queue 'orders'")
                                  && line.contains("type fails")
                                  && line.contains("is in the dead letters")
                                  && line.contains("retry_terminal, 1 attempt(s)")));
      assertThat(logs.lines()).noneMatch(line -> line.contains("secret"));
    }
  }

  private static void awaitQuietly(CountDownLatch latch) {
    awaitQuietly(latch, Duration.ofMinutes(1));
  }

  private static void awaitQuietly(CountDownLatch latch, Duration atMost) {
    try {
      latch.await(atMost.toNanos(), TimeUnit.NANOSECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
