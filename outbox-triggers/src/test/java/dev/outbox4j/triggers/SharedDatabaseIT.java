package dev.outbox4j.triggers;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.lock.HeldLock;
import dev.outbox4j.lock.LockControl;
import dev.outbox4j.lock.LockStatus;
import dev.outbox4j.lock.Locks;
import dev.outbox4j.lock.SingletonListener;
import dev.outbox4j.lock.SingletonLock;
import dev.outbox4j.migrations.LockMigrations;
import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.migrations.TimerMigrations;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.notify.pgjdbc.PgjdbcListen;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.timer.OverlapPolicy;
import dev.outbox4j.timer.RecordedRun;
import dev.outbox4j.timer.RunStatus;
import dev.outbox4j.timer.Schedule;
import dev.outbox4j.timer.Timer;
import dev.outbox4j.timer.TimerControl;
import dev.outbox4j.timer.TimerRun;
import dev.outbox4j.timer.TimerStatus;
import dev.outbox4j.timer.Timers;
import dev.outbox4j.timer.internal.TimerStore;
import java.sql.Connection;
import java.sql.Statement;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.extension.ExtendWith;
import org.postgresql.ds.PGSimpleDataSource;

/**
 * Timers and locks in a database that is others' as well: in a schema and a table of another name,
 * by a role with the grants that they need and no others, beside another application.
 */
