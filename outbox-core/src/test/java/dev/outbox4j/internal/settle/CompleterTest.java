package dev.outbox4j.internal.settle;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.SubscriberEvents;
import dev.outbox4j.internal.EngineThreads;
import dev.outbox4j.internal.settings.SubscriberSettings;
import dev.outbox4j.internal.state.EngineParts;
import dev.outbox4j.internal.state.Events;
import dev.outbox4j.internal.state.HeldRow;
import dev.outbox4j.internal.state.Settlement;
import dev.outbox4j.internal.state.Shared;
import dev.outbox4j.testing.InMemoryStore;
import java.time.Clock;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class CompleterTest {
  private static final Duration LEASE = Duration.ofMinutes(1);

  private final InMemoryStore store = new InMemoryStore(Clock.systemUTC());
  private final CountDownLatch failed = new CountDownLatch(1);
  private final EngineThreads threads =
      new EngineThreads("orders", CompleterTest.class.getClassLoader());
  private final Events events = new Events("orders", threads, observers());
  private final Shared shared = EngineParts.shared(threads, events, LEASE);

  @Test
  void failureAmongCollectedOutcomesForgetsNoneOfThem() throws InterruptedException {
    List<HeldRow> rows = EngineParts.claim(store, shared.registry(), 5, LEASE, System.nanoTime());
    Completer completer = completer();
    for (HeldRow row : rows) {
      row.start(System.nanoTime());
      if (row != rows.get(2)) { // taking this one up fails, as it may for want of memory
        EngineParts.decide(row, Settlement.Ack.INSTANCE);
      }
      completer.complete(row);
    }
    events.start();
    completer.start();
    failed.await();
    EngineParts.decide(rows.get(2), Settlement.Ack.INSTANCE);
    await().untilAsserted(() -> assertThat(store.rows()).isEmpty());
    assertThat(shared.registry().rows()).isZero();
    completer.stop();
    assertThat(completer.join(System.nanoTime() + TimeUnit.SECONDS.toNanos(10))).isTrue();
    events.stop(System.nanoTime() + TimeUnit.SECONDS.toNanos(10));
  }

  private List<SubscriberEvents> observers() {
    return List.of(
        new SubscriberEvents() {
          @Override
          public void storeFailed(String subscriber, String operation, Throwable cause) {
            failed.countDown();
          }
        });
  }

  private Completer completer() {
    SubscriberSettings settings =
        EngineParts.settings(
            store, new SubscriberSettings.Claiming(100, LEASE, LEASE, LEASE, LEASE));
    return new Completer(settings, shared);
  }
}
