package dev.outbox4j.dlq.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.migrations.DedupMigrations;
import dev.outbox4j.migrations.InboxMigrations;
import dev.outbox4j.migrations.LockMigrations;
import dev.outbox4j.migrations.MonitorMigrations;
import dev.outbox4j.migrations.OrderedMigrations;
import dev.outbox4j.migrations.PauseMigrations;
import dev.outbox4j.migrations.PollerMigrations;
import dev.outbox4j.migrations.SlotMigrations;
import dev.outbox4j.migrations.TimerMigrations;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.notify.pgjdbc.PgjdbcListen;
import dev.outbox4j.postgres.testing.CountingDataSource;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.postgresql.ds.PGSimpleDataSource;

/** What the tables of features cost a subscriber that uses none of them. */
@ExtendWith(PostgresExtension.class)
class UnusedTablesIT {
  private static final int POLLS = 60;

  private final TestDatabase database;
  private EngineFixture engine;

  UnusedTablesIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void setUp() {
    engine = new EngineFixture(database, 6);
  }

  @AfterEach
  void tearDown() {
    engine.close();
  }

  @Test
  void anIdleSubscriberSendsAsManyStatementsBesideTablesOfFeaturesAndNoneToThese() {
    List<String> sent = new CopyOnWriteArrayList<>();
    long without = ofPolls(sent);

    List<String> before = tables();
    PGSimpleDataSource dataSource = database.plain();
    DedupMigrations.of("public", "outbox").migrate(dataSource);
    SlotMigrations.of("public", "outbox").migrate(dataSource);
    PauseMigrations.of("public", "outbox").migrate(dataSource);
    OrderedMigrations.of("public", "outbox", "in-order").migrate(dataSource);
    LockMigrations.of("public", "outbox").migrate(dataSource);
    TimerMigrations.of("public", "outbox").migrate(dataSource);
    MonitorMigrations.of("public", "outbox").migrate(dataSource);
    PollerMigrations.of("public", "outbox").migrate(dataSource);
    InboxMigrations.of("public", "inbox").migrate(dataSource);
    List<String> added = new ArrayList<>(tables());
    added.removeAll(before);
    assertThat(added).hasSizeGreaterThan(9);

    assertThat(ofPolls(sent)).isEqualTo(without);
    fallAsleep(sent);
    for (String text : Set.copyOf(sent)) {
      assertThat(text).doesNotContain(added);
    }
  }

  private List<String> tables() {
    return database.list(
        String.class, "select tablename::text from pg_tables where schemaname = 'public'");
  }

  /** How many statements the first polls send, each in one round trip. */
  private long ofPolls(List<String> sent) {
    List<String> polls = new CopyOnWriteArrayList<>();
    CountingDataSource counting = counting(polls);
    int before = engine.events.claims.get();
    OutboxSubscriber subscriber =
        engine.start(
            idle(counting)
                .poll(Duration.ofMillis(10), Duration.ofMillis(10))
                .on("t", (payload, delivery) -> {}));
    await() // what counts events may be a moment behind
        .until(
            () -> {
              int claims = engine.events.claims.get() - before;
              return claims >= POLLS && counting.executions() == claims;
            });
    subscriber.stop();
    sent.addAll(polls);
    return polls.stream().limit(POLLS).mapToLong(text -> text.split(";").length).sum();
  }

  /** One that listens announces that it sleeps, and takes that back when it stops. */
  private void fallAsleep(List<String> sent) {
    OutboxSubscriber subscriber =
        engine.start(
            idle(counting(sent))
                .listen(PgjdbcListen.on(database.plain()))
                .poll(Duration.ofMillis(10), Duration.ofSeconds(50))
                .on("t", (payload, delivery) -> {}));
    await()
        .atMost(Duration.ofSeconds(30))
        .until(() -> EngineFixture.sleepsFor(subscriber, Duration.ofSeconds(2)));
    subscriber.stop();
  }

  private CountingDataSource counting(List<String> sent) {
    CountingDataSource counting = new CountingDataSource(engine.pool);
    counting.beforeEach(sent::add);
    return counting;
  }

  private OutboxSubscriber.Builder idle(CountingDataSource counting) {
    return engine.subscriber("idle").store(PostgresOutbox.on(counting, database.table()).store());
  }
}
