package dev.outbox4j.timer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.Outcome;
import dev.outbox4j.RetryPolicy;
import dev.outbox4j.migrations.TimerMigrations;
import dev.outbox4j.postgres.OutboxPublisher;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.notify.pgjdbc.PgjdbcListen;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.postgresql.ds.PGSimpleDataSource;

/** Timers on a real server. Its clock is not waited for: what is stored is put into the past. */
@ExtendWith(PostgresExtension.class)
class TimersIT {
  private static final Duration A_DAY = Duration.ofDays(1);
  private static final Timer DAILY = Timer.of("daily", Schedule.every(A_DAY));
  private static final Duration SOON = Duration.ofMinutes(1);
  private static final String UNRESOLVED = "outbox_dlq where resolved_at is null";
  private static final String RUNS_IN_FULL = "select r::text from outbox_timer_run r order by id";

  private final TestDatabase database;
  private final DataSource pool;
  private Timers timers;

  TimersIT(TestDatabase database) {
    this.database = database;
    this.pool = database.pool(10);
  }

  @BeforeEach
  void setUp() {
    database.migrate(TimerMigrations.of("public", "outbox"), TimerMigrations::migrate);
    database.update("truncate outbox, outbox_dlq, outbox_timer, outbox_timer_run");
    database.update("create table if not exists effects (instant timestamptz)");
    database.update("truncate effects");
  }

  @AfterEach
  void stop() {
    timers.stop();
  }

  private Timers.Builder builder() {
    return Timers.builder(PostgresOutbox.on(pool, database.table()), "shop")
        .listen(PgjdbcListen.on(database.plain()));
  }

  private void start(Timers.Builder builder) {
    timers = builder.build();
    timers.start();
    await().until(() -> database.count("outbox_timer") > 0);
  }

  /** Days go by without a node that looks; then the nodes are told. */
  private void goBy(int days) {
    database.list(
        String.class,
        "with gone as (update outbox_timer set due_at = now(),"
            + " decided_up_to = decided_up_to - make_interval(days => ?) returning 1)"
            + " select pg_notify('outbox_outbox_timer', 'shop')::text from gone",
        days);
  }

  /** With the runs on record; in two steps, as no two instants may be the same meanwhile. */
  private void aDayGoesBy() {
    database.update("update outbox_timer_run set instant = instant - interval '24000 hours'");
    database.update("update outbox_timer_run set instant = instant + interval '23976 hours'");
    goBy(1);
  }

  private List<String> runs() {
    return database.list(
        String.class, "select cause || ' ' || status from outbox_timer_run order by id");
  }

  private void awaitRuns(String... expected) {
    await().atMost(SOON).untilAsserted(() -> assertThat(runs()).containsExactly(expected));
  }

  /** What is on record of a run that has ended; they count from 0. */
  private PastRun onRecord(int nth, RunStatus status) {
    return new PastRun(
        ofRun(nth, "instant"), status, ofRun(nth, "started_at"), ofRun(nth, "ended_at"));
  }

  private Instant ofRun(int nth, String column) {
    return database
        .one(
            OffsetDateTime.class,
            "select " + column + " from outbox_timer_run order by id offset ? limit 1",
            nth)
        .toInstant();
  }

  private static void noteEffect(TimerRun run, Connection connection) throws SQLException {
    try (PreparedStatement insert =
        connection.prepareStatement("insert into effects values (?::timestamptz)")) {
      insert.setString(1, run.instant().toString());
      insert.executeUpdate();
    }
  }

