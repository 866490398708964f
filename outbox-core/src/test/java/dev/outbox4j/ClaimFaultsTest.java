package dev.outbox4j;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.spi.ClaimRequest;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** Claims that fail, are too large, too dear or answered too late. */
class ClaimFaultsTest extends EngineFixture {
  @Test
  void rowsWhoseLeaseIsRefusedKeepNoneBehindThemFromBeingClaimed() {
    for (int i = 0; i < 1_000; i++) {
      publish("refused");
    }
    store.rows().forEach(row -> store.refuseLease(row.id()));
    publish("t", 20);
    AtomicInteger handled = new AtomicInteger();
    start(
        builder()
            .on(
                "t",
                (payload, delivery) -> {
                  handled.incrementAndGet();
                }));
    await().until(() -> handled.get() == 20);
    publish("t");
    await().until(() -> handled.get() == 21);
    await().until(() -> store.rows().size() == 1_000);
    assertThat(store.rows()).allMatch(row -> row.deliveries() == 0);
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
            throw new OutboxStoreException(
                "no queue", OutboxStoreException.Fault.SETUP, false, null);
          }
        });
    start(
        builder()
            .queues("broken")
            .events(
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
  void claimsThatFailAreTriedAgainAfterPausesThatGrowAndBeginAnewOnceOneSucceeds() {
    List<Long> failedAt = new CopyOnWriteArrayList<>();
    List<Duration> pauses = new CopyOnWriteArrayList<>();
    AtomicInteger toFail = new AtomicInteger(6);
    AtomicInteger succeeded = new AtomicInteger();
    store.beforeEachClaim(
        request -> {
          long now = System.nanoTime();
          if (failedAt.size() > pauses.size()) {
            pauses.add(Duration.ofNanos(now - failedAt.get(pauses.size())));
          }
          if (toFail.get() > 0 && toFail.getAndDecrement() > 0) {
            failedAt.add(now);
            throw new OutboxStoreException(
                "down", OutboxStoreException.Fault.TRANSIENT, false, null);
          }
          succeeded.incrementAndGet();
        });
    start(
        builder()
            .poll(Duration.ofMillis(10), Duration.ofMillis(20))
            .on("t", (payload, delivery) -> {}));
    await().until(() -> pauses.size() == 6);
    assertThat(pauses.get(5)).isGreaterThan(Duration.ofMillis(500));
    for (int i = 1; i <= 3; i++) { // a machine that is busy may lengthen one or two of them
      int pausesThen = 6 + i;
      int succeededThen = succeeded.get();
      await().until(() -> succeeded.get() > succeededThen);
      toFail.set(1);
      await().until(() -> pauses.size() == pausesThen);
    }
    assertThat(Collections.min(pauses.subList(6, 9))).isLessThan(Duration.ofMillis(500));
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
            .events(
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
}
