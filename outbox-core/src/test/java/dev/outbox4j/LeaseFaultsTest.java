package dev.outbox4j;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.spi.ClaimRequest;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Flow;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Leases that cannot be renewed, are lost, or outlive their process. */
class LeaseFaultsTest extends EngineFixture {
  @Test
  void healthRecoversFromARenewalThatNoRowNeedsAnyMore() {
    AtomicBoolean broken = new AtomicBoolean(true);
    CountDownLatch release = new CountDownLatch(1);
    store.beforeEach(
        operation -> {
          if (operation.equals("renew") && broken.get()) {
            throw new OutboxStoreException(
                "down", OutboxStoreException.Fault.TRANSIENT, false, null);
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
  void anErrorOfARenewalIsToldByHealthAndTheNextOneKeepsTheLease() {
    AtomicInteger renewals = new AtomicInteger();
    CountDownLatch finish = new CountDownLatch(1);
    List<Integer> attempts = new CopyOnWriteArrayList<>();
    store.beforeEach(
        operation -> {
          if (operation.equals("renew") && renewals.incrementAndGet() == 1) {
            throw new LinkageError("a class is missing");
          }
        });
    publish("t");
    start(
        builder()
            .lease(Duration.ofSeconds(1))
            .on(
                "t",
                (payload, delivery) -> {
                  attempts.add(delivery.deliveries());
                  finish.await();
                }));
    await()
        .untilAsserted(
            () ->
                assertThat(subscriber.health().lastFailure())
                    .hasValueSatisfying(text -> assertThat(text).contains("a class is missing")));
    await().until(() -> renewals.get() >= 4); // longer than the lease
    finish.countDown();
    await().untilAsserted(() -> assertThat(store.rows()).isEmpty());
    assertThat(attempts).containsExactly(1);
    await().until(() -> !subscriber.health().failing());
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
            throw new OutboxStoreException(
                "down", OutboxStoreException.Fault.TRANSIENT, false, null);
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
            .lease(
                Duration.ofSeconds(1)) // longer than a busy machine keeps the second from renewing
            .poll(Duration.ofMillis(10), Duration.ofMillis(20))
            .events(
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
    assertThat(firstKnows).isTrue();
    await().untilAsserted(() -> assertThat(lost.get()).isPositive());
    stop();
    assertThat(acked).hasValue(1);
  }

  @Test
  void aPendingStageIsCancelledWhenAnotherOwnerHasTheRow() {
    CompletableFuture<Void> pending = new CompletableFuture<>();
    ResultHandler<Payload, CompletableFuture<Void>> handler = (payload, delivery) -> pending;
    losesItsRow(handler, () -> assertThat(pending).isNotDone());
    await().until(pending::isCancelled);
    await().until(() -> subscriber.health().running() == 0);
    assertThat(store.rows()).as("the other owner's").hasSize(1);
  }

  @Test
  void aPublisherThatHasNotCompletedIsCancelledWhenAnotherOwnerHasTheRow() {
    AtomicInteger subscriptions = new AtomicInteger();
    AtomicInteger cancelled = new AtomicInteger();
    ResultHandler<Payload, Flow.Publisher<Void>> handler =
        (payload, delivery) ->
            subscriber -> {
              subscriptions.incrementAndGet(); // its own subscriber may claim the row again first
              subscriber.onSubscribe(
                  new Flow.Subscription() {
                    @Override
                    public void request(long items) {}

                    @Override
                    public void cancel() {
                      cancelled.incrementAndGet();
                    }
                  });
            };
    losesItsRow(handler, () -> assertThat(cancelled).hasValue(0));
    await().until(() -> subscriber.health().running() == 0);
    assertThat(cancelled).as("each once").hasValue(subscriptions.get()).hasPositiveValue();
    assertThat(store.rows()).as("the other owner's").hasSize(1);
  }

  /** Handles a message whose lease cannot be renewed until another owner has its row. */
  private void losesItsRow(ResultHandler<Payload, ?> handler, Runnable beforeItKnows) {
    AtomicBoolean broken = new AtomicBoolean(true);
    store.beforeEach(
        operation -> {
          if (operation.equals("renew") && broken.get()) {
            throw new OutboxStoreException(
                "down", OutboxStoreException.Fault.TRANSIENT, false, null);
          }
        });
    publish("t");
    start(
        builder()
            .lease(Duration.ofMillis(300))
            .poll(Duration.ofMinutes(1), Duration.ofMinutes(1))
            .on("t", handler));
    await().until(() -> subscriber.health().running() == 1);
    await()
        .until(
            () ->
                !store
                    .claim(
                        new ClaimRequest(
                            "orders",
                            ClaimRequest.Range.ALL,
                            1,
                            1 << 20,
                            Duration.ofMinutes(1),
                            "another",
                            ClaimRequest.Idle.UNCHANGED,
                            null))
                    .rows()
                    .isEmpty());
    beforeItKnows.run();
    broken.set(false);
  }

  @Test
  void theLeaseOfAPendingStageIsKeptUntilItCompletes() {
    AtomicInteger renewals = new AtomicInteger();
    List<Integer> deliveries = new CopyOnWriteArrayList<>();
    CompletableFuture<Void> pending = new CompletableFuture<>();
    store.beforeEach(
        operation -> {
          if (operation.equals("renew")) {
            renewals.incrementAndGet();
          }
        });
    publish("t");
    ResultHandler<Payload, CompletableFuture<Void>> handler =
        (payload, delivery) -> {
          deliveries.add(delivery.deliveries());
          return pending;
        };
    start(builder().lease(Duration.ofSeconds(1)).on("t", handler));
    await().until(() -> subscriber.health().running() == 1);
    OutboxSubscriber other =
        builder().name("other").lease(Duration.ofSeconds(1)).on("t", handler).build();
    other.start(); // it would take the row when its lease ends
    try {
      Instant first = store.rows().get(0).leaseUntil();
      await().atMost(Duration.ofSeconds(30)).until(() -> renewals.get() >= 6 && ended(first));
      assertThat(ended(store.rows().get(0).leaseUntil())).isFalse();
      assertThat(pending).isNotDone();
      pending.complete(null);
      await().untilAsserted(() -> assertThat(store.rows()).isEmpty());
    } finally {
      other.stop();
    }
    assertThat(deliveries).containsExactly(1);
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
            .events(
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

  @ParameterizedTest
  @EnumSource(
      value = OutboxStoreException.Fault.class,
      names = {"ROW", "TIMEOUT", "TRANSIENT", "SETUP", "CONNECTION"})
  void aRowWhoseRenewalAlwaysFailsCostsNoOtherItsLeaseWhateverTheFault(
      OutboxStoreException.Fault fault) {
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
    Set<Integer> deliveries = ConcurrentHashMap.newKeySet();
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
                  deliveries.add(delivery.deliveries());
                  elsewhere.incrementAndGet();
                })
            .build();
    long since = System.nanoTime();
    other.start();
    try {
      await().untilAsserted(() -> assertThat(elsewhere).hasValue(36));
      assertThat(Duration.ofNanos(System.nanoTime() - since)).isLessThan(lease.multipliedBy(2));
      assertThat(deliveries).as("given back, so not counted").containsOnly(1);
    } finally {
      other.stop();
      never.countDown();
    }
  }
}