@ExtendWith(PostgresExtension.class)
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class SharedDatabaseIT {
  private static final Duration SOON = Duration.ofSeconds(60);
  private static final Duration A_DAY = Duration.ofDays(1);
  private static final Timer DAILY = Timer.of("daily", Schedule.every(A_DAY));
  private static final OutboxTable TABLE = OutboxTable.named("my jobs").inSchema("box");

  private final TestDatabase database;
  private final String suffix = UUID.randomUUID().toString().substring(0, 8);
  private final List<AutoCloseable> open = new ArrayList<>();

  SharedDatabaseIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeAll
  void grant() {
    OutboxMigrations outbox = OutboxMigrations.of("box", "my jobs");
    TimerMigrations timers = TimerMigrations.of("box", "my jobs");
    LockMigrations locks = LockMigrations.of("box", "my jobs");
    outbox.migrate(database.plain());
    timers.migrate(database.plain());
    locks.migrate(database.plain());
    for (String role : roles()) {
      database.update("create role \"%s\" login password 'secret'".formatted(role));
    }
    database.update(outbox.grantsSql(role("node"), role("node"), role("nobody")));
    database.update(timers.grantsSql(role("node")));
    database.update(locks.grantsSql(role("locker")));
    database.update("create table counted (n bigint)");
    database.update("grant insert on counted to \"%s\"".formatted(role("locker")));
  }

  @AfterAll
  void revoke() {
    for (String role : roles()) {
      database.update("drop owned by \"%s\"".formatted(role));
      database.update("drop role \"%s\"".formatted(role));
    }
  }

  @BeforeEach
  void empty() {
    database.update(
        "truncate box.\"my jobs\", box.\"my jobs_dlq\", box.\"my jobs_timer\","
            + " box.\"my jobs_timer_run\", box.\"my jobs_lock\", counted");
  }

  @AfterEach
  void close() throws Exception {
    for (AutoCloseable each : open) {
      each.close();
    }
    open.clear();
  }

  private List<String> roles() {
    return Stream.of("node", "locker", "nobody").map(this::role).toList();
  }

  private String role(String name) {
    return name + " " + suffix;
  }

  private PGSimpleDataSource as(String role) {
    PGSimpleDataSource source = database.plain();
    source.setUser(role(role));
    source.setPassword("secret");
    return source;
  }

  private PostgresOutbox pooled() {
    HikariConfig config = new HikariConfig();
    config.setDataSource(as("node"));
    config.setMaximumPoolSize(6);
    config.setMinimumIdle(1);
    HikariDataSource pool = new HikariDataSource(config);
    open.add(pool);
    return PostgresOutbox.on(pool, TABLE);
  }

  private Timers.Builder builder(String application) {
    return Timers.builder(pooled(), application).listen(PgjdbcListen.on(as("node")));
  }

  private void start(Timers.Builder builder) {
    Timers timers = builder.build();
    open.add(0, timers); // before its pool
    timers.start();
    await().atMost(SOON).until(() -> timers.health().healthy());
  }

  private TimerControl control(String application) {
    return TimerControl.of(PostgresOutbox.on(as("node"), TABLE), application);
  }

  /** In two steps, as no two instants may be the same meanwhile. */
  private void aDayGoesBy() {
    database.update(
        "update box.\"my jobs_timer_run\" set instant = instant - interval '24000 hours'");
    database.update(
        "update box.\"my jobs_timer_run\" set instant = instant + interval '23976 hours'");
    database.list(
        String.class,
        "with gone as (update box.\"my jobs_timer\" set due_at = now(),"
            + " decided_up_to = decided_up_to - interval '24 hours' returning application)"
            + " select pg_notify('outbox_my jobs_timer', application)::text from gone");
  }

  /** The latest instant first. */
  private static List<String> runs(TimerControl control) {
    return control.history("daily", 100).stream()
        .map(run -> run.cause() + " " + run.status())
        .toList();
  }

  private static void awaitRuns(TimerControl control, String... expected) {
    await().atMost(SOON).untilAsserted(() -> assertThat(runs(control)).containsExactly(expected));
  }

  @Test
  void theGrantsOfANodeAreEnoughForRunsThatSucceedFailAndAreTerminated() throws Exception {
    CountDownLatch go = new CountDownLatch(1);
    BlockingQueue<TimerRun> handled = new LinkedBlockingQueue<>();
    Timer failing = Timer.of("failing", Schedule.every(A_DAY)).withoutRetries();
    start(
        builder("shop")
            .on(
                DAILY.overlap(OverlapPolicy.TERMINATE_OTHER),
                run -> {
                  handled.add(run);
                  go.await();
                })
            .on(
                failing,
                (run, connection) -> {
                  throw new IllegalStateException("no paper");
                }));
    TimerControl control = control("shop");
    aDayGoesBy();
    TimerRun first = handled.poll(60, TimeUnit.SECONDS);
    assertThat(first).isNotNull();
    await().atMost(SOON).until(() -> database.count("box.\"my jobs_dlq\"") == 1);

    aDayGoesBy();

    await().atMost(SOON).until(first::isFenced);
    go.countDown();
    awaitRuns(control, "CATCH_UP SUCCEEDED", "CATCH_UP TERMINATED");
    await().atMost(SOON).until(() -> database.count("box.\"my jobs_dlq\"") == 2);
    assertThat(control.history("failing", 100))
        .extracting(RecordedRun::status)
        .containsExactly(RunStatus.FAILED, RunStatus.FAILED);
    assertThat(database.count("box.\"my jobs\"")).isZero();
  }

  @Test
  void theGrantsOfANodeAreEnoughToControlTimers() {
    start(builder("shop").on(DAILY, run -> {}));
    TimerControl control = control("shop");
    assertThat(control.timers()).extracting(TimerStatus::name).containsExactly("daily");
    assertThat(control.next(DAILY, 1)).hasSize(1);
    assertThat(control.alerts(List.of(DAILY))).isEmpty();

    assertThat(control.pause("daily", "ann", "no paper")).isTrue();
    assertThat(control.resume("daily")).isTrue();
    assertThat(control.trigger("daily", "once")).isTrue();
    awaitRuns(control, "MANUAL SUCCEEDED");
    Instant today =
        database.one(OffsetDateTime.class, "select date_trunc('day', now(), 'UTC')").toInstant();
    assertThat(control.backfill(DAILY, today.minus(A_DAY), today, "again")).isEqualTo(2);
    awaitRuns(control, "MANUAL SUCCEEDED", "BACKFILL SUCCEEDED", "BACKFILL SUCCEEDED");
    assertThat(control.purge(today.plus(A_DAY), 100)).isPositive();
    assertThat(control.remove("daily")).isTrue();
    assertThat(database.count("box.\"my jobs_timer\"")).isZero();
    assertThat(database.count("box.\"my jobs_timer_run\"")).isZero();
  }

  @Test
  void theGrantsOfLocksAreEnoughToTakeWaitForGuardAndPurgeThem() throws Exception {
    Locks locks = locks("shop");
    Locks others = locks("shop");
    SingletonLock lock = locks.lock("one");
    HeldLock first = lock.suffix("a").acquire();
    assertThat(others.lock("one").suffix("a").tryAcquire()).isEmpty();
    try (Connection connection = as("locker").getConnection()) {
      connection.setAutoCommit(false);
      first.guard(connection);
      try (Statement statement = connection.createStatement()) {
        statement.executeUpdate("insert into counted values (1)");
      }
      connection.commit();
    }
    assertThat(database.count("counted")).isEqualTo(1);

    SingletonListener listener = others.listener("listener", held -> () -> {});
    listener.start();
    await().atMost(SOON).until(listener::isHolder);
    listener.stop();
    first.close();
    try (HeldLock next = others.lock("one").suffix("a").acquire()) {
      assertThat(next.token()).isGreaterThan(first.token());
    }

    LockControl control = LockControl.of(PostgresOutbox.on(as("locker"), TABLE), "shop");
    assertThat(control.locks()).extracting(LockStatus::name).containsExactly("listener", "one/a");
    database.update("update box.\"my jobs_lock\" set renewed_at = now() - interval '11 minutes'");
    assertThat(control.purge(Instant.now().plusSeconds(60), 100)).isEqualTo(2);
  }

  private Locks locks(String application) {
    Locks locks =
        Locks.builder(PostgresOutbox.on(as("locker"), TABLE), application)
            .listen(PgjdbcListen.on(as("locker")))
            .build();
    open.add(locks);
    locks.start();
    await().atMost(SOON).until(() -> locks.health().connected());
    return locks;
  }

  /** So that the tests above show that grants are asked for at all. */
  @Test
  void aRoleWithoutGrantsDoesNothing() {
    TimerControl control = TimerControl.of(PostgresOutbox.on(as("locker"), TABLE), "shop");
    LockControl locks = LockControl.of(PostgresOutbox.on(as("node"), TABLE), "shop");

    assertThatThrownBy(control::timers).hasStackTraceContaining("permission denied");
    assertThatThrownBy(locks::locks).hasStackTraceContaining("permission denied");
  }

  @Test
  void twoApplicationsWithTheSameTimerHaveEachItsOwnRunsAndMessages() {
    Queue<TimerRun> ofShop = new ConcurrentLinkedQueue<>();
    Queue<TimerRun> ofBank = new ConcurrentLinkedQueue<>();
    start(builder("shop").on(DAILY, ofShop::add));
    start(builder("bank").on(DAILY, ofBank::add));

    aDayGoesBy();
    awaitRuns(control("shop"), "CATCH_UP SUCCEEDED");
    awaitRuns(control("bank"), "CATCH_UP SUCCEEDED");
    assertThat(control("shop").trigger("daily", "by hand")).isTrue();
    awaitRuns(control("shop"), "MANUAL SUCCEEDED", "CATCH_UP SUCCEEDED");
    assertThat(runs(control("bank"))).containsExactly("CATCH_UP SUCCEEDED");
    assertThat(control("bank").trigger("daily", "by hand")).as("by the same name").isTrue();
    awaitRuns(control("bank"), "MANUAL SUCCEEDED", "CATCH_UP SUCCEEDED");

    assertHandled(ofShop, "timers.shop", control("shop"));
    assertHandled(ofBank, "timers.bank", control("bank"));
    assertThat(control("bank").remove("daily")).isTrue();
    assertThat(runs(control("shop"))).hasSize(2);
    assertThat(control("shop").timers()).hasSize(1);
  }

  /** Of each run, once, by a message of the queue. */
  private static void assertHandled(Queue<TimerRun> handled, String queue, TimerControl control) {
    assertThat(handled)
        .extracting(TimerRun::token)
        .containsExactlyInAnyOrderElementsOf(
            control.history("daily", 100).stream().map(RecordedRun::token).toList());
    assertThat(handled).extracting(run -> run.delivery().queue()).containsOnly(queue);
    assertThat(handled).extracting(TimerRun::attempt).containsOnly(1);
  }

  @Test
  void ofOneQueueEachApplicationHandlesItsOwnRunsAndLeavesTheOthers() {
    PostgresOutbox outbox = PostgresOutbox.on(as("node"), TABLE);
    TimerStore ofBankAlone = new TimerStore(outbox, "bank", "all timers", InstantSource.system());
    ofBankAlone.register(List.of(DAILY), null);
    assertThat(control("bank").trigger("daily", "by hand")).isTrue();
    ofBankAlone.tick(Map.of("daily", DAILY), Set.of(), 10);
    awaitRuns(control("bank"), "MANUAL BEGUN");
    Queue<TimerRun> ofShop = new ConcurrentLinkedQueue<>();
    Queue<TimerRun> ofBank = new ConcurrentLinkedQueue<>();

    start(builder("shop").queue("all timers").on(DAILY, ofShop::add));
    await().atMost(SOON).until(() -> database.count("box.\"my jobs\" where lease_token > 1") == 1);
    assertThat(control("shop").trigger("daily", "by hand")).isTrue();
    awaitRuns(control("shop"), "MANUAL SUCCEEDED");
    RecordedRun left = control("bank").history("daily", 1).get(0);
    assertThat(left.attempts()).isZero();
    assertThat(left.started()).isEmpty();

    start(builder("bank").queue("all timers").on(DAILY, ofBank::add));
    awaitRuns(control("bank"), "MANUAL SUCCEEDED");
    assertHandled(ofShop, "all timers", control("shop"));
    assertHandled(ofBank, "all timers", control("bank"));
    assertThat(database.count("box.\"my jobs_dlq\"")).isZero();
  }
}
