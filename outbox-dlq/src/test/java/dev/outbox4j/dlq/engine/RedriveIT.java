package dev.outbox4j.dlq.engine;

import static dev.outbox4j.dlq.DeadLetterFilter.queue;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.Delivery;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.Payload;
import dev.outbox4j.RetryPolicy;
import dev.outbox4j.dlq.DeadLetterQueue;
import dev.outbox4j.dlq.DeadLetterReport;
import dev.outbox4j.dlq.DeadLetterSelection;
import dev.outbox4j.dlq.DeadLetterSummary;
import dev.outbox4j.dlq.DeadLetterWorklist;
import dev.outbox4j.dlq.Redrive;
import dev.outbox4j.migrations.OrderedMigrations;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.notify.pgjdbc.PgjdbcListen;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.PayloadCodec;
import dev.outbox4j.spi.UndecodableException;
import java.lang.reflect.Type;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** What a subscriber sees of a redrive. */
@ExtendWith(PostgresExtension.class)
class RedriveIT {
  private static final AtomicInteger QUEUES = new AtomicInteger();
  private static final Duration SOON = Duration.ofSeconds(60);

  private final TestDatabase database;
  private final String queue = "redriven-" + QUEUES.incrementAndGet();
  private final AtomicBoolean failing = new AtomicBoolean(true);
  private final Set<String> poison = ConcurrentHashMap.newKeySet();
  private final List<String> handled = new CopyOnWriteArrayList<>();
  private EngineFixture engine;
  private HikariDataSource operators;
  private DeadLetterWorklist worklist;

  RedriveIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void begin() {
    engine = new EngineFixture(database, 12);
    operators = database.pool(2);
    worklist =
        DeadLetterWorklist.of(
            PostgresOutbox.on(operators, database.table()), DeadLetterQueue.in("outbox_dlq"));
  }

  @AfterEach
  void end() {
    engine.close();
    operators.close();
  }

  private OutboxSubscriber.Builder subscriber() {
    return engine
        .subscriber(queue)
        .listen(PgjdbcListen.on(database.plain()))
        .retry(RetryPolicy.none())
        .on("t", String.class, this::handle);
  }

  private void handle(String text, Delivery delivery) {
    if (failing.get() || poison.contains(text)) {
      throw new IllegalStateException("not yet");
    }
    handled.add(text);
  }