  @Test
  void aRunIsHandledOnceAndEndsWithItsMessage() throws Exception {
    BlockingQueue<TimerRun> handled = new LinkedBlockingQueue<>();
    start(builder().on(DAILY, handled::add));

    goBy(3);

    TimerRun run = handled.poll(30, TimeUnit.SECONDS);
    assertThat(run).isNotNull();
    Instant today =
        database.one(OffsetDateTime.class, "select date_trunc('day', now(), 'UTC')").toInstant();
    assertThat(run.instant()).isEqualTo(today);
    assertThat(run.cause()).isEqualTo(Cause.CATCH_UP);
    assertThat(run.delivery().correlationId()).contains("daily/" + today);
    assertThat(run.missed()).isEqualTo(3);
    assertThat(run.firstMissed()).isEqualTo(today.minus(Duration.ofDays(2)));
    assertThat(run.attempt()).isEqualTo(1);
    assertThat(run.isPastDue()).isTrue();
    assertThat(run.next(2))
        .containsExactly(today.plus(Duration.ofDays(1)), today.plus(Duration.ofDays(2)));
    await().untilAsserted(() -> assertThat(runs()).containsExactly("catch_up succeeded"));
    assertThat(database.count("outbox")).isZero();
    assertThat(handled).isEmpty();
  }

  /** Who waits for the disk says a trigger that fires at the commit. */
  @Test
  void theEndOfARunWaitsForTheDiskAndItsBeginDoesNot() {
    database.update("create table commits (ended boolean, setting text)");
    database.update(
        "create function note_commit() returns trigger language plpgsql as $$ begin"
            + " insert into commits values (new.ended_at is not null,"
            + " current_setting('synchronous_commit')); return null; end $$");
    database.update(
        "create constraint trigger note_commit after update on outbox_timer_run deferrable"
            + " initially deferred for each row execute function note_commit()");
    try {
      PGSimpleDataSource waiting = database.plain();
      waiting.setOptions("-c synchronous_commit=on");
      start(
          Timers.builder(PostgresOutbox.on(waiting, database.table()), "shop")
              .on(DAILY, run -> {}));
      goBy(1);
      await().untilAsserted(() -> assertThat(runs()).containsExactly("catch_up succeeded"));
      assertThat(
              database.list(
                  String.class, "select ended || ' ' || setting from commits order by ended"))
          .containsExactly("false off", "true on");
    } finally {
      database.update("drop trigger note_commit on outbox_timer_run");
      database.update("drop function note_commit");
      database.update("drop table commits");
    }
  }

  @Test
  void instantsThatLieCloseTogetherAreDecidedTogether() {
    int each = 100;
    AtomicInteger ticks = new AtomicInteger();
    AtomicInteger handled = new AtomicInteger();
    Timers.Builder builder =
        builder()
            .events(
                new TimerEvents() {
                  @Override
                  public void ticked(
                      String application, Duration took, @Nullable Throwable failure) {
                    ticks.incrementAndGet();
                  }
                });
    for (int i = 0; i < each; i++) {
      Instant first = Instant.EPOCH.plusMillis(i * 10L);
      builder.on(
          Timer.of("timer-" + i, Schedule.every(Duration.ofSeconds(1), first)),
          run -> handled.incrementAndGet());
    }
    start(builder);
    await().until(() -> handled.get() >= 5 * each);
    assertThat(ticks.get()).isLessThan(handled.get() / 2);
  }

  @Test
  void aRunThatFailsIsTriedAgainAndThenADeadLetter() {
    AtomicInteger attempts = new AtomicInteger();
    start(
        builder()
            .on(
                DAILY,
                run -> {
                  attempts.accumulateAndGet(run.attempt(), Math::max);
                  throw new IllegalStateException("no mail server");
                })
            .subscriber(
                settings ->
                    settings.retry(RetryPolicy.constant(Duration.ofMillis(1)).attempts(3))));

    goBy(1);

    await().untilAsserted(() -> assertThat(runs()).containsExactly("catch_up failed"));
    assertThat(attempts).hasValue(3);
    assertThat(database.count("outbox_dlq")).isEqualTo(1);
    assertThat(database.count("outbox")).isZero();
    assertThat(database.one(String.class, "select last_error from outbox_timer_run"))
        .contains("no mail server");
    assertThat(database.one(Integer.class, "select attempts_count from outbox_timer_run"))
        .isEqualTo(3);
  }

  @Test
  void aDeadLetterThatIsPutBackIsHandledForItsRun() {
    AtomicInteger attempts = new AtomicInteger();
    start(
        builder()
            .on(
                DAILY.withoutRetries(),
                run -> {
                  if (attempts.incrementAndGet() == 1) {
                    throw new IllegalStateException("no paper");
                  }
                }));
    goBy(1);
    await().until(() -> database.count("outbox_dlq") == 1);

    putBack();

    await().untilAsserted(() -> assertThat(runs()).containsExactly("catch_up succeeded"));
    assertThat(attempts).hasValue(2);
  }

