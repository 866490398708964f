package dev.outbox4j;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.spi.HandlerTransactions;
import dev.outbox4j.spi.LeaseRef;
import dev.outbox4j.spi.OutboxStore;
import dev.outbox4j.testing.CapturedLogs;
import dev.outbox4j.testing.InMemoryStore;
import java.time.Clock;
import java.time.Duration;
import java.util.List;
import java.util.OptionalInt;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What a run past {@code handlerTimeout} means to its handler and to its message. */
class HandlerTimeoutTest {
  private final InMemoryStore store = new InMemoryStore(Clock.systemUTC());
  private OutboxSubscriber subscriber;

  @AfterEach
  void stop() {
    subscriber.stop();
  }

  private OutboxSubscriber.Builder builder() {
    return OutboxSubscriber.builder("orders")
        .store(store)
        .deadLetters(store.deadLetters())
        .workers(1)
        .handlerTimeout(Duration.ofMillis(50))
        .maxDeliveries(50);
  }

  private abstract static class InMemoryTransactions implements HandlerTransactions<String> {
    @Override
    public boolean settlesRowsOf(OutboxStore settled) {
      return true;
    }

    @Override
    public Duration networkTimeout() {
      return Duration.ofSeconds(1);
    }

    @Override
    public OptionalInt connectionLimit() {
      return OptionalInt.empty();
    }

    @Override
    public Object connectionSource() {
      return this;
    }
  }

  private void start(OutboxSubscriber.Builder builder) {
    store.publish(OutboxMessage.to("orders").type("t").body("x").build());
    subscriber = builder.build();
    subscriber.start();
  }

  @Test
  void handlerThatIgnoresTheInterruptFindsItsLeaseLost() {
    AtomicBoolean before = new AtomicBoolean(true);
    AtomicBoolean told = new AtomicBoolean();
    AtomicBoolean first = new AtomicBoolean(true);
    AtomicReference<Throwable> refusal = new AtomicReference<>();
    start(
        builder()
            .lease(Duration.ofMinutes(10))
            .retry(RetryPolicy.constant(Duration.ofMillis(10)))
            .on(
                "t",
                (payload, delivery) -> {
                  if (first.compareAndSet(true, false)) {
                    before.set(delivery.leaseLost());
                    while (!delivery.leaseLost()) {
                      Thread.onSpinWait();
                    }
                    refusal.set(catchThrowable(() -> delivery.decide(Outcome.ack())));
                    told.set(true);
                  }
                }));
    await().untilTrue(told);
    assertThat(refusal.get()).hasMessageContaining("handlerTimeout passed");
    assertThat(before).isFalse();
    await().untilAsserted(() -> assertThat(store.rows()).isEmpty());
  }

  @Test
  void aHandlerThatGoesOnPastItsTimeIsNamedUntilItEnds() {
    CountDownLatch begun = new CountDownLatch(1);
    CountDownLatch end = new CountDownLatch(1);
    try (CapturedLogs logs = new CapturedLogs()) {
      start(
          builder()
              .gracefulTimeout(Duration.ofMillis(50))
              .on(
                  "t",
                  (payload, delivery) -> {
                    begun.countDown();
                    awaitWhateverHappens(end);
                  }));
      awaitWhateverHappens(begun);
      long id = store.rows().get(0).id();
      await().until(() -> subscriber.health().inFlight() == 0); // it has been written

      assertThat(store.rows().get(0).lastError())
          .startsWith("java.util.concurrent.TimeoutException: the handler ran longer")
          .contains(".awaitWhateverHappens(");
      SubscriberHealth health = subscriber.health();
      assertThat(health.running()).isEqualTo(1);
      assertThat(health.oldest().orElseThrow().id()).isEqualTo(id);
      subscriber.stop();
      assertThat(logs.lines())
          .anyMatch(
              line ->
                  line.contains("drain ended with no row left, but not in time")
                      && line.endsWith(
                          "the oldest is message " + id + " of queue 'orders', type t"));
    } finally {
      end.countDown();
    }
    await().until(() -> subscriber.health().oldest().isEmpty());
  }

  private static void awaitWhateverHappens(CountDownLatch end) {
    boolean ended = false;
    while (!ended) {
      try {
        end.await();
        ended = true;
      } catch (InterruptedException ignored) {
        // that is what is tested
      }
    }
  }

  @Test
  void aPendingStageIsCancelled() {
    CompletableFuture<Void> pending = new CompletableFuture<>();
    start(
        builder()
            .retry(RetryPolicy.constant(Duration.ofMillis(10)))
            .on(
                "t",
                (payload, delivery) ->
                    delivery.attempt() == 1 ? pending : CompletableFuture.completedFuture(null)));
    await().until(pending::isCancelled);
    await().untilAsserted(() -> assertThat(store.rows()).isEmpty());
  }

  @Test
  void whatHangsOnAStageThatIsCancelledKeepsNoTimeoutFromBeingDecided() {
    CountDownLatch never = new CountDownLatch(1);
    AtomicInteger runs = new AtomicInteger();
    store.publish(OutboxMessage.to("orders").type("t").body("y").build());
    start(
        builder()
            .retry(RetryPolicy.constant(Duration.ofMillis(10)))
            .on(
                "t",
                (payload, delivery) -> {
                  CompletableFuture<Void> stage = new CompletableFuture<>();
                  int run = runs.incrementAndGet();
                  if (run == 1) {
                    var unused = stage.whenComplete((value, thrown) -> awaitQuietly(never));
                  } else if (run > 2) {
                    stage.complete(null);
                  }
                  return stage;
                }));
    await().untilAsserted(() -> assertThat(store.rows()).isEmpty());
    never.countDown();
  }

