package dev.outbox4j;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.spi.ClaimRequest;
import dev.outbox4j.spi.PayloadCodec;
import dev.outbox4j.spi.StoreException;
import dev.outbox4j.spi.SubscriberEvents;
import dev.outbox4j.spi.UndecodableException;
import dev.outbox4j.testing.CapturedLogs;
import dev.outbox4j.testing.InMemoryStore;
import java.lang.reflect.Type;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** The engine when user code, the executor or the store behave as badly as they can. */
class EngineFaultsTest {
  private final InMemoryStore store = new InMemoryStore(Clock.systemUTC());
  private OutboxSubscriber subscriber;

  @AfterEach
  void stop() {
    if (subscriber != null) {
      subscriber.stop();
    }
  }

  private OutboxSubscriber.Builder builder() {
    return OutboxSubscriber.builder("orders")
        .store(store)
        .deadLetters(store.deadLetters())
        .gracefulTimeout(Duration.ofMillis(300))
        .maxDeliveries(50);
  }

  private void start(OutboxSubscriber.Builder builder) {
    subscriber = builder.build();
    subscriber.start();
  }

  private void publish(String type) {
    store.publish(OutboxMessage.to("orders").type(type).body(Payload.ofText("x")).build());
  }

  @Test
  void delayOfManyLifetimesIsWrittenOnceAndHurtsNoOtherRow() {
    Duration tooLong = Duration.ofDays(365L * 1_000);
    List<String> told = new CopyOnWriteArrayList<>();
    for (int i = 0; i < 20; i++) {
      publish("t");
    }
    start(
        builder()
            .workers(8)
            .observe(
                new SubscriberEvents() {
                  @Override
                  public void retried(String name, Delivery delivery, Duration delay) {
                    told.add("retried");
                  }

                  @Override
                  public void leaseLost(String name, Delivery delivery, Phase phase) {
                    told.add("lost");
                  }
                })
            .on(
                "t",
                Payload.class,
                (body, delivery) -> {
                  return Outcome.retryAfter(tooLong);
                }));
    await().untilAsserted(() -> assertThat(told).hasSize(20));
    assertThat(told).containsOnly("retried");
    await().untilAsserted(() -> assertThat(subscriber.health().inFlight()).isZero());
    assertThat(subscriber.health().failing()).isFalse();
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
      assertThat(subscriber.health().running()).isZero();
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
    assertThat(subscriber.health().inFlight()).isZero();
  }

  @Test
  void rendererThatThrowsErrorsKeepsNoLeaseFromBeingRenewed() {
    CountDownLatch release = new CountDownLatch(1);
    AtomicInteger renewed = new AtomicInteger();
    AtomicInteger timedOut = new AtomicInteger();
    publish("t");
    start(
        builder()
            .workers(1)
            .lease(Duration.ofMillis(200))
            .handlerTimeout(Duration.ofMillis(100))
            .retry(
                RetryPolicy.standard()
                    .giveUpIf(
                        failure -> {
                          throw new AssertionError("predicate");
                        }))
            .observe(
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
                }));
    await().untilAsserted(() -> assertThat(timedOut).hasValue(1));
    release.countDown();
    await()
        .untilAsserted(
            () -> assertThat(store.rows()).singleElement().extracting("attempts").isEqualTo(1));
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
            .observe(
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
    assertThat(subscriber.health().running()).isZero();
  }

  @Test
  void healthRecoversFromARenewalThatNoRowNeedsAnyMore() {
    AtomicBoolean broken = new AtomicBoolean(true);
    CountDownLatch release = new CountDownLatch(1);
    store.beforeEach(
        operation -> {
          if (operation.equals("renew") && broken.get()) {
            throw new StoreException("down", StoreException.Fault.TRANSIENT, false, null);
          }
        });
    publish("t");
    start(
        builder()
            .lease(Duration.ofSeconds(1))
            .on(
                "t",
                (payload, delivery) -> {
                  release.await();
                }));
    await().untilAsserted(() -> assertThat(subscriber.health().failing()).isTrue());
    release.countDown();
    await().untilAsserted(() -> assertThat(store.rows()).isEmpty());
    broken.set(false);
    await().untilAsserted(() -> assertThat(subscriber.health().failing()).isFalse());
  }

