package dev.outbox4j;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.spi.PayloadCodec;
import dev.outbox4j.spi.UndecodableException;
import dev.outbox4j.testing.CapturedLogs;
import java.lang.reflect.Type;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Dead letters that cannot be written, or are slow. */
class DeadLetterFaultsTest extends EngineFixture {
  @Test
  void rowsWaitingForBrokenDeadLettersSurviveAnErrorOfTheWriter() {
    AtomicInteger tries = new AtomicInteger();
    store.beforeEach(
        operation -> {
          if (operation.equals("dead-letter")) {
            int attempt = tries.incrementAndGet();
            if (attempt == 1) {
              throw new OutboxStoreException(
                  "no table", OutboxStoreException.Fault.SETUP, false, null);
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
            throw new OutboxStoreException("refused", OutboxStoreException.Fault.ROW, false, null);
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
  void deadLettersPutOffCountAnAttemptOnlyIfAHandlerRanAndNoDelivery() {
    AtomicBoolean broken = new AtomicBoolean(true);
    store.beforeEach(
        operation -> {
          if (operation.equals("dead-letter") && broken.get()) {
            throw new OutboxStoreException(
                "no table", OutboxStoreException.Fault.SETUP, false, null);
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
    try (CapturedLogs logs = new CapturedLogs()) {
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
                          row -> {
                            assertThat(row.attempts())
                                .isEqualTo("rejected".equals(row.type()) ? 1 : 0);
                            assertThat(row.deliveries()).as("given back").isZero();
                          }));
      broken.set(false);
      await().untilAsserted(() -> assertThat(store.deadRows()).hasSize(1_000));
      logs.awaitLine(line -> line.contains("cannot be dead-lettered now; postponed by PT30S"));
    }
    assertThat(store.deadRows()).extracting("attempts").contains(0, 1);
  }

  @Test
  void claimsGoOnWhileTheDeadLettersAreBroken() {
    AtomicInteger handled = new AtomicInteger();
    store.beforeEach(
        operation -> {
          if (operation.equals("dead-letter")) {
            throw new OutboxStoreException(
                "no table", OutboxStoreException.Fault.SETUP, false, null);
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
    int rows = 3_000; // 36 times what may be in flight
    AtomicLong firstMove = new AtomicLong(); // since the last claim
    List<Long> claimedAfter = new CopyOnWriteArrayList<>();
    store.beforeEach(
        operation -> {
          if (operation.equals("dead-letter")) {
            LockSupport.parkNanos(Duration.ofMillis(50).toNanos()); // until there is no room
          } else if (operation.equals("claim")) {
            long moved = firstMove.getAndSet(0);
            if (moved != 0) {
              claimedAfter.add(TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - moved));
            }
          }
        });
    store.afterEach(
        operation -> {
          if (operation.equals("dead-letter")) {
            firstMove.compareAndSet(0, System.nanoTime());
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
    await().atMost(Duration.ofSeconds(60)).until(() -> store.deadRows().size() == rows);
    List<Long> sorted = claimedAfter.stream().sorted().toList();
    // half a second, but for the time of the move, if who waits is not woken
    assertThat(sorted.get(sorted.size() / 2)).as("the median of " + sorted).isLessThan(250);
  }

  @Test
  void payloadBytesOfWhatCannotBeWrittenAreBounded() {
    long most = Math.min(32 << 20, Runtime.getRuntime().maxMemory() / 16);
    int size = (int) most / 16;
    Set<Long> handled = ConcurrentHashMap.newKeySet();
    for (int i = 0; i < 60; i++) {
      OptionalLong id =
          store.publish(OutboxMessage.to("orders").type("t").body(new byte[size]).build());
      store.failWrites(id.getAsLong(), OutboxStoreException.Fault.ROW);
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

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void eachTypeThatFailsForGoodLeavesALineAndIsToldWhetherItWasMoved(boolean moved) {
    List<String> told = new CopyOnWriteArrayList<>();
    publish("one");
    publish("two");
    OutboxSubscriber.Builder builder =
        OutboxSubscriber.builder("orders").store(store).retry(RetryPolicy.none());
    if (moved) {
      builder.deadLetters(store.deadLetters());
    } else {
      builder.deleteTerminalFailures();
    }
    try (CapturedLogs logs = new CapturedLogs()) {
      start(
          builder
              .events(
                  new SubscriberEvents() {
                    @Override
                    public void deadLettered(
                        String name, Delivery delivery, FailureReason reason, boolean isMoved) {
                      told.add(delivery.type().orElseThrow() + " " + isMoved);
                    }
                  })
              .otherwise(
                  (payload, delivery) -> {
                    return Outcome.reject("for good");
                  }));
      await()
          .untilAsserted(
              () -> assertThat(told).containsExactlyInAnyOrder("one " + moved, "two " + moved));
      String end = moved ? "is in the dead letters" : "was DELETED";
      for (String type : List.of("one", "two")) {
        logs.awaitLine(line -> line.contains("type " + type + ", failed for good and " + end));
      }
    }
  }
}
