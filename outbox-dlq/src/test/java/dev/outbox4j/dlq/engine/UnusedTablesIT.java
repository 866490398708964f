package dev.outbox4j.dlq.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.FailureReason;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.Outcome;
import dev.outbox4j.dlq.DeadLetterQueue;
import dev.outbox4j.migrations.DedupMigrations;
import dev.outbox4j.migrations.InboxMigrations;
import dev.outbox4j.migrations.JobMigrations;
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
import dev.outbox4j.spi.ClaimRequest;
import dev.outbox4j.spi.ClaimedRow;
import dev.outbox4j.spi.DeadLetterEntry;
import dev.outbox4j.spi.DeadLetterWriter;
import dev.outbox4j.spi.LeaseRef;
import dev.outbox4j.spi.OutboxStore;
import dev.outbox4j.spi.RetryUpdate;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.IntStream;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.postgresql.ds.PGSimpleDataSource;

/** What the tables of features cost a subscriber that uses none of them. */
@ExtendWith(PostgresExtension.class)
class UnusedTablesIT {
  private static final int POLLS = 60;
  private static final String WORK = "work";

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
  void aSubscriberSendsTheSameStatementsBesideTablesOfFeaturesAndNoneToThese() {
    List<String> sent = new CopyOnWriteArrayList<>();
    long pollsWithout = ofPolls(sent);
    List<String> workWithout = ofWork();

    List<String> before = tables();
    migrateAll();
    List<String> added = new ArrayList<>(tables());
    added.removeAll(before);
    assertThat(added).hasSizeGreaterThan(10);
    List<String> touchedByMigrations = settledTouches(added);

    assertThat(ofPolls(sent)).isEqualTo(pollsWithout);
    assertThat(ofWork()).isEqualTo(workWithout);
    fallAsleep(sent);
    drain(sent);
    sent.addAll(workWithout);
    for (String text : Set.copyOf(sent)) {
      assertThat(text).doesNotContain(added);
    }
    assertThat(settledTouches(added)).as("at the server").isEqualTo(touchedByMigrations);
  }

  private void migrateAll() {
    PGSimpleDataSource dataSource = database.plain();
    DedupMigrations.of("public", "outbox").migrate(dataSource);
    SlotMigrations.of("public", "outbox").migrate(dataSource);
    PauseMigrations.of("public", "outbox").migrate(dataSource);
    OrderedMigrations.of("public", "outbox", "in-order").migrate(dataSource);
    LockMigrations.of("public", "outbox").migrate(dataSource);
    TimerMigrations.of("public", "outbox").migrate(dataSource);
    MonitorMigrations.of("public", "outbox").migrate(dataSource);
    PollerMigrations.of("public", "outbox").migrate(dataSource);
    JobMigrations.of("public", "outbox").migrate(dataSource);
    InboxMigrations.of("public", "inbox").migrate(dataSource);
  }

  /** How often tables were read and written, once the server counts nothing more. */
  private List<String> settledTouches(List<String> tables) {
    AtomicReference<List<String>> last = new AtomicReference<>(List.of());
    await()
        .during(Duration.ofSeconds(2)) // sessions tell it once a second at least
        .atMost(Duration.ofMinutes(1))
        .until(() -> last.getAndSet(touches(tables)).equals(last.get()));
    return last.get();
  }

  private List<String> touches(List<String> tables) {
    return database.list(
        String.class,
        """
        select relname || ' ' || seq_scan || ' ' || coalesce(idx_scan, 0) || ' '
          || n_tup_ins + n_tup_upd + n_tup_del
        from pg_stat_user_tables where relname = any (string_to_array(?, ',')) order by relname""",
        String.join(",", tables));
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

  /** What a publish, a drain of a thousand, a retry and a dead letter send, in their order. */
  private List<String> ofWork() {
    List<String> work = new ArrayList<>();
    CountingDataSource counting = counting(work);
    publish(counting, 1_000);
    OutboxStore store = PostgresOutbox.on(counting, database.table()).store();
    for (int claim = 0; claim < 10; claim++) {
      List<LeaseRef> claimed = claim(store, 100);
      assertThat(store.ack(claimed).done()).hasSize(100);
    }
    publish(counting, 2);
    List<LeaseRef> claimed = claim(store, 2);
    RetryUpdate retry = new RetryUpdate(claimed.get(0), Duration.ofHours(1), "failed");
    assertThat(store.retry(List.of(retry)).done()).hasSize(1);
    DeadLetterEntry poison =
        new DeadLetterEntry(claimed.get(1), FailureReason.REJECTED, 1, "refused");
    DeadLetterWriter writer = DeadLetterQueue.in("outbox_dlq").bind(store);
    assertThat(writer.write(List.of(poison)).done()).hasSize(1);
    database.update("delete from outbox where queue = ?", WORK);
    return work;
  }

  private void publish(DataSource dataSource, int count) {
    try (Connection connection = dataSource.getConnection()) {
      connection.setAutoCommit(false);
      engine.publisher.publish(
          connection,
          IntStream.range(0, count)
              .mapToObj(i -> OutboxMessage.to(WORK).type("t").body("m" + i).build())
              .toList());
      connection.commit();
    } catch (SQLException e) {
      throw new IllegalStateException(e);
    }
  }

  private static List<LeaseRef> claim(OutboxStore store, int rows) {
    List<LeaseRef> claimed =
        store
            .claim(
                new ClaimRequest(
                    WORK,
                    ClaimRequest.Range.ALL,
                    rows,
                    1 << 20,
                    Duration.ofMinutes(1),
                    "one",
                    ClaimRequest.Idle.UNCHANGED,
                    null))
            .rows()
            .stream()
            .map(ClaimedRow::lease)
            .toList();
    assertThat(claimed).hasSize(rows);
    return claimed;
  }

  /** A thousand messages, one that fails at first, and one that is rejected. */
  private void drain(List<String> sent) {
    engine.publish(WORK, "t", 1_000);
    engine.publish(WORK, "fails", "once");
    engine.publish(WORK, "poison", "x");
    OutboxSubscriber subscriber =
        engine.start(
            working(counting(sent), WORK)
                .on("t", (payload, delivery) -> {})
                .on(
                    "fails",
                    String.class,
                    (text, delivery) -> {
                      return delivery.attempt() == 1 ? Outcome.retry() : Outcome.ack();
                    })
                .on(
                    "poison",
                    String.class,
                    (text, delivery) -> {
                      return Outcome.reject("refused");
                    }));
    await().atMost(Duration.ofMinutes(1)).until(() -> engine.rows(WORK) == 0);
    subscriber.stop();
    assertThat(engine.events.retried).hasSize(1);
    assertThat(engine.events.deadLettered).hasSize(1);
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
    return working(counting, "idle");
  }

  private OutboxSubscriber.Builder working(CountingDataSource counting, String queue) {
    return engine.subscriber(queue).store(PostgresOutbox.on(counting, database.table()).store());
  }
}
