package dev.outbox4j.timer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.migrations.TimerMigrations;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.notify.pgjdbc.PgjdbcListen;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.time.Duration;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What people do to timers. The server's clock is not waited for: what is stored is put back. */
@ExtendWith(PostgresExtension.class)
class TimerControlIT {
  private static final Duration A_DAY = Duration.ofDays(1);
  private static final Timer DAILY = Timer.of("daily", Schedule.every(A_DAY));

  private final TestDatabase database;
  private final PostgresOutbox outbox;
  private final TimerControl control;
  private final BlockingQueue<TimerRun> handled = new LinkedBlockingQueue<>();
  private Timers timers;

  TimerControlIT(TestDatabase database) {
    this.database = database;
    DataSource pool = database.pool(10);
    this.outbox = PostgresOutbox.on(pool, database.table());
    this.control = TimerControl.of(outbox, "shop");
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

  private void start(Timer timer) {
    timers =
        Timers.builder(outbox, "shop")
            .on(timer, handled::add)
            .listen(PgjdbcListen.on(database.plain()))
            .build();
    timers.start();
    await().until(() -> !control.timers().isEmpty());
  }

  private void goBy(int days) {
    database.list(
        String.class,
        "with gone as (update outbox_timer set due_at = case when paused_at is null then now() end,"
            + " decided_up_to = decided_up_to - make_interval(days => ?) returning 1)"
            + " select pg_notify('outbox_outbox_timer', 'shop')::text from gone",
        days);
  }

  private Instant today() {
    return database.one(OffsetDateTime.class, "select date_trunc('day', now(), 'UTC')").toInstant();
  }

  private List<String> runs() {
    return control.history("daily", 100).stream()
        .map(run -> run.cause() + " " + run.status())
        .toList();
  }

  @Test
  void whatIsAskedForIsRunOnceForEachRequest() {
    start(DAILY);

    assertThat(control.trigger("daily", "after the import")).isTrue();
    assertThat(control.trigger("daily", "after the import")).isFalse();
    assertThat(control.trigger("daily", "once more")).isTrue();

    await()
        .untilAsserted(
            () -> assertThat(runs()).containsExactly("MANUAL SUCCEEDED", "MANUAL SUCCEEDED"));
    assertThat(handled).extracting(TimerRun::cause).containsExactly(Cause.MANUAL, Cause.MANUAL);
    assertThat(control.history("daily", 1)).hasSize(1);
    assertThat(control.history("daily", 1).get(0).request()).contains("once more");
  }

  @Test
  void whileATimerIsPausedNothingIsDueAndAfterwardsNothingWasMissed() {
    start(DAILY);
    assertThat(control.pause("daily", "ann", "the mail server is away")).isTrue();
    assertThat(control.pause("daily", "bob", "no idea")).isFalse();
    TimerStatus paused = control.timers().get(0);
    assertThat(paused.pause())
        .hasValueSatisfying(
            pause -> {
              assertThat(pause.by()).isEqualTo("ann");
              assertThat(pause.reason()).isEqualTo("the mail server is away");
            });
    assertThat(paused.due()).isEmpty();
    assertThat(paused.runsLeft()).isEmpty();

    goBy(5);
    assertThat(control.trigger("daily", "all the same")).isTrue();
    await().untilAsserted(() -> assertThat(runs()).containsExactly("MANUAL SUCCEEDED"));

    assertThat(control.resume("daily")).isTrue();
    assertThat(control.resume("daily")).isFalse();
    await()
        .untilAsserted(
            () -> assertThat(control.timers().get(0).due()).contains(today().plus(A_DAY)));
    assertThat(runs()).containsExactly("MANUAL SUCCEEDED");
    assertThat(control.timers().get(0).notRun()).isZero();
  }

  @Test
  void theRecordSaysWhichRunWasAskedToStopItsTokenAndHowManyRunsAreLeft() {
    timers =
        Timers.builder(outbox, "shop")
            .on(
                DAILY.overlap(OverlapPolicy.CANCEL_OTHER).limitedTo(5),
                run -> {
                  handled.add(run);
                  if (handled.size() == 1) {
                    await().atMost(Duration.ofSeconds(60)).until(run::isCancelled);
                  }
                })
            .listen(PgjdbcListen.on(database.plain()))
            .build();
    timers.start();
    await().until(() -> !control.timers().isEmpty());
    assertThat(control.timers().get(0).runsLeft()).hasValue(5);
    goBy(1);
    await().until(() -> handled.size() == 1);
    database.update("update outbox_timer_run set instant = instant - interval '1 day'");

    goBy(1);

    await()
        .atMost(Duration.ofSeconds(60))
        .untilAsserted(
            () -> assertThat(runs()).containsExactly("CATCH_UP SUCCEEDED", "CATCH_UP SUCCEEDED"));
    List<RecordedRun> latestFirst = control.history("daily", 2);
    assertThat(latestFirst.get(0).cancelled()).isEmpty();
    assertThat(latestFirst.get(1).cancelled()).isPresent();
    assertThat(handled)
        .extracting(TimerRun::token)
        .containsExactly(latestFirst.get(1).token(), latestFirst.get(0).token())
        .allMatch(token -> token > 0);
    assertThat(control.timers().get(0).runsLeft()).hasValue(3);
  }

  @Test
  void aRunThatWasNotStartedHasNoToken() {
    start(DAILY);
    timers.stop();
    assertThat(control.trigger("daily", "later")).isTrue();

    RecordedRun waiting = control.history("daily", 1).get(0);

    assertThat(waiting.token()).isZero();
    assertThat(waiting.started()).isEmpty();
    assertThat(control.timers().get(0).oldestStarted()).isEmpty();
  }

  @Test
  void theInstantsOfATimeThatIsOverAreRunInTheirOrderAndOnce() {
    start(DAILY);
    Instant from = today().minus(A_DAY.multipliedBy(5));
    Instant to = today().minus(A_DAY.multipliedBy(3));

    assertThat(control.backfill(DAILY, from, to, "after the outage")).isEqualTo(3);
    assertThat(control.backfill(DAILY, from, to.plus(A_DAY), "after the outage")).isEqualTo(1);

    await().untilAsserted(() -> assertThat(runs()).hasSize(4).containsOnly("BACKFILL SUCCEEDED"));
    assertThat(handled)
        .extracting(TimerRun::instant)
        .containsExactly(from, from.plus(A_DAY), to, to.plus(A_DAY));
  }

  @Test
  void whatCannotBeAskedForIsRefused() {
    start(DAILY);
    Instant now = Instant.now();

    assertThatThrownBy(() -> control.trigger("dayly", "x"))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("there is no timer 'dayly' on record");
    assertThatThrownBy(() -> control.trigger("daily", " "))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("request ' ' is blank");
    assertThatThrownBy(() -> control.backfill(DAILY, now.minus(A_DAY), now.plus(A_DAY), "x"))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("is not over");
    assertThatThrownBy(() -> control.backfill(DAILY, now, now.minus(A_DAY), "x"))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("ends before it begins");
    assertThatThrownBy(() -> control.history("daily", 0))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("most is 0; it must be 1 to 100,000");
    assertThat(control.pause("dayly", "ann", "why")).isFalse();
    assertThat(control.resume("dayly")).isFalse();
    assertThat(control.remove("dayly")).isFalse();
  }

  @Test
  void whatPeopleSayMayHave2000Bytes() {
    start(DAILY);
    String longest = "ä".repeat(1_000);

    assertThat(control.pause("daily", longest, longest)).isTrue();
    assertThat(control.trigger("daily", longest)).isTrue();

    TimerStatus.Pause pause = control.timers().get(0).pause().orElseThrow();
    assertThat(pause.by()).isEqualTo(longest);
    assertThat(pause.reason()).isEqualTo(longest);
    assertThat(control.history("daily", 1).get(0).request()).contains(longest);
  }

  @ParameterizedTest
  @ValueSource(ints = {Integer.MIN_VALUE, -1, 0, 100_001, Integer.MAX_VALUE})
  void aNumberOutOfRangeIsRefused(int most) {
    start(DAILY);
    String message = "most is " + most + "; it must be 1 to 100,000";

    assertThatThrownBy(() -> control.next(DAILY, most))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage(message);
    assertThatThrownBy(() -> control.history("daily", most))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage(message);
    assertThatThrownBy(() -> control.purge(Instant.now(), most))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage(message);
  }

  @Test
  void theGreatestNumberIsAllowed() {
    start(DAILY);
    Timer everyMinute = Timer.of("t", Schedule.every(Duration.ofMinutes(1)));

    assertThat(control.next(everyMinute, 100_000)).hasSize(100_000);
    assertThat(control.history("daily", 100_000)).isEmpty();
    assertThat(control.purge(Instant.now(), 100_000)).isZero();
  }

  @Test
  void ofTenThousandInstantsRunsAreMadeAndOfMoreNone() {
    start(DAILY);
    timers.stop(); // nobody is to handle them
    Timer everySecond = Timer.of("daily", Schedule.every(Duration.ofSeconds(1)));
    Instant from = today().minus(A_DAY);
    Instant last = from.plusSeconds(9_999);
    Instant tooLate = last.plusSeconds(1);

    assertThatThrownBy(() -> control.backfill(everySecond, from, tooLate, "x"))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage(
            "the time from %s to %s has more than 10000 instants; ask for parts of it"
                .formatted(from, tooLate));
    assertThat(database.count("outbox_timer_run")).isZero();
    assertThat(control.backfill(everySecond, from, last, "x")).isEqualTo(10_000);
    assertThat(database.count("outbox_timer_run")).isEqualTo(10_000);
  }

  @Test
  void aTimerWhoseLatestRunsAllFailedIsPausedUntilItIsResumed() {
    Timer timer = DAILY.pauseAfterFailures(2).withoutRetries();
    timers =
        Timers.builder(outbox, "shop")
            .on(
                timer,
                run -> {
                  handled.add(run);
                  throw new IllegalStateException("no");
                })
            .listen(PgjdbcListen.on(database.plain()))
            .build();
    timers.start();
    await().until(() -> !control.timers().isEmpty());
    for (int failures = 1; failures <= 2; failures++) {
      assertThat(control.trigger("daily", "request " + failures)).isTrue();
      int expected = failures;
      await().until(() -> runs().stream().filter("MANUAL FAILED"::equals).count() == expected);
    }
    goBy(1);

    await().until(() -> control.timers().get(0).pause().isPresent());
    assertThat(control.timers().get(0).pause().orElseThrow().reason())
        .isEqualTo("its latest runs have all failed");
    assertThat(handled).hasSize(2);
    assertThat(control.resume("daily")).isTrue();
    goBy(1);
    await().until(() -> handled.size() == 3);
    assertThat(control.timers().get(0).pause()).isEmpty();
  }

  @Test
  void runsThatHaveEndedCanBePurgedAndATimerRemoved() {
    start(DAILY);
    control.trigger("daily", "x");
    control.trigger("daily", "y");
    await()
        .untilAsserted(
            () -> assertThat(runs()).containsExactly("MANUAL SUCCEEDED", "MANUAL SUCCEEDED"));
    Instant tomorrow = Instant.now().plus(A_DAY);

    assertThat(control.purge(Instant.now().minus(A_DAY), 10)).isZero();
    assertThat(control.purge(tomorrow, 10)).as("but for the latest success").isEqualTo(1);
    assertThat(control.purge(tomorrow, 10)).isZero();
    assertThat(control.remove("daily")).isTrue();
    assertThat(control.timers()).isEmpty();
  }

  @Test
  void anotherApplicationHasNothingToDoWithIt() {
    start(DAILY);
    TimerControl other = TimerControl.of(outbox, "bank");

    assertThat(other.timers()).isEmpty();
    assertThat(other.pause("daily", "ann", "why")).isFalse();
    assertThatThrownBy(() -> other.trigger("daily", "x"))
        .isInstanceOf(IllegalArgumentException.class);
    assertThat(other.purge(Instant.now().plus(A_DAY), 10)).isZero();
  }
}
