package dev.outbox4j.examples.docs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.metrics.MicrometerMetrics;
import dev.outbox4j.migrations.TimerMigrations;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.notify.pgjdbc.PgjdbcListen;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.timer.CatchUp;
import dev.outbox4j.timer.Cause;
import dev.outbox4j.timer.RecordedRun;
import dev.outbox4j.timer.RunStatus;
import dev.outbox4j.timer.Schedule;
import dev.outbox4j.timer.Timer;
import dev.outbox4j.timer.TimerAlert;
import dev.outbox4j.timer.TimerControl;
import dev.outbox4j.timer.Timers;
import dev.outbox4j.triggers.metrics.MicrometerTimerMetrics;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.time.DayOfWeek;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalTime;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.postgresql.ds.PGSimpleDataSource;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The samples of {@code docs/timers.md}. The server's clock is not waited for. */
@ExtendWith(PostgresExtension.class)
class TimerSamplesIT {
  private static final Logger log = LoggerFactory.getLogger(TimerSamplesIT.class);

  private final TestDatabase database;
  private final HikariDataSource dataSource;
  private final OutboxTable table;
  private final List<Instant> sent = new CopyOnWriteArrayList<>();

  TimerSamplesIT(TestDatabase database) {
    this.database = database;
    this.dataSource = database.pool(10);
    this.table = database.table();
  }

  @BeforeEach
  void setUp() {
    // tag::migrate
    TimerMigrations.of("public", "outbox").migrate(dataSource);
    // end::migrate
    database.update("truncate outbox, outbox_dlq, outbox_timer, outbox_timer_run");
    database.update("create table if not exists closed_days (day timestamptz)");
    database.update("truncate closed_days");
  }

  /** The service's own. */
  private static final class Mail {
    private final List<Instant> digests = new CopyOnWriteArrayList<>();

    void sendDigest(Instant instant) {
      digests.add(instant);
    }
  }

  private void send(Instant instant) {
    sent.add(instant);
  }