  private List<Long> publish(int count) {
    List<OutboxMessage> messages = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      messages.add(OutboxMessage.to(queue).type("t").orderingKey("a").body("a" + i).build());
    }
    return engine.inTransaction(messages);
  }

  private void awaitDeadLetters(int count) {
    await()
        .atMost(SOON)
        .untilAsserted(() -> assertThat(engine.deadLetters(queue)).isEqualTo(count));
    failing.set(false);
  }

  private void isOrdered() {
    OrderedMigrations.of("public", "outbox", queue).migrate(database.plain());
  }

  private long open() {
    return worklist.where(queue(queue)).count(1_000);
  }

  private static List<String> texts(int from, int to) {
    return IntStream.range(from, to).mapToObj(i -> "a" + i).toList();
  }

  @Test
  void aKeyIsHandledInItsOrderAlsoIfALetterWasLocked() throws Exception {
    isOrdered();
    engine.start(subscriber().ordered());
    publish(5);
    awaitDeadLetters(5);
    try (Connection stranger = database.plain().getConnection();
        Statement lock = stranger.createStatement()) {
      stranger.setAutoCommit(false);
      lock.execute(
          "select from outbox_dlq where queue = '%s' order by original_id limit 1 for update"
              .formatted(queue));
      assertThat(worklist.where(queue(queue)).redrive(Redrive.by("ann")).passedBy()).isEqualTo(5);
      stranger.rollback();
    }

    assertThat(worklist.where(queue(queue)).redrive(Redrive.by("ann")).done()).isEqualTo(5);
    await().untilAsserted(() -> assertThat(handled).containsExactly("a0", "a1", "a2", "a3", "a4"));
  }

  @Test
  void aKeyThatWaitsForItsDeadLetterGoesOnInItsOrder() {
    isOrdered();
    engine.start(subscriber().ordered().holdKeyOnDeadLetter());
    publish(5);
    awaitDeadLetters(1);

    assertThat(worklist.where(queue(queue)).redrive(Redrive.by("ann")).done()).isEqualTo(1);

    await().atMost(SOON).untilAsserted(() -> assertThat(handled).isEqualTo(texts(0, 5)));
  }

  @Test
  void aMessageThatFailsAgainHoldsBackWhatWasPutBackBehindIt() {
    isOrdered();
    OutboxSubscriber free = engine.start(subscriber().ordered());
    publish(30);
    awaitDeadLetters(30);
    free.stop();
    poison.add("a3");
    engine.start(subscriber().ordered().holdKeyOnDeadLetter());

    assertThat(worklist.where(queue(queue)).redrive(Redrive.by("ann")).done()).isEqualTo(30);
    await().atMost(SOON).untilAsserted(() -> assertThat(open()).isEqualTo(1));
    assertThat(handled).isEqualTo(texts(0, 3));
    assertThat(engine.deadLetters(queue)).isEqualTo(30);
    poison.clear();
    assertThat(worklist.where(queue(queue)).redrive(Redrive.by("ann")).done()).isEqualTo(1);

    await().atMost(SOON).untilAsserted(() -> assertThat(handled).isEqualTo(texts(0, 30)));
  }

  /** A body of this test's own. */
  record Order(String text) {}

  /** Knows one version; once it is repaired, all of them. */
  private static final class OrderCodec implements PayloadCodec {
    private final boolean repaired;

    OrderCodec(boolean repaired) {
      this.repaired = repaired;
    }

    @Override
    public String contentType() {
      return "text/order";
    }

    @Override
    public Payload encode(Object body) {
      return Payload.ofText(body.toString());
    }

    @Override
    public Object decode(Payload payload, Map<String, String> headers, Type type) {
      String text = new String(payload.bytes(), StandardCharsets.UTF_8);
      if (!repaired && !text.startsWith("v1")) {
        throw new UndecodableException("not a version that is known");
      }
      return new Order(text);
    }
  }

  private OutboxSubscriber.Builder ofOrders(PayloadCodec codec) {
    return engine
        .subscriber(queue)
        .listen(PgjdbcListen.on(database.plain()))
        .codec(codec)
        .on(
            "o",
            Order.class,
            (order, delivery) -> {
              handled.add(order.text());
            });
  }

  @Test
  void whatCouldNotBeDecodedIsHandledOnceTheCodecIsRepaired() {
    PayloadCodec broken = new OrderCodec(false);
    PayloadCodec repaired = new OrderCodec(true);
    String body = "v2 \u00e9 \u0001 \ud83d\ude00";
    OutboxSubscriber old = engine.start(ofOrders(broken));
    engine.inTransaction(List.of(OutboxMessage.to(queue).type("o").body(body).build()));
    awaitDeadLetters(1);
    old.stop();
    DeadLetterSelection letters = worklist.where(queue(queue));
    DeadLetterSummary summary = letters.page(1).letters().get(0);

    assertThat(summary.reason()).isEqualTo("undecodable");
    assertThat(summary.attempts()).isZero();
    assertThat(worklist.find(summary.id()).orElseThrow().payload()).isEqualTo(Payload.ofText(body));
    assertThat(letters.redrive(Redrive.by("ann").decoding(broken, Order.class)).refusals())
        .containsExactly(
            new DeadLetterReport.Refusal(
                summary.id(), "a check threw dev.outbox4j.spi.UndecodableException"));
    engine.start(ofOrders(repaired));
    assertThat(letters.redrive(Redrive.by("ann").decoding(repaired, Order.class)).done())
        .isEqualTo(1);

    await().atMost(SOON).untilAsserted(() -> assertThat(handled).containsExactly(body));
  }

  @Test
  void aSleepingSubscriberIsWoken() {
    OutboxSubscriber sleeper =
        engine.start(subscriber().poll(Duration.ofSeconds(40), Duration.ofSeconds(60)));
    publish(1);
    awaitDeadLetters(1);
    await().until(() -> EngineFixture.sleepsFor(sleeper, Duration.ofSeconds(2)));

    worklist.where(queue(queue)).redrive(Redrive.by("ann"));

    await()
        .atMost(Duration.ofSeconds(10))
        .untilAsserted(() -> assertThat(handled).containsExactly("a0"));
  }
}
