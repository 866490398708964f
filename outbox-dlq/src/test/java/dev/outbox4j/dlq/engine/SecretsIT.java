package dev.outbox4j.dlq.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.Delivery;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.Payload;
import dev.outbox4j.RetryPolicy;
import dev.outbox4j.SubscriberEvents;
import dev.outbox4j.codec.jackson2.Jackson2Codec;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.PayloadCodec;
import dev.outbox4j.spi.UndecodableException;
import dev.outbox4j.testing.CapturedLogs;
import java.lang.reflect.Type;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/**
 * Whatever fails while messages are delivered, no payload and no header gets into the log, the
 * health or what observers are told of failed statements. What a handler said is kept with the row.
 */
@ExtendWith(PostgresExtension.class)
class SecretsIT {
  private static final String SECRET = "S3CRET";
  private static final String BODY = "{\"card\": \"" + SECRET + "\"}";

  private final TestDatabase database;
  private final String queue = "secrets-" + UUID.randomUUID();
  private EngineFixture engine;
  private CapturedLogs logs;

  SecretsIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void setUp() {
    engine = new EngineFixture(database, 4);
    logs = new CapturedLogs();
  }

  @AfterEach
  void tearDown() {
    engine.close();
    logs.close();
    database.update("alter table outbox drop constraint if exists refused");
    database.update("alter table outbox_dlq drop constraint if exists refused");
    database.update("truncate outbox, outbox_dlq");
  }

  private long publish(String type) {
    return engine
        .inTransaction(
            List.of(
                OutboxMessage.to(queue)
                    .type(type)
                    .header("authorization", SECRET)
                    .body(BODY)
                    .build()))
        .get(0);
  }

  private void assertNothingTold(OutboxSubscriber subscriber, String logged) {
    logs.awaitLine(line -> line.contains(logged));
    assertThat(logs.lines()).noneMatch(line -> line.contains(SECRET));
    assertThat(subscriber.health().toString()).doesNotContain(SECRET);
    assertThat(engine.events.storeFailed).noneMatch(told -> told.contains(SECRET));
  }

  private static String text(Payload payload) {
    return new String(payload.bytes(), StandardCharsets.UTF_8);
  }

  private static IllegalStateException quoting(Delivery delivery) {
    String words = text(delivery.payload()) + delivery.headers();
    IllegalStateException failure =
        new IllegalStateException(words, new IllegalArgumentException("because of " + words));
    failure.addSuppressed(new IllegalArgumentException("besides " + words));
    return failure;
  }

  @Test
  void aHandlersWordsAreKeptWithTheRowAndNotLogged() {
    OutboxSubscriber subscriber =
        engine.start(
            engine
                .subscriber(queue)
                .retry(RetryPolicy.constant(Duration.ofMillis(1)).attempts(2))
                .on(
                    "throws",
                    (Payload payload, Delivery delivery) -> {
                      throw quoting(delivery);
                    })
                .on(
                    "error",
                    (Payload payload, Delivery delivery) -> {
                      throw new AssertionError(quoting(delivery));
                    })
                .on(
                    "stage",
                    Payload.class,
                    (body, delivery) -> {
                      return CompletableFuture.failedFuture(quoting(delivery));
                    }));
    List<Long> ids = List.of(publish("throws"), publish("error"), publish("stage"));
    publish("nobody's");

    await().untilAsserted(() -> assertThat(engine.deadLetters(queue)).isEqualTo(4));
    assertNothingTold(subscriber, "attempt 1 of 2 failed");
    logs.awaitLine(
        line ->
            line.contains("java.lang.IllegalStateException") && line.contains("SecretsIT.quoting"));
    for (long id : ids) {
      assertThat(engine.deadLetter(String.class, "last_exception", id)).contains(SECRET);
    }
  }

  @Test
  void whatThePolicyTheRendererAndObserversThrowIsNotQuoted() {
    OutboxSubscriber subscriber =
        engine.start(
            engine
                .subscriber(queue)
                .retry(
                    RetryPolicy.constant(Duration.ofMillis(1))
                        .attempts(2)
                        .giveUpIf(
                            failure -> {
                              throw new IllegalStateException(failure.getMessage());
                            }))
                .renderExceptions(
                    failure -> {
                      throw new IllegalStateException(failure);
                    })
                .events(
                    new SubscriberEvents() {
                      @Override
                      public void dispatched(String name, Delivery delivery, Duration age) {
                        throw quoting(delivery);
                      }
                    })
                .on(
                    "throws",
                    (Payload payload, Delivery delivery) -> {
                      throw quoting(delivery);
                    }));
    long id = publish("throws");

    await().untilAsserted(() -> assertThat(engine.events.retried).isNotEmpty());
    assertNothingTold(subscriber, "the retry policy failed on");
    assertNothingTold(subscriber, "the exception renderer failed");
    assertNothingTold(subscriber, "observer");
    assertThat(engine.column(String.class, "last_error", id))
        .isEqualTo("java.lang.IllegalStateException");
  }

