package dev.outbox4j;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.spi.LeaseRef;
import dev.outbox4j.testing.InMemoryStore;
import java.time.Clock;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Flow;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BiConsumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.reactivestreams.FlowAdapters;

/** Batches whose handler returns a stage or a publisher. */
@SuppressWarnings("FutureReturnValueIgnored") // the stages are the test's own
class AsyncBatchTest {
  private final InMemoryStore store = new InMemoryStore(Clock.systemUTC());
  private final ExecutorService farEnd =
      Executors.newSingleThreadExecutor(work -> new Thread(work, "far-end"));
  private final Map<String, Integer> runs = new ConcurrentHashMap<>();
  private final List<Integer> sizes = new CopyOnWriteArrayList<>();
  private final List<String> threads = new CopyOnWriteArrayList<>();
  private final AtomicInteger acked = new AtomicInteger();
  private final AtomicInteger retried = new AtomicInteger();
  private final Map<Long, Integer> deliveries = new ConcurrentHashMap<>();
  private OutboxSubscriber subscriber;

  /** How a result is returned. */
  enum Kind {
    STAGE {
      @Override
      Object of(CompletableFuture<?> work) {
        return work;
      }
    },
    JDK_PUBLISHER {
      @Override
      Object of(CompletableFuture<?> work) {
        return publisher(work);
      }
    },
    REACTIVE_STREAMS {
      @Override
      Object of(CompletableFuture<?> work) {
        return FlowAdapters.toPublisher(publisher(work));
      }
    };

    abstract Object of(CompletableFuture<?> work);

    private static Flow.Publisher<Object> publisher(CompletableFuture<?> work) {
      return subscriber ->
          subscriber.onSubscribe(
              new Flow.Subscription() {
                @Override
                public void request(long n) {
                  work.whenComplete(
                      (value, failure) -> {
                        if (failure != null) {
                          subscriber.onError(failure);
                          return;
                        }
                        if (value != null) {
                          subscriber.onNext(value);
                        }
                        subscriber.onComplete();
                      });
                }

                @Override
                public void cancel() {
                  work.cancel(true);
                }
              });
    }
  }

  @AfterEach
  void stop() throws InterruptedException {
    if (subscriber != null) {
      subscriber.stop();
    }
    farEnd.shutdownNow();
    assertThat(farEnd.awaitTermination(20, TimeUnit.SECONDS)).isTrue();
  }

  private OutboxSubscriber.Builder builder() {
    return OutboxSubscriber.builder("orders")
        .store(store)
        .deadLetters(store.deadLetters())
        .listen(store.notifications())
        .workers(1)
        .retry(RetryPolicy.constant(Duration.ofMillis(10)).attempts(3))
        .maxDeliveries(50)
        .events(
            new SubscriberEvents() {
              @Override
              public void acked(String name, Delivery delivery) {
                acked.incrementAndGet();
                deliveries.put(delivery.id(), delivery.deliveries());
              }

              @Override
              public void retried(String name, Delivery delivery, Duration delay) {
                retried.incrementAndGet();
              }
            });
  }

  private void start(OutboxSubscriber.Builder builder) {
    subscriber = builder.build();
    subscriber.start();
  }

  private void publish(int from, int to) {
    for (int i = from; i < to; i++) {
      store.publish(OutboxMessage.to("orders").type("t").body(Payload.ofText("m" + i)).build());
    }
  }

  private static boolean has(List<BatchMessage<String>> messages, String body) {
    return messages.stream().anyMatch(each -> each.body().equals(body));
  }

  private void seen(List<BatchMessage<String>> messages) {
    sizes.add(messages.size());
    threads.add(Thread.currentThread().getName());
    messages.forEach(each -> runs.merge(each.body(), 1, Integer::sum));
  }

  @ParameterizedTest
  @EnumSource
  void aBatchIsAckedWhenItsWorkIsDoneAndNotBefore(Kind kind) {
    CompletableFuture<Object> work = new CompletableFuture<>();
    publish(0, 5);
    start(
        builder()
            .onBatch(
                "t",
                String.class,
                Batch.of(5),
                messages -> {
                  seen(messages);
                  return kind.of(work);
                }));
    await().until(() -> !sizes.isEmpty());
    assertThat(acked).hasValue(0);
    assertThat(store.rows()).hasSize(5);
    work.complete(null);
    await().untilAsserted(() -> assertThat(acked).hasValue(5));
    assertThat(store.rows()).isEmpty();
  }