  private void putBack() {
    database.list(
        Long.class,
        "with redriven as (update outbox_dlq set resolved_at = now(), resolved_by = current_user,"
            + " resolution = 'redriven' where resolved_at is null returning *)"
            + " insert into outbox (id, lease_token, queue, type, ordering_key, payload, headers,"
            + " timer_id) select original_id, lease_token, queue, type, ordering_key, payload,"
            + " headers, timer_id from redriven returning id");
  }

  @Test
  void aDeadLetterThatIsPutBackAfterItsRunWasPurgedFailsAndSaysSo() {
    AtomicInteger attempts = new AtomicInteger();
    start(
        builder()
            .on(
                DAILY.withoutRetries(),
                run -> {
                  attempts.incrementAndGet();
                  throw new IllegalStateException("no paper");
                }));
    TimerControl control = TimerControl.of(PostgresOutbox.on(pool, database.table()), "shop");
    assertThat(control.trigger("daily", "by hand")).isTrue();
    awaitRuns("manual failed");
    assertThat(control.purge(Instant.now().plus(A_DAY), 10)).isEqualTo(1);

    putBack();

    await().atMost(SOON).until(() -> database.count(UNRESOLVED) == 1);
    assertThat(database.one(String.class, "select last_exception from " + UNRESOLVED))
        .contains("by hand' was purged or its timer removed; discard its message");
    assertThat(attempts).as("its handler was not called again").hasValue(1);
    assertThat(database.count("outbox")).isZero();
  }

  @Test
  void withoutRetriesTheFirstFailureIsFinal() {
    start(
        builder()
            .on(
                DAILY.withoutRetries(),
                run -> {
                  throw new IllegalStateException("no");
                }));

    goBy(1);

    await().untilAsserted(() -> assertThat(runs()).containsExactly("catch_up failed"));
    assertThat(database.one(Integer.class, "select attempts_count from outbox_timer_run"))
        .isEqualTo(1);
  }

  @Test
  void whatAHandlerWritesInItsTransactionIsThereWithTheEndOfTheRun() {
    AtomicInteger attempts = new AtomicInteger();
    start(
        builder()
            .on(
                DAILY,
                (run, connection) -> {
                  noteEffect(run, connection);
                  if (attempts.incrementAndGet() == 1) {
                    throw new IllegalStateException("once");
                  }
                })
            .subscriber(
                settings ->
                    settings.retry(RetryPolicy.constant(Duration.ofMillis(1)).attempts(3))));

    goBy(1);

    await().untilAsserted(() -> assertThat(runs()).containsExactly("catch_up succeeded"));
    assertThat(database.count("effects")).isEqualTo(1);
    assertThat(attempts).hasValue(2);
  }

  @Test
  void whatAHandlerPublishesHasTheCorrelationIdOfItsRun() {
    OutboxPublisher publisher = PostgresOutbox.publisher(database.table()).build();
    List<TimerRun> handled = new CopyOnWriteArrayList<>();
    start(
        builder()
            .on(
                DAILY,
                (run, connection) -> {
                  publisher.publish(connection, OutboxMessage.to("mail").body("x").build());
                  handled.add(run);
                }));

    goBy(1);

    awaitRuns("catch_up succeeded");
    assertThat(
            database.list(
                String.class,
                "select headers ->> 'correlation-id' from outbox where queue = 'mail'"))
        .containsExactly("daily/" + handled.get(0).instant());
  }

