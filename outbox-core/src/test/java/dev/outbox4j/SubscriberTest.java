package dev.outbox4j;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.test.internal.StoredRow;
import dev.outbox4j.testing.InMemoryStore;
import java.time.Clock;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;
import org.assertj.core.api.InstanceOfAssertFactories;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The engine on the store in memory: what a user can observe, without a database. */
class SubscriberTest {
  private final InMemoryStore store = new InMemoryStore(Clock.systemUTC());
  private final Setups setups = new Setups();
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
        .listen(store.notifications())
        .maxDeliveries(50);
  }

  private void start(OutboxSubscriber.Builder builder) {
    subscriber = builder.build();
    subscriber.start();
  }

  private void publish(String type, String body) {
    store.publish(OutboxMessage.to("orders").type(type).body(Payload.ofText(body)).build());
  }

  @Test
  void handlesManyMessagesExactlyOnce() {
    Map<String, Integer> handled = new ConcurrentHashMap<>();
    for (int i = 0; i < 20_000; i++) {
      publish("t", "m" + i);
    }
    start(
        builder()
            .workers(8)
            .on(
                "t",
                String.class,
                (text, delivery) -> {
                  handled.merge(text, 1, Integer::sum);
                }));
    await().untilAsserted(() -> assertThat(store.rows()).isEmpty());
    assertThat(handled).hasSize(20_000);
    assertThat(handled.values()).containsOnly(1);
    await().untilAsserted(() -> assertThat(subscriber.health().inFlight()).isZero());
  }

  @Test
  void tellsObserversWhatItWasBuiltToDo() {
    start(builder().events(setups).on("t", (payload, delivery) -> {}));
    subscriber.stop();
    start(
        OutboxSubscriber.builder("orders")
            .store(store)
            .deleteTerminalFailures()
            .unlimitedHandlerTime()
            .unlimitedDeliveries()
            .events(setups)
            .on("t", (payload, delivery) -> {}));

    assertThat(setups.all)
        .containsExactly(
            new SubscriberEvents.Setup(true, true, true, true),
            new SubscriberEvents.Setup(false, false, false, false));
  }

  private static final class Setups implements SubscriberEvents {
    final List<Setup> all = new CopyOnWriteArrayList<>();

    @Override
    public void started(String subscriber, Setup setup, Supplier<SubscriberHealth> health) {
      all.add(setup);
    }
  }

  @Test
  void ofTwoQueuesWithABacklogNeitherWaitsForTheEndOfTheOthers() {
    Semaphore go = new Semaphore(0); // so that no room comes free between two claims of a round
    Map<String, Integer> handled = new ConcurrentHashMap<>();
    for (int i = 0; i < 100; i++) {
      publish("t", "x");
      store.publish(OutboxMessage.to("others").type("t").body(Payload.ofText("x")).build());
    }
    start(
        builder()
            .queues("others")
            .workers(1)
            .batchSize(1)
            .on(
                "t",
                (payload, delivery) -> {
                  go.acquire();
                  handled.merge(delivery.queue(), 1, Integer::sum);
                }));
    for (int i = 1; i <= 40; i++) {
      int soFar = i;
      go.release();
      await()
          .pollInterval(Duration.ofMillis(1))
          .until(() -> handled.values().stream().mapToInt(count -> count).sum() == soFar);
    }
    assertThat(handled)
        .hasSize(2)
        .allSatisfy((queue, count) -> assertThat(count).isBetween(10, 30));
    go.release(200);
  }

  @Test
  void slowHandlerHoldsUpNoOtherRow() throws Exception {
    CountDownLatch release = new CountDownLatch(1);
    AtomicInteger fast = new AtomicInteger();
    publish("slow", "x");
    for (int i = 0; i < 10_000; i++) {
      publish("fast", "m");
    }
    start(
        builder()
            .workers(2)
            .on(
                "slow",
                (payload, delivery) -> {
                  release.await();
                })
            .on(
                "fast",
                (payload, delivery) -> {
                  fast.incrementAndGet();
                }));
    await().untilAsserted(() -> assertThat(fast).hasValue(10_000));
    await().until(() -> subscriber.health().running() == 1);
    release.countDown();
    await().untilAsserted(() -> assertThat(store.rows()).isEmpty());
  }

  @Test
  void claimsSurviveAStoreInTrouble() {
    AtomicBoolean broken = new AtomicBoolean();
    store.beforeEach(
        operation -> {
          if (broken.get()) {
            throw new IllegalStateException("down: " + operation);
          }
        });
    AtomicInteger handled = new AtomicInteger();
    start(
        builder()
            .on(
                "t",
                (payload, delivery) -> {
                  handled.incrementAndGet();
                }));
    publish("t", "1");
    await().untilAsserted(() -> assertThat(handled).hasValue(1));
    broken.set(true);
    publish("t", "2");
    await().untilAsserted(() -> assertThat(subscriber.health().failing()).isTrue());
    assertThat(subscriber.health().state()).isEqualTo(SubscriberState.RUNNING);
    broken.set(false);
    await().untilAsserted(() -> assertThat(handled).hasValue(2));
    await().untilAsserted(() -> assertThat(subscriber.health().failing()).isFalse());
  }

  @Test
  void ackWhoseAnswerWasLostIsSettledWithoutLossAndWithoutALeaseLost() {
    AtomicBoolean loseNext = new AtomicBoolean(true);
    store.afterEach(
        operation -> {
          if (operation.equals("ack") && loseNext.compareAndSet(true, false)) {
            throw new dev.outbox4j.OutboxStoreException(
                "connection lost", dev.outbox4j.OutboxStoreException.Fault.TRANSIENT, true, null);
          }
        });
    AtomicInteger unknown = new AtomicInteger();
    AtomicInteger lost = new AtomicInteger();
    AtomicInteger handled = new AtomicInteger();
    start(
        builder()
            .events(
                new dev.outbox4j.SubscriberEvents() {
                  @Override
                  public void outcomeUnknown(String name, Delivery delivery, Phase phase) {
                    unknown.incrementAndGet();
                  }

                  @Override
                  public void leaseLost(String name, Delivery delivery, Phase phase) {
                    lost.incrementAndGet();
                  }
                })
            .on(
                "t",
                (payload, delivery) -> {
                  handled.incrementAndGet();
                }));
    publish("t", "x");
    await().untilAsserted(() -> assertThat(unknown).hasValue(1));
    await().untilAsserted(() -> assertThat(subscriber.health().inFlight()).isZero());
    assertThat(lost).hasValue(0);
    assertThat(handled).hasValue(1);
    assertThat(store.rows()).isEmpty();
  }

  @Test
  void messagesThatComeOneByOneAreHandledWithinSeconds() {
    AtomicInteger handled = new AtomicInteger();
    start(
        builder()
            .poll(Duration.ofMillis(10), Duration.ofMinutes(10))
            .lease(Duration.ofHours(1))
            .on(
                "t",
                (payload, delivery) -> {
                  handled.incrementAndGet();
                }));
    for (int i = 1; i <= 20; i++) {
      int expected = i;
      publish("t", "x");
      await()
          .atMost(Duration.ofSeconds(5))
          .untilAsserted(() -> assertThat(handled).hasValue(expected));
    }
  }

  @Test
  void refusesToBeBuiltAndListsAllFaultsAtOnce() {
    assertThatThrownBy(() -> OutboxSubscriber.builder("orders").build())
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("store(...) is missing")
        .hasMessageContaining("deadLetters(...) is missing")
        .hasMessageContaining("there is no handler");
    record Order(int id) {}
    assertThatThrownBy(() -> builder().on("t", Order.class, (order, delivery) -> {}).build())
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("'t' is decoded to")
        .hasMessageContaining("there is no codec(...)");
  }

  @Test
  void refusesSettingsThatContradictEachOther() {
    OutboxSubscriber.Builder builder =
        builder()
            .deleteTerminalFailures()
            .handlerTimeout(Duration.ofSeconds(1))
            .unlimitedHandlerTime()
            .unlimitedDeliveries()
            .retry("typo", RetryPolicy.standard().attempts(51))
            .on("t", (payload, delivery) -> {});
    assertThatThrownBy(builder::build)
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("deadLetters(...) and deleteTerminalFailures() are both set")
        .hasMessageContaining("handlerTimeout(...) and unlimitedHandlerTime() are both set")
        .hasMessageContaining("maxDeliveries(...) and unlimitedDeliveries() are both set")
        .hasMessageContaining("maxDeliveries(50) is below the 51 attempts of a retry policy")
        .hasMessageContaining("retry(...) is set for type 'typo', which has no handler");
    assertThat(
            builder()
                .retry("any", RetryPolicy.none())
                .otherwise((payload, delivery) -> {})
                .build()
                .name())
        .isEqualTo("orders");
  }

  @Test
  void aTypeMayHaveARetryPolicyOfItsOwn() {
    publish("fragile", "x");
    publish("sturdy", "x");
    start(
        builder()
            .retry("fragile", RetryPolicy.none())
            .on(
                "fragile",
                (Payload payload, Delivery delivery) -> {
                  throw new IllegalStateException("not now");
                })
            .on(
                "sturdy",
                (Payload payload, Delivery delivery) -> {
                  throw new IllegalStateException("not now");
                }));
    await()
        .untilAsserted(
            () -> {
              assertThat(store.deadRows())
                  .extracting(dead -> dead.row().type())
                  .containsExactly("fragile");
              assertThat(store.rows()).extracting(StoredRow::type).containsExactly("sturdy");
              assertThat(store.rows().get(0).attempts()).isPositive();
            });
  }

  @Test
  void refusesBadValuesWhereTheyAreSet() {
    assertThatThrownBy(() -> OutboxSubscriber.builder(" ")).hasMessageContaining("queue is blank");
    assertThatThrownBy(() -> builder().workers(0)).hasMessageContaining("workers is 0");
    assertThatThrownBy(() -> builder().batchSize(-1)).hasMessageContaining("batchSize is -1");
    assertThatThrownBy(() -> builder().lease(Duration.ofMillis(99)))
        .hasMessageContaining("lease is PT0.099S");
    assertThatThrownBy(() -> builder().poll(Duration.ofSeconds(2), Duration.ofSeconds(1)))
        .hasMessageContaining("max poll is PT1S");
    assertThatThrownBy(() -> builder().gracefulTimeout(Duration.ofSeconds(-1)))
        .hasMessageContaining("gracefulTimeout is PT-1S");
    assertThatThrownBy(() -> builder().handlerTimeout(Duration.ZERO))
        .hasMessageContaining("handlerTimeout is PT0S");
    assertThatThrownBy(() -> builder().maxDeliveries(0)).hasMessageContaining("maxDeliveries is 0");
    assertThatThrownBy(() -> builder().on("t", (payload, d) -> {}).on("t", (payload, d) -> {}))
        .hasMessageContaining("'t' has a handler already");
  }

  @Test
  void virtualThreadsRunHandlersFromJava21OnAndAreRefusedBelow() {
    if (Runtime.version().feature() >= 21) {
      List<Boolean> virtual = new java.util.concurrent.CopyOnWriteArrayList<>();
      start(
          builder()
              .virtualThreads()
              .on(
                  "t",
                  (payload, delivery) -> {
                    virtual.add(
                        (Boolean)
                            Thread.class.getMethod("isVirtual").invoke(Thread.currentThread()));
                  }));
      publish("t", "x");
      await().untilAsserted(() -> assertThat(virtual).containsExactly(true));
    } else {
      assertThatThrownBy(() -> builder().virtualThreads())
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("Java 21");
    }
  }

  @Test
  void secondStartDoesNothingAndStopOfANewOneNeither() {
    subscriber = builder().on("t", (payload, delivery) -> {}).build();
    subscriber.stop();
    assertThat(subscriber.health().state()).isEqualTo(SubscriberState.NEW);
    subscriber.start();
    subscriber.start();
    assertThat(subscriber.health().state()).isEqualTo(SubscriberState.RUNNING);
  }

  @Test
  void refusesAHandlerThatStopsItsOwnSubscriber() {
    AtomicReference<Throwable> alone = new AtomicReference<>();
    AtomicReference<Throwable> inAGroup = new AtomicReference<>();
    start(
        builder()
            .on(
                "t",
                (payload, delivery) -> {
                  alone.set(catchThrowable(subscriber::stop));
                  inAGroup.set(catchThrowable(OutboxSubscribers.of(subscriber)::stop));
                }));
    publish("t", "x");

    await().until(() -> store.rows().isEmpty());
    assertThat(alone.get())
        .isInstanceOf(OutboxException.class)
        .hasMessageContaining("cannot be stopped by its own handler");
    assertThat(inAGroup.get()).isInstanceOf(OutboxException.class);
    assertThat(subscriber.health().state()).isEqualTo(SubscriberState.RUNNING);
  }

  @ParameterizedTest
  @ValueSource(strings = {"handler", "stage"})
  void refusesToBeStoppedByAnObserverOfAHandler(String type) {
    List<Throwable> refusals = new CopyOnWriteArrayList<>();
    start(
        builder()
            .events(
                new SubscriberEvents() {
                  @Override
                  public void handled(
                      String name, Delivery delivery, Duration took, Throwable failure) {
                    refusals.add(catchThrowable(subscriber::stop));
                  }
                })
            .on("handler", (payload, delivery) -> {})
            .on(
                "stage",
                Payload.class,
                (body, delivery) -> {
                  return CompletableFuture.runAsync(() -> {});
                }));
    publish(type, "x");

    await().until(() -> store.rows().isEmpty());
    assertThat(refusals)
        .singleElement(InstanceOfAssertFactories.THROWABLE)
        .hasMessageContaining("cannot be stopped by its own handler");
  }

  @Test
  void letsAHandlerStopAnotherSubscriber() {
    OutboxSubscriber other =
        OutboxSubscriber.builder("other")
            .deleteTerminalFailures()
            .store(store)
            .on("t", (payload, delivery) -> {})
            .build();
    other.start();
    start(
        builder()
            .on(
                "t",
                (payload, delivery) -> {
                  other.stop();
                }));
    publish("t", "x");

    await().until(() -> store.rows().isEmpty());
    assertThat(other.health().state()).isEqualTo(SubscriberState.STOPPED);
  }

  @Test
  void groupStopsWhatItHasStartedIfOneStartThrowsAnError() {
    OutboxSubscriber first = builder().name("first").on("t", (payload, delivery) -> {}).build();
    OutboxSubscriber second =
        builder()
            .name("second")
            .listen(
                (channel, listener) -> {
                  throw new NoClassDefFoundError("io/r2dbc/postgresql/Factory");
                })
            .on("t", (payload, delivery) -> {})
            .build();

    assertThatThrownBy(OutboxSubscribers.of(first, second)::start)
        .isInstanceOf(NoClassDefFoundError.class);
    assertThat(first.health().state()).isEqualTo(SubscriberState.STOPPED);
    assertThat(second.health().state()).isEqualTo(SubscriberState.STOPPED);
  }
}
