package dev.outbox4j;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.spi.ClaimRequest;
import dev.outbox4j.testing.CapturedLogs;
import dev.outbox4j.testing.InMemoryStore;
import java.nio.charset.StandardCharsets;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Handlers of several messages at once, and what one of them that fails means to the others. */
class BatchHandlerTest {
  private final InMemoryStore store = new InMemoryStore(Clock.systemUTC());
  private final Map<String, Integer> runs = new ConcurrentHashMap<>();
  private final List<Integer> sizes = new CopyOnWriteArrayList<>();
  private final AtomicInteger acked = new AtomicInteger();
  private final Map<Long, Integer> deliveries = new ConcurrentHashMap<>();
  private final List<Throwable> thrown = new CopyOnWriteArrayList<>();
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
              public void handled(
                  String name, Delivery delivery, Duration took, @Nullable Throwable failure) {
                if (failure != null) {
                  thrown.add(failure);
                }
              }
            });
  }

  private void start(OutboxSubscriber.Builder builder) {
    subscriber = builder.build();
    subscriber.start();
  }

  private void publish(String type, String body) {
    store.publish(OutboxMessage.to("orders").type(type).body(Payload.ofText(body)).build());
  }

  private void publish(int from, int to) {
    for (int i = from; i < to; i++) {
      publish("t", "m" + i);
    }
  }

  private void seen(List<BatchMessage<String>> messages) {
    sizes.add(messages.size());
    messages.forEach(each -> runs.merge(each.body(), 1, Integer::sum));
  }

  @Test
  void handsOverWhatIsThereUpToTheSizeOfABatch() {
    publish(0, 250);
    start(builder().onBatch("t", String.class, Batch.of(100), this::seen));
    await().untilAsserted(() -> assertThat(acked).hasValue(250));
    assertThat(store.rows()).isEmpty();
    assertThat(runs).hasSize(250).allSatisfy((body, count) -> assertThat(count).isEqualTo(1));
    assertThat(sizes).allMatch(size -> size <= 100).contains(100);
    assertThat(sizes.size()).isLessThan(12);
  }

  @Test
  void waitsForMoreForAWhile() {
    CountDownLatch first = new CountDownLatch(1);
    start(
        builder()
            .onBatch(
                "t",
                String.class,
                Batch.of(3).linger(Duration.ofMinutes(1)),
                messages -> {
                  seen(messages);
                  first.countDown();
                }));
    publish(0, 1);
    await().until(() -> subscriber.health().inFlight() == 1);
    publish(1, 3);
    await().untilAsserted(() -> assertThat(acked).hasValue(3));
    assertThat(sizes).containsExactly(3);
  }

  @Test
  void goesAheadWithWhatItHasOnceTheTimeIsOver() {
    start(
        builder()
            .onBatch("t", String.class, Batch.of(100).linger(Duration.ofMillis(200)), this::seen));
    publish(0, 2);
    await().untilAsserted(() -> assertThat(acked).hasValue(2));
    assertThat(sizes.size()).isLessThanOrEqualTo(2);
  }

  @Test
  void onePoisonMessageOfAHundredFailsAloneAndTheOthersAreAckedAtOnce() {
    publish(0, 100);
    start(
        builder()
            .onBatch(
                "t",
                String.class,
                Batch.of(100),
                messages -> {
                  seen(messages);
                  if (messages.stream().anyMatch(each -> each.body().equals("m37"))) {
                    throw new IllegalStateException("all or nothing");
                  }
                }));
    await().untilAsserted(() -> assertThat(acked).hasValue(99));
    await().untilAsserted(() -> assertThat(store.deadRows()).hasSize(1));
    assertThat(store.rows()).isEmpty();
    assertThat(deliveries.values()).as("deliveries of those that are healthy").containsOnly(1);
    assertThat(runs.get("m37")).isLessThanOrEqualTo(8 + 2);
    assertThat(runs.values().stream().mapToInt(Integer::intValue).max().orElseThrow())
        .isLessThanOrEqualTo(8 + 2);
    assertThat(sizes.size()).as("calls in all").isLessThan(30);
  }

  @ParameterizedTest
  @CsvSource({"4, 'm0 m1 m2'", "100, 'm0 m1 m3'", "100, 'm0 m1 m2 m3 m50 m51 m98 m99'"})
  void noHealthyMessageIsDeadLetteredWithSeveralThatArePoison(int size, String poison) {
    Set<String> bad = Set.of(poison.split(" "));
    publish(0, size);
    start(
        builder()
            .retry(RetryPolicy.none())
            .onBatch(
                "t",
                String.class,
                Batch.of(size).linger(Duration.ofSeconds(5)), // so that they come together
                messages -> {
                  seen(messages);
                  if (messages.stream().anyMatch(each -> bad.contains(each.body()))) {
                    throw new IllegalStateException("all or nothing");
                  }
                }));
    await().untilAsserted(() -> assertThat(store.rows()).isEmpty());
    await().untilAsserted(() -> assertThat(acked).hasValue(size - bad.size()));
    assertThat(store.deadRows()).hasSize(bad.size());
    assertThat(deliveries.values()).allMatch(count -> count <= 2);
  }

  @Test
  void whatWasDecidedOfAMessageStaysThoughTheBatchFails() {
    publish(0, 10);
    start(
        builder()
            .onBatch(
                "t",
                String.class,
                Batch.of(10),
                messages -> {
                  seen(messages);
                  for (BatchMessage<String> each : messages) {
                    if (each.body().equals("m5")) {
                      each.delivery().decide(Outcome.reject("bad"));
                    } else if (messages.size() > 1) {
                      each.delivery().decide(Outcome.ack());
                    }
                    if (each.body().equals("m7") && runs.get("m7") == 1) {
                      throw new IllegalStateException("in the middle");
                    }
                  }
                }));
    await().untilAsserted(() -> assertThat(acked).hasValue(9));
    await().untilAsserted(() -> assertThat(store.deadRows()).hasSize(1));
    assertThat(runs.get("m3")).isEqualTo(1);
    assertThat(runs.get("m7")).isEqualTo(1);
    assertThat(runs.get("m9")).isEqualTo(2);
  }

  @Test
  void whatIsThrownAfterAllWasDecidedIsToldThoughTheMessagesAreAcked() {
    IllegalStateException failure = new IllegalStateException("the flush failed");
    publish(0, 5);
    try (CapturedLogs logs = new CapturedLogs()) {
      start(
          builder()
              .onBatch(
                  "t",
                  String.class,
                  Batch.of(5).linger(Duration.ofSeconds(5)), // so that they come together
                  (List<BatchMessage<String>> messages) -> {
                    seen(messages);
                    messages.forEach(each -> each.delivery().decide(Outcome.ack()));
                    throw failure;
                  }));
      await().untilAsserted(() -> assertThat(acked).hasValue(5));
      String told =
          "[orders] what a handler has decided of all its 5 message(s), type t, stays, though it"
              + " threw: java.lang.IllegalStateException at ";
      logs.awaitLine(line -> line.startsWith("WARN") && line.contains(told));
      subscriber.stop();
      assertThat(logs.lines()).filteredOn(line -> line.startsWith("WARN")).hasSize(1);
    }
    assertThat(sizes).containsExactly(5);
    assertThat(thrown).hasSize(5).containsOnly(failure);
  }

  @Test
  void whatIsThrownBeforeAllWasDecidedIsToldOfTheOthersOnly() {
    publish(0, 2);
    try (CapturedLogs logs = new CapturedLogs()) {
      start(
          builder()
              .retry(RetryPolicy.none())
              .onBatch(
                  "t",
                  String.class,
                  Batch.of(2).linger(Duration.ofSeconds(5)), // so that they come together
                  messages -> {
                    for (BatchMessage<String> each : messages) {
                      if (each.body().equals("m1")) {
                        throw new IllegalStateException("in the middle");
                      }
                      each.delivery().decide(Outcome.ack());
                    }
                  }));
      await().untilAsserted(() -> assertThat(store.rows()).isEmpty());
      logs.awaitLine(line -> line.startsWith("ERROR") && line.contains("failed for good"));
      subscriber.stop();
      assertThat(logs.lines()).noneMatch(line -> line.startsWith("WARN"));
    }
    assertThat(acked).hasValue(1);
    assertThat(thrown).hasSize(1);
  }

  @Test
  void messagesOfOtherTypesAreHandledInBetween() {
    AtomicInteger others = new AtomicInteger();
    for (int i = 0; i < 50; i++) {
      publish("t", "m" + i);
      publish("other", "o" + i);
    }
    start(
        builder()
            .workers(2)
            .onBatch("t", String.class, Batch.of(20), this::seen)
            .on(
                "other",
                (payload, delivery) -> {
                  others.incrementAndGet();
                }));
    await().untilAsserted(() -> assertThat(acked).hasValue(100));
    assertThat(others).hasValue(50);
    assertThat(runs).hasSize(50).allSatisfy((body, count) -> assertThat(count).isEqualTo(1));
    assertThat(sizes).anyMatch(size -> size > 5);
  }

  @Test
  void aMessageThatDoesNotDecodeIsDeadLetteredAndTheOthersAreHandled() {
    publish(0, 5);
    store.publish(
        OutboxMessage.to("orders").type("t").body(new byte[] {(byte) 0xff, (byte) 0xfe}).build());
    publish(5, 10);
    start(builder().onBatch("t", String.class, Batch.of(100), this::seen));
    await().untilAsserted(() -> assertThat(acked).hasValue(10));
    await().untilAsserted(() -> assertThat(store.deadRows()).hasSize(1));
    assertThat(runs).hasSize(10);
  }

  @Test
  void theMessagesOfABatchThatTakesTooLongComeAloneAndOnlyThatAtFaultIsDeadLettered() {
    publish(0, 4);
    start(
        builder()
            .retry(RetryPolicy.none())
            .handlerTimeout(Duration.ofSeconds(1))
            .onBatch(
                "t",
                String.class,
                Batch.of(4).linger(Duration.ofSeconds(5)), // so that they come together
                messages -> {
                  seen(messages);
                  if (messages.stream().anyMatch(each -> each.body().equals("m2"))) {
                    new CountDownLatch(1).await();
                  }
                }));
    await().untilAsserted(() -> assertThat(acked).hasValue(3));
    await().untilAsserted(() -> assertThat(store.deadRows()).hasSize(1));
    assertThat(sizes).containsExactly(4, 1, 1, 1, 1);
    assertThat(store.rows()).isEmpty();
  }

  @Test
  void theOtherHalfOfABatchComesAgainWhileTheFirstHangsAndHeedsNoInterrupt() {
    CountDownLatch end = new CountDownLatch(1);
    AtomicInteger hung = new AtomicInteger();
    publish(0, 8);
    start(
        builder()
            .workers(2)
            .gracefulTimeout(Duration.ofMillis(500))
            .handlerTimeout(Duration.ofSeconds(1))
            .onBatch(
                "t",
                String.class,
                Batch.of(8).linger(Duration.ofSeconds(5)), // so that they come together
                messages -> {
                  if (messages.size() == 8) {
                    throw new IllegalStateException("all or nothing");
                  }
                  if (messages.size() == 4 && hung.getAndIncrement() == 0) {
                    awaitUninterruptibly(end); // such as a driver's read
                  }
                  seen(messages);
                }));
    await().untilAsserted(() -> assertThat(acked).hasValue(8));
    assertThat(sizes).as("they come alone").containsOnly(1);
    assertThat(runs).hasSize(8).allSatisfy((body, count) -> assertThat(count).isEqualTo(1));
    assertThat(deliveries.values()).containsOnly(2);
    assertThat(store.rows()).isEmpty();
    end.countDown();
  }

  @Test
  void whatWaitsBehindAHalfThatEndsJustAsItsTimeIsOverIsAckedOnce() {
    Duration timeout = Duration.ofMillis(40);
    int count = 400;
    publish(0, count);
    start(
        builder()
            .workers(8)
            .retry(RetryPolicy.constant(Duration.ofMillis(10)).attempts(50))
            .maxDeliveries(200)
            .handlerTimeout(timeout)
            .onBatch(
                "t",
                String.class,
                Batch.of(4),
                messages -> {
                  long begunAt = System.nanoTime();
                  if (messages.size() == 4) {
                    throw new IllegalStateException("all or nothing");
                  }
                  long takes = messages.size() == 1 ? 0 : timeout.toNanos() * 9 / 8;
                  while (System.nanoTime() - begunAt < takes) {
                    Thread.onSpinWait(); // until about when the timeout is noticed
                  }
                }));
    await().untilAsserted(() -> assertThat(deliveries).hasSize(count));
    await().until(() -> subscriber.health().inFlight() == 0);
    assertThat(acked).hasValue(count);
    assertThat(store.rows()).isEmpty();
  }

  private static void awaitUninterruptibly(CountDownLatch latch) {
    boolean interrupted = false;
    while (latch.getCount() > 0) {
      try {
        latch.await();
      } catch (InterruptedException e) {
        interrupted = true;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  @Test
  void messagesWhoseLastOwnerHasGoneComeAlone() {
    publish(0, 5);
    store.claim( // and never heard of again
        new ClaimRequest(
            "orders",
            ClaimRequest.Range.ALL,
            5,
            1 << 20,
            Duration.ofMillis(1),
            "killed",
            ClaimRequest.Idle.UNCHANGED,
            null));
    start(builder().onBatch("t", String.class, Batch.of(100), this::seen));
    await().untilAsserted(() -> assertThat(acked).hasValue(5));
    assertThat(sizes).containsOnly(1);
  }

  @Test
  void aStopGivesBackWhatWaitsForMoreOfItsBatch() {
    publish(0, 1);
    start(
        builder()
            .onBatch("t", String.class, Batch.of(100).linger(Duration.ofMinutes(1)), this::seen));
    await().until(() -> subscriber.health().inFlight() == 1);
    subscriber.stop();
    assertThat(sizes).isEmpty();
    assertThat(store.rows())
        .singleElement()
        .satisfies(row -> assertThat(row.leaseUntil()).isNull())
        .satisfies(row -> assertThat(row.deliveries()).isZero());
  }

  @Test
  void aWaitLongerThanHalfTheLeaseEndsInTheHandler() {
    start(
        builder()
            .lease(Duration.ofMillis(400))
            .onBatch("t", String.class, Batch.of(10).linger(Duration.ofMillis(700)), this::seen));
    publish(0, 1);
    await().untilAsserted(() -> assertThat(acked).hasValue(1));
    assertThat(deliveries.values()).containsExactly(1);
  }

  @Test
  void aBatchThatWaitsForMoreKeepsNoWorkerFromTheRest() {
    CountDownLatch other = new CountDownLatch(1);
    start(
        builder()
            .onBatch("t", String.class, Batch.of(100).linger(Duration.ofMinutes(1)), this::seen)
            .on(
                "o",
                (payload, delivery) -> {
                  other.countDown();
                }));
    publish(0, 1);
    await().until(() -> subscriber.health().inFlight() == 1);
    publish("o", "o");
    await().until(() -> other.getCount() == 0);
    assertThat(sizes).isEmpty();
  }

  @Test
  void aBatchDoesNotWaitForWhatThereIsNoRoomFor() {
    publish(0, 500);
    start(
        builder()
            .batchSize(10) // so that some 80 are held
            .onBatch("t", String.class, Batch.of(200).linger(Duration.ofMinutes(1)), this::seen));
    await().until(() -> acked.get() > 300);
    assertThat(sizes).allMatch(size -> size < 200);
  }

  @Test
  void halvesGetBodiesThatNoOtherCallHasSeen() {
    List<String> written = new CopyOnWriteArrayList<>();
    for (int i = 0; i < 4; i++) {
      publish("t", "abc");
    }
    publish("t", "bad");
    start(
        builder()
            .retry(RetryPolicy.none())
            .onBatch(
                "t",
                byte[].class,
                Batch.of(10),
                messages -> {
                  List<String> mine = new ArrayList<>();
                  for (BatchMessage<byte[]> each : messages) {
                    each.body()[0]++; // such as to decrypt it in place
                    mine.add(new String(each.body(), StandardCharsets.UTF_8));
                  }
                  if (mine.contains("cad")) {
                    throw new IllegalStateException("bad");
                  }
                  written.addAll(mine);
                }));
    await().until(() -> acked.get() == 4 && store.deadRows().size() == 1);
    assertThat(written).containsOnly("bbc");
  }

  @Test
  void whatFailsForAllOfThemIsNotCalledForEachOfThem() {
    AtomicInteger calls = new AtomicInteger();
    publish(0, 128);
    start(
        builder()
            .retry(RetryPolicy.constant(Duration.ofMinutes(1)))
            .onBatch(
                "t",
                String.class,
                Batch.of(128).linger(Duration.ofSeconds(10)), // so that they come together
                (List<BatchMessage<String>> messages) -> {
                  calls.incrementAndGet();
                  throw new IllegalStateException("the broker is down");
                }));
    await().untilAsserted(() -> assertThat(store.rows()).allMatch(row -> row.lastError() != null));
    assertThat(store.rows()).hasSize(128);
    assertThat(calls.get()).isLessThan(30);
    assertThat(store.rows().stream().filter(row -> row.attempts() > 0).count())
        .as("those that were handled alone")
        .isBetween(1L, 2L);
  }

  @Test
  void aBatchThatIsInterruptedByTheStopIsNotHandledInHalves() {
    publish(0, 16);
    AtomicBoolean stopped = new AtomicBoolean();
    AtomicInteger after = new AtomicInteger();
    CountDownLatch running = new CountDownLatch(1);
    CountDownLatch never = new CountDownLatch(1);
    CountDownLatch ended = new CountDownLatch(1);
    start(
        builder()
            .gracefulTimeout(Duration.ofMillis(100))
            .onBatch(
                "t",
                String.class,
                Batch.of(16).linger(Duration.ofSeconds(1)),
                messages -> {
                  if (stopped.get()) {
                    after.incrementAndGet();
                  }
                  running.countDown();
                  try {
                    never.await();
                  } catch (InterruptedException e) {
                    await().until(stopped::get);
                    ended.countDown();
                    throw new IllegalStateException("interrupted"); // without a cause
                  }
                }));
    await().until(() -> running.getCount() == 0);
    subscriber.stop();
    stopped.set(true);
    await().until(() -> ended.getCount() == 0);
    await().during(Duration.ofMillis(300)).until(() -> after.get() == 0);
  }

  @Test
  void refusesBatchesOfOneAndLongWaits() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Batch.of(1))
        .withMessage("most is 1; it must be 2 to 10000");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Batch.of(2).linger(Duration.ofMinutes(2)))
        .withMessageContaining("linger is PT2M");
    assertThatIllegalArgumentException()
        .isThrownBy(
            () ->
                builder()
                    .on("t", (payload, delivery) -> {})
                    .onBatch("t", String.class, Batch.of(2), messages -> {}))
        .withMessageContaining("has a handler already");
  }
}
