package dev.outbox4j.examples.misuse;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.awaitility.Awaitility.await;

import com.fasterxml.jackson.databind.json.JsonMapper;
import dev.outbox4j.AckMode;
import dev.outbox4j.AsyncHandler;
import dev.outbox4j.Delivery;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.Outcome;
import dev.outbox4j.OutcomeHandler;
import dev.outbox4j.Payload;
import dev.outbox4j.codec.jackson2.Jackson2Codec;
import dev.outbox4j.examples.misuse.Shop.Order;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.PayloadCodec;
import java.lang.reflect.Type;
import java.sql.SQLException;
import java.time.Duration;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.extension.ExtendWith;

/** Handlers and codecs that do what they must not, and the words in which the user is told. */
@ExtendWith(PostgresExtension.class)
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
@Tag("once")
class HandlerMisusesIT {
  private static final String NO_DECISION =
      "it must return an Outcome, a CompletionStage, a Publisher or nothing. If the value does not matter, write"
          + " braces: { handle(body); }";

  private final TestDatabase database;
  private Shop shop;

  HandlerMisusesIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeAll
  void open() {
    shop = new Shop(database);
  }

  /** A queue that nobody else uses. */
  private static String queue() {
    return "queue-" + UUID.randomUUID();
  }

  /** Starts it, publishes, and waits for two lines: of an attempt, and of the end. */
  private void assertTold(OutboxSubscriber subscriber, OutboxMessage message, String words)
      throws SQLException {
    try (Told told = new Told();
        subscriber) {
      subscriber.start();
      shop.publish(message);
      told.awaitLine("WARN", message.queue(), "attempt 1 of 2 failed, the next comes in", words);
      told.awaitLine(
          "ERROR",
          message.queue(),
          "failed for good and is in outbox_dlq (retry_terminal, 2 attempt(s)",
          words);
    }
    assertThat(
            database.one(
                String.class,
                "select failure_reason from outbox_dlq where queue = ?",
                message.queue()))
        .isEqualTo("retry_terminal");
  }

  private static OutboxMessage message(String queue) {
    return OutboxMessage.to(queue).type("t").body("x").build();
  }

  @Test
  void handlerThatThrows() throws SQLException {
    String queue = queue();
    assertTold(
        shop.subscriber(queue)
            .on(
                "t",
                String.class,
                (String body, Delivery delivery) -> {
                  throw new IllegalStateException("no");
                })
            .build(),
        message(queue),
        "java.lang.IllegalStateException at " + HandlerMisusesIT.class.getName());
  }

  @Test
  void handlerThatReturnsAValueOfItsOwn() throws SQLException {
    String queue = queue();
    assertTold(
        shop.subscriber(queue)
            .on(
                "t",
                (body, delivery) -> {
                  return "done";
                })
            .build(),
        message(queue),
        "The handler returned a value of java.lang.String; " + NO_DECISION);
  }

  @Test
  void handlerThatReturnsNoOutcome() throws SQLException {
    String queue = queue();
    OutcomeHandler<Payload> handler = (body, delivery) -> null;
    assertTold(
        shop.subscriber(queue).on("t", handler).build(),
        message(queue),
        "The handler returned null; " + NO_DECISION);
  }

  @Test
  void handlerThatReturnsNoStage() throws SQLException {
    String queue = queue();
    AsyncHandler<Payload> handler = (body, delivery) -> null;
    assertTold(
        shop.subscriber(queue).on("t", handler).build(),
        message(queue),
        "The handler returned null; " + NO_DECISION);
  }

  @Test
  void handlerWhoseStageFails() throws SQLException {
    String queue = queue();
    assertTold(
        shop.subscriber(queue)
            .on(
                "t",
                (body, delivery) -> {
                  return CompletableFuture.failedFuture(new IllegalStateException("no"));
                })
            .build(),
        message(queue),
        "java.lang.IllegalStateException at " + HandlerMisusesIT.class.getName());
  }

  @Test
  void handlerWhoseStageGivesAStage() throws SQLException {
    String queue = queue();
    Object nested = new CompletableFuture<Void>();
    assertTold(
        shop.subscriber(queue)
            .on(
                "t",
                (body, delivery) -> {
                  return CompletableFuture.completedFuture(nested);
                })
            .build(),
        message(queue),
        "completed with another stage or a publisher, for which nobody waits; use thenCompose in place of thenApply");
  }

