package dev.outbox4j.timer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.migrations.TimerMigrations;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.notify.pgjdbc.PgjdbcListen;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.testing.CapturedLogs;
import dev.outbox4j.timer.internal.TimerStore;
import java.sql.Connection;
import java.time.Duration;
import java.time.InstantSource;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** What a node does whose timers somebody else changes or removes. */
@ExtendWith(PostgresExtension.class)
class TimerChangesIT {
  private static final Duration SOON = Duration.ofSeconds(60);
  private static final Timer DAILY = Timer.of("daily", Schedule.every(Duration.ofDays(1)));
  private static final Timer OTHER = Timer.of("other", DAILY.schedule());

  private final TestDatabase database;
  private final PostgresOutbox outbox;
  private final BlockingQueue<TimerRun> handled = new LinkedBlockingQueue<>();
  private final CountDownLatch go = new CountDownLatch(1);
  private Timers node;

  TimerChangesIT(TestDatabase database) {
    this.database = database;
    this.outbox = PostgresOutbox.on(database.pool(10), database.table());
  }

  @BeforeEach
  void setUp() {
    database.migrate(TimerMigrations.of("public", "outbox"), TimerMigrations::migrate);
    database.update("truncate outbox, outbox_dlq, outbox_timer, outbox_timer_run");
  }

  @AfterEach
  void stop() {
    go.countDown();
    node.stop();
  }

  private void start(Timers.Builder builder) {
    node = builder.build();
    node.start();
    await().atMost(SOON).until(() -> node.health().healthy());
  }

  private Timers.Builder builder() {
    return Timers.builder(outbox, "shop").listen(PgjdbcListen.on(database.plain()));
  }

  /** Timers are due, of which the given time has gone by; the nodes are told. */
  private void due(String since, int days) {
    database.list(
        String.class,
        "with gone as (update outbox_timer set due_at = now() - ?::interval,"
            + " decided_up_to = decided_up_to - make_interval(hours => ?) returning 1)"
            + " select pg_notify('outbox_outbox_timer', 'shop')::text from gone",
        since,
        24 * days);
  }

  private List<String> runs() {
    return database.list(
        String.class, "select name || ' ' || status from outbox_timer_run order by id");
  }

  private String schedule() {
    return database.one(String.class, "select schedule from outbox_timer where name = 'daily'");
  }

  /** As if newer nodes had come and gone. */
  @Test
  void aNodePutsItsOwnScheduleOnRecordWhereNobodyTakesCareOfTheOtherAndWarns() throws Exception {
    start(builder().on(DAILY, handled::add));
    String own = schedule();
    Timer weekly = Timer.of("daily", Schedule.every(Duration.ofDays(7)));
    assertThat(
            new TimerStore(outbox, "shop", "timers.shop", InstantSource.system())
                .register(List.of(weekly), null))
        .isEmpty();
    assertThat(schedule()).isNotEqualTo(own);
    try (CapturedLogs logs = new CapturedLogs()) {
      due("3 minutes", 0);

      await().atMost(SOON).until(() -> schedule().equals(own));
      assertThat(logs.lines())
          .filteredOn(line -> line.startsWith("WARN") && line.contains("no node takes care of it"))
          .singleElement()
          .asString()
          .contains("timers [daily]: another schedule is on record");
    }
    due("0", 1);
    TimerRun run = handled.poll(60, TimeUnit.SECONDS);
    assertThat(run).isNotNull();
    assertThat(run.missed()).isEqualTo(1);
  }

  @Test
  void aTimerThatIsLockedWhenItsNodeStartsIsToldAndRegisteredOnceItIsFreeAndTheOthersRun()
      throws Exception {
    start(builder().on(DAILY, handled::add).on(OTHER, handled::add));
    node.stop();
    String before = schedule();
    due("0", 1);
    Timer weekly = Timer.of("daily", Schedule.every(Duration.ofDays(7)));
    try (CapturedLogs logs = new CapturedLogs();
        Connection stranger = database.plain().getConnection()) {
      stranger.setAutoCommit(false);
      stranger
          .createStatement()
          .execute("select from outbox_timer where name = 'daily' for update");

      start(builder().on(weekly, handled::add).on(OTHER, handled::add));

      await()
          .atMost(SOON)
          .untilAsserted(() -> assertThat(runs()).containsExactly("other succeeded"));
      await()
          .atMost(SOON)
          .untilAsserted(
              () ->
                  assertThat(logs.lines())
                      .filteredOn(line -> line.startsWith("WARN") && line.contains(".timer."))
                      .singleElement()
                      .asString()
                      .contains("timers [daily]: another session holds rows of theirs"));
      assertThat(schedule()).isEqualTo(before);
      stranger.rollback();
    }
    await().atMost(SOON).until(() -> !schedule().equals(before));
  }

  @Test
  void aTimerIsRemovedWithItsRunsThatHaveNotEndedAndItsNodeGoesOnWithoutIt() throws Exception {
    TimerControl control = TimerControl.of(outbox, "shop");
    start(
        builder()
            .on(
                DAILY,
                run -> {
                  handled.add(run);
                  go.await();
                })
            .on(OTHER, handled::add));
    assertThat(control.trigger("daily", "one")).isTrue();
    assertThat(handled.poll(60, TimeUnit.SECONDS)).isNotNull();
    assertThat(control.trigger("daily", "two")).isTrue();
    assertThat(runs()).containsExactly("daily begun", "daily waiting");

    assertThat(control.remove("daily")).isTrue();

    assertThat(runs()).isEmpty();
    assertThat(database.count("outbox")).isZero();
    go.countDown();
    await().atMost(SOON).until(() -> node.health().subscriber().running() == 0);
    due("0", 1);
    await().atMost(SOON).untilAsserted(() -> assertThat(runs()).containsExactly("other succeeded"));
    assertThat(database.list(String.class, "select name from outbox_timer"))
        .containsExactly("other");
    assertThat(database.count("outbox_dlq")).isZero();
    assertThat(node.health().healthy()).isTrue();
  }
}
