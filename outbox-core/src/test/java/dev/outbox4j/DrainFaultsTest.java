package dev.outbox4j;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.testing.CapturedLogs;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;

/** A stop while handlers, the store or the network do not end. */
class DrainFaultsTest extends EngineFixture {
  @Test
  void aStopThatLeavesNothingBehindEndsItsThreadsAndItsListenerAndWarnsOfNothing() {
    AtomicInteger stopped = new AtomicInteger();
    CountDownLatch running = new CountDownLatch(1);
    CountDownLatch finish = new CountDownLatch(1);
    publish("t");
    try (CapturedLogs logs = new CapturedLogs()) {
      start(
          builder()
              .name("clean")
              .gracefulTimeout(Duration.ofSeconds(10))
              .listen(store.notifications())
              .events(
                  new SubscriberEvents() {
                    @Override
                    public void stopped(String name) {
                      stopped.incrementAndGet();
                    }
                  })
              .on(
                  "t",
                  (payload, delivery) -> {
                    running.countDown();
                    finish.await();
                  }));
      await().until(() -> running.getCount() == 0);
      await()
          .until(
              () ->
                  subscriber.health().oldest().stream()
                      .anyMatch(oldest -> oldest.age().toMillis() > 20));
      assertThat(subscriber.health().oldest())
          .hasValueSatisfying(
              oldest -> {
                assertThat(oldest.queue()).isEqualTo("orders");
                assertThat(oldest.id()).isPositive();
                assertThat(oldest.type()).isPresent();
                assertThat(oldest.age()).isLessThan(Duration.ofMinutes(1));
              });
      assertThat(subscriber.health().listener()).isEqualTo(SubscriberHealth.Listener.UP);
      CompletableFuture<Void> stop = CompletableFuture.runAsync(subscriber::stop);
      await().until(() -> subscriber.health().state() == SubscriberState.DRAINING);
      finish.countDown();
      stop.join();
      assertThat(logs.lines())
          .anyMatch(line -> line.contains("[clean] stopped after"))
          .noneMatch(line -> line.contains("drain ended with"))
          .noneMatch(line -> line.contains("an observer blocks"))
          .noneMatch(line -> line.contains("not everything"));
    }
    assertThat(store.rows()).isEmpty();
    assertThat(subscriber.health().listener()).isEqualTo(SubscriberHealth.Listener.DOWN);
    assertThat(stopped).hasValue(1);
    await().until(() -> !anyAlive("outbox-clean-"));
  }

  @Test
  void theOldestMessageInFlightIsTheOneThatWasClaimedFirst() {
    CountDownLatch finish = new CountDownLatch(1);
    start(
        builder()
            .workers(8)
            .on(
                "t",
                (payload, delivery) -> {
                  finish.await();
                }));
    for (int i = 1; i <= 8; i++) { // each by a claim of its own
      int running = i;
      publish("t");
      await()
          .pollInterval(Duration.ofMillis(1))
          .until(() -> subscriber.health().running() == running);
    }
    assertThat(subscriber.health().oldest())
        .hasValueSatisfying(oldest -> assertThat(oldest.id()).isEqualTo(store.rows().get(0).id()));
    finish.countDown();
  }

  @Test
  void aStopWaitsForTheClaimUnderWayAndGivesBackWhatItBrings() throws Exception {
    AtomicInteger claims = new AtomicInteger();
    CountDownLatch answer = new CountDownLatch(1);
    store.beforeEach(
        operation -> {
          if (operation.equals("claim") && claims.incrementAndGet() == 2) {
            awaitIgnoringInterrupts(answer);
          }
        });
    try (CapturedLogs logs = new CapturedLogs()) {
      start(builder().workers(1).on("t", (payload, delivery) -> {}));
      await().until(() -> claims.get() == 2);
      publish("t");
      Thread stopper = new Thread(subscriber::stop);
      stopper.start();
      await().until(() -> stopper.getState() == Thread.State.TIMED_WAITING);
      answer.countDown();
      stopper.join(20_000);
      assertThat(logs.lines())
          .anyMatch(line -> line.contains("stopped after"))
          .noneMatch(line -> line.contains("drain ended with"));
    }
    assertThat(store.rows())
        .singleElement()
        .satisfies(row -> assertThat(row.leaseUntil()).isNull())
        .satisfies(row -> assertThat(row.deliveries()).isZero());
  }

