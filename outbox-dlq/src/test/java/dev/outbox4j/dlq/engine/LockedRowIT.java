package dev.outbox4j.dlq.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.Delivery;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.Payload;
import dev.outbox4j.RetryPolicy;
import dev.outbox4j.dlq.DeadLetterQueue;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.testing.CapturedLogs;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.Collections;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** One row that somebody has locked, or that a trigger refuses, holds up no other. */
@ExtendWith(PostgresExtension.class)
class LockedRowIT {
  private static final AtomicInteger QUEUES = new AtomicInteger();

  private final TestDatabase database;
  private final Map<Long, AtomicInteger> runs = new ConcurrentHashMap<>();
  private EngineFixture engine;
  private String queue;

  LockedRowIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void setUp() {
    engine = new EngineFixture(database, 2);
    queue = "locked-" + QUEUES.incrementAndGet();
  }

  @AfterEach
  void tearDown() {
    engine.close();
    database.update("drop trigger if exists refuse on outbox");
    database.update("drop function if exists drop_it() cascade");
  }

  @Test
  void aRowThatAStrangerLocksWhileItsHandlerRunsHoldsUpNoOtherAndIsNamedByHealth()
      throws Exception {
    Duration lease = Duration.ofSeconds(4);
    CountDownLatch go = new CountDownLatch(1);
    OutboxSubscriber first = engine.start(slow("first", lease, go));
    engine.publish(queue, "slow", 20);
    await().until(() -> runs.size() == 20);
    engine.start(slow("second", lease, go));
    long id = database.one(Long.class, "select min(id) from outbox where queue = ?", queue);
    try (Connection stranger = database.plain().getConnection()) {
      lock(stranger, "id = " + id);
      long since = System.nanoTime();
      await()
          .atMost(lease)
          .until(() -> first.health().lastFailure().orElse("").contains("row " + id + " "));
      assertThat(first.health().healthy()).isFalse();
      engine.publish(queue, "quick", 10_000);
      await().until(() -> System.nanoTime() - since > 2 * lease.toNanos());
      go.countDown();
      await().atMost(Duration.ofSeconds(20)).until(() -> engine.rows(queue) == 1);
      assertThat(backends()).as("connections at work of two subscribers").isLessThanOrEqualTo(4);
      stranger.rollback();
    }
    await().until(() -> engine.rows(queue) == 0);
    assertThat(runs).hasSize(10_020);
    assertThat(runs.entrySet().stream().filter(each -> each.getValue().get() > 1))
        .as("only the locked row's lease could run out")
        .allSatisfy(each -> assertThat(each.getKey()).isEqualTo(id));
    await().until(() -> !first.health().failing());
  }

  @Test
  void anAckThatMeetsALockedRowWritesTheOthersAtOnce() throws Exception {
    CountDownLatch go = new CountDownLatch(1);
    engine.start(slow("first", Duration.ofMinutes(1), go));
    engine.publish(queue, "slow", 20);
    await().until(() -> runs.size() == 20);
    long id = database.one(Long.class, "select min(id) from outbox where queue = ?", queue);
    try (Connection stranger = database.plain().getConnection()) {
      lock(stranger, "id = " + id);
      go.countDown();
      await().atMost(Duration.ofSeconds(3)).until(() -> engine.rows(queue) == 1);
      stranger.rollback();
    }
    await().atMost(Duration.ofSeconds(5)).until(() -> engine.rows(queue) == 0);
  }

  @Test
  void rowsThatAreLockedForAMomentAreHandledOnceHoweverManyAndNothingIsSaid() throws Exception {
    int many = 60; // more bytes than are kept of rows that are locked for long
    CountDownLatch go = new CountDownLatch(1);
    try (CapturedLogs logs = new CapturedLogs()) {
      engine.start(slow("first", Duration.ofMinutes(1), go).workers(many));
      engine.inTransaction(
          Collections.nCopies(
              many, OutboxMessage.to(queue).type("slow").body("x".repeat(200_000)).build()));
      await().until(() -> runs.size() == many);
      try (Connection stranger = database.plain().getConnection()) {
        lock(stranger, "queue = '" + queue + "'");
        go.countDown();
        long since = System.nanoTime();
        await().until(() -> System.nanoTime() - since > Duration.ofMillis(500).toNanos());
        stranger.rollback();
      }
      await().atMost(Duration.ofSeconds(10)).until(() -> engine.rows(queue) == 0);
      assertThat(runs.values()).allSatisfy(times -> assertThat(times).hasValue(1));
      assertThat(logs.lines()).noneMatch(line -> line.contains("row ") || line.contains("left to"));
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"23514", "P0001", "40001", "57014", "55P03", "42501", "53200", "ZZ001"})
  void aRowWhoseAckATriggerRefusesHoldsUpNoOtherWhateverTheState(String state) {
    long refused = engine.publish(queue, "t", "x");
    refuse("delete", "old.id = " + refused, state);
    engine.publish(queue, "t", 5_000);
    OutboxSubscriber subscriber = engine.start(counting());
    await().atMost(Duration.ofSeconds(30)).until(() -> engine.rows(queue) == 1);
    await().until(() -> subscriber.health().failing());
    assertThat(runs).hasSize(5_001);
    assertThat(runs.values()).allSatisfy(times -> assertThat(times).hasValue(1));
    database.update("drop trigger refuse on outbox");
    await().until(() -> engine.rows(queue) == 0);
    await().until(() -> !subscriber.health().failing());
    assertThat(runs.get(refused)).hasValue(1);
  }

