package dev.outbox4j;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BiConsumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The engine's threads survive whatever they meet. */
class EngineThreadsTest extends EngineFixture {
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
            .events(
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

  @Test
  void handlersRunOnNoMoreThreadsThanThereAreWorkers() {
    Set<Thread> threads = ConcurrentHashMap.newKeySet();
    publish("t", 5_000);
    start(
        builder()
            .workers(3)
            .on(
                "t",
                (payload, delivery) -> {
                  threads.add(Thread.currentThread());
                }));
    await().untilAsserted(() -> assertThat(store.rows()).isEmpty());
    assertThat(threads).hasSizeLessThanOrEqualTo(3);
  }

  @Test
  void observerOfTheStopMayStop() {
    CountDownLatch told = new CountDownLatch(1);
    start(
        builder()
            .events(
                new SubscriberEvents() {
                  @Override
                  public void stopped(String name) {
                    subscriber.stop();
                    told.countDown();
                  }
                })
            .on("t", (payload, delivery) -> {}));
    Thread stopping = new Thread(subscriber::stop);
    stopping.setDaemon(true); // it would never end
    stopping.start();
    await().until(() -> subscriber.health().state() == SubscriberState.STOPPED);
    assertThat(told.getCount()).isZero();
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void stageThatThrowsWhenItIsAskedFreesOnePermit(boolean callsBack) {
    AtomicBoolean asked = new AtomicBoolean();
    AtomicInteger running = new AtomicInteger();
    AtomicInteger most = new AtomicInteger();
    AtomicInteger done = new AtomicInteger();
    publish("bad");
    start(
        builder()
            .workers(1)
            .on(
                "bad",
                Payload.class,
                (body, delivery) -> {
                  return new ThrowingStage(callsBack, asked);
                })
            .on(
                "t",
                (payload, delivery) -> {
                  most.accumulateAndGet(running.incrementAndGet(), Math::max);
                  LockSupport.parkNanos(1_000_000); // so that a second one would run beside it
                  running.decrementAndGet();
                  done.incrementAndGet();
                }));
    await().untilTrue(asked);
    await().untilAsserted(() -> assertThat(subscriber.health().running()).isZero());
    publish("t", 100);
    await().untilAsserted(() -> assertThat(done).hasValue(100));
    assertThat(most).hasValue(1);
    await().untilAsserted(() -> assertThat(subscriber.health().running()).isZero());
  }

  private static final class ThrowingStage extends CompletableFuture<Object> {
    private final boolean callsBack;
    private final AtomicBoolean asked;

    ThrowingStage(boolean callsBack, AtomicBoolean asked) {
      this.callsBack = callsBack;
      this.asked = asked;
    }

    @Override
    public CompletableFuture<Object> whenComplete(
        BiConsumer<? super Object, ? super Throwable> action) {
      if (callsBack) {
        action.accept("done", null);
      }
      asked.set(true);
      throw new IllegalStateException("no callbacks");
    }
  }
}
