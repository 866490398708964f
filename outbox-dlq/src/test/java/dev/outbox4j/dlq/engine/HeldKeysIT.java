package dev.outbox4j.dlq.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.Delivery;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.RetryPolicy;
import dev.outbox4j.SubscriberHealth;
import dev.outbox4j.dlq.DeadLetterFilter;
import dev.outbox4j.dlq.DeadLetterQueue;
import dev.outbox4j.dlq.DeadLetterSelection;
import dev.outbox4j.dlq.DeadLetterWorklist;
import dev.outbox4j.migrations.OrderedMigrations;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** Ordering keys that wait until their dead letters are resolved. */
@ExtendWith(PostgresExtension.class)
class HeldKeysIT {
  private static final AtomicInteger QUEUES = new AtomicInteger();
  private static final Duration SOON = Duration.ofSeconds(60);

  private final TestDatabase database;
  private final List<String> handled = new CopyOnWriteArrayList<>();
  private final Set<String> failing = ConcurrentHashMap.newKeySet();
  private EngineFixture engine;
  private String queue;

  HeldKeysIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void setUp() {
    engine = new EngineFixture(database, 12);
    queue = "held-" + QUEUES.incrementAndGet();
    OrderedMigrations.of("public", "outbox", queue).migrate(database.plain());
  }

  @AfterEach
  void tearDown() {
    engine.close();
    database.update("delete from outbox where queue = ?", queue);
    database.update("delete from outbox_dlq where queue = ?", queue);
  }

  private OutboxSubscriber.Builder subscriber(String name) {
    return engine
        .subscriber(queue)
        .name(name)
        .ordered()
        .holdKeyOnDeadLetter()
        .lease(Duration.ofSeconds(2))
        .retry(RetryPolicy.none())
        .on("t", String.class, this::handle);
  }

  private void handle(String text, Delivery delivery) {
    if (failing.contains(text)) {
      throw new IllegalStateException("of a test");
    }
    handled.add(text);
  }

  private List<Long> publish(String key, String... texts) {
    List<OutboxMessage> messages = new ArrayList<>();
    for (String text : texts) {
      messages.add(OutboxMessage.to(queue).type("t").orderingKey(key).body(text).build());
    }
    return engine.inTransaction(messages);
  }

  private void putBack(long originalId) {
    failing.clear();
    database.update(
        """
        with redriven as (
          update outbox_dlq set resolved_at = now(), resolved_by = current_user, resolution = 'redriven'
          where original_id = ? and queue = ? and resolved_at is null
          returning *)
        insert into outbox (id, lease_token, queue, type, ordering_key, payload, headers, timer_id)
        select original_id, lease_token, queue, type, ordering_key, payload, headers, timer_id
        from redriven""",
        originalId,
        queue);
  }

  private static int onHold(OutboxSubscriber subscriber) {
    return subscriber.health().order().map(SubscriberHealth.Order::keysOnHold).orElseThrow();
  }

  private void nothingMoreThan(String... texts) {
    await()
        .during(Duration.ofMillis(1_500))
        .atMost(Duration.ofSeconds(4))
        .until(() -> handled.equals(List.of(texts)));
  }

  @Test
  void aKeyWaitsForItsDeadLetterAndGoesOnWithItOnceThatIsPutBack() {
    failing.add("a1");
    OutboxSubscriber subscriber = engine.start(subscriber("s"));
    List<Long> ids = publish("a", "a0", "a1", "a2", "a3");
    await().atMost(SOON).until(() -> engine.deadLetters(queue) == 1);
    await().atMost(SOON).until(() -> onHold(subscriber) == 1);

    publish("b", "b0");
    publish("a", "a4");
    await().atMost(SOON).until(() -> handled.contains("b0"));
    nothingMoreThan("a0", "b0");
    putBack(ids.get(1));

    await().atMost(SOON).until(() -> engine.rows(queue) == 0);
    assertThat(handled).containsExactly("a0", "b0", "a1", "a2", "a3", "a4");
    assertThat(onHold(subscriber)).isZero();
  }