  @Test
  void rowClaimedAgainByItsOwnSubscriberIsLostToTheFirstHandlerAndAckedOnce() {
    AtomicBoolean broken = new AtomicBoolean(true);
    AtomicInteger running = new AtomicInteger();
    AtomicInteger acked = new AtomicInteger();
    AtomicInteger lost = new AtomicInteger();
    AtomicInteger renewals = new AtomicInteger();
    AtomicBoolean firstKnows = new AtomicBoolean();
    AtomicInteger ended = new AtomicInteger();
    CountDownLatch release = new CountDownLatch(1);
    store.beforeEach(
        operation -> {
          boolean toFail =
              operation.equals("renew")
                  ? broken.get()
                  : operation.equals("ack") && ended.get() < 2; // so both are in one statement
          if (toFail) {
            throw new StoreException("down", StoreException.Fault.TRANSIENT, false, null);
          }
          if (operation.equals("renew")) {
            renewals.incrementAndGet();
          }
        });
    publish("t");
    start(
        builder()
            .workers(2)
            .gracefulTimeout(Duration.ofSeconds(5))
            .lease(Duration.ofMillis(300))
            .poll(Duration.ofMillis(10), Duration.ofMillis(20))
            .observe(
                new SubscriberEvents() {
                  @Override
                  public void acked(String name, Delivery delivery) {
                    acked.incrementAndGet();
                  }

                  @Override
                  public void leaseLost(String name, Delivery delivery, Phase phase) {
                    lost.incrementAndGet();
                  }
                })
            .on(
                "t",
                (payload, delivery) -> {
                  if (running.incrementAndGet() == 2) {
                    broken.set(false);
                  }
                  release.await();
                  if (delivery.leaseToken() == 1) {
                    firstKnows.set(delivery.leaseLost());
                    await().until(() -> ended.get() == 1); // the other one waits for its ack
                  }
                  ended.incrementAndGet();
                }));
    await().untilAsserted(() -> assertThat(running).hasValue(2));
    await().untilAsserted(() -> assertThat(renewals.get()).isGreaterThan(4));
    release.countDown();
    await().untilAsserted(() -> assertThat(subscriber.health().inFlight()).isZero());
    assertThat(store.rows()).isEmpty();
    assertThat(acked).hasValue(1);
    assertThat(firstKnows).isTrue();
    assertThat(lost.get()).isPositive();
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
  void rowOfAKilledSubscriberIsHandledWhenItsLeaseEndsAndNotAtTheNextPoll() {
    AtomicInteger handled = new AtomicInteger();
    publish("t");
    store.claim( // and never heard of again
        new ClaimRequest(
            "orders",
            ClaimRequest.Range.ALL,
            1,
            1 << 20,
            Duration.ofSeconds(2),
            "killed",
            ClaimRequest.Idle.UNCHANGED,
            null));
    start(
        builder()
            .listen(store.notifications())
            .poll(Duration.ofSeconds(30), Duration.ofSeconds(60))
            .on(
                "t",
                (payload, delivery) -> {
                  handled.incrementAndGet();
                }));
    await().atMost(Duration.ofSeconds(4)).untilAsserted(() -> assertThat(handled).hasValue(1));
  }

  @Test
  void observerThatInterruptsItsThreadHoldsUpNothing() {
    AtomicInteger connections = new AtomicInteger();
    store.beforeEach(
        operation -> {
          if (operation.equals("ack") && Thread.currentThread().isInterrupted()) {
            connections.incrementAndGet();
            throw new StoreException("no wait", StoreException.Fault.TRANSIENT, false, null);
          }
        });
    AtomicInteger handled = new AtomicInteger();
    start(
        builder()
            .observe(
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

  @Test
  void rowsWaitingForBrokenDeadLettersSurviveAnErrorOfTheWriter() {
    AtomicInteger tries = new AtomicInteger();
    store.beforeEach(
        operation -> {
          if (operation.equals("dead-letter")) {
            int attempt = tries.incrementAndGet();
            if (attempt == 1) {
              throw new StoreException("no table", StoreException.Fault.SETUP, false, null);
            }
            if (attempt == 2) {
              throw new NoClassDefFoundError("driver");
            }
          }
        });
    publish("t");
    start(
        builder()
            .on(
                "t",
                Payload.class,
                (body, delivery) -> {
                  return Outcome.reject("no");
                }));
    await().untilAsserted(() -> assertThat(store.deadRows()).hasSize(1));
    assertThat(tries).hasValue(3);
    await().untilAsserted(() -> assertThat(subscriber.health().inFlight()).isZero());
  }

  @Test
  void deadLettersThatRefuseEveryRowHoldUpAcksForAFewStatementsAtATime() {
    AtomicInteger inARow = new AtomicInteger();
    AtomicInteger most = new AtomicInteger();
    AtomicInteger tries = new AtomicInteger();
    AtomicBoolean broken = new AtomicBoolean(true);
    store.beforeEach(
        operation -> {
          if (operation.equals("ack")) {
            inARow.set(0);
          } else if (operation.equals("dead-letter") && broken.get()) {
            tries.incrementAndGet();
            most.accumulateAndGet(inARow.incrementAndGet(), Math::max);
            throw new StoreException("refused", StoreException.Fault.ROW, false, null);
          }
        });
    int poison = 900;
    for (int i = 0; i < poison; i++) {
      publish("poison");
    }
    start(
        builder()
            .workers(8)
            .gracefulTimeout(Duration.ofSeconds(5))
            .on(
                "poison",
                Payload.class,
                (body, delivery) -> {
                  return Outcome.reject("no");
                })
            .on(
                "healthy",
                (payload, delivery) -> {
                  if (broken.get()) {
                    publish("healthy"); // so that there is always something to ack
                  }
                }));
    for (int i = 0; i < 4; i++) {
      publish("healthy");
    }
    await()
        .untilAsserted(
            () -> assertThat(subscriber.health().deadLettersWaiting()).isEqualTo(poison));
    await().until(() -> tries.get() >= 200);
    assertThat(subscriber.health().failing()).isTrue();
    assertThat(subscriber.health().lastFailure()).get().asString().contains("refused");
    assertThat(most).as("one by one, all of them in a row").hasValueLessThan(poison / 2);
    broken.set(false);
    await()
        .atMost(Duration.ofSeconds(20))
        .untilAsserted(() -> assertThat(store.deadRows()).hasSize(poison));
    await().untilAsserted(() -> assertThat(store.rows()).isEmpty());
    await().untilAsserted(() -> assertThat(subscriber.health().healthy()).isTrue());
    await().untilAsserted(() -> assertThat(subscriber.health().inFlight()).isZero());
  }

  @Test
  void deadLettersPutOffCountAnAttemptOnlyIfAHandlerRan() {
    AtomicBoolean broken = new AtomicBoolean(true);
    store.beforeEach(
        operation -> {
          if (operation.equals("dead-letter") && broken.get()) {
            throw new StoreException("no table", StoreException.Fault.SETUP, false, null);
          }
        });
    for (int i = 0; i < 1_200; i++) {
      publish(i < 600 ? "rejected" : "undecodable");
    }
    PayloadCodec codec =
        new PayloadCodec() {
          @Override
          public String contentType() {
            return "application/none";
          }

          @Override
          public Payload encode(Object body) {
            throw new UnsupportedOperationException();
          }

          @Override
          public Object decode(Payload payload, Map<String, String> headers, Type type) {
            throw new UndecodableException("not a number");
          }
        };
    start(
        builder()
            .codec(codec)
            .on(
                "rejected",
                Payload.class,
                (body, delivery) -> {
                  return Outcome.reject("no");
                })
            .on("undecodable", Integer.class, (number, delivery) -> {}));
    await()
        .untilAsserted(
            () ->
                assertThat(store.rows())
                    .filteredOn(row -> row.lastError() != null)
                    .hasSize(200)
                    .allSatisfy(
                        row ->
                            assertThat(row.attempts())
                                .isEqualTo("rejected".equals(row.type()) ? 1 : 0)));
    broken.set(false);
    await().untilAsserted(() -> assertThat(store.deadRows()).hasSize(1_000));
    assertThat(store.deadRows()).extracting("attempts").contains(0, 1);
  }

  @Test
  void outageWhileRowsAreWrittenOneByOneLeavesNoneOfThemBehind() {
    AtomicInteger tries = new AtomicInteger();
    AtomicInteger lost = new AtomicInteger();
    store.beforeEach(
        operation -> {
          if (operation.equals("ack")) {
            int attempt = tries.incrementAndGet();
            if (attempt == 1) {
              throw new StoreException("a trigger", StoreException.Fault.ROW, false, null);
            }
            if (attempt == 2) {
              throw new StoreException("down", StoreException.Fault.TRANSIENT, false, null);
            }
          }
        });
    publish("t");
    start(
        builder()
            .on(
                "t",
                (payload, delivery) -> {
                  lost.incrementAndGet();
                }));
    await().untilAsserted(() -> assertThat(store.rows()).isEmpty());
    assertThat(tries).hasValue(3);
    assertThat(lost).hasValue(1);
  }

  @Test
  void claimThatHangsLeavesOneConnectionToRenewals() {
    CountDownLatch network = new CountDownLatch(1);
    CountDownLatch claimHangs = new CountDownLatch(1);
    CountDownLatch running = new CountDownLatch(1);
    CountDownLatch finish = new CountDownLatch(1);
    AtomicInteger renewed = new AtomicInteger();
    AtomicInteger acksSent = new AtomicInteger();
    store.beforeEach(
        operation -> {
          if (operation.equals("claim") && running.getCount() == 0) {
            claimHangs.countDown();
            awaitIgnoringInterrupts(network);
          } else if (operation.equals("ack")) {
            acksSent.incrementAndGet();
            awaitIgnoringInterrupts(network);
          }
        });
    publish("t");
    start(
        builder()
            .workers(2)
            .lease(Duration.ofMillis(800))
            .observe(
                new SubscriberEvents() {
                  @Override
                  public void renewed(String name, int rows) {
                    renewed.addAndGet(rows);
                  }
                })
            .on(
                "t",
                (payload, delivery) -> {
                  running.countDown();
                  finish.await();
                }));
    try {
      await().until(() -> claimHangs.getCount() == 0);
      await().until(() -> renewed.get() >= 1); // so the claim has hung for half a lease
      finish.countDown();
      // the lease outlives the outage: the row stays this subscriber's for several leases
      await().until(() -> renewed.get() >= 6);
      assertThat(acksSent).hasValue(0);
    } finally {
      network.countDown();
    }
    await().untilAsserted(() -> assertThat(store.rows()).isEmpty());
    assertThat(acksSent).hasValue(1);
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
            .observe(
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
  void failuresThatCannotEvenBeToldEndNoThread() {
    AtomicInteger claims = new AtomicInteger(3);
    AtomicInteger acks = new AtomicInteger(3);
    AtomicInteger renewals = new AtomicInteger(3);
    AtomicInteger renewed = new AtomicInteger();
    store.beforeEach(
        operation -> {
          AtomicInteger failures =
              operation.equals("claim") ? claims : operation.equals("ack") ? acks : renewals;
          if (failures.getAndDecrement() > 0) {
            throw new SpeechlessException();
          }
        });
    publish("t");
    start(
        builder()
            .lease(Duration.ofMillis(300))
            .observe(
                new SubscriberEvents() {
                  @Override
                  public void renewed(String name, int rows) {
                    renewed.addAndGet(rows);
                  }
                })
            .on(
                "t",
                (payload, delivery) -> {
                  await().until(() -> renewed.get() > 0);
                }));
    await().untilAsserted(() -> assertThat(store.rows()).isEmpty());
    await().untilAsserted(() -> assertThat(subscriber.health().failing()).isFalse());
    assertThat(subscriber.health().lastFailure())
        .get()
        .asString()
        .contains(SpeechlessException.class.getName());
  }

  /** As bad as a driver's exception can be. */
  private static final class SpeechlessException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    @Override
    public String getMessage() {
      throw new IllegalStateException("no words");
    }
  }

  @Test
  void errorsOfTheStoreEndNoThread() {
    AtomicInteger failures = new AtomicInteger(6);
    store.beforeEach(
        operation -> {
          if ((operation.equals("claim") || operation.equals("ack"))
              && failures.getAndDecrement() > 0) {
            throw new NoClassDefFoundError("driver");
          }
        });
    publish("t");
    start(builder().on("t", (payload, delivery) -> {}));
    await().untilAsserted(() -> assertThat(store.rows()).isEmpty());
    publish("t");
    await().untilAsserted(() -> assertThat(store.rows()).isEmpty());
    await().untilAsserted(() -> assertThat(subscriber.health().failing()).isFalse());
  }

  @Test
  void anAckThatTheServerRefusesIsKeptAndTriedAgainWhileTheHandlerRanOnceAndOthersGoOn() {
    AtomicInteger runs = new AtomicInteger();
    publish("t");
    store.failWrites(store.rows().get(0).id(), StoreException.Fault.ROW);
    start(
        builder()
            .on(
                "t",
                (payload, delivery) -> {
                  runs.incrementAndGet();
                }));
    await().untilAsserted(() -> assertThat(subscriber.health().failing()).isTrue());
    for (int i = 0; i < 500; i++) {
      publish("t");
    }
    await().untilAsserted(() -> assertThat(store.rows()).hasSize(1));
    int calls = store.calls("ack");
    await().until(() -> store.calls("ack") > calls + 2);
    assertThat(runs).hasValue(501);
    assertThat(subscriber.health().failing()).isTrue();
    assertThat(subscriber.health().lastFailure()).isPresent();
    store.mend(store.rows().get(0).id());
    await().untilAsserted(() -> assertThat(store.rows()).isEmpty());
    await().untilAsserted(() -> assertThat(subscriber.health().failing()).isFalse());
    assertThat(runs).hasValue(501);
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
    Drain drain = drain(Integer.MAX_VALUE);
    assertThat(Duration.ofNanos(System.nanoTime() - begun)).isLessThan(Duration.ofSeconds(5));
    assertThat(drain.timeouts).containsExactly(2);
    assertThat(drain.releases.get()).isGreaterThan(2);
    assertThat(store.rows()).hasSize(2).allSatisfy(row -> assertThat(row.leaseUntil()).isNotNull());
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
            throw new StoreException("terminated", StoreException.Fault.TRANSIENT, true, null);
          }
        });
    publishQuickOnesAndThen(3);
    start(
        builder()
            .workers(1)
            .on("quick", (payload, delivery) -> {})
            .gracefulTimeout(Duration.ofSeconds(1))
            .observe(
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
      await().until(() -> !alive("outbox-late-claim-completer"));
      answer.countDown();
      stopped.get(20, TimeUnit.SECONDS);
      await() // behind the stop
          .untilAsserted(
              () ->
                  assertThat(logs.lines())
                      .anyMatch(line -> line.contains("released 1 of 1 rows"))
                      .noneMatch(line -> line.contains("the executor rejects")));
    }
    assertThat(store.rows()).singleElement().extracting("leaseUntil").isNull();
  }

  private static boolean alive(String thread) {
    return Thread.getAllStackTraces().keySet().stream()
        .anyMatch(each -> each.getName().equals(thread));
  }

  @Test
  void healthRecoversFromAnErrorThatWasNoAcks() {
    AtomicBoolean first = new AtomicBoolean(true);
    List<String> failures = new CopyOnWriteArrayList<>();
    store.beforeEach(
        operation -> {
          if (operation.equals("retry") && first.compareAndSet(true, false)) {
            throw new NoClassDefFoundError("driver");
          }
        });
    publish("t");
    start(
        builder()
            .observe(
                new SubscriberEvents() {
                  @Override
                  public void storeFailed(String name, String operation, Throwable cause) {
                    failures.add(operation);
                  }
                })
            .on(
                "t",
                Payload.class,
                (body, delivery) -> {
                  return Outcome.retryAfter(Duration.ofHours(1));
                }));
    await()
        .untilAsserted(
            () -> assertThat(store.rows()).singleElement().extracting("attempts").isEqualTo(1));
    await().untilAsserted(() -> assertThat(subscriber.health().failing()).isFalse());
    assertThat(failures).containsExactly("retry");
  }

  @ParameterizedTest
  @EnumSource(
      value = StoreException.Fault.class,
      names = {"ROW", "TIMEOUT", "TRANSIENT", "SETUP", "CONNECTION"})
  void aRowWhoseAckAlwaysFailsHoldsUpNoOtherWhateverTheFault(StoreException.Fault fault) {
    Set<Long> handled = ConcurrentHashMap.newKeySet();
    for (int i = 0; i < 2_000; i++) {
      publish("t");
    }
    store.failWrites(store.rows().get(700).id(), fault);
    start(
        builder()
            .on(
                "t",
                (payload, delivery) -> {
                  handled.add(delivery.id());
                }));
    await().untilAsserted(() -> assertThat(store.rows()).hasSize(1));
    assertThat(handled).hasSize(2_000);
    await().untilAsserted(() -> assertThat(subscriber.health().failing()).isTrue());
  }

  @ParameterizedTest
  @EnumSource(
      value = StoreException.Fault.class,
      names = {"ROW", "TIMEOUT", "TRANSIENT", "SETUP", "CONNECTION"})
  void moreRowsThanOneSearchFindsHoldUpNoOtherWhateverTheFault(StoreException.Fault fault) {
    for (int i = 0; i < 2_000; i++) {
      publish("t");
    }
    store.rows().stream()
        .filter(row -> row.id() % 50 == 0)
        .forEach(row -> store.failWrites(row.id(), fault));
    start(builder().on("t", (payload, delivery) -> {}));
    await()
        .atMost(Duration.ofSeconds(30))
        .untilAsserted(() -> assertThat(store.rows()).hasSize(40));
    store.rows().forEach(row -> store.mend(row.id()));
    await().untilAsserted(() -> assertThat(store.rows()).isEmpty());
    await().untilAsserted(() -> assertThat(subscriber.health().failing()).isFalse());
  }

  @ParameterizedTest
  @EnumSource(
      value = StoreException.Fault.class,
      names = {"ROW", "TIMEOUT", "TRANSIENT", "SETUP", "CONNECTION"})
  void aRowWhoseRenewalAlwaysFailsCostsNoOtherItsLeaseWhateverTheFault(StoreException.Fault fault) {
    Duration lease = Duration.ofSeconds(1);
    Map<Long, Delivery> running = new ConcurrentHashMap<>();
    CountDownLatch go = new CountDownLatch(1);
    for (int i = 0; i < 20; i++) {
      publish("t");
    }
    start(
        builder()
            .workers(20)
            .lease(lease)
            .on(
                "t",
                (payload, delivery) -> {
                  running.put(delivery.id(), delivery);
                  go.await();
                }));
    await().until(() -> running.size() == 20);
    long broken = store.rows().get(7).id();
    store.failWrites(broken, fault);
    await().until(() -> running.get(broken).leaseLost());
    await()
        .until(
            () -> subscriber.health().lastFailure().orElse("").contains("row " + broken + " of"));
    await().until(() -> ended(store.row(broken).leaseUntil().plus(lease)));
    Instant now = Clock.systemUTC().instant();
    assertThat(store.rows())
        .filteredOn(row -> row.id() != broken)
        .hasSize(19)
        .allSatisfy(row -> assertThat(row.leaseUntil()).isAfter(now))
        .allSatisfy(row -> assertThat(running.get(row.id()).leaseLost()).isFalse());
    store.mend(broken);
    await().until(() -> !running.get(broken).leaseLost());
    go.countDown();
    await().untilAsserted(() -> assertThat(store.rows()).isEmpty());
    await().untilAsserted(() -> assertThat(subscriber.health().failing()).isFalse());
  }

  @Test
  void anAckThatMeetsALockIsKeptAndWrittenOnceTheLockIsGone() {
    AtomicInteger runs = new AtomicInteger();
    CountDownLatch go = new CountDownLatch(1);
    publish("t");
    start(
        builder()
            .on(
                "t",
                (payload, delivery) -> {
                  runs.incrementAndGet();
                  go.await();
                }));
    await().until(() -> runs.get() == 1);
    long locked = store.rows().get(0).id();
    store.lock(locked);
    go.countDown();
    await()
        .until(
            () -> subscriber.health().lastFailure().orElse("").contains("row " + locked + " of"));
    store.unlock(locked);
    await().untilAsserted(() -> assertThat(store.rows()).isEmpty());
    assertThat(runs).hasValue(1);
    await().untilAsserted(() -> assertThat(subscriber.health().failing()).isFalse());
  }

  @Test
  void aRowThatAStrangerHasLockedHoldsUpNoOtherAndIsNamedByHealth() {
    Set<Long> handled = ConcurrentHashMap.newKeySet();
    CountDownLatch go = new CountDownLatch(1);
    for (int i = 0; i < 20; i++) {
      publish("t");
    }
    start(
        builder()
            .workers(20)
            .lease(Duration.ofMillis(400))
            .on(
                "t",
                (payload, delivery) -> {
                  go.await();
                  handled.add(delivery.id());
                }));
    await().until(() -> subscriber.health().running() == 20);
    long locked = store.rows().get(3).id();
    store.lock(locked);
    await().until(() -> subscriber.health().lastFailure().orElse("").contains("row " + locked));
    assertThat(subscriber.health().healthy()).isFalse();
    go.countDown();
    for (int i = 0; i < 1_000; i++) {
      publish("t");
    }
    await().untilAsserted(() -> assertThat(store.rows()).hasSize(1));
    assertThat(handled).hasSize(1_020);
    store.unlock(locked);
    await().untilAsserted(() -> assertThat(store.rows()).isEmpty());
    await().untilAsserted(() -> assertThat(subscriber.health().failing()).isFalse());
  }

  @Test
  void rowsThatAHungProcessHasNotBegunAreHandledElsewhereWithinTwoLeases() {
    CountDownLatch never = new CountDownLatch(1);
    AtomicInteger begun = new AtomicInteger();
    AtomicInteger elsewhere = new AtomicInteger();
    Duration lease = Duration.ofSeconds(1);
    for (int i = 0; i < 3_000; i++) {
      publish("quick");
    }
    for (int i = 0; i < 40; i++) {
      publish("slow");
    }
    start(
        builder()
            .lease(lease)
            .on("quick", (payload, delivery) -> {})
            .on(
                "slow",
                (payload, delivery) -> {
                  begun.incrementAndGet();
                  never.await();
                }));
    await().until(() -> begun.get() == 4);
    OutboxSubscriber other =
        builder()
            .name("other")
            .lease(lease)
            .otherwise(
                (payload, delivery) -> {
                  elsewhere.incrementAndGet();
                })
            .build();
    long since = System.nanoTime();
    other.start();
    try {
      await().untilAsserted(() -> assertThat(elsewhere).hasValue(36));
      assertThat(Duration.ofNanos(System.nanoTime() - since)).isLessThan(lease.multipliedBy(2));
    } finally {
      other.stop();
      never.countDown();
    }
  }

  @Test
  void anAnswerThatIsTooLargeMakesTheNextClaimsSmallerUntilTheyFit() {
    AtomicInteger tooLarge = new AtomicInteger();
    store.beforeEachClaim(
        request -> {
          if (request.limit() > 20) {
            tooLarge.incrementAndGet();
            throw new OutOfMemoryError("too large an answer");
          }
        });
    for (int i = 0; i < 1_000; i++) {
      publish("t");
    }
    start(builder().workers(50).on("t", (payload, delivery) -> {}));
    await().untilAsserted(() -> assertThat(store.rows()).isEmpty());
    assertThat(tooLarge.get()).isPositive();
  }

  @Test
  void aQueueWhoseClaimsFailHoldsUpNoOtherIsNotTriedAllTheTimeAndIsToldByHealth() {
    AtomicInteger failures = new AtomicInteger();
    AtomicInteger handled = new AtomicInteger();
    AtomicBoolean broken = new AtomicBoolean(true);
    store.beforeEachClaim(
        request -> {
          if (broken.get() && request.queue().equals("broken")) {
            throw new StoreException("no queue", StoreException.Fault.SETUP, false, null);
          }
        });
    start(
        builder()
            .queues("broken")
            .observe(
                new SubscriberEvents() {
                  @Override
                  public void storeFailed(String name, String operation, Throwable cause) {
                    failures.incrementAndGet();
                  }
                })
            .otherwise(
                (payload, delivery) -> {
                  handled.incrementAndGet();
                }));
    await().until(() -> subscriber.health().failing());
    for (int i = 1; i <= 100; i++) {
      int soFar = i;
      publish("t");
      await().pollInterval(Duration.ofMillis(1)).until(() -> handled.get() == soFar);
      assertThat(subscriber.health().failing()).isTrue();
    }
    assertThat(failures.get()).isPositive().isLessThan(50);
    assertThat(subscriber.health().lastFailure().orElse("")).contains("no queue");
    broken.set(false);
    store.publish(OutboxMessage.to("broken").type("t").body(Payload.ofText("x")).build());
    await().untilAsserted(() -> assertThat(handled).hasValue(101));
    await().untilAsserted(() -> assertThat(subscriber.health().failing()).isFalse());
  }

  @Test
  void aQueueTooDearToLookThroughAsAWholeGoesOnInPartsAndThatIsNoFailure() {
    AtomicInteger handled = new AtomicInteger();
    AtomicInteger failures = new AtomicInteger();
    store.claimCost(
        range ->
            range.equals(ClaimRequest.Range.ALL) ? Duration.ofSeconds(20) : Duration.ofMillis(10));
    start(
        builder()
            .observe(
                new SubscriberEvents() {
                  @Override
                  public void storeFailed(String name, String operation, Throwable cause) {
                    failures.incrementAndGet();
                  }
                })
            .on(
                "t",
                (payload, delivery) -> {
                  handled.incrementAndGet();
                }));
    for (int i = 0; i < 100; i++) {
      publish("t");
    }
    await().untilAsserted(() -> assertThat(handled).hasValue(100));
    Instant longAgo = Clock.systemUTC().instant().minus(Duration.ofHours(1));
    store.publish( // as if its transaction had committed late
        OutboxMessage.to("orders").type("t").deliverAt(longAgo).body(Payload.ofText("x")).build());
    await().atMost(Duration.ofSeconds(30)).untilAsserted(() -> assertThat(handled).hasValue(101));
    assertThat(failures).hasValue(0);
    assertThat(subscriber.health().failing()).isFalse();
  }

  @Test
  void aClaimAnsweredWhenItsLeaseIsOverStartsNoHandlerUnderThatLease() {
    AtomicBoolean late = new AtomicBoolean();
    List<Long> tokens = new CopyOnWriteArrayList<>();
    store.afterEach(
        operation -> {
          if (operation.equals("claim")
              && store.rows().stream().anyMatch(row -> row.leaseUntil() != null)
              && late.compareAndSet(false, true)) {
            await().until(() -> ended(store.rows().get(0).leaseUntil()));
          }
        });
    publish("t");
    start(
        builder()
            .lease(Duration.ofMillis(500))
            .on(
                "t",
                (payload, delivery) -> {
                  tokens.add(delivery.leaseToken());
                }));
    await().untilAsserted(() -> assertThat(store.rows()).isEmpty());
    assertThat(late).isTrue();
    assertThat(tokens).containsExactly(2L);
  }

  private static boolean ended(Instant lease) {
    return lease.isBefore(Clock.systemUTC().instant());
  }

  @Test
  void claimsGoOnWhileTheDeadLettersAreBroken() {
    AtomicInteger handled = new AtomicInteger();
    store.beforeEach(
        operation -> {
          if (operation.equals("dead-letter")) {
            throw new StoreException("no table", StoreException.Fault.SETUP, false, null);
          }
        });
    for (int i = 0; i < 500; i++) {
      publish("poison");
    }
    publish("healthy");
    start(
        builder()
            .workers(1)
            .batchSize(10) // so that far fewer may be in flight
            .on(
                "poison",
                Payload.class,
                (body, delivery) -> {
                  return Outcome.reject("no");
                })
            .on(
                "healthy",
                (payload, delivery) -> {
                  handled.incrementAndGet();
                }));
    await().untilAsserted(() -> assertThat(handled).hasValue(1));
    await().until(() -> subscriber.health().deadLettersWaiting() == 500);
    assertThat(store.deadRows()).isEmpty();
  }

  @Test
  void deadLettersThatMakeRoomWakeWhoWaitsForIt() {
    int rows = 20_000; // 250 times what may be in flight: two minutes if each waited in vain
    store.beforeEach(
        operation -> {
          if (operation.equals("dead-letter")) {
            LockSupport.parkNanos(Duration.ofMillis(5).toNanos()); // until there is no room
          }
        });
    for (int i = 0; i < rows; i++) {
      publish("poison");
    }
    start(
        builder()
            .workers(2)
            .batchSize(10)
            .on(
                "poison",
                Payload.class,
                (body, delivery) -> {
                  return Outcome.reject("no");
                }));
    await()
        .atMost(Duration.ofSeconds(30))
        .untilAsserted(() -> assertThat(store.deadRows()).hasSize(rows));
  }

  @Test
  void payloadBytesOfWhatCannotBeWrittenAreBounded() {
    long most = Math.min(32 << 20, Runtime.getRuntime().maxMemory() / 16);
    int size = (int) most / 16;
    Set<Long> handled = ConcurrentHashMap.newKeySet();
    for (int i = 0; i < 60; i++) {
      OptionalLong id =
          store.publish(OutboxMessage.to("orders").type("t").body(new byte[size]).build());
      store.failWrites(id.getAsLong(), StoreException.Fault.ROW);
    }
    store.publish(OutboxMessage.to("orders").type("t").body(Payload.ofText("x")).build());
    start(
        builder()
            .on(
                "t",
                (payload, delivery) -> {
                  handled.add(delivery.id());
                }));
    await().atMost(Duration.ofSeconds(30)).untilAsserted(() -> assertThat(handled).hasSize(61));
    await().until(() -> subscriber.health().inFlight() == 0);
    try (CapturedLogs logs = new CapturedLogs()) {
      subscriber.stop();
      assertThat(logs.lines())
          .as("rows kept to the end; the others had been left to their leases")
          .anyMatch(line -> line.matches(".*drain ended with [1-4] row.*"));
    }
  }

  @Test
  void payloadBytesInMemoryAreBounded() {
    long most = Math.min(32 << 20, Runtime.getRuntime().maxMemory() / 16);
    int size = (int) Math.min(4 << 20, most / 8);
    for (int i = 0; i < 60; i++) {
      store.publish(OutboxMessage.to("orders").type("t").body(new byte[size]).build());
    }
    AtomicInteger mostRows = new AtomicInteger();
    CountDownLatch go = new CountDownLatch(1);
    start(
        builder()
            .workers(30)
            .on(
                "t",
                (payload, delivery) -> {
                  go.await();
                  mostRows.accumulateAndGet(subscriber.health().inFlight(), Math::max);
                }));
    await().until(() -> subscriber.health().running() >= 8);
    go.countDown();
    await().untilAsserted(() -> assertThat(store.rows()).isEmpty());
    assertThat(mostRows.get()).isLessThanOrEqualTo(9);
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

  private static void awaitIgnoringInterrupts(CountDownLatch latch) {
    boolean done = false;
    while (!done) {
      try {
        latch.await();
        done = true;
      } catch (InterruptedException ignoredOnPurpose) {
        done = latch.getCount() == 0;
      }
    }
  }
}