  @Test
  void aStopWaitsForTheLastOutcomesToBeWritten() {
    AtomicBoolean stopping = new AtomicBoolean();
    store.beforeEach(
        operation -> {
          if (operation.equals("ack")) { // it takes longer than the graceful timeout
            await().untilTrue(stopping);
            LockSupport.parkNanos(Duration.ofMillis(800).toNanos());
          }
        });
    publish("t");
    try (CapturedLogs logs = new CapturedLogs()) {
      start(builder().on("t", (payload, delivery) -> {}));
      await().until(() -> store.calls("ack") == 1);
      stopping.set(true);
      subscriber.stop();
      assertThat(logs.lines()).noneMatch(line -> line.contains("drain ended with"));
    }
    assertThat(store.rows()).isEmpty();
  }

  @Test
  void aStopWaitsForTheRenewalUnderWay() {
    AtomicBoolean renewing = new AtomicBoolean();
    AtomicBoolean renewed = new AtomicBoolean();
    CountDownLatch never = new CountDownLatch(1);
    store.beforeEach(
        operation -> {
          if (operation.equals("renew")) {
            renewing.set(true);
            await()
                .pollInterval(Duration.ofMillis(20))
                .until(() -> !anyAlive("outbox-renewed-completer"));
          }
        });
    store.afterEach(operation -> renewed.set(renewed.get() || operation.equals("renew")));
    publish("t");
    start(
        builder()
            .name("renewed")
            .lease(Duration.ofMillis(400))
            .on(
                "t",
                (payload, delivery) -> {
                  awaitIgnoringInterrupts(never);
                }));
    try {
      await().untilTrue(renewing);
      subscriber.stop();
      assertThat(renewed).isTrue();
    } finally {
      never.countDown();
    }
  }

  @Test
  void anOutcomeThatIsRefusedToTheEndIsLeftBehindAndIsNoTimeout() {
    AtomicInteger timeouts = new AtomicInteger();
    publish("t");
    store.failWrites(store.rows().get(0).id(), OutboxStoreException.Fault.ROW);
    try (CapturedLogs logs = new CapturedLogs()) {
      start(
          builder()
              .events(
                  new SubscriberEvents() {
                    @Override
                    public void drainTimedOut(String name, int left) {
                      timeouts.incrementAndGet();
                    }
                  })
              .on("t", (payload, delivery) -> {}));
      await().until(() -> subscriber.health().failing());
      await().until(() -> subscriber.health().inFlight() == 0); // it waits aside
      subscriber.stop();
      assertThat(logs.lines())
          .anyMatch(line -> line.contains("drain ended with 1 row(s) left"))
          .anyMatch(line -> line.contains("not everything in flight was finished"));
    }
    assertThat(timeouts).hasValue(0);
  }

  @Test
  void aStopEndsTheThreadsThatDecidedAboutTimeouts() {
    CountDownLatch never = new CountDownLatch(1);
    publish("t");
    start(
        builder()
            .name("timed")
            .handlerTimeout(Duration.ofMillis(50))
            .retry(RetryPolicy.constant(Duration.ofHours(1)))
            .on(
                "t",
                (payload, delivery) -> {
                  never.await();
                }));
    await().until(() -> anyAlive("outbox-timed-handler-timeout"));
    await().until(() -> store.rows().get(0).attempts() == 1);
    subscriber.stop();
    await().until(() -> !anyAlive("outbox-timed-"));
  }

  @Test
  void interruptByAStopIsNoFailureOfTheMessage() {
    CountDownLatch started = new CountDownLatch(3);
    CountDownLatch interrupted = new CountDownLatch(3);
    CountDownLatch never = new CountDownLatch(1);
    store.beforeEach(
        operation -> {
          if (operation.equals("ack")) { // the completer is busy when the handlers are interrupted
            awaitIgnoringInterrupts(interrupted);
          }
        });
    for (int i = 0; i < 3; i++) {
      publish("t");
    }
    publish("quick");
    start(
        OutboxSubscriber.builder("orders")
            .deleteTerminalFailures()
            .store(store)
            .workers(4)
            .retry(RetryPolicy.none())
            .gracefulTimeout(Duration.ofMillis(100))
            .on("quick", (payload, delivery) -> {})
            .on(
                "t",
                (payload, delivery) -> {
                  started.countDown();
                  try {
                    never.await();
                  } finally {
                    interrupted.countDown();
                  }
                }));
    await().untilAsserted(() -> assertThat(started.getCount()).isZero());
    subscriber.stop();
    assertThat(store.rows()).hasSize(3);
  }

