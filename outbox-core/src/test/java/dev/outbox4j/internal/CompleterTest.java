package dev.outbox4j.internal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.AckMode;
import dev.outbox4j.Delivery;
import dev.outbox4j.ExceptionRenderer;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.RetryPolicy;
import dev.outbox4j.spi.ClaimRequest;
import dev.outbox4j.spi.SubscriberEvents;
import dev.outbox4j.testing.InMemoryStore;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongConsumer;
import org.junit.jupiter.api.Test;

class CompleterTest {
  private static final Duration LEASE = Duration.ofMinutes(1);

  private final InMemoryStore store = new InMemoryStore(Clock.systemUTC());
  private final InFlightRegistry registry = new InFlightRegistry();
  private final CountDownLatch failed = new CountDownLatch(1);
  private final List<String> told = new CopyOnWriteArrayList<>();
  private final Vitals vitals = new Vitals("orders", new GuardedEvents("orders", observers()));

  @Test
  void failureAmongCollectedOutcomesForgetsNoneOfThem() throws InterruptedException {
    List<InFlight> rows = claim(5);
    Completer completer = completer(nanos -> {});
    for (InFlight row : rows) {
      row.start(System.nanoTime());
      if (row != rows.get(2)) { // taking this one up fails, as it may for want of memory
        row.decided(Settlement.Ack.INSTANCE);
      }
      completer.complete(row);
    }
    Thread thread = new Thread(completer, "completer");
    thread.start();
    failed.await();
    rows.get(2).decided(Settlement.Ack.INSTANCE);
    await().untilAsserted(() -> assertThat(store.rows()).isEmpty());
    assertThat(registry.rows()).isZero();
    completer.stop();
    thread.join();
  }

  @Test
  void errorAfterTheCommitSettlesNoRowTwiceAndIsNotShownForEver() throws InterruptedException {
    List<InFlight> rows = claim(3);
    AtomicInteger retried = new AtomicInteger();
    Completer completer =
        completer(
            nanos -> {
              if (retried.incrementAndGet() == 2) {
                throw new OutOfMemoryError("between two rows");
              }
            });
    rows.forEach(row -> row.start(System.nanoTime())); // the third one goes on
    for (InFlight row : rows.subList(0, 2)) {
      row.decided(new Settlement.Retry(Duration.ofHours(1), "no"));
      completer.complete(row);
    }
    Thread thread = new Thread(completer, "completer");
    thread.start();
    failed.await();
    await().untilAsserted(() -> assertThat(told).hasSize(2));
    completer.stop();
    thread.join();
    assertThat(told).containsExactly("retried 1", "outcome unknown 2");
    assertThat(registry.rows()).isEqualTo(1);
    assertThat(registry.batches()).containsExactly(rows.get(2).batch()); // so it is renewed
    assertThat(vitals.failing()).isFalse();
    registry.settle(rows.get(2));
    registry.settle(rows.get(2));
    assertThat(registry.rows()).isZero();
    assertThat(registry.batches()).isEmpty();
  }

  private List<InFlight> claim(int count) {
    for (int i = 0; i < count; i++) {
      store.publish(OutboxMessage.to("orders").body("x").build());
    }
    ClaimRequest request =
        new ClaimRequest(
            List.of(new ClaimRequest.QueueScan("orders", null)),
            count,
            LEASE,
            "me",
            ClaimRequest.Idle.UNCHANGED);
    LeaseBatch batch =
        new LeaseBatch(store.claim(request).rows(), System.nanoTime(), LEASE.toNanos());
    registry.add(batch);
    List<InFlight> rows = new ArrayList<>();
    for (InFlight row = batch.next(); row != null; row = batch.next()) {
      rows.add(row);
    }
    return rows;
  }

  private List<SubscriberEvents> observers() {
    return List.of(
        new SubscriberEvents() {
          @Override
          public void storeFailed(String subscriber, String operation, Throwable cause) {
            failed.countDown();
          }

          @Override
          public void retried(String subscriber, Delivery delivery, Duration delay) {
            told.add("retried " + delivery.id());
          }

          @Override
          public void leaseLost(String subscriber, Delivery delivery, Phase phase) {
            told.add("lease lost " + delivery.id());
          }

          @Override
          public void outcomeUnknown(String subscriber, Delivery delivery, Phase phase) {
            told.add("outcome unknown " + delivery.id());
          }
        });
  }

  private Completer completer(LongConsumer onDueAgain) {
    SubscriberSettings settings =
        new SubscriberSettings(
            "orders",
            List.of("orders"),
            store,
            null,
            null,
            new HandlerTable.Builder().build(),
            List.of(),
            new SubscriberSettings.Work(1, null, false, null),
            new SubscriberSettings.Claiming(100, LEASE, LEASE, LEASE, LEASE),
            new SubscriberSettings.Failing(
                RetryPolicy.standard(),
                false,
                AckMode.AUTO,
                0,
                ExceptionRenderer.stackTrace(),
                1_000),
            new SubscriberSettings.Stopping(LEASE, false));
    ConnectionBudget connections = new ConnectionBudget(LEASE);
    return new Completer(
        settings,
        connections,
        registry,
        vitals,
        new DeadLetterDesk(settings, connections, registry, vitals),
        new Completer.Signals(() -> false, onDueAgain, () -> {}));
  }
}