  @Test
  void aRunThatWaitsBeginsWhenTheOneBeforeEnds() throws Exception {
    CountDownLatch go = new CountDownLatch(1);
    BlockingQueue<TimerRun> handled = new LinkedBlockingQueue<>();
    start(
        builder()
            .on(
                DAILY.catchUp(CatchUp.ALL),
                run -> {
                  handled.add(run);
                  go.await();
                }));

    goBy(3);

    await().untilAsserted(() -> assertThat(runs()).hasSize(3));
    assertThat(runs()).containsExactly("catch_up begun", "catch_up waiting", "catch_up waiting");
    assertThat(handled).hasSizeLessThanOrEqualTo(1);
    go.countDown();
    await()
        .atMost(Duration.ofSeconds(20)) // before the look that comes anyway
        .untilAsserted(
            () ->
                assertThat(runs())
                    .containsExactly(
                        "catch_up succeeded", "catch_up succeeded", "catch_up succeeded"));
    assertThat(handled.stream().map(TimerRun::instant)).isSorted().hasSize(3);
    assertThat(handled.stream().filter(run -> run.previous().isPresent())).hasSize(2);
  }

  @Test
  void aRunThatIsTerminatedIsToldAndChangesNothingAnyMore() throws Exception {
    CountDownLatch go = new CountDownLatch(1);
    BlockingQueue<TimerRun> handled = new LinkedBlockingQueue<>();
    start(
        builder()
            .on(
                DAILY.overlap(OverlapPolicy.TERMINATE_OTHER),
                run -> {
                  handled.add(run);
                  if (handled.size() == 1) {
                    go.await();
                  }
                }));
    goBy(1);
    await().until(() -> handled.size() == 1);
    database.update("update outbox_timer_run set instant = instant - interval '1 day'");

    goBy(1);

    await()
        .untilAsserted(
            () -> assertThat(runs()).containsExactly("catch_up terminated", "catch_up succeeded"));
    TimerRun first = handled.poll();
    await().until(first::isCancelled);
    go.countDown();
    await().until(() -> timers.health().subscriber().running() == 0);
    assertThat(runs()).containsExactly("catch_up terminated", "catch_up succeeded");
  }

  @Test
  void aRunIsAskedToStopAndTheNextOneBeginsWhenItReturns() {
    CountDownLatch go = new CountDownLatch(1);
    List<TimerRun> handled = new CopyOnWriteArrayList<>();
    start(
        builder()
            .on(
                DAILY.overlap(OverlapPolicy.CANCEL_OTHER),
                run -> {
                  handled.add(run);
                  if (handled.size() == 1) {
                    go.await();
                  }
                }));
    goBy(1);
    await().atMost(SOON).until(() -> handled.size() == 1);
    TimerRun first = handled.get(0);
    assertThat(first.isCancelled()).isFalse();

    aDayGoesBy();

    await().atMost(SOON).until(first::isCancelled);
    assertThat(runs()).containsExactly("catch_up begun", "catch_up waiting");
    assertThat(handled).hasSize(1);
    go.countDown();
    awaitRuns("catch_up succeeded", "catch_up succeeded");
    assertThat(handled).hasSize(2);
    assertThat(handled.get(1).previous()).contains(onRecord(0, RunStatus.SUCCEEDED));
    assertThat(ofRun(1, "started_at")).isAfterOrEqualTo(ofRun(0, "ended_at"));
  }

  @Test
  void whatATerminatedRunHasWrittenInItsTransactionIsRolledBack() {
    CountDownLatch go = new CountDownLatch(1);
    List<TimerRun> handled = new CopyOnWriteArrayList<>();
    start(
        builder()
            .on(
                DAILY.overlap(OverlapPolicy.TERMINATE_OTHER),
                (run, connection) -> {
                  noteEffect(run, connection);
                  handled.add(run);
                  if (handled.size() == 1) {
                    go.await();
                  }
                })
            .subscriber(settings -> settings.gracefulTimeout(SOON)));
    goBy(1);
    await().atMost(SOON).until(() -> handled.size() == 1);

    aDayGoesBy();

    awaitRuns("catch_up terminated", "catch_up succeeded");
    List<String> before = database.list(String.class, RUNS_IN_FULL);
    assertThat(database.count("effects")).as("of the second run").isEqualTo(1);
    go.countDown();
    timers.stop(); // waits for the first one
    assertThat(database.count("effects")).isEqualTo(1);
    assertThat(database.list(String.class, RUNS_IN_FULL)).isEqualTo(before);
    assertThat(database.count("outbox")).isZero();
    assertThat(database.count("outbox_dlq")).isZero();
    assertThat(handled).hasSize(2);
  }

