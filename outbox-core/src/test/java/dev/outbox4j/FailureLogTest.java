package dev.outbox4j;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.testing.CapturedLogs;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.slf4j.MDC;

/**
 * What the log says of a message whose handler fails, and what its handler's own lines say of it.
 */
class FailureLogTest extends EngineFixture {

  private static List<String> told(CapturedLogs logs) {
    return logs.lines().stream()
        .filter(line -> line.startsWith("WARN") || line.startsWith("ERROR"))
        .toList();
  }

  @Test
  void eachFailedAttemptIsALineAndTheLastOneSaysWhereTheMessageWent() {
    try (CapturedLogs logs = new CapturedLogs()) {
      start(
          builder()
              .retry(RetryPolicy.constant(Duration.ofMillis(7)).attempts(3))
              .on(
                  "order.placed",
                  (Payload payload, Delivery delivery) -> {
                    throw new IllegalStateException("secret");
                  }));
      publish("order.placed");
      await().until(() -> told(logs).size() >= 3);
      long id = store.deadRows().get(0).row().id();
      String message = "message " + id + " of queue 'orders', type order.placed";
      String why = "java.lang.IllegalStateException at " + FailureLogTest.class.getName();
      assertThat(told(logs)).hasSize(3).allMatch(line -> line.lines().count() == 1);
      assertThat(told(logs).get(0))
          .startsWith("WARN")
          .contains(
              "[orders] " + message + ": attempt 1 of 3 failed, the next comes in 7 ms: " + why);
      assertThat(told(logs).get(1)).contains(message + ": attempt 2 of 3 failed");
      assertThat(told(logs).get(2))
          .startsWith("ERROR")
          .contains(
              message
                  + ", failed for good and is in the dead letters"
                  + " (retry_terminal, 3 attempt(s), 3 deliveries): "
                  + why);
      assertThat(told(logs)).noneMatch(line -> line.contains("secret"));
    }
  }

  @Test
  void linesOfAMessageHaveItInTheirContext() {
    try (CapturedLogs logs = new CapturedLogs()) {
      start(
          builder()
              .retry(RetryPolicy.constant(Duration.ofMillis(7)).attempts(2))
              .on(
                  "t",
                  (Payload payload, Delivery delivery) -> {
                    throw new IllegalStateException();
                  }));
      store.publish(OutboxMessage.to("orders").type("t").correlationId("c-1").body("x").build());
      await().until(() -> told(logs).size() >= 2);
      long id = store.deadRows().get(0).row().id();
      assertThat(told(logs))
          .extracting(logs::contextOf)
          .containsOnly(
              Map.of(
                  "outbox.queue", "orders",
                  "outbox.type", "t",
                  "outbox.id", Long.toString(id),
                  "outbox.correlation_id", "c-1"));
    }
  }

  @Test
  void eachMessageThatIsDeletedIsALine() {
    try (CapturedLogs logs = new CapturedLogs()) {
      for (int i = 0; i < 15; i++) {
        publish("t");
      }
      List<Long> ids = store.rows().stream().map(row -> row.id()).toList();
      start(
          OutboxSubscriber.builder("orders")
              .store(store)
              .deleteTerminalFailures()
              .retry(RetryPolicy.constant(Duration.ofMillis(7)).attempts(1))
              .on(
                  "t",
                  (Payload payload, Delivery delivery) -> {
                    throw new IllegalStateException();
                  }));
      await().until(() -> told(logs).size() >= 15);
      assertThat(told(logs))
          .hasSize(15)
          .allMatch(line -> line.startsWith("ERROR") && line.contains("was DELETED with its"));
      for (long id : ids) {
        assertThat(told(logs)).anyMatch(line -> line.contains("message " + id + " of"));
      }
    }
  }