  @Test
  void rowLeftToItsLeaseByATimedOutDrainIsNotRenewedOnceMore() {
    CountDownLatch running = new CountDownLatch(2);
    CountDownLatch finish = new CountDownLatch(1);
    CountDownLatch never = new CountDownLatch(1);
    CountDownLatch ackSent = new CountDownLatch(1);
    CountDownLatch renewedAlone = new CountDownLatch(1);
    store.beforeEach(
        operation -> {
          if (operation.equals("ack")) { // keeps the drain waiting, and its own row renewed
            ackSent.countDown();
            awaitIgnoringInterrupts(renewedAlone);
          }
        });
    publish("acked");
    publish("interrupted"); // in the same claim, so that one statement renews both
    start(
        builder()
            .workers(2)
            .lease(Duration.ofMillis(200))
            .gracefulTimeout(Duration.ofMillis(300))
            .events(
                new SubscriberEvents() {
                  @Override
                  public void renewed(String name, int rows) {
                    if (rows == 1) {
                      renewedAlone.countDown();
                    }
                  }
                })
            .on(
                "acked",
                (payload, delivery) -> {
                  running.countDown();
                  finish.await();
                })
            .on(
                "interrupted",
                (payload, delivery) -> {
                  running.countDown();
                  never.await();
                }));
    await().until(() -> running.getCount() == 0);
    finish.countDown();
    await().until(() -> ackSent.getCount() == 0);
    subscriber.stop();
    assertThat(renewedAlone.getCount()).isZero();
    assertThat(store.rows()).singleElement().extracting("type").isEqualTo("interrupted");
    assertThat(store.rows()).singleElement().extracting("attempts").isEqualTo(0);
  }

  @Test
  void releaseThatFailsIsTriedAgainWhileTheDrainHasTime() throws Exception {
    Drain drain = drain(2);
    assertThat(drain.timeouts).isEmpty();
    assertThat(drain.releases).hasValue(3);
    assertThat(store.rows())
        .hasSize(2)
        .allSatisfy(row -> assertThat(row.leaseUntil()).isNull())
        .allSatisfy(row -> assertThat(row.deliveries()).isZero());
    assertThat(subscriber.health().inFlight()).isZero();
  }

  @Test
  void releaseThatFailsToTheEndIsBoundedAndMakesADrainThatTimedOut() throws Exception {
    long begun = System.nanoTime();
    Drain drain;
    try (CapturedLogs logs = new CapturedLogs()) {
      drain = drain(Integer.MAX_VALUE);
      assertThat(logs.lines())
          .anyMatch(line -> line.contains("drain ended with 2 row(s) left"))
          .anyMatch(line -> line.contains("not everything in flight was finished"));
    }
    assertThat(Duration.ofNanos(System.nanoTime() - begun)).isLessThan(Duration.ofSeconds(5));
    assertThat(drain.timeouts).containsExactly(2);
    assertThat(drain.releases.get()).isGreaterThan(2);
    assertThat(store.rows()).hasSize(2).allSatisfy(row -> assertThat(row.leaseUntil()).isNotNull());
    await().until(() -> !anyAlive("outbox-drained-completer")); // it does not try for ever
  }

  /** Quick handlers make the subscriber hold rows ready, so that slow ones come to wait. */
  private void publishQuickOnesAndThen(int slow) {
    for (int i = 0; i < 3_000; i++) {
      publish("quick");
    }
    for (int i = 0; i < slow; i++) {
      publish("t");
    }
  }

  private static final class Drain {
    final AtomicInteger releases = new AtomicInteger();
    final List<Integer> timeouts = new CopyOnWriteArrayList<>();
  }

