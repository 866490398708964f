package dev.outbox4j.dlq.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.Delivery;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.migrations.OrderedMigrations;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.LeaseRef;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/**
 * Acks of a key are written in its order, so that after a kill nothing comes again that is older
 * than what does not.
 */
@ExtendWith(PostgresExtension.class)
@Tag("once")
class OrderedAcksIT {
  private static final AtomicInteger QUEUES = new AtomicInteger();
  private static final Duration SOON = Duration.ofSeconds(60);

  private final TestDatabase database;
  private final List<String> begun = new CopyOnWriteArrayList<>();
  private EngineFixture engine;
  private String queue;

  OrderedAcksIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void setUp() {
    engine = new EngineFixture(database, 12);
    queue = "ordered-acks-" + QUEUES.incrementAndGet();
    OrderedMigrations.of("public", "outbox", queue).migrate(database.plain());
  }

  @AfterEach
  void tearDown() {
    engine.close();
  }

  private OutboxSubscriber.Builder subscriber() {
    return engine.subscriber(queue).ordered().workers(4).on("t", String.class, this::handle);
  }

  private void handle(String text, Delivery delivery) {
    begun.add(delivery.orderingKey().orElseThrow() + ":" + text);
  }

  private List<Long> publish(String type, String key, int from, int to) {
    return engine.inTransaction(
        IntStream.range(from, to)
            .mapToObj(
                i ->
                    OutboxMessage.to(queue)
                        .type(type)
                        .orderingKey(key)
                        .body(String.valueOf(i))
                        .build())
            .toList());
  }

  private List<String> begunOf(String key) {
    return begun.stream().filter(each -> each.startsWith(key + ":")).toList();
  }

  private static List<String> names(String key, int to) {
    return IntStream.range(0, to).mapToObj(i -> key + ":" + i).toList();
  }

  private long rowsOf(String key) {
    return database.one(
        Long.class, "select count(*) from outbox where queue = ? and ordering_key = ?", queue, key);
  }

  @Test
  void anAckIsSentWithOrAfterThoseThatPrecedeItInItsKey() {
    int keys = 40;
    int ofEach = 250;
    Map<Long, Integer> keyOf = new HashMap<>();
    List<OutboxMessage> messages = new ArrayList<>();
    for (int i = 0; i < ofEach * keys; i++) {
      messages.add(
          OutboxMessage.to(queue).type("t").orderingKey("k" + i % keys).body("" + i).build());
    }
    List<Long> ids = engine.inTransaction(messages);
    for (int i = 0; i < ids.size(); i++) {
      keyOf.put(ids.get(i), i % keys);
    }
    List<List<Long>> acks = new CopyOnWriteArrayList<>();
    engine.start(
        subscriber()
            .workers(16)
            .store(
                WatchedBuckets.of(
                    engine.pool,
                    database.table(),
                    (method, argument, real) -> {
                      if (method.equals("ack")) {
                        acks.add(
                            ((List<?>) argument)
                                .stream().map(lease -> ((LeaseRef) lease).id()).toList());
                      }
                      return real.call();
                    })));
    await().atMost(SOON).until(() -> engine.rows(queue) == 0);

    Map<Integer, Long> last = new HashMap<>();
    List<Long> early = new ArrayList<>();
    for (List<Long> ack : acks) {
      for (Long id : ack) {
        Integer key = keyOf.get(id);
        if (last.getOrDefault(key, 0L) > id) {
          early.add(id);
        }
        last.merge(key, id, Math::max);
      }
    }
    assertThat(acks.stream().mapToInt(List::size).sum()).isGreaterThanOrEqualTo(ids.size());
    assertThat(early).as("acks that came after those of later messages").isEmpty();
  }

  @Test
  void whileAnAckWaitsForALockNoLaterOneOfItsKeyIsWritten() throws SQLException {
    List<Long> ids = publish("t", "k", 0, 10);
    try (Connection other = database.plain().getConnection();
        Statement lock = other.createStatement()) {
      other.setAutoCommit(false);
      lock.execute("select from outbox where id = " + ids.get(0) + " for update");
      OutboxSubscriber subscriber = engine.start(subscriber());
      await().atMost(SOON).until(() -> begun.contains("k:0"));
      publish("t", "other", 0, 50);
      await().atMost(SOON).until(() -> rowsOf("other") == 0);
      await() // until it is known to be locked
          .atMost(SOON)
          .until(() -> subscriber.health().toString().contains("locked by another session"));
      publish("t", "k", 10, 20);
      publish("t", "other", 50, 100);
      await().atMost(SOON).until(() -> rowsOf("other") == 0);

      assertThat(rowsOf("k")).isEqualTo(20);
      assertThat(begunOf("k")).as("none begins meanwhile").doesNotContain("k:10");
      assertThat(subscriber.health().order().orElseThrow().blockedKeys()).isOne();
      assertThat(subscriber.health().toString())
          .contains("row " + ids.get(0) + " of queue '" + queue + "' has been locked");
      other.rollback();
    }
    await().atMost(SOON).until(() -> engine.rows(queue) == 0);
    assertThat(begunOf("k")).isEqualTo(names("k", 20));
  }

