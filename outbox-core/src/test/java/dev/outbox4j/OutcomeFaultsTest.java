package dev.outbox4j;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import java.time.Duration;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Outcomes that the store refuses, for one row or for all. */
class OutcomeFaultsTest extends EngineFixture {
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
            .events(
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
  void outageWhileRowsAreWrittenOneByOneLeavesNoneOfThemBehind() {
    AtomicInteger tries = new AtomicInteger();
    AtomicInteger lost = new AtomicInteger();
    store.beforeEach(
        operation -> {
          if (operation.equals("ack")) {
            int attempt = tries.incrementAndGet();
            if (attempt == 1) {
              throw new OutboxStoreException(
                  "a trigger", OutboxStoreException.Fault.ROW, false, null);
            }
            if (attempt == 2) {
              throw new OutboxStoreException(
                  "down", OutboxStoreException.Fault.TRANSIENT, false, null);
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
  void outcomesThatCompleteDuringAnOutageDoNotShortenItsPauses() {
    int rows = 3_000;
    AtomicBoolean down = new AtomicBoolean(true);
    AtomicInteger tries = new AtomicInteger();
    AtomicInteger handled = new AtomicInteger();
    store.beforeEach(
        operation -> {
          if (operation.equals("ack") && down.get()) {
            tries.incrementAndGet();
            throw new OutboxStoreException(
                "gone", OutboxStoreException.Fault.CONNECTION, true, null);
          }
        });
    publish("t", rows);
    start(
        builder()
            .workers(4)
            .on(
                "t",
                (payload, delivery) -> {
                  LockSupport.parkNanos(Duration.ofMillis(1).toNanos()); // so that they trickle
                  handled.incrementAndGet();
                }));
    await().atMost(Duration.ofSeconds(30)).until(() -> handled.get() == rows);

    assertThat(tries).hasValueLessThan(rows / 5);
    down.set(false);
    await().untilAsserted(() -> assertThat(store.rows()).isEmpty());
    assertThat(handled).hasValue(rows);
  }

  @Test
  void anAckThatTheServerRefusesIsKeptAndTriedAgainWhileTheHandlerRanOnceAndOthersGoOn() {
    AtomicInteger runs = new AtomicInteger();
    publish("t");
    store.failWrites(store.rows().get(0).id(), OutboxStoreException.Fault.ROW);
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

  @ParameterizedTest
  @EnumSource(
      value = OutboxStoreException.Fault.class,
      names = {"ROW", "TIMEOUT", "TRANSIENT", "SETUP", "CONNECTION"})
  void aRowWhoseAckAlwaysFailsHoldsUpNoOtherWhateverTheFault(OutboxStoreException.Fault fault) {
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
      value = OutboxStoreException.Fault.class,
      names = {"ROW", "TIMEOUT", "TRANSIENT", "SETUP", "CONNECTION"})
  void moreRowsThanOneSearchFindsHoldUpNoOtherWhateverTheFault(OutboxStoreException.Fault fault) {
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
  void rowRefusedForAReasonThatCannotBeToldIsWrittenLater() {
    AtomicInteger refusals = new AtomicInteger(3);
    store.beforeEach(
        operation -> {
          if (operation.equals("ack") && refusals.getAndDecrement() > 0) {
            throw new SpeechlessRefusal();
          }
        });
    publish("t");
    start(builder().on("t", (payload, delivery) -> {}));
    await().untilAsserted(() -> assertThat(store.rows()).isEmpty());
    await().untilAsserted(() -> assertThat(subscriber.health().inFlight()).isZero());
  }

  private static final class SpeechlessRefusal extends OutboxStoreException {
    private static final long serialVersionUID = 1L;

    SpeechlessRefusal() {
      super("refused", Fault.ROW, false, null);
    }

    @Override
    public String getMessage() {
      throw new IllegalStateException("no words");
    }
  }

  @Test
  void pausesOfWritesThatFailGrowAndBeginAnewOnceOneSucceeds() {
    AtomicInteger toFail = new AtomicInteger(6);
    List<Long> failedAt = new CopyOnWriteArrayList<>();
    List<Duration> pauses = new CopyOnWriteArrayList<>();
    store.beforeEach(
        operation -> {
          if (!operation.equals("ack")) {
            return;
          }
          long now = System.nanoTime();
          if (failedAt.size() > pauses.size()) {
            pauses.add(Duration.ofNanos(now - failedAt.get(pauses.size())));
          }
          if (toFail.get() > 0 && toFail.getAndDecrement() > 0) {
            failedAt.add(now);
            throw new OutboxStoreException(
                "down", OutboxStoreException.Fault.CONNECTION, false, null);
          }
        });
    start(builder().on("t", (payload, delivery) -> {}));
    publish("t");
    await().untilAsserted(() -> assertThat(store.rows()).isEmpty());
    assertThat(pauses).hasSize(6);
    assertThat(pauses.get(5)).isGreaterThan(Duration.ofMillis(500));
    for (int i = 1; i <= 3; i++) { // a machine that is busy may lengthen one or two of them
      await().until(() -> subscriber.health().inFlight() == 0);
      toFail.set(1);
      publish("t");
      await().untilAsserted(() -> assertThat(store.rows()).isEmpty());
    }
    assertThat(Collections.min(pauses.subList(6, 9))).isLessThan(Duration.ofMillis(500));
  }
}