  /** A pending batch is one running handler; no thread waits for it. */
  @Test
  void asManyBatchesArePendingAsThereAreWorkersAndNoMore() {
    List<CompletableFuture<Object>> pending = new CopyOnWriteArrayList<>();
    AtomicInteger mostPending = new AtomicInteger();
    AtomicInteger nowPending = new AtomicInteger();
    publish(0, 40);
    start(
        builder()
            .workers(3)
            .onBatch(
                "t",
                String.class,
                Batch.of(4),
                messages -> {
                  mostPending.accumulateAndGet(nowPending.incrementAndGet(), Math::max);
                  CompletableFuture<Object> work = new CompletableFuture<>();
                  pending.add(work);
                  return work;
                }));
    await().until(() -> pending.size() == 3);
    await().during(Duration.ofMillis(200)).until(() -> pending.size() == 3);
    int done = 0;
    while (acked.get() < 40) {
      int next = done;
      await().until(() -> pending.size() > next || acked.get() == 40);
      if (pending.size() > done) {
        nowPending.decrementAndGet();
        pending.get(done++).complete(null);
      }
    }
    assertThat(mostPending).hasValue(3);
    assertThat(store.rows()).isEmpty();
  }

  @ParameterizedTest
  @EnumSource
  void onePoisonMessageOfAHundredFailsAloneAndTheOthersAreAckedAtOnce(Kind kind) {
    publish(0, 100);
    start(
        builder()
            .onBatch(
                "t",
                String.class,
                Batch.of(100).linger(Duration.ofSeconds(10)),
                messages -> {
                  seen(messages);
                  boolean poison = has(messages, "m37");
                  return kind.of(
                      CompletableFuture.runAsync(
                          () -> {
                            if (poison) {
                              throw new IllegalStateException("poison");
                            }
                          },
                          farEnd));
                }));
    await().untilAsserted(() -> assertThat(store.deadRows()).hasSize(1));
    await().untilAsserted(() -> assertThat(acked).hasValue(99));
    assertThat(store.rows()).isEmpty();
    assertThat(store.deadRows().get(0).attempts()).isEqualTo(3);
    assertThat(deliveries.values()).containsOnly(1);
    runs.remove("m37");
    assertThat(runs.values()).allMatch(count -> count <= 8);
    assertThat(threads)
        .as("no handler runs on the thread that ends a stage")
        .isNotEmpty()
        .noneMatch("far-end"::equals);
  }

  /** Stages that are complete when they are returned: the worker goes on by itself. */
  @Test
  void halvesOfWhatFailedBeforeItWasReturnedAreHandledToo() {
    publish(0, 64);
    start(
        builder()
            .onBatch(
                "t",
                String.class,
                Batch.of(64).linger(Duration.ofSeconds(10)),
                messages -> {
                  seen(messages);
                  return has(messages, "m5")
                      ? CompletableFuture.failedFuture(new IllegalStateException("poison"))
                      : CompletableFuture.completedFuture(null);
                }));
    await().untilAsserted(() -> assertThat(store.deadRows()).hasSize(1));
    await().untilAsserted(() -> assertThat(acked).hasValue(63));
    assertThat(store.rows()).isEmpty();
    assertThat(deliveries.values()).containsOnly(1);
  }

  /** Whoever completes the stage races with the thread that returns it. */
  @Test
  void nothingIsLostOrHandledTwiceWhereStagesEndAsTheyAreReturned() {
    int count = 2_000;
    publish(0, count);
    AtomicInteger calls = new AtomicInteger();
    start(
        builder()
            .workers(4)
            .onBatch(
                "t",
                String.class,
                Batch.of(8),
                messages -> {
                  seen(messages);
                  boolean fails = messages.size() > 1 && calls.incrementAndGet() % 3 == 0;
                  CompletableFuture<Object> work = new CompletableFuture<>();
                  farEnd.execute(
                      () -> {
                        if (fails) {
                          work.completeExceptionally(new IllegalStateException("now and then"));
                        } else {
                          work.complete(null);
                        }
                      });
                  return work;
                }));
    await().atMost(Duration.ofSeconds(60)).until(() -> acked.get() == count);
    await().until(() -> subscriber.health().inFlight() == 0);
    assertThat(acked).hasValue(count);
    assertThat(store.rows()).isEmpty();
    assertThat(store.deadRows()).isEmpty();
    assertThat(runs).hasSize(count);
  }

