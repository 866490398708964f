package dev.outbox4j;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.testing.CapturedLogs;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Renderers, observers and executors of the user's hold up no more than their own message. */
class ForeignCodeTest extends EngineFixture {
  private final CountDownLatch never = new CountDownLatch(1);

  @AfterEach
  void endWhatBlocks() {
    never.countDown();
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
            .events(
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
              .events(
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
      logs.awaitLine(line -> line.contains("event(s) were not told"));
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
          OutboxSubscriber.builder("orders")
              .deleteTerminalFailures()
              .store(store)
              .retry(RetryPolicy.none())
              .on(
                  "fails",
                  (Payload payload, Delivery delivery) -> {
                    throw new IllegalStateException("secret");
                  }));
      await().untilAsserted(() -> assertThat(store.rows()).isEmpty());
      logs.awaitLine(
          line ->
              line.startsWith("ERROR")
                  && line.contains("message " + id + " of queue 'orders', type fails")
                  && line.contains("DELETED")
                  && line.contains("retry_terminal, 1 attempt(s)"));
      assertThat(logs.lines()).noneMatch(line -> line.contains("secret"));
    }
  }

  @Test
  void aTerminalFailureThatIsDeadLetteredLeavesAnErrorThatNamesTheMessage() {
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
      await()
          .untilAsserted(
              () ->
                  assertThat(logs.lines())
                      .anyMatch(
                          line ->
                              line.startsWith("ERROR")
                                  && line.contains("message " + id + " of queue 'orders'")
                                  && line.contains("type fails")
                                  && line.contains("is in the dead letters")
                                  && line.contains("retry_terminal, 1 attempt(s)")));
      assertThat(logs.lines()).noneMatch(line -> line.contains("secret"));
    }
  }

  @Test
  void executorWithoutThreadsCostsNoPermit() {
    AtomicInteger refusals = new AtomicInteger(20);
    ExecutorService threads = Executors.newCachedThreadPool();
    AtomicInteger handled = new AtomicInteger();
    publish("t");
    start(
        builder()
            .workers(2)
            .executor(
                task -> {
                  if (refusals.getAndDecrement() > 0) {
                    throw new OutOfMemoryError("unable to create native thread");
                  }
                  threads.execute(task);
                })
            .on(
                "t",
                (payload, delivery) -> {
                  handled.incrementAndGet();
                }));
    await().atMost(Duration.ofSeconds(30)).untilAsserted(() -> assertThat(handled).hasValue(1));
    threads.shutdown();
  }

  @Test
  void executorThatDropsTasksWithoutAWordKeepsNoPermitAndHoldsUpNoStop() {
    AtomicInteger drops = new AtomicInteger(4);
    AtomicInteger handled = new AtomicInteger();
    AtomicBoolean dropAll = new AtomicBoolean();
    ExecutorService threads = Executors.newCachedThreadPool();
    try {
      for (int i = 0; i < 10; i++) {
        publish("t");
      }
      start(
          builder()
              .workers(2)
              .lease(Duration.ofMillis(400))
              .gracefulTimeout(Duration.ofSeconds(30))
              .executor(
                  task -> {
                    if (!dropAll.get() && drops.getAndDecrement() <= 0) {
                      threads.execute(task);
                    }
                  })
              .on(
                  "t",
                  (payload, delivery) -> {
                    handled.incrementAndGet();
                  }));
      await().untilAsserted(() -> assertThat(handled).hasValue(10));
      await().untilAsserted(() -> assertThat(store.rows()).isEmpty());
      await().until(() -> subscriber.health().running() == 0);
      dropAll.set(true);
      publish("t");
      await().until(() -> subscriber.health().running() > 0);
      long begun = System.nanoTime();
      subscriber.stop();
      assertThat(Duration.ofNanos(System.nanoTime() - begun)).isLessThan(Duration.ofSeconds(10));
      assertThat(store.rows()).singleElement().extracting("leaseUntil").isNull();
    } finally {
      threads.shutdown();
    }
  }

  @Test
  void stageWhoseFailureCannotBeRenderedIsRetriedAndDoesNotHang() {
    CompletableFuture<Void> stage = new CompletableFuture<>();
    publish("t");
    start(
        builder()
            .workers(1)
            .renderExceptions(
                failure -> {
                  throw new StackOverflowError("renderer");
                })
            .on(
                "t",
                Payload.class,
                (body, delivery) -> {
                  return stage;
                }));
    await().untilAsserted(() -> assertThat(subscriber.health().running()).isEqualTo(1));
    stage.completeExceptionally(new IllegalStateException("remote"));
    await()
        .untilAsserted(
            () -> assertThat(store.rows()).singleElement().extracting("attempts").isEqualTo(1));
    await().untilAsserted(() -> assertThat(subscriber.health().inFlight()).isZero());
  }

  @Test
  void aRendererThatReturnsNullIsWarnedAboutAndLeavesTheClassName() {
    try (CapturedLogs logs = new CapturedLogs()) {
      publish("t");
      start(
          builder()
              .workers(1)
              .retry(RetryPolicy.none())
              .renderExceptions(failure -> null)
              .on(
                  "t",
                  (Payload payload, Delivery delivery) -> {
                    throw new IllegalStateException("secret");
                  }));
      await()
          .untilAsserted(
              () ->
                  assertThat(store.deadRows())
                      .singleElement()
                      .extracting("exception")
                      .isEqualTo("java.lang.IllegalStateException"));
      logs.awaitLine(
          line -> line.startsWith("WARN") && line.contains("the exception renderer failed; only"));
    }
  }

  @Test
  void rendererThatThrowsErrorsKeepsNoLeaseFromBeingRenewed() {
    CountDownLatch release = new CountDownLatch(1);
    CountDownLatch enough = new CountDownLatch(1);
    AtomicInteger renewed = new AtomicInteger();
    AtomicInteger timedOut = new AtomicInteger();
    publish("t");
    start(
        builder()
            .workers(1)
            .lease(Duration.ofMillis(200))
            .handlerTimeout(Duration.ofSeconds(2))
            .retry(
                RetryPolicy.standard()
                    .giveUpIf(
                        failure -> {
                          throw new AssertionError("predicate");
                        }))
            .events(
                new SubscriberEvents() {
                  @Override
                  public void handlerTimedOut(String name, Delivery delivery) {
                    timedOut.incrementAndGet();
                  }

                  @Override
                  public void renewed(String name, int rows) {
                    renewed.addAndGet(rows);
                  }
                })
            .on(
                "t",
                (payload, delivery) -> {
                  release.await();
                })
            .on(
                "later",
                (payload, delivery) -> {
                  enough.await();
                }));
    await().untilAsserted(() -> assertThat(timedOut).hasValue(1));
    release.countDown();
    await()
        .untilAsserted(
            () -> assertThat(store.rows()).singleElement().extracting("attempts").isEqualTo(1));
    int before = renewed.get();
    publish("later");
    await().until(() -> renewed.get() >= before + 2);
    enough.countDown();
  }

  @Test
  void stageReturnedAfterTheTimeoutGivesItsPermitBack() {
    CountDownLatch expired = new CountDownLatch(1);
    AtomicInteger handled = new AtomicInteger();
    publish("stuck");
    start(
        builder()
            .workers(1)
            .handlerTimeout(Duration.ofMillis(50))
            .events(
                new SubscriberEvents() {
                  @Override
                  public void handlerTimedOut(String name, Delivery delivery) {
                    expired.countDown();
                  }
                })
            .on(
                "stuck",
                Payload.class,
                (body, delivery) -> {
                  awaitIgnoringInterrupts(expired);
                  return new CompletableFuture<>();
                })
            .on(
                "t",
                (payload, delivery) -> {
                  handled.incrementAndGet();
                }));
    await().untilAsserted(() -> assertThat(expired.getCount()).isZero());
    publish("t");
    await().untilAsserted(() -> assertThat(handled).hasValue(1));
    await().until(() -> subscriber.health().running() == 0);
  }

  @Test
  void observerThatInterruptsItsThreadHoldsUpNothing() {
    AtomicInteger connections = new AtomicInteger();
    store.beforeEach(
        operation -> {
          if (operation.equals("ack") && Thread.currentThread().isInterrupted()) {
            connections.incrementAndGet();
            throw new OutboxStoreException(
                "no wait", OutboxStoreException.Fault.TRANSIENT, false, null);
          }
        });
    AtomicInteger handled = new AtomicInteger();
    start(
        builder()
            .events(
                new SubscriberEvents() {
                  @Override
                  public void acked(String name, Delivery delivery) {
                    Thread.currentThread().interrupt();
                  }
                })
            .on(
                "t",
                (payload, delivery) -> {
                  handled.incrementAndGet();
                }));
    publish("t");
    await().untilAsserted(() -> assertThat(store.rows()).isEmpty());
    publish("t");
    await().untilAsserted(() -> assertThat(store.rows()).isEmpty());
    assertThat(handled).hasValue(2);
    assertThat(connections).hasValue(0);
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