  /** Stops with one row that runs and two that wait, and a database that refuses releases. */
  private Drain drain(int failures) throws Exception {
    Drain drain = new Drain();
    CountDownLatch finish = new CountDownLatch(1);
    store.beforeEach(
        operation -> {
          if (operation.equals("release") && drain.releases.incrementAndGet() <= failures) {
            throw new OutboxStoreException(
                "terminated", OutboxStoreException.Fault.TRANSIENT, true, null);
          }
        });
    publishQuickOnesAndThen(3);
    start(
        builder()
            .name("drained")
            .workers(1)
            .on("quick", (payload, delivery) -> {})
            .gracefulTimeout(Duration.ofSeconds(1))
            .events(
                new SubscriberEvents() {
                  @Override
                  public void drainTimedOut(String name, int left) {
                    drain.timeouts.add(left);
                  }
                })
            .on(
                "t",
                (payload, delivery) -> {
                  finish.await();
                }));
    await().until(() -> subscriber.health().inFlight() == 3);
    CompletableFuture<Void> stopped = CompletableFuture.runAsync(subscriber::stop);
    await().until(() -> drain.releases.get() > 0);
    finish.countDown();
    stopped.get(20, TimeUnit.SECONDS);
    return drain;
  }

  @Test
  void claimAnsweredAfterTheStopIsGivenBackWithoutAWarningOfTheExecutor() throws Exception {
    AtomicInteger claims = new AtomicInteger();
    CountDownLatch answer = new CountDownLatch(1);
    store.beforeEach(
        operation -> {
          if (operation.equals("claim") && claims.incrementAndGet() == 2) {
            awaitIgnoringInterrupts(answer);
          }
        });
    try (CapturedLogs logs = new CapturedLogs()) {
      start(builder().name("late-claim").workers(1).on("t", (payload, delivery) -> {}));
      await().until(() -> claims.get() == 2);
      publish("t");
      CompletableFuture<Void> stopped = CompletableFuture.runAsync(subscriber::stop);
      // it ends after the workers
      await().until(() -> !anyAlive("outbox-late-claim-completer"));
      answer.countDown();
      stopped.get(20, TimeUnit.SECONDS);
      assertThat(logs.lines())
          .anyMatch(
              line ->
                  line.contains("no row left, but not in time; handlers finished: true")
                      && line.contains("given back: true, last claim answered: false"));
      await() // behind the stop
          .untilAsserted(
              () ->
                  assertThat(logs.lines())
                      .anyMatch(line -> line.contains("released 1 of 1 rows"))
                      .noneMatch(line -> line.contains("the executor rejects")));
    }
    assertThat(store.rows()).singleElement().extracting("leaseUntil").isNull();
  }

  private static boolean anyAlive(String prefix) {
    return Thread.getAllStackTraces().keySet().stream()
        .anyMatch(each -> each.getName().startsWith(prefix));
  }

  @Test
  void stopIsBoundedThoughTheStoreAnswersNothing() throws Exception {
    CountDownLatch network = new CountDownLatch(1);
    CountDownLatch running = new CountDownLatch(1);
    CountDownLatch finish = new CountDownLatch(1);
    CountDownLatch givingBack = new CountDownLatch(1);
    AtomicBoolean dark = new AtomicBoolean();
    store.beforeEach(
        operation -> {
          if (operation.equals("release")) {
            givingBack.countDown();
          }
          if (dark.get()) {
            awaitIgnoringInterrupts(network);
          }
        });
    publishQuickOnesAndThen(3);
    start(
        builder()
            .workers(1)
            .gracefulTimeout(Duration.ofSeconds(2))
            .on("quick", (payload, delivery) -> {})
            .on(
                "t",
                (payload, delivery) -> {
                  running.countDown();
                  finish.await();
                }));
    await().until(() -> running.getCount() == 0);
    await().until(() -> subscriber.health().inFlight() == 3);
    await().until(() -> store.rows().size() == 3);
    dark.set(true);
    try {
      long begun = System.nanoTime();
      CompletableFuture<Void> stopped = CompletableFuture.runAsync(subscriber::stop);
      await().until(() -> givingBack.getCount() == 0);
      finish.countDown();
      stopped.get(20, TimeUnit.SECONDS);
      assertThat(Duration.ofNanos(System.nanoTime() - begun)).isLessThan(Duration.ofSeconds(7));
      assertThat(subscriber.health().state()).isEqualTo(SubscriberState.STOPPED);
    } finally {
      network.countDown();
    }
    // what hung ends behind the stop: the ack is written, the other rows are given back
    await()
        .untilAsserted(
            () ->
                assertThat(store.rows())
                    .hasSize(2)
                    .allSatisfy(row -> assertThat(row.leaseUntil()).isNull()));
  }
}
