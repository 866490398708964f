package dev.outbox4j.dlq.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.migrations.OrderedMigrations;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.testing.CapturedLogs;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** A queue whose dead rows cannot be removed, because an old transaction is open. */
@ExtendWith(PostgresExtension.class)
class PinnedHorizonIT {
  private static final int DEAD = 800_000;

  private static final String ENTRIES_READ =
      "select coalesce(sum(idx_tup_read), 0)::bigint from pg_stat_user_indexes"
          + " where relname = 'outbox'";

  /** So short that a look at the whole queue takes longer than the sweep may take. */
  private static final Duration NETWORK_TIMEOUT = Duration.ofMillis(120);

  private final TestDatabase database;
  private EngineFixture engine;
  private OffsetDateTime began;

  PinnedHorizonIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void setUp() {
    began = database.one(OffsetDateTime.class, "select clock_timestamp()");
    engine = new EngineFixture(database, 4);
  }

  @AfterEach
  void tearDown() {
    engine.close();
  }

  @Test
  void aRestartedSubscriberGoesOnAndFindsWhatBecameDueBelowItsBound() throws Exception {
    Set<Long> handled = ConcurrentHashMap.newKeySet();
    try (CapturedLogs logs = new CapturedLogs();
        Connection pin = pinned()) {
      database.update(
          "insert into outbox (queue, type, payload, available_at) select 'pinned', 't', 'x',"
              + " now() - interval '1 hour' + g * interval '5 ms' from generate_series(1, "
              + DEAD
              + ") g");
      database.update("delete from outbox where queue = 'pinned'");
      OutboxSubscriber subscriber =
          engine.start(
              engine
                  .subscriber("pinned")
                  .store(PostgresOutbox.on(engine.pool, database.table()).store(NETWORK_TIMEOUT))
                  .on(
                      "t",
                      (payload, delivery) -> {
                        handled.add(delivery.id());
                      }));
      engine.publish("pinned", "t", 1_000);
      await().atMost(Duration.ofMinutes(1)).until(() -> handled.size() == 1_000);
      await()
          .atMost(Duration.ofMinutes(1))
          .until(
              () ->
                  logs.lines().stream().anyMatch(line -> line.contains("looked through in parts")));
      database.update(
          "insert into outbox (queue, type, payload, available_at)"
              + " values ('pinned', 't', 'x', now() - interval '50 minutes')");
      await().atMost(Duration.ofMinutes(4)).until(() -> handled.size() == 1_001);
      engine.publish("pinned", "t", 1_000);
      await().atMost(Duration.ofMinutes(1)).until(() -> handled.size() == 2_001);
      assertThat(engine.rows("pinned")).isLessThanOrEqualTo(1_000);
      await().until(() -> engine.rows("pinned") == 0);
      await().until(() -> !subscriber.health().failing());
      pin.rollback();
    }
  }

  @Test
  void aBacklogThatCommittedBelowTheBoundIsNotPassedAgainByEachClaim() throws Exception {
    int late = 40_000;
    AtomicInteger handled = new AtomicInteger();
    await().until(() -> sessionsOfOtherTests() == 0); // a session tells what it has read at its end
    long readBefore = database.one(Long.class, ENTRIES_READ);
    try (Connection pin = pinned()) {
      OutboxSubscriber subscriber =
          engine.start(
              engine
                  .subscriber("late")
                  .batchSize(100)
                  .on(
                      "t",
                      (payload, delivery) -> {
                        handled.incrementAndGet();
                      }));
      for (int i = 1; i <= 20; i++) { // so that claims look above these
        engine.publish("late", "t", 1);
        int before = i;
        await().until(() -> handled.get() == before);
      }
      database.update(
          "insert into outbox (queue, type, payload, available_at)"
              + " select 'late', 't', 'x', now() - interval '1 minute' from generate_series(1, "
              + late
              + ")");
      await().atMost(Duration.ofMinutes(1)).until(() -> handled.get() == late + 20);
      await().until(() -> engine.rows("late") == 0);
      subscriber.stop();
      engine.pool.close(); // a session counts for all to see when it ends
      await().until(() -> database.one(Long.class, ENTRIES_READ) - readBefore >= late);
      assertThat(database.one(Long.class, ENTRIES_READ) - readBefore)
          .isLessThan(100L * late); // each claim passing all before it: 200 times
      pin.rollback();
    }
  }

  @Tag("large")
  @Test
  void anOrderedQueueGoesOnAndFindsWhatCommitsLate() throws Exception {
    OrderedMigrations.of("public", "outbox", "in-order").migrate(database.plain());
    List<String> handled = new CopyOnWriteArrayList<>();
    try (Connection pin = pinned();
        Connection late = database.plain().getConnection()) {
      late.setAutoCommit(false);
      engine.publisher.publish(late, inOrder("late", 0));
      database.update(
          "insert into outbox (queue, type, ordering_key, payload) select 'in-order', 't',"
              + " (g % 100)::text, 'x' from generate_series(1, "
              + DEAD / 2
              + ") g");
      database.update("delete from outbox where queue = 'in-order'");
      for (int start = 0; start < 2; start++) { // a new owner begins below what is dead
        OutboxSubscriber subscriber =
            engine.start(
                engine
                    .subscriber("in-order")
                    .ordered()
                    .store(PostgresOutbox.on(engine.pool, database.table()).store(NETWORK_TIMEOUT))
                    .on(
                        "t",
                        String.class,
                        (text, delivery) -> {
                          handled.add(text);
                        }));
        List<OutboxMessage> messages = new ArrayList<>();
        for (int number = 0; number < 1_000; number++) {
          messages.add(inOrder("k", start * 1_000 + number));
        }
        engine.inTransaction(messages);
        int all = (start + 1) * 1_000;
        await().atMost(Duration.ofMinutes(1)).until(() -> handled.size() == all);
        await().until(() -> engine.rows("in-order") == 0);
        if (start == 0) {
          subscriber.stop();
        }
      }
      assertThat(handled)
          .containsExactlyElementsOf(IntStream.range(0, 2_000).mapToObj(n -> "k" + n).toList());
      late.commit();
      await().atMost(Duration.ofMinutes(1)).until(() -> handled.contains("late0"));
      await().until(() -> engine.rows("in-order") == 0);
      pin.rollback();
    }
  }

  private static OutboxMessage inOrder(String key, int number) {
    return OutboxMessage.to("in-order").type("t").orderingKey(key).body(key + number).build();
  }

  private long sessionsOfOtherTests() {
    return database.one(
        Long.class,
        "select count(*) from pg_stat_activity where datname = current_database()"
            + " and backend_type = 'client backend' and backend_start < ?"
            + " and pid <> pg_backend_pid()",
        began);
  }

  private Connection pinned() throws SQLException {
    Connection pin = database.plain().getConnection();
    pin.setAutoCommit(false);
    pin.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
    try (Statement statement = pin.createStatement()) {
      statement.execute("select count(*) from outbox_sleepers");
    }
    return pin;
  }
}