  @ParameterizedTest
  @EnumSource
  void whatIsDecidedOfAMessageWhileTheBatchIsPendingCounts(Kind kind) {
    publish(0, 4);
    CompletableFuture<Object> work = new CompletableFuture<>();
    List<BatchMessage<String>> kept = new CopyOnWriteArrayList<>();
    AtomicReference<Thread> worker = new AtomicReference<>();
    start(
        builder()
            .onBatch(
                "t",
                String.class,
                Batch.of(4).linger(Duration.ofSeconds(10)),
                messages -> {
                  seen(messages);
                  worker.set(Thread.currentThread());
                  kept.addAll(messages);
                  return kind.of(work);
                }));
    await().until(() -> kept.size() == 4);
    await() // until it has returned the stage, and waits for more
        .until(
            () ->
                worker.get().getState() == Thread.State.WAITING
                    || worker.get().getState() == Thread.State.TIMED_WAITING);
    kept.get(1).delivery().decide(Outcome.reject("no good"));
    work.complete(null);
    await().untilAsserted(() -> assertThat(store.deadRows()).hasSize(1));
    await().untilAsserted(() -> assertThat(acked).hasValue(3));
    assertThat(store.rows()).isEmpty();
    assertThat(sizes).containsExactly(4);
    assertThatThrownBy(() -> kept.get(0).delivery().decide(Outcome.reject("too late")))
        .isInstanceOf(IllegalStateException.class);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {"null", "a value", "an outcome", "a stage of a stage", "a stage of an outcome"})
  void whatMayStandForWorkOrForADecisionIsNoAck(String result) {
    publish(0, 3);
    start(
        builder()
            .retry(RetryPolicy.none())
            .onBatch(
                "t",
                String.class,
                Batch.of(3),
                messages -> {
                  return switch (result) {
                    case "null" -> null;
                    case "a value" -> (Object) 42;
                    case "an outcome" -> Outcome.ack();
                    case "a stage of an outcome" ->
                        CompletableFuture.completedFuture(Outcome.ack());
                    default -> CompletableFuture.completedFuture(new CompletableFuture<>());
                  };
                }));
    await().untilAsserted(() -> assertThat(store.deadRows()).hasSize(3));
    assertThat(acked).hasValue(0);
  }

  @ParameterizedTest
  @EnumSource
  void aBatchThatNeverEndsIsCancelledAfterItsTimeAndItsMessagesComeAlone(Kind kind) {
    publish(0, 4);
    CompletableFuture<Object> never = new CompletableFuture<>();
    start(
        builder()
            .handlerTimeout(Duration.ofSeconds(1))
            .onBatch(
                "t",
                String.class,
                Batch.of(4).linger(Duration.ofSeconds(10)),
                messages -> {
                  seen(messages);
                  return kind.of(
                      messages.size() == 1 ? CompletableFuture.completedFuture(null) : never);
                }));
    await().untilAsserted(() -> assertThat(acked).hasValue(4));
    await().until(never::isCancelled);
    assertThat(sizes).containsExactly(4, 1, 1, 1, 1);
    assertThat(store.rows()).isEmpty();
  }

  /** What waits behind a half that never ends comes again, too. */
  @Test
  void theOtherHalfComesAgainWhileTheFirstNeverEnds() {
    publish(0, 8);
    AtomicInteger hung = new AtomicInteger();
    start(
        builder()
            .handlerTimeout(Duration.ofSeconds(1))
            .onBatch(
                "t",
                String.class,
                Batch.of(8).linger(Duration.ofSeconds(10)),
                messages -> {
                  if (messages.size() == 8) {
                    return CompletableFuture.failedFuture(new IllegalStateException("all"));
                  }
                  if (messages.size() == 4 && hung.getAndIncrement() == 0) {
                    return new CompletableFuture<>();
                  }
                  seen(messages);
                  return CompletableFuture.completedFuture(null);
                }));
    await().untilAsserted(() -> assertThat(acked).hasValue(8));
    assertThat(sizes).containsOnly(1);
    assertThat(runs).hasSize(8).allSatisfy((body, count) -> assertThat(count).isEqualTo(1));
    assertThat(store.rows()).isEmpty();
  }