  @Test
  void linesOfAMessageWithoutATypeSaySo() {
    try (CapturedLogs logs = new CapturedLogs()) {
      start(
          builder()
              .retry(RetryPolicy.constant(Duration.ofMillis(7)).attempts(2))
              .otherwise(
                  (Payload payload, Delivery delivery) -> {
                    throw new IllegalStateException();
                  }));
      store.publish(OutboxMessage.to("orders").body("x").build());
      await().until(() -> told(logs).size() >= 2);
      assertThat(told(logs).get(0)).contains(" of queue 'orders', without a type: attempt 1 of 2");
      assertThat(told(logs).get(1)).contains(" of queue 'orders', without a type, failed for good");
    }
  }

  @Test
  void whatAHandlerThrewIsThereForThoseWhoLookCloser() {
    try (CapturedLogs logs = new CapturedLogs()) {
      start(
          builder()
              .maxDeliveries(Integer.MAX_VALUE)
              .retry(RetryPolicy.constant(Duration.ofHours(1)).attempts(Integer.MAX_VALUE))
              .on(
                  "throws",
                  (Payload payload, Delivery delivery) -> {
                    throw new IllegalStateException("secret");
                  })
              .on(
                  "throws what cannot be read",
                  (Payload payload, Delivery delivery) -> {
                    throw new Unreadable();
                  })
              .on(
                  "asks",
                  (payload, delivery) -> {
                    return Outcome.retryAfter(Duration.ofHours(1));
                  }));
      publish("throws");
      publish("throws what cannot be read");
      publish("asks");
      await().until(() -> store.rows().stream().allMatch(row -> row.attempts() == 1));
      stop();
      List<String> closer =
          logs.lines().stream()
              .filter(line -> line.startsWith("DEBUG") && line.contains(" failed"))
              .toList();
      assertThat(closer).hasSize(2);
      assertThat(closer)
          .anyMatch(
              line ->
                  line.contains("type=throws,")
                      && line.contains("java.lang.IllegalStateException\n\tat "))
          .anyMatch(line -> line.endsWith(" failed with " + Unreadable.class.getName()))
          .noneMatch(line -> line.contains("secret"));
      assertThat(told(logs)).anyMatch(line -> line.contains("attempt 1 of any number failed"));
    }
  }

  private static final class Unreadable extends RuntimeException {
    private static final long serialVersionUID = 1L;

    @Override
    public StackTraceElement[] getStackTrace() {
      throw new IllegalStateException("broken");
    }
  }

  @Test
  void aHandlerThatRanTooLongIsOneLineAndItsPolicyIsAskedOnce() {
    AtomicInteger asked = new AtomicInteger();
    CountDownLatch ended = new CountDownLatch(1);
    try (CapturedLogs logs = new CapturedLogs()) {
      start(
          builder()
              .handlerTimeout(Duration.ofMillis(50))
              .retry(
                  RetryPolicy.custom(
                      (attempt, failure) -> {
                        asked.incrementAndGet();
                        return Duration.ofMinutes(1);
                      }))
              .on(
                  "t",
                  (Payload payload, Delivery delivery) -> {
                    try {
                      new CountDownLatch(1).await();
                    } finally {
                      ended.countDown();
                    }
                  }));
      publish("t");
      await().until(() -> ended.getCount() == 0 && !told(logs).isEmpty());
      stop(); // whatever would come of the handler's end has come
      assertThat(told(logs)).singleElement().asString().contains("ran longer than handlerTimeout");
      assertThat(asked).hasValue(1);
    }
  }

  @Test
  void aMoveWhoseAnswerWasLostLeavesItsLine() {
    AtomicBoolean lost = new AtomicBoolean(true);
    store.afterEach(
        operation -> {
          if (operation.equals("dead-letter") && lost.getAndSet(false)) {
            throw new OutboxStoreException(
                "cut", OutboxStoreException.Fault.CONNECTION, true, null);
          }
        });
    try (CapturedLogs logs = new CapturedLogs()) {
      start(
          builder()
              .retry(RetryPolicy.none())
              .on(
                  "t",
                  (Payload payload, Delivery delivery) -> {
                    throw new IllegalStateException();
                  }));
      publish("t");
      await()
          .untilAsserted(
              () ->
                  assertThat(told(logs))
                      .filteredOn(line -> line.startsWith("ERROR"))
                      .singleElement()
                      .asString()
                      .contains("type t, failed for good and has left the outbox")
                      .contains("retry_terminal, 1 attempt(s)"));
      assertThat(store.deadRows()).hasSize(1);
    }
  }