  /** It is no misuse any more: what a lambda returns is not dropped. */
  @Test
  void outcomeThatIsReturnedToOn() throws SQLException {
    String queue = queue();
    try (Told told = new Told();
        OutboxSubscriber subscriber =
            shop.subscriber(queue)
                .on(
                    "t",
                    (body, delivery) -> {
                      return Outcome.reject("unwanted");
                    })
                .build()) {
      subscriber.start();
      shop.publish(queue, "t", "x");
      told.awaitLine(
          "ERROR", queue, "failed for good and is in outbox_dlq (rejected, 1 attempt(s)");
    }
  }

  @Test
  void manualWithoutADecision() throws SQLException {
    String queue = queue();
    assertTold(
        shop.subscriber(queue).ackMode(AckMode.MANUAL).on("t", (body, delivery) -> {}).build(),
        message(queue),
        "the handler returned without deciding in ack mode MANUAL; call delivery.decide(...) or return an outcome");
  }

  @Test
  void noHandlerForAType() throws SQLException {
    String queue = queue();
    assertTold(
        shop.subscriber(queue).on("order.placed", (body, delivery) -> {}).build(),
        OutboxMessage.to(queue).type("order.plcaed").body("x").build(),
        "No handler for type 'order.plcaed'; add on(...) for it, or otherwise(...), with Spring an"
            + " @OutboxHandler; each subscriber"
            + " of the queue must handle it");
  }

  @Test
  void noHandlerForMessagesWithoutAType() throws SQLException {
    String queue = queue();
    assertTold(
        shop.subscriber(queue).on("order.placed", (body, delivery) -> {}).build(),
        OutboxMessage.to(queue).body("x").build(),
        "No handler for messages without a type; add otherwise(...), with Spring an @OutboxHandler");
  }

  @Test
  void stopInAHandler() throws SQLException {
    String queue = queue();
    AtomicReference<OutboxSubscriber> self = new AtomicReference<>();
    OutboxSubscriber subscriber =
        shop.subscriber(queue)
            .on(
                "t",
                (body, delivery) -> {
                  self.get().stop();
                })
            .build();
    self.set(subscriber);
    assertTold(
        subscriber,
        message(queue),
        "cannot be stopped by its own handler: the calling thread runs one of its messages, and"
            + " stop() would wait for it; call stop() on another thread");
  }

  @Test
  void handlerThatRunsPastItsTimeout() throws SQLException {
    String queue = queue();
    assertTold(
        shop.subscriber(queue)
            .handlerTimeout(Duration.ofMillis(200))
            .on(
                "t",
                (body, delivery) -> {
                  new CountDownLatch(1).await();
                })
            .build(),
        message(queue),
        "the handler ran longer than handlerTimeout PT0.2S and was interrupted; look at what it"
            + " waits for, or set a longer handlerTimeout");
  }

  /** With the settings that a service has that sets none. */
  @Test
  void handlersThatBlock() throws SQLException {
    String queue = queue();
    CountDownLatch end = new CountDownLatch(1);
    try (Told told = new Told();
        OutboxSubscriber subscriber =
            shop.subscriber(queue)
                .on(
                    "t",
                    (body, delivery) -> {
                      end.await();
                    })
                .build()) {
      subscriber.start();
      for (int i = 0; i < 6; i++) {
        shop.publish(queue, "t", "x");
      }
      try {
        told.awaitLine(
            Duration.ofSeconds(60),
            "[" + queue + "] all 4 workers have been busy with the same messages for 3",
            "no other can be handled: the oldest handles message",
            "type t",
            "look at what it waits for, or set a shorter handlerTimeout");
        assertThat(subscriber.health().running()).isEqualTo(4);
        assertThat(subscriber.health().oldest())
            .hasValueSatisfying(
                oldest -> {
                  assertThat(oldest.queue()).isEqualTo(queue);
                  assertThat(oldest.type()).contains("t");
                  assertThat(oldest.age()).isGreaterThan(Duration.ofSeconds(29));
                });
      } finally {
        end.countDown();
      }
      await().untilAsserted(() -> assertThat(rows(queue)).isZero());
    }
  }