  @Test
  void aTriggerThatDropsAnAckWithoutAnErrorIsTold() {
    long dropped = engine.publish(queue, "t", "x");
    engine.publish(queue, "t", 100);
    database.update(
        "create function drop_it() returns trigger language plpgsql as 'begin return null; end'");
    database.update(
        "create trigger drop_it before delete on outbox for each row when (old.id = "
            + dropped
            + ") execute function drop_it()");
    try (CapturedLogs logs = new CapturedLogs()) {
      OutboxSubscriber subscriber = engine.start(counting());
      String told = "row " + dropped + " of queue '" + queue + "' was not there to be written";
      logs.awaitLine(line -> line.contains(told));
      await()
          .untilAsserted(
              () -> assertThat(subscriber.health().lastFailure()).get().asString().contains(told));
      await().until(() -> engine.rows(queue) == 1);
      assertThat(logs.lines().stream().filter(line -> line.contains("was not there")))
          .as("of the others nothing is said")
          .allMatch(line -> line.contains(told));
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"23514", "40001", "ZZ001"})
  void aRowThatCannotBeLeasedIsLeftAloneAndTold(String state) {
    long refused = engine.publish(queue, "t", "x");
    refuse("update", "old.id = " + refused, state);
    engine.publish(queue, "t", 2_000);
    OutboxSubscriber subscriber = engine.start(counting());
    await().atMost(Duration.ofSeconds(30)).until(() -> engine.rows(queue) == 1);
    await().until(() -> subscriber.health().lastFailure().orElse("").contains("" + refused));
    assertThat(runs).hasSize(2_000);
    database.update("drop trigger refuse on outbox");
    await().until(() -> engine.rows(queue) == 0);
  }

  @Test
  void aRowWhoseRetryATriggerRefusesHoldsUpNoOther() {
    long refused = engine.publish(queue, "fails", "x");
    engine.publish(queue, "fails", 200);
    refuse(
        "update", "old.id = " + refused + " and new.attempts_count > old.attempts_count", "ZZ001");
    engine.start(
        engine
            .subscriber(queue)
            .on(
                "fails",
                (Payload payload, Delivery delivery) -> {
                  ran(delivery.id());
                  throw new IllegalStateException("no");
                }));
    await().atMost(Duration.ofSeconds(30)).until(() -> engine.deadLetters(queue) == 200);
    assertThat(runs.get(refused)).hasValue(1);
  }

  @Test
  void aDeadLetterThatTheTableSwallowsStaysInTheOutboxAndIsTold() {
    database.update(
        "create or replace function swallow() returns trigger language plpgsql as"
            + " 'begin return null; end'");
    database.update(
        "create trigger swallow before insert on outbox_dlq for each row execute function"
            + " swallow()");
    try {
      long id = engine.publish(queue, "fails", "x");
      OutboxSubscriber subscriber =
          engine.start(
              engine
                  .subscriber(queue)
                  .retry(RetryPolicy.none())
                  .on(
                      "fails",
                      (Payload payload, Delivery delivery) -> {
                        throw new IllegalStateException("no");
                      }));
      await().until(() -> subscriber.health().deadLettersWaiting() == 1);
      assertThat(engine.rows(queue)).isEqualTo(1);
      assertThat(subscriber.health().healthy()).isFalse();
      database.update("drop trigger swallow on outbox_dlq");
      await().until(() -> engine.deadLetters(queue) == 1);
      assertThat(engine.deadLetter(Long.class, "original_id", id)).isEqualTo(id);
    } finally {
      database.update("drop trigger if exists swallow on outbox_dlq");
    }
  }

  private OutboxSubscriber.Builder counting() {
    return engine
        .subscriber(queue)
        .lease(Duration.ofMinutes(1))
        .on(
            "t",
            (payload, delivery) -> {
              ran(delivery.id());
            });
  }

  private OutboxSubscriber.Builder slow(String name, Duration lease, CountDownLatch go) {
    HikariDataSource pool = database.pool(2);
    return OutboxSubscriber.builder(queue)
        .name(queue + name)
        .store(PostgresOutbox.on(pool, database.table()).store(Duration.ofSeconds(1)))
        .workers(20)
        .lease(lease)
        .deadLetters(DeadLetterQueue.in("outbox_dlq"))
        .maxDeliveries(50)
        .on(
            "slow",
            (payload, delivery) -> {
              ran(delivery.id());
              go.await();
            })
        .on(
            "quick",
            (payload, delivery) -> {
              ran(delivery.id());
            });
  }

  private void ran(long id) {
    runs.computeIfAbsent(id, none -> new AtomicInteger()).incrementAndGet();
  }

  private void refuse(String event, String when, String state) {
    database.update(
        "create or replace function refuse() returns trigger language plpgsql as"
            + " 'begin if "
            + when
            + " then raise exception ''refused'' using errcode = ''"
            + state
            + "''; end if; return case when tg_op = ''DELETE'' then old else new end; end'");
    database.update(
        "create trigger refuse before "
            + event
            + " on outbox for each row execute function refuse()");
  }

  private static void lock(Connection stranger, String which) throws SQLException {
    stranger.setAutoCommit(false);
    try (Statement statement = stranger.createStatement()) {
      statement.execute("select id from outbox where " + which + " for update");
    }
  }

  private long backends() {
    return database.one(
        Long.class,
        "select count(*) from pg_stat_activity where datname = current_database()"
            + " and state = 'active' and pid <> pg_backend_pid()");
  }
}