  /** Takes half a minute, which is what long is. */
  @Test
  @Tag("once")
  void workersThatAreAllBusyForLongAreToldWithTheOldestMessage() {
    CountDownLatch release = new CountDownLatch(1);
    try (CapturedLogs logs = new CapturedLogs()) {
      start(
          builder()
              .workers(1)
              .on(
                  "slow",
                  (payload, delivery) -> {
                    release.await();
                  }));
      publish("slow");
      await()
          .atMost(Duration.ofSeconds(60))
          .untilAsserted(
              () ->
                  assertThat(told(logs))
                      .singleElement()
                      .asString()
                      .contains("all 1 workers have been busy", "queue 'orders', type slow"));
    } finally {
      release.countDown();
    }
  }

  @Test
  void whatHandlersSayIsLoggedIfTheUserWantsIt() {
    try (CapturedLogs logs = new CapturedLogs()) {
      start(
          builder()
              .retry(RetryPolicy.none())
              .logExceptionMessages()
              .on(
                  "throws",
                  (Payload payload, Delivery delivery) -> {
                    throw new IllegalStateException("the carrier is down");
                  })
              .on(
                  "rejects",
                  (payload, delivery) -> {
                    return Outcome.reject("no such order");
                  }));
      publish("throws");
      publish("rejects");
      await().until(() -> told(logs).size() >= 2);
      assertThat(told(logs))
          .anyMatch(line -> line.contains("java.lang.IllegalStateException (the carrier is down)"))
          .anyMatch(line -> line.endsWith("deliveries): no such order"));
    }
  }

  @Test
  void manyFailuresOfATypeAreTenLinesAMinute() {
    try (CapturedLogs logs = new CapturedLogs()) {
      start(
          builder()
              .on(
                  "t",
                  (Payload payload, Delivery delivery) -> {
                    throw new IllegalStateException();
                  }));
      publish("t", 100);
      await().until(() -> store.rows().stream().allMatch(row -> row.attempts() > 0));
      stop();
      assertThat(told(logs)).hasSizeBetween(10, 20); // a minute may end meanwhile
    }
  }

  @Test
  void aHandlersLogLinesNameItsMessage() {
    List<Map<String, String>> contexts = new CopyOnWriteArrayList<>();
    ExecutorService one = Executors.newSingleThreadExecutor();
    one.execute(() -> MDC.put("outbox.type", "of the thread"));
    start(
        builder()
            .workers(1)
            .executor(one)
            .otherwise(
                (payload, delivery) -> {
                  contexts.add(MDC.getCopyOfContextMap());
                }));
    store.publish(OutboxMessage.to("orders").type("t\n").correlationId("c-1").body("x").build());
    await().until(() -> contexts.size() == 1);
    store.publish(OutboxMessage.to("orders").body("x").build());
    await().until(() -> contexts.size() == 2);
    stop();
    one.execute(() -> contexts.add(MDC.getCopyOfContextMap()));
    await().until(() -> contexts.size() == 3);
    one.shutdown();

    assertThat(contexts.get(0))
        .containsEntry("outbox.queue", "orders")
        .containsEntry("outbox.type", "t?")
        .containsEntry("outbox.correlation_id", "c-1")
        .containsKey("outbox.id");
    assertThat(contexts.get(1))
        .containsKey("outbox.id")
        .doesNotContainKeys("outbox.type", "outbox.correlation_id");
    assertThat(contexts.get(2)).isEqualTo(Map.of("outbox.type", "of the thread"));
  }
}