  @Test
  void theWaitForAConnectionIsNoTimeOfTheHandler() {
    AtomicInteger begun = new AtomicInteger();
    AtomicInteger called = new AtomicInteger();
    HandlerTransactions<String> slow =
        new InMemoryTransactions() {
          @Override
          public End run(LeaseRef lease, String owner, Work<String> work, AbortRegistration abort)
              throws Exception {
            begun.incrementAndGet();
            await().pollDelay(Duration.ofMillis(300)).until(() -> true); // for a connection
            if (work.run("connection", Flush.NOTHING) instanceof Decision.RollBack) {
              return End.ROLLED_BACK;
            }
            store.ack(List.of(lease));
            return End.COMMITTED;
          }
        };
    start(
        builder()
            .retry(RetryPolicy.none())
            .on(
                "t",
                String.class,
                Transactional.of(
                    slow,
                    (text, delivery, connection) -> {
                      called.incrementAndGet();
                    })));
    await().untilAsserted(() -> assertThat(store.rows()).isEmpty());
    assertThat(called).hasValue(1);
    assertThat(begun).hasValue(1);
    assertThat(store.deadRows()).isEmpty();
  }

  /** With one worker there is one thread of each kind. */
  @Test
  void aCancelOfTheUsersThatBlocksKeepsNoTransactionFromBeingEnded() throws Exception {
    CountDownLatch cancelling = new CountDownLatch(1);
    CountDownLatch free = new CountDownLatch(1);
    CompletableFuture<Void> blocksWhenCancelled =
        new CompletableFuture<>() {
          @Override
          public boolean cancel(boolean mayInterruptIfRunning) {
            cancelling.countDown();
            awaitQuietly(free);
            return super.cancel(mayInterruptIfRunning);
          }
        };
    CountDownLatch ended = new CountDownLatch(1);
    HandlerTransactions<String> transactions =
        new InMemoryTransactions() {
          @Override
          public End run(LeaseRef lease, String owner, Work<String> work, AbortRegistration abort)
              throws Exception {
            abort.onAbort(ended::countDown);
            work.run("connection", Flush.NOTHING);
            return End.ROLLED_BACK;
          }
        };
    start(
        builder()
            .retry(RetryPolicy.constant(Duration.ofHours(1)))
            .on(
                "t",
                (ResultHandler<Payload, CompletableFuture<Void>>)
                    (payload, delivery) -> blocksWhenCancelled)
            .on(
                "u",
                String.class,
                Transactional.of(
                    transactions,
                    (text, delivery, connection) -> {
                      ended.await(); // as a statement that the server does not answer
                    })));
    try {
      assertThat(cancelling.await(10, TimeUnit.SECONDS)).isTrue();
      store.publish(OutboxMessage.to("orders").type("u").body("x").build());
      assertThat(ended.await(10, TimeUnit.SECONDS)).isTrue();
    } finally {
      free.countDown();
    }
  }

  /** The completer ends as soon as no handler runs: what comes after that would be lost. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void outcomeIsWrittenThoughTheTimeoutEndsTheLastHandlerOfADrain(boolean async) throws Exception {
    CountDownLatch running = new CountDownLatch(1);
    CountDownLatch never = new CountDownLatch(1);
    CountDownLatch stopped = new CountDownLatch(1);
    OutboxSubscriber.Builder builder =
        builder()
            .handlerTimeout(Duration.ofMillis(300))
            .retry(RetryPolicy.constant(Duration.ofHours(1)))
            .events(
                new SubscriberEvents() {
                  @Override
                  public void handlerTimedOut(String name, Delivery delivery) {
                    awaitQuietly(stopped); // the timeout's thread gets no further before
                  }
                });
    start(
        async
            ? builder.on(
                "t",
                Payload.class,
                (body, delivery) -> {
                  running.countDown();
                  return new CompletableFuture<>();
                })
            : builder.on(
                "t",
                (payload, delivery) -> {
                  running.countDown();
                  never.await();
                }));
    running.await();
    subscriber.stop();
    stopped.countDown();
    assertThat(store.rows())
        .singleElement()
        .satisfies(row -> assertThat(row.leaseUntil()).isNull())
        .satisfies(row -> assertThat(row.attempts()).isEqualTo(1));
  }

  private static void awaitQuietly(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  @Test
  void messageIsRetriedInAckModeRejectOnErrorToo() {
    AtomicInteger runs = new AtomicInteger();
    CountDownLatch never = new CountDownLatch(1);
    start(
        builder()
            .ackMode(AckMode.REJECT_ON_ERROR)
            .retry(RetryPolicy.constant(Duration.ofMillis(10)).attempts(3))
            .on(
                "t",
                (payload, delivery) -> {
                  if (runs.incrementAndGet() == 1) {
                    never.await(); // and throws when it is interrupted
                  }
                }));
    await().untilAsserted(() -> assertThat(store.rows()).isEmpty());
    assertThat(store.deadRows()).isEmpty();
    assertThat(runs).hasValue(2);
  }

  @Test
  void messageIsDeadLetteredOnceThePolicyGivesUpInAckModeRejectOnErrorToo() {
    CountDownLatch never = new CountDownLatch(1);
    start(
        builder()
            .ackMode(AckMode.REJECT_ON_ERROR)
            .retry(RetryPolicy.none())
            .on(
                "t",
                (payload, delivery) -> {
                  never.await();
                }));
    await().untilAsserted(() -> assertThat(store.deadRows()).hasSize(1));
    assertThat(store.deadRows().get(0).reason()).isEqualTo(FailureReason.RETRY_TERMINAL);
  }
}