  @Test
  void aRunThatReturnsSinceItsNodeStopsIsHandledAgainByAnother() throws Exception {
    BlockingQueue<TimerRun> handled = new LinkedBlockingQueue<>();
    start(
        builder()
            .on(
                DAILY,
                run -> {
                  handled.add(run);
                  await().atMost(SOON).until(run::isCancelled);
                })
            .subscriber(settings -> settings.gracefulTimeout(SOON)));
    goBy(1);
    assertThat(handled.poll(60, TimeUnit.SECONDS)).isNotNull();

    timers.stop();

    assertThat(runs()).containsExactly("catch_up begun");
    assertThat(database.count("outbox_dlq")).isZero();
    try (Timers other = builder().on(DAILY, handled::add).build()) {
      other.start();
      awaitRuns("catch_up succeeded");
    }
    TimerRun again = handled.poll(60, TimeUnit.SECONDS);
    assertThat(again).isNotNull();
    assertThat(again.attempt()).isEqualTo(2);
  }

  /** Its run has written and looks whether it is cancelled; what it does then is given. */
  private void stopDuringATransactionalRun(Consumer<TimerRun> then) throws Exception {
    CountDownLatch wrote = new CountDownLatch(1);
    start(
        builder()
            .on(
                DAILY,
                (run, connection) -> {
                  noteEffect(run, connection);
                  wrote.countDown();
                  await().atMost(SOON).until(run::isCancelled);
                  then.accept(run);
                })
            .subscriber(settings -> settings.gracefulTimeout(SOON)));
    goBy(1);
    assertThat(wrote.await(60, TimeUnit.SECONDS)).isTrue();
    timers.stop();
  }

  @Test
  void whatATransactionalRunWroteThatReturnsSinceItsNodeStopsIsNotThereTwice() throws Exception {
    stopDuringATransactionalRun(run -> {});

    assertThat(runs()).containsExactly("catch_up begun");
    assertThat(database.count("effects")).isZero();
    try (Timers other = builder().on(DAILY, TimersIT::noteEffect).build()) {
      other.start();
      awaitRuns("catch_up succeeded");
    }
    assertThat(database.count("effects")).isOne();
  }

  @Test
  void aTransactionalRunThatIsDoneThoughItsNodeStopsSaysSo() throws Exception {
    stopDuringATransactionalRun(run -> run.delivery().decide(Outcome.ack()));

    assertThat(runs()).containsExactly("catch_up succeeded");
    assertThat(database.count("effects")).isOne();
  }

  @Test
  void aStopWaitsForTheRunInProgressAndAnInstantThatComesLaterHasNoRun() throws Exception {
    CountDownLatch go = new CountDownLatch(1);
    BlockingQueue<TimerRun> handled = new LinkedBlockingQueue<>();
    start(
        builder()
            .on(
                DAILY,
                run -> {
                  handled.add(run);
                  go.await();
                })
            .subscriber(settings -> settings.gracefulTimeout(SOON)));
    goBy(1);
    TimerRun run = handled.poll(60, TimeUnit.SECONDS);
    assertThat(run).isNotNull();

    CompletableFuture<Void> stopped = CompletableFuture.runAsync(timers::stop);
    await().atMost(SOON).until(run.delivery()::stopping);
    assertThat(stopped).isNotDone();
    go.countDown();
    assertThat(stopped).succeedsWithin(SOON);
    assertThat(runs()).containsExactly("catch_up succeeded");

    // what another node hears, and does, the stopped one would have heard as well
    try (Timers other = builder().on(Timer.of("other", DAILY.schedule()), handled::add).build()) {
      other.start();
      await().atMost(SOON).until(() -> database.count("outbox_timer") == 2);
      aDayGoesBy();
      awaitRuns("catch_up succeeded", "catch_up succeeded");
    }
    assertThat(database.list(String.class, "select name from outbox_timer_run order by id"))
        .containsExactly("daily", "other");
    assertThat(database.list(String.class, "select name from outbox_timer where due_at <= now()"))
        .containsExactly("daily");
  }