  @Test
  void aKeyGoesOnWithoutADeadLetterThatIsDiscarded() {
    failing.add("a0");
    OutboxSubscriber subscriber = engine.start(subscriber("s"));
    publish("a", "a0", "a1");
    publish("b", "b0");
    await().atMost(SOON).until(() -> onHold(subscriber) == 1);
    await().atMost(SOON).until(() -> handled.contains("b0"));
    nothingMoreThan("b0");

    DeadLetterWorklist worklist =
        DeadLetterWorklist.of(
            PostgresOutbox.on(engine.pool, database.table()), DeadLetterQueue.in("outbox_dlq"));
    DeadLetterSelection ofTheKey =
        worklist.where(DeadLetterFilter.queue(queue).and(DeadLetterFilter.orderingKey("a")));
    assertThat(ofTheKey.discard("ann", "the order was cancelled").done()).isEqualTo(1);

    await().atMost(SOON).until(() -> engine.rows(queue) == 0);
    assertThat(handled).containsExactly("b0", "a1");
    await().atMost(SOON).until(() -> onHold(subscriber) == 0);
  }

  @Test
  void aMessageThatExpiredHoldsItsKey() {
    OutboxSubscriber subscriber = engine.start(subscriber("s"));
    List<Long> ids =
        engine.inTransaction(
            List.of(
                OutboxMessage.to(queue)
                    .type("t")
                    .orderingKey("a")
                    .expiresAt(Instant.now().minusSeconds(3_600))
                    .body("a0")
                    .build(),
                OutboxMessage.to(queue).type("t").orderingKey("a").body("a1").build(),
                OutboxMessage.to(queue).type("t").orderingKey("b").body("b0").build()));
    await().atMost(SOON).until(() -> onHold(subscriber) == 1);
    await().atMost(SOON).until(() -> handled.contains("b0"));
    assertThat(engine.deadLetter(String.class, "failure_reason", ids.get(0))).isEqualTo("expired");
    nothingMoreThan("b0");
    putBack(ids.get(0)); // it does not expire again

    await().atMost(SOON).until(() -> engine.rows(queue) == 0);
    assertThat(handled).containsExactly("b0", "a0", "a1");
  }

  @Test
  void whoeverTakesABucketKnowsItsKeysOnHold() {
    failing.add("a0");
    OutboxSubscriber first = engine.start(subscriber("first"));
    List<Long> ids = publish("a", "a0", "a1");
    await().atMost(SOON).until(() -> onHold(first) == 1);
    first.stop();

    OutboxSubscriber second = engine.start(subscriber("second"));
    await().atMost(SOON).until(() -> onHold(second) == 1);
    publish("a", "a2");
    nothingMoreThan();
    putBack(ids.get(0));

    await().atMost(SOON).until(() -> engine.rows(queue) == 0);
    assertThat(handled).containsExactly("a0", "a1", "a2");
  }

  @Test
  void aKeyWithSeveralDeadLettersWaitsForAllOfThem() {
    failing.addAll(Set.of("a0", "a1"));
    OutboxSubscriber free =
        engine.start(
            engine
                .subscriber(queue)
                .ordered()
                .retry(RetryPolicy.none())
                .on("t", String.class, this::handle));
    List<Long> ids = publish("a", "a0", "a1");
    await().atMost(SOON).until(() -> engine.deadLetters(queue) == 2);
    free.stop();
    OutboxSubscriber subscriber = engine.start(subscriber("s"));
    await().atMost(SOON).until(() -> onHold(subscriber) == 1);
    publish("a", "a2");

    putBack(ids.get(0));
    nothingMoreThan();
    putBack(ids.get(1));

    await().atMost(SOON).until(() -> engine.rows(queue) == 0);
    assertThat(handled).containsExactly("a0", "a1", "a2");
  }

  @Test
  void deadLettersOfOtherOutboxesAndQueuesHoldUpNobody() {
    String columns =
        "queue, ordering_key, original_id, outbox, lease_token, payload, deliveries_count,"
            + " attempts_count, created_at, available_at, failure_reason";
    String values = ", 1, '', 1, 1, now(), now(), 'rejected'";
    database.update(
        "insert into outbox_dlq (" + columns + ") select ?, 'a', 1, 'other.outbox'" + values,
        queue);
    database.update(
        "insert into outbox_dlq ("
            + columns
            + ") select 'others', 'a', 1, 'public.outbox'"
            + values);
    try {
      OutboxSubscriber subscriber = engine.start(subscriber("s"));
      publish("a", "a0");

      await().atMost(SOON).until(() -> handled.contains("a0"));
      assertThat(onHold(subscriber)).isZero();
    } finally {
      database.update("delete from outbox_dlq where queue = 'others'");
    }
  }