  @Test
  void aPayloadThatDoesNotDecodeIsNotQuoted() {
    OutboxSubscriber ofJackson =
        engine.start(
            engine
                .subscriber(queue)
                .codec(Jackson2Codec.standard())
                .on("json", Amount.class, (amount, delivery) -> {})
                .on("keys", Amounts.class, (amounts, delivery) -> {}));
    long json =
        engine
            .inTransaction(
                List.of(
                    OutboxMessage.to(queue)
                        .type("json")
                        .body("{\"amount\": \"" + SECRET + "\"}")
                        .build()))
            .get(0);
    long keys =
        engine
            .inTransaction(
                List.of(
                    OutboxMessage.to(queue)
                        .type("keys")
                        .body("{\"byCard\": {\"" + SECRET + "\": \"x\"}}")
                        .build()))
            .get(0);

    await().untilAsserted(() -> assertThat(engine.deadLetters(queue)).isEqualTo(2));
    assertNothingTold(ofJackson, "failed for good and is in outbox_dlq (undecodable");
    assertThat(engine.deadLetter(String.class, "last_exception", json)).doesNotContain(SECRET);
    assertThat(engine.deadLetter(String.class, "last_exception", keys))
        .doesNotContain(SECRET)
        .contains("[\"byCard\"][…]");
  }

  @Test
  void whatAnotherCodecSaysIsKeptWithTheRowAndNotLogged() {
    OutboxSubscriber subscriber =
        engine.start(
            engine
                .subscriber(queue)
                .codec(new QuotingCodec())
                .on("own", Amount.class, (amount, delivery) -> {}));
    long id = publish("own");

    await().untilAsserted(() -> assertThat(engine.deadLetters(queue)).isEqualTo(1));
    assertNothingTold(subscriber, "failed for good and is in outbox_dlq (undecodable");
    assertThat(engine.deadLetter(String.class, "last_exception", id)).contains(SECRET);
  }

  @Test
  void aRowThatTheServerRefusesIsNotQuoted() {
    database.update(
        "alter table outbox add constraint refused check (attempts_count = 0) not valid");
    OutboxSubscriber subscriber =
        engine.start(
            engine
                .subscriber(queue)
                .on(
                    "throws",
                    (Payload payload, Delivery delivery) -> {
                      throw quoting(delivery);
                    }));
    publish("throws");

    await()
        .untilAsserted(
            () ->
                assertThat(engine.events.storeFailed)
                    .anyMatch(told -> told.contains("constraint \"refused\"")));
    assertNothingTold(subscriber, "the retry of Delivery[queue=");
  }

  @Test
  void aDeadLetterThatTheServerRefusesIsNotQuoted() {
    database.update(
        "alter table outbox_dlq add constraint refused check (length(payload) = 0) not valid");
    OutboxSubscriber subscriber =
        engine.start(
            engine
                .subscriber(queue)
                .retry(RetryPolicy.none())
                .on(
                    "throws",
                    (Payload payload, Delivery delivery) -> {
                      throw quoting(delivery);
                    }));
    publish("throws");

    await()
        .untilAsserted(
            () ->
                assertThat(subscriber.health().lastFailure().orElse(""))
                    .contains("constraint \"refused\""));
    assertNothingTold(subscriber, "dead_letter failed");
  }

  /** A body that a payload of text does not decode to. */
  record Amount(int amount) {}

  /** A body with keys that the payload chooses. */
  record Amounts(Map<String, Integer> byCard) {}

  private static final class QuotingCodec implements PayloadCodec {
    @Override
    public String contentType() {
      return "text/own";
    }

    @Override
    public Payload encode(Object body) {
      return Payload.ofText(body.toString());
    }

    @Override
    public Object decode(Payload payload, Map<String, String> headers, Type type) {
      throw new UndecodableException("not mine: " + text(payload));
    }
  }
}