  @Test
  void leasesAreRenewedWhileABatchIsPending() {
    publish(0, 3);
    CompletableFuture<Object> work = new CompletableFuture<>();
    start(
        builder()
            .lease(Duration.ofSeconds(2))
            .onBatch(
                "t",
                String.class,
                Batch.of(3).linger(Duration.ofMillis(500)),
                messages -> {
                  seen(messages);
                  return work;
                }));
    await().until(() -> !sizes.isEmpty());
    await()
        .during(Duration.ofSeconds(4))
        .atMost(Duration.ofSeconds(6))
        .until(() -> sizes.size() == 1);
    work.complete(null);
    await().untilAsserted(() -> assertThat(acked).hasValue(3));
    assertThat(sizes).containsExactly(3);
    assertThat(deliveries.values()).containsOnly(1);
  }

  @Test
  void aBatchWhoseLeasesAreLostIsCancelledAndNotHandledInHalves() {
    publish(0, 3);
    CompletableFuture<Object> never = new CompletableFuture<>();
    start(
        builder()
            .lease(Duration.ofSeconds(2))
            .onBatch(
                "t",
                String.class,
                Batch.of(3).linger(Duration.ofMillis(500)),
                messages -> {
                  seen(messages);
                  return never;
                }));
    await().until(() -> !sizes.isEmpty());
    store.rows().forEach(row -> store.ack(List.of(leaseOf(row.id(), row.leaseToken()))));
    await().atMost(Duration.ofSeconds(20)).until(never::isCancelled);
    await().until(() -> subscriber.health().inFlight() == 0);
    assertThat(sizes).containsExactly(3);
    assertThat(acked).hasValue(0);
  }

  private static LeaseRef leaseOf(long id, long token) {
    return new LeaseRef("orders", id, token);
  }

  /** Nobody is there to begin them, and they must not hang. */
  @Test
  void halvesThatWaitForAWorkerAreLeftToOthersByAStop() throws Exception {
    publish(0, 4);
    CompletableFuture<Object> first = new CompletableFuture<>();
    start(
        builder()
            .gracefulTimeout(Duration.ofSeconds(5))
            .onBatch(
                "t",
                String.class,
                Batch.of(4).linger(Duration.ofSeconds(10)),
                messages -> {
                  seen(messages);
                  return first;
                }));
    await().until(() -> !sizes.isEmpty());
    Thread stopping = new Thread(subscriber::stop);
    stopping.start();
    await().until(() -> subscriber.health().state() != SubscriberState.RUNNING);
    farEnd.execute(() -> first.completeExceptionally(new IllegalStateException("too late")));
    stopping.join(TimeUnit.SECONDS.toMillis(20));
    assertThat(stopping.isAlive()).isFalse();
    assertThat(sizes).as("nothing is handled in halves while it stops").containsExactly(4);
    assertThat(store.rows()).hasSize(4).allMatch(row -> row.leaseUntil() == null);
    assertThat(store.rows()).allMatch(row -> row.attempts() == 0);
  }

  /** The second time comes when the halves are on their way. */
  @Test
  void ofAStageThatTellsItsEndTwiceTheFirstTimeCounts() {
    publish(0, 8);
    start(
        builder()
            .onBatch(
                "t",
                String.class,
                Batch.of(8).linger(Duration.ofSeconds(10)),
                messages -> {
                  seen(messages);
                  if (messages.size() < 8) {
                    return CompletableFuture.completedFuture(null);
                  }
                  return new CompletableFuture<>() {
                    @Override
                    public CompletableFuture<Object> whenComplete(
                        BiConsumer<? super Object, ? super Throwable> action) {
                      farEnd.execute(
                          () -> {
                            action.accept(null, new IllegalStateException("once"));
                            action.accept(null, new IllegalStateException("twice"));
                          });
                      return this;
                    }
                  };
                }));
    await().untilAsserted(() -> assertThat(acked).hasValue(8));
    assertThat(store.rows()).isEmpty();
    assertThat(runs.values()).containsOnly(2);
  }

  @Test
  void aStageThatCannotBeWaitedForIsRetried() {
    publish(0, 2);
    AtomicInteger calls = new AtomicInteger();
    start(
        builder()
            .onBatch(
                "t",
                String.class,
                Batch.of(2).linger(Duration.ofSeconds(10)),
                messages -> {
                  calls.incrementAndGet();
                  CompletionStage<Object> broken = new Broken();
                  return broken;
                }));
    await().untilAsserted(() -> assertThat(retried).hasValue(2));
    assertThat(calls).hasValue(1);
    assertThat(store.rows()).hasSize(2);
  }

  private static final class Broken extends CompletableFuture<Object> {
    @Override
    public CompletableFuture<Object> whenComplete(
        BiConsumer<? super Object, ? super Throwable> action) {
      throw new UnsupportedOperationException("broken");
    }
  }
}