  @Test
  void bucketsAreNotReadWhileTheirKeysOnHoldAreNotKnown() {
    publish("a", "a0");
    database.update("alter table outbox_dlq rename column resolved_at to away");
    OutboxSubscriber subscriber;
    try {
      subscriber = engine.start(subscriber("s"));
      await()
          .atMost(SOON)
          .until(
              () ->
                  !subscriber.health().healthy()
                      && subscriber
                          .health()
                          .lastFailure()
                          .orElse("")
                          .contains("look at outbox_dlq"));
      nothingMoreThan();
    } finally {
      database.update("alter table outbox_dlq rename column away to resolved_at");
    }

    await().atMost(SOON).until(() -> handled.contains("a0"));
    await().atMost(SOON).until(() -> subscriber.health().healthy());
  }

  @Test
  void aKeyStaysOnHoldWhileTheDeadLettersCannotBeRead() {
    failing.add("a0");
    OutboxSubscriber subscriber = engine.start(subscriber("s"));
    publish("a", "a0", "a1");
    await().atMost(SOON).until(() -> onHold(subscriber) == 1);
    database.update("alter table outbox_dlq rename column resolved_at to away");
    try {
      await().atMost(SOON).until(() -> !subscriber.health().healthy());
      publish("b", "b0");
      await().atMost(SOON).until(() -> handled.contains("b0"));
      nothingMoreThan("b0");
    } finally {
      database.update("alter table outbox_dlq rename column away to resolved_at");
    }
    await().atMost(SOON).until(() -> subscriber.health().healthy());
    assertThat(onHold(subscriber)).isEqualTo(1);
  }

  @Test
  @Tag("large")
  void noneOfMoreKeysThanCanBeRememberedGoesOnBeforeItsDeadLetterIsResolved() {
    database.update(
        """
        insert into outbox_dlq (queue, ordering_key, original_id, outbox, lease_token, payload,
          deliveries_count, attempts_count, created_at, available_at, failure_reason)
        select ?, 'k' || n, n, 'public.outbox', 1, '', 1, 1, now(), now(), 'rejected'
        from generate_series(1, 100050) n""",
        queue);
    database.update(
        """
        insert into outbox (queue, type, ordering_key, payload)
        select ?, 't', 'k' || n, convert_to('k' || n, 'UTF8') from generate_series(3, 100050, 4) n""",
        queue);
    OutboxSubscriber subscriber = engine.start(subscriber("s").lease(Duration.ofSeconds(20)));
    await()
        .atMost(SOON)
        .until(() -> !subscriber.health().healthy() || onHold(subscriber) > 100_000);

    database.update(
        "update outbox_dlq set resolved_at = now(), resolved_by = 'ann', resolution = 'discarded'"
            + " where queue = ? and original_id % 1000 = 7",
        queue);

    await().atMost(Duration.ofMinutes(3)).until(() -> handled.size() >= 101);
    await()
        .during(Duration.ofSeconds(2))
        .atMost(Duration.ofSeconds(5))
        .until(() -> !handled.isEmpty());
    assertThat(handled).allMatch(key -> Integer.parseInt(key.substring(1)) % 1000 == 7);
    assertThat(handled).hasSize(101);
  }

  @Test
  void itIsRefusedWithoutOrderOrDeadLettersToAsk() {
    assertThatThrownBy(
            () ->
                engine
                    .subscriber(queue)
                    .holdKeyOnDeadLetter()
                    .on("t", String.class, this::handle)
                    .build())
        .hasMessageContaining("holdKeyOnDeadLetter() is set without ordered()");
    assertThatThrownBy(() -> subscriber("s").deadLetters(store -> entries -> null).build())
        .hasMessageContaining("cannot be asked; use deadLetters(DeadLetterQueue.in(...))");
    assertThat(subscriber("s").deadLetters(DeadLetterQueue.in("outbox_dlq")).build()).isNotNull();
  }
}