  @Test
  void whatPrecedesALockedAckIsWrittenAndHealthNamesTheLockedOne() throws SQLException {
    List<Long> ids = publish("t", "k", 0, 10);
    try (Connection other = database.plain().getConnection();
        Statement lock = other.createStatement()) {
      other.setAutoCommit(false);
      lock.execute("select from outbox where id = " + ids.get(4) + " for update");
      OutboxSubscriber subscriber = engine.start(subscriber());
      await().atMost(SOON).until(() -> rowsOf("k") == 6);
      await()
          .atMost(SOON)
          .until(
              () ->
                  subscriber
                      .health()
                      .toString()
                      .contains("row " + ids.get(4) + " of queue '" + queue + "' has been locked"));
      assertThat(rowsOf("k")).isEqualTo(6);
      other.rollback();
    }
    await().atMost(SOON).until(() -> engine.rows(queue) == 0);
    assertThat(begunOf("k")).isEqualTo(names("k", 10));
  }

  @Test
  void manyKeysWhoseAcksWaitLeaveTheOthersTheirRoom() throws SQLException {
    int keys = 60;
    List<Long> first = new ArrayList<>();
    for (int i = 0; i < keys; i++) {
      first.add(publish("t", "k" + i, 0, 100).get(0));
    }
    try (Connection other = database.plain().getConnection();
        Statement lock = other.createStatement()) {
      other.setAutoCommit(false);
      for (Long id : first) {
        lock.execute("select from outbox where id = " + id + " for update");
      }
      engine.start(subscriber().batchSize(100));
      publish("t", "other", 0, 500);
      await().atMost(SOON).until(() -> rowsOf("other") == 0);
      publish("t", "other", 500, 600);
      await().atMost(SOON).until(() -> rowsOf("other") == 0);
      assertThat(engine.rows(queue)).isEqualTo(keys * 100L);
      other.rollback();
    }
    await().atMost(SOON).until(() -> engine.rows(queue) == 0);
    for (int i = 0; i < keys; i++) {
      assertThat(begunOf("k" + i)).isEqualTo(names("k" + i, 100));
    }
  }

  @Test
  void aRetryThatWaitsForALockIsHandledOnceItIsWritten() throws SQLException {
    List<Long> ids = publish("t", "k", 0, 3);
    AtomicInteger fails = new AtomicInteger(1);
    try (Connection other = database.plain().getConnection();
        Statement lock = other.createStatement()) {
      other.setAutoCommit(false);
      lock.execute("select from outbox where id = " + ids.get(0) + " for update");
      OutboxSubscriber subscriber =
          engine.start(
              engine
                  .subscriber(queue)
                  .ordered()
                  .on(
                      "t",
                      String.class,
                      (text, delivery) -> {
                        handle(text, delivery);
                        if (fails.getAndDecrement() > 0) {
                          throw new IllegalStateException("of a test");
                        }
                      }));
      await()
          .atMost(SOON)
          .until(() -> subscriber.health().toString().contains("locked by another session"));
      other.rollback();
    }
    await().atMost(SOON).until(() -> engine.rows(queue) == 0);
    assertThat(begun).containsExactly("k:0", "k:0", "k:1", "k:2");
  }

  @Test
  void whileAnAckIsRefusedNoLaterOneOfItsKeyIsWritten() {
    List<Long> ids = publish("t", "k", 0, 10);
    publish("t", "other", 0, 100);
    database.update(
        "create function refuse_ack() returns trigger language plpgsql as"
            + " $$ begin raise exception 'of a test'; end $$");
    database.update(
        "create trigger refuse_ack before delete on outbox for each row when (old.id = "
            + ids.get(0)
            + ") execute function refuse_ack()");
    try {
      OutboxSubscriber subscriber = engine.start(subscriber());
      await().atMost(SOON).until(() -> rowsOf("other") == 0);
      await().atMost(SOON).until(() -> subscriber.health().toString().contains("of a test"));
      publish("t", "other", 100, 200);
      await().atMost(SOON).until(() -> rowsOf("other") == 0);

      publish("t", "k", 10, 20);
      publish("t", "other", 200, 300);
      await().atMost(SOON).until(() -> rowsOf("other") == 0);
      assertThat(rowsOf("k")).isEqualTo(20);
      assertThat(begunOf("k")).doesNotContain("k:10");
    } finally {
      database.update("drop trigger refuse_ack on outbox");
      database.update("drop function refuse_ack()");
    }
    await().atMost(SOON).until(() -> engine.rows(queue) == 0);
    assertThat(begunOf("k")).isEqualTo(names("k", 20));
  }

  @Test
  void aHandlersTransactionBeginsOnlyOnceTheAckBeforeItInItsKeyIsWritten() throws SQLException {
    PostgresOutbox outbox = PostgresOutbox.on(engine.pool, database.table());
    Effects effects = new Effects(database, queue);
    List<Long> ids = publish("t", "k", 0, 1);
    publish("transactional", "k", 1, 2);
    try (Connection other = database.plain().getConnection();
        Statement lock = other.createStatement()) {
      other.setAutoCommit(false);
      lock.execute("select from outbox where id = " + ids.get(0) + " for update");
      engine.start(
          subscriber()
              .store(outbox.store())
              .on(
                  "transactional",
                  String.class,
                  outbox.transactional(
                      (text, delivery, connection) -> {
                        begun.add("transactional");
                        effects.write(connection, text);
                      })));
      await().atMost(SOON).until(() -> begun.contains("k:0"));
      publish("t", "other", 0, 50);
      await().atMost(SOON).until(() -> rowsOf("other") == 0);
      assertThat(begun).doesNotContain("transactional");
      other.rollback();
    }
    await().atMost(SOON).until(() -> engine.rows(queue) == 0);
    assertThat(effects.all()).containsExactly("1");
  }
}
