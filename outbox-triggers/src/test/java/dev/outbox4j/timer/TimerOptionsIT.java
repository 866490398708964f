package dev.outbox4j.timer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.RetryPolicy;
import dev.outbox4j.dlq.DeadLetterQueue;
import dev.outbox4j.migrations.DeadLetterMigrations;
import dev.outbox4j.migrations.TimerMigrations;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.notify.pgjdbc.PgjdbcListen;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.timer.internal.Instants;
import java.time.Duration;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** What options do on a real server. Its clock is not waited for: what is stored is put back. */
@ExtendWith(PostgresExtension.class)
class TimerOptionsIT {
  private static final Duration A_DAY = Duration.ofDays(1);
  private static final Timer DAILY = Timer.of("daily", Schedule.every(A_DAY));
  private static final Duration SOON = Duration.ofMinutes(1);

  private final TestDatabase database;
  private Timers timers;

  TimerOptionsIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void setUp() {
    database.migrate(TimerMigrations.of("public", "outbox"), TimerMigrations::migrate);
    database.update("truncate outbox, outbox_dlq, outbox_timer, outbox_timer_run");
  }

  @AfterEach
  void stop() {
    timers.stop();
  }

  private Timers.Builder builder() {
    return Timers.builder(PostgresOutbox.on(database.pool(10), database.table()), "shop")
        .listen(PgjdbcListen.on(database.plain()));
  }

  private void start(Timers.Builder builder) {
    timers = builder.build();
    timers.start();
    await().atMost(SOON).until(() -> database.count("outbox_timer") > 0);
  }

  private void aDayGoesBy() {
    database.list(
        String.class,
        "with gone as (update outbox_timer set due_at = now(),"
            + " decided_up_to = decided_up_to - interval '24 hours' returning 1)"
            + " select pg_notify('outbox_outbox_timer', 'shop')::text from gone");
  }

  private List<String> runs() {
    return database.list(String.class, "select status from outbox_timer_run order by id");
  }

  private void awaitRuns(String... expected) {
    await().atMost(SOON).untilAsserted(() -> assertThat(runs()).containsExactly(expected));
  }

  private Instant today() {
    return database.one(OffsetDateTime.class, "select date_trunc('day', now(), 'UTC')").toInstant();
  }

  @Test
  void aRunIsGivenUpWhenTheNextInstantComes() {
    AtomicInteger attempts = new AtomicInteger();
    start(
        builder()
            .on(
                DAILY.retryUntilNext(),
                run -> {
                  attempts.incrementAndGet();
                  throw new IllegalStateException("no paper");
                })
            .subscriber(settings -> settings.retry(RetryPolicy.constant(Duration.ofHours(1)))));
    aDayGoesBy();
    await()
        .atMost(SOON)
        .until(() -> database.count("outbox where available_at > now() + interval '1 min'") == 1);
    assertThat(runs()).containsExactly("begun");
    assertThat(
            database.count(
                "outbox o join outbox_timer_run r on r.message_id = o.id"
                    + " and o.expires_at = r.instant + interval '24 hours'"))
        .isEqualTo(1);

    // the next instant has come, and so has the next attempt
    database.update(
        "update outbox set expires_at = now() - interval '1 second', available_at = now()");
    database.list(String.class, "select pg_notify('outbox_outbox', 'timers.shop')::text");

    awaitRuns("failed");
    assertThat(database.list(String.class, "select failure_reason from outbox_dlq"))
        .containsExactly("expired");
    assertThat(database.one(String.class, "select last_error from outbox_timer_run"))
        .startsWith("expired at ");
    assertThat(database.count("outbox")).isZero();
    assertThat(attempts).hasValue(1);
  }

  @Test
  void byDefaultAMessageDoesNotExpire() {
    CountDownLatch go = new CountDownLatch(1);
    start(builder().on(DAILY, run -> go.await()));
    aDayGoesBy();

    awaitRuns("begun");
    assertThat(database.count("outbox where expires_at is null")).isEqualTo(1);
    go.countDown();
    awaitRuns("succeeded");
  }

  @Test
  void aRunIsDueByItsJitterAfterTheInstantThatItIsFor() {
    Timer spread = DAILY.jitter(Duration.ofDays(3650)); // so that it is to come
    AtomicInteger handled = new AtomicInteger();
    start(builder().on(spread, run -> handled.incrementAndGet()));
    Instant today = today();
    aDayGoesBy();

    await().atMost(SOON).until(() -> database.count("outbox") == 1);
    assertThat(database.one(OffsetDateTime.class, "select available_at from outbox").toInstant())
        .isEqualTo(today.plus(Instants.jitter(spread, today)));
    assertThat(
            database.one(OffsetDateTime.class, "select instant from outbox_timer_run").toInstant())
        .isEqualTo(today);
    assertThat(handled).hasValue(0);
  }

  @Test
  void aQueueOfAnotherNameHasTheMessages() throws Exception {
    CountDownLatch go = new CountDownLatch(1);
    BlockingQueue<TimerRun> handled = new LinkedBlockingQueue<>();
    start(
        builder()
            .queue("nightly jobs")
            .on(
                DAILY,
                run -> {
                  handled.add(run);
                  go.await();
                }));
    aDayGoesBy();

    TimerRun run = handled.poll(60, TimeUnit.SECONDS);
    assertThat(run).isNotNull();
    assertThat(run.delivery().queue()).isEqualTo("nightly jobs");
    assertThat(database.list(String.class, "select queue from outbox"))
        .containsExactly("nightly jobs");
    go.countDown();
    awaitRuns("succeeded");
  }

  @Test
  void anotherTableHasTheDeadLetters() {
    DeadLetterMigrations.of("public", "timer_failures").migrate(database.plain());
    start(
        builder()
            .deadLetters(DeadLetterQueue.in("timer_failures"))
            .on(
                DAILY.withoutRetries(),
                run -> {
                  throw new IllegalStateException("no paper");
                }));
    aDayGoesBy();

    awaitRuns("failed");
    assertThat(
            database.list(String.class, "select type || ' ' || failure_reason from timer_failures"))
        .containsExactly("daily retry_terminal");
    assertThat(database.count("outbox_dlq")).isZero();
    assertThat(database.count("outbox")).isZero();
  }
}