  @Test
  void theLastRunBeforeThatEndedIsTold() throws Exception {
    BlockingQueue<TimerRun> handled = new LinkedBlockingQueue<>();
    start(
        builder()
            .on(
                DAILY.withoutRetries(),
                run -> {
                  handled.add(run);
                  if (run.previous().isEmpty()) {
                    throw new IllegalStateException("no paper");
                  }
                }));
    goBy(1);
    awaitRuns("catch_up failed");
    assertThat(handled.take().previous()).isEmpty();

    aDayGoesBy();
    awaitRuns("catch_up failed", "catch_up succeeded");
    TimerRun second = handled.take();
    assertThat(second.previous()).contains(onRecord(0, RunStatus.FAILED));
    assertThat(second.previous().orElseThrow().instant()).isEqualTo(second.instant().minus(A_DAY));

    aDayGoesBy();
    awaitRuns("catch_up failed", "catch_up succeeded", "catch_up succeeded");
    PastRun ofThird = handled.take().previous().orElseThrow();
    assertThat(ofThird).isEqualTo(onRecord(1, RunStatus.SUCCEEDED));
    assertThat(ofThird.ended()).isAfterOrEqualTo(ofThird.started());
  }

  @Test
  void theTokenGrowsWithTheAttempts() {
    List<TimerRun> attempts = new CopyOnWriteArrayList<>();
    start(
        builder()
            .on(
                DAILY,
                run -> {
                  attempts.add(run);
                  throw new IllegalStateException("no mail server");
                })
            .subscriber(
                settings ->
                    settings.retry(RetryPolicy.constant(Duration.ofMillis(1)).attempts(4))));

    goBy(1);

    awaitRuns("catch_up failed");
    assertThat(attempts).extracting(TimerRun::attempt).containsExactly(1, 2, 3, 4);
    assertThat(attempts).extracting(TimerRun::token).isSorted().doesNotHaveDuplicates();
    assertThat(database.one(Long.class, "select lease_token from outbox_timer_run"))
        .isEqualTo(attempts.get(3).token());
  }

  @Test
  void anAttemptThatCouldNotBeNotedIsNoFailureOfTheHandler() {
    AtomicInteger handled = new AtomicInteger();
    start(builder().on(DAILY.withoutRetries(), run -> handled.incrementAndGet()));
    goBy(1);
    await().untilAsserted(() -> assertThat(runs()).containsExactly("catch_up succeeded"));
    database.update("alter table outbox_timer_run rename to away");
    try {
      database.update(
          "insert into outbox (queue, type, payload, headers) select 'timers.shop', 'daily', '',"
              + " jsonb_build_object('timer-run', to_char(instant at time zone 'UTC',"
              + " 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"') || ' ' || cause || ' ') from away");
      await().until(() -> database.count("outbox where lease_token > 1") == 1);
      assertThat(database.count("outbox_dlq")).isZero();
    } finally {
      database.update("alter table away rename to outbox_timer_run");
    }
    await().until(() -> database.count("outbox") == 0);
    assertThat(database.count("outbox_dlq")).isZero();
    assertThat(handled).hasValue(1);
  }

  @Test
  void aTimerThatOnlyOthersKnowIsLeftToThem() {
    AtomicInteger handled = new AtomicInteger();
    start(builder().on(DAILY, run -> handled.incrementAndGet()));
    Timers newer =
        builder()
            .on(Timer.of("newer", Schedule.every(Duration.ofDays(1))), run -> handled.addAndGet(10))
            .subscriber(settings -> settings.name("newer"))
            .build();
    newer.start();
    try {
      await().until(() -> database.count("outbox_timer") == 2);
      goBy(1);

      await().untilAsserted(() -> assertThat(handled).hasValue(11));
      await()
          .untilAsserted(
              () -> assertThat(runs()).containsExactly("catch_up succeeded", "catch_up succeeded"));
    } finally {
      newer.stop();
    }
    assertThat(database.count("outbox_dlq")).isZero();
  }
}