  private void closeDay(Connection connection, Instant day) throws SQLException {
    try (PreparedStatement insert =
        connection.prepareStatement("insert into closed_days values (?::timestamptz)")) {
      insert.setString(1, day.toString());
      insert.executeUpdate();
    }
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

  private static void awaitSuccess(TimerControl control, String timer) {
    await()
        .untilAsserted(
            () ->
                assertThat(control.history(timer, 100))
                    .isNotEmpty()
                    .extracting(RecordedRun::status)
                    .containsOnly(RunStatus.SUCCEEDED));
  }

  @Test
  void aDailyTimerIsRunAndControlled() {
    PGSimpleDataSource unpooled = database.plain();
    // tag::first
    ZoneId berlin = ZoneId.of("Europe/Berlin");
    Timer report = Timer.of("daily-report", Schedule.daily(LocalTime.of(6, 0)).in(berlin));

    PostgresOutbox outbox = PostgresOutbox.on(dataSource, table);
    Timers timers =
        Timers.builder(outbox, "shop")
            .on(report, run -> send(run.instant()))
            .listen(PgjdbcListen.on(unpooled))
            .build();
    timers.start();
    // end::first
    try (timers) {
      await().until(() -> database.count("outbox_timer") == 1);
      goBy(2);
      await().until(() -> !sent.isEmpty());
      assertThat(sent)
          .allSatisfy(
              instant ->
                  assertThat(instant.atZone(berlin).toLocalTime()).isEqualTo(LocalTime.of(6, 0)));

      Instant now = Instant.now();
      Instant from = now.minus(Duration.ofDays(10));
      Instant to = now.minus(Duration.ofDays(5));
      // tag::control
      TimerControl control = TimerControl.of(outbox, "shop");
      boolean paused = control.pause("daily-report", "ada", "the mail server is down until noon");
      boolean resumed = control.resume("daily-report");
      boolean asked = control.trigger("daily-report", "after the import of 2026-11-29");
      int runs = control.backfill(report, from, to, "after the outage of 2026-11-28");
      // end::control
      assertThat(List.of(paused, resumed, asked)).containsOnly(true);
      assertThat(runs).isBetween(4, 6);
      awaitSuccess(control, "daily-report");
      assertThat(control.history("daily-report", 100))
          .extracting(RecordedRun::cause)
          .contains(Cause.MANUAL, Cause.BACKFILL);
    }
  }

  @Test
  void schedulesHaveTheInstantsThatTheyName() {
    // tag::schedules
    Schedule mondays = Schedule.cron("0 0 9 * * MON").in(ZoneId.of("Europe/Berlin"));
    Schedule halfMinutes = Schedule.every(Duration.ofSeconds(30));
    Schedule twiceADay = Schedule.daily(LocalTime.of(8, 0), LocalTime.of(20, 0));
    Schedule weekend =
        Schedule.weekly(
            Map.of(
                DayOfWeek.SATURDAY, List.of(LocalTime.of(10, 0)),
                DayOfWeek.SUNDAY, List.of(LocalTime.of(11, 0), LocalTime.of(18, 0))));
    // end::schedules
    Instant friday = Instant.parse("2026-11-27T12:00:10Z");
    assertThat(mondays.next(friday)).contains(Instant.parse("2026-11-30T08:00:00Z"));
    assertThat(halfMinutes.next(friday)).contains(Instant.parse("2026-11-27T12:00:30Z"));
    assertThat(twiceADay.next(friday)).contains(Instant.parse("2026-11-27T20:00:00Z"));
    assertThat(weekend.next(friday)).contains(Instant.parse("2026-11-28T10:00:00Z"));
  }

  // tag::own
  /** Midnight after the last day of each quarter, in UTC. */
  record QuarterEnds() implements Schedule {
    @Override
    public Optional<Instant> next(Instant after) {
      LocalDate day = LocalDate.ofInstant(after, ZoneOffset.UTC);
      LocalDate first = day.with(day.getMonth().firstMonthOfQuarter()).withDayOfMonth(1);
      return Optional.of(first.plusMonths(3).atStartOfDay(ZoneOffset.UTC).toInstant());
    }

    @Override
    public String description() {
      return "ends of quarters in UTC";
    }
  }

  // end::own

  @Test
  void aScheduleOfOnesOwnGoesFromInstantToInstant() {
    Instant first = Instant.parse("2027-01-01T00:00:00Z");

    assertThat(new QuarterEnds().next(Instant.parse("2026-10-01T00:00:00Z"))).contains(first);
    assertThat(new QuarterEnds().next(first.minusNanos(1))).contains(first);
    assertThat(new QuarterEnds().next(first)).contains(Instant.parse("2027-04-01T00:00:00Z"));
  }

  @Test
  void optionsAreThoseThatWereSet() {
    // tag::options
    Timer invoices =
        Timer.of("invoices", Schedule.cron("0 0 4 1 * *"))
            .catchUp(CatchUp.ALL)
            .catchUpWindow(Duration.ofDays(70))
            .jitter(Duration.ofMinutes(5))
            .alertWhenMissedFor(Duration.ofHours(1))
            .alertWithoutSuccessFor(Duration.ofDays(40));
    // end::options
    assertThat(invoices.catchUp()).isEqualTo(CatchUp.ALL);
    assertThat(invoices.catchUpWindow()).isEqualTo(Duration.ofDays(70));
    assertThat(invoices.jitter()).isEqualTo(Duration.ofMinutes(5));
    assertThat(invoices.missedGrace()).contains(Duration.ofHours(1));
    assertThat(invoices.successWithin()).contains(Duration.ofDays(40));
  }

  @Test
  void whatAHandlerWritesIsThereWithTheEndOfItsRun() {
    PostgresOutbox outbox = PostgresOutbox.on(dataSource, table);
    // tag::transactional
    Timer closing = Timer.of("close-day", Schedule.cron("0 0 0 * * *"));
    Timers timers =
        Timers.builder(outbox, "shop")
            .on(closing, (run, connection) -> closeDay(connection, run.instant())) // your SQL
            .subscriber(settings -> settings.workers(2))
            .build();
    // end::transactional
    TimerControl control = TimerControl.of(outbox, "shop");
    try (timers) {
      timers.start();
      await().until(() -> !control.timers().isEmpty());
      assertThat(control.trigger("close-day", "now")).isTrue();
      awaitSuccess(control, "close-day");
    }
    assertThat(database.count("closed_days")).isEqualTo(1);
  }

  @Test
  void metersOfTimersAndOfTheirMessagesAreInTheRegistry() {
    SimpleMeterRegistry meterRegistry = new SimpleMeterRegistry();
    Timer digest = Timer.of("digest", Schedule.cron("0 0 9 * * MON"));
    Mail mail = new Mail();
    // tag::metrics
    Timers timers =
        Timers.builder(PostgresOutbox.on(dataSource, table), "shop")
            .on(digest, run -> mail.sendDigest(run.instant()))
            .events(MicrometerTimerMetrics.on(meterRegistry))
            .subscriber(runs -> runs.events(MicrometerMetrics.on(meterRegistry)))
            .build();
    // end::metrics
    try (timers) {
      timers.start();
      assertThat(meterRegistry.find("outbox.timer.healthy").gauge()).isNotNull();
      assertThat(meterRegistry.find("outbox.healthy").gauge()).isNotNull();
    }
  }

  @Test
  void aTimerThatNoNodeHasEverRegisteredIsTold() {
    TimerControl control = TimerControl.of(PostgresOutbox.on(dataSource, table), "shop");
    Timer report = Timer.of("daily-report", Schedule.daily(LocalTime.of(6, 0)));
    // tag::alerts
    for (TimerAlert alert : control.alerts(List.of(report))) {
      log.warn("timer {}: {} since {}", alert.timer(), alert.rule(), alert.since());
    }
    // end::alerts
    assertThat(control.alerts(List.of(report)))
        .extracting(alert -> alert.timer() + " " + alert.rule())
        .containsExactly("daily-report NOT_ON_RECORD");
  }
}