  @Test
  void executorThatRunsHandlersOnTheThreadThatHandsThemOver() throws SQLException {
    String queue = queue();
    try (Told told = new Told();
        OutboxSubscriber subscriber =
            shop.subscriber(queue)
                .executor(Runnable::run)
                .on("t", (body, delivery) -> {})
                .build()) {
      subscriber.start();
      shop.publish(queue, "t", "x");
      told.awaitLine(
          "[" + queue + "] the executor rejects handlers; buffered rows wait and are offered again",
          "it runs tasks on the thread that hands them over; give executor(...) one that has threads of its own");
    }
    database.update("delete from outbox where queue = ?", queue);
  }

  @Test
  void noWordOnWhatBecomesOfTerminalFailures() {
    assertThatIllegalStateException()
        .isThrownBy(
            () ->
                OutboxSubscriber.builder("orders")
                    .store(PostgresOutbox.on(shop.pool(), Shop.TABLE).store())
                    .otherwise((body, delivery) -> {})
                    .build())
        .withMessageContaining(
            "deadLetters(...) is missing; say where messages go that fail for good, or deleteTerminalFailures()");
  }

  @Test
  void deletionOfTerminalFailures() throws SQLException {
    String queue = queue();
    try (Told told = new Told();
        OutboxSubscriber subscriber =
            OutboxSubscriber.builder(queue)
                .store(PostgresOutbox.on(shop.pool(), Shop.TABLE).store())
                .deleteTerminalFailures()
                .on(
                    "t",
                    (body, delivery) -> {
                      return Outcome.reject("unwanted");
                    })
                .build()) {
      subscriber.start();
      shop.publish(queue, "t", "seven b");
      told.awaitLine(
          "ERROR",
          "of queue '" + queue + "', type t, failed for good and was DELETED with its 7 bytes",
          "as deleteTerminalFailures says",
          "rejected");
    }
    assertThat(rows(queue)).isZero();
  }

  /** A codec of the user's. */
  private record Decoder(Callable<Object> decoding) implements PayloadCodec {
    @Override
    public String contentType() {
      return "text/plain";
    }

    @Override
    public Payload encode(Object body) {
      return Payload.empty();
    }

    @Override
    public Object decode(Payload payload, Map<String, String> headers, Type type) throws Exception {
      return decoding.call();
    }
  }

  private OutboxSubscriber orders(String queue, PayloadCodec codec) {
    return shop.subscriber(queue)
        .codec(codec)
        .on("t", Order.class, (order, delivery) -> {})
        .build();
  }

  @Test
  void codecThatThrows() throws SQLException {
    String queue = queue();
    assertTold(
        orders(
            queue,
            new Decoder(
                () -> {
                  throw new IllegalStateException("the registry does not answer");
                })),
        message(queue),
        "java.lang.IllegalStateException at " + HandlerMisusesIT.class.getName());
  }

  @Test
  void codecThatReturnsNull() throws SQLException {
    String queue = queue();
    assertTold(
        orders(queue, new Decoder(() -> null)),
        message(queue),
        "The codec decoded the payload to null; it must throw UndecodableException instead");
  }

  @Test
  void codecThatReturnsAnotherClass() throws SQLException {
    String queue = queue();
    assertTold(
        orders(queue, new Decoder(() -> 7)),
        message(queue),
        "The codec decoded the payload to java.lang.Integer where "
            + Order.class.getName()
            + " is expected");
  }

  @Test
  void bodyOfAnotherShapeThanTheHandlerTakes() throws SQLException {
    String queue = queue();
    try (Told told = new Told();
        OutboxSubscriber subscriber = orders(queue, Jackson2Codec.of(new JsonMapper()))) {
      subscriber.start();
      shop.publish(queue, "t", "[]");
      told.awaitLine(
          "ERROR",
          queue,
          "failed for good and is in outbox_dlq (undecodable, ",
          "payload of 2 bytes is not JSON of "
              + Order.class.getName()
              + ": MismatchedInputException at line 1, column 1");
    }
  }

  private long rows(String queue) {
    return database.one(Long.class, "select count(*) from outbox where queue = ?", queue);
  }
}
