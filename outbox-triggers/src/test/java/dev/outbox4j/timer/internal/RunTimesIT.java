package dev.outbox4j.timer.internal;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.migrations.TimerMigrations;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.timer.CatchUp;
import dev.outbox4j.timer.Cause;
import dev.outbox4j.timer.OverlapPolicy;
import dev.outbox4j.timer.RecordedRun;
import dev.outbox4j.timer.Schedule;
import dev.outbox4j.timer.Timer;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.time.OffsetDateTime;
import java.time.temporal.ChronoUnit;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** When messages of runs are due, and when they expire, by a server's clock. */
@ExtendWith(PostgresExtension.class)
class RunTimesIT {
  private static final Timer HOURLY = Timer.of("t", Schedule.cron("0 0 * * * *"));

  private final TestDatabase database;
  private final ServerClock clock;
  private final TimerStore store;
  private final ControlStore control;

  RunTimesIT(TestDatabase database) {
    this.database = database;
    this.clock = new ServerClock(database);
    PostgresOutbox outbox = PostgresOutbox.on(clock.sessions(), database.table());
    this.store = new TimerStore(outbox, "shop", "timers", InstantSource.system());
    this.control = new ControlStore(outbox, "shop");
  }

  @BeforeEach
  void setUp() {
    database.migrate(TimerMigrations.of("public", "outbox"), TimerMigrations::migrate);
    database.update("truncate outbox, outbox_timer, outbox_timer_run");
    clock.set(at("10:00:00"));
  }

  @AfterEach
  void close() {
    clock.close();
  }

  private void tick(Timer timer, Instant now) {
    clock.set(now);
    store.tick(Map.of("t", timer), Set.of(), 10);
  }

  private void end() {
    database.update("delete from outbox");
    database.update(
        "update outbox_timer_run set status = 'succeeded', ended_at = now() where status = 'begun'");
  }

  private List<Instant> due() {
    return ofMessages("available_at");
  }

  private List<Instant> ofMessages(String column) {
    return database
        .list(OffsetDateTime.class, "select " + column + " from outbox order by id")
        .stream()
        .map(OffsetDateTime::toInstant)
        .toList();
  }

  private static Instant at(String time) {
    return Instant.parse("2026-11-24T" + time + "Z");
  }

  private static Instant withJitter(Timer timer, Instant instant) {
    Duration jitter = Instants.jitter(timer, instant);
    assertThat(jitter).isPositive();
    return instant.plus(jitter);
  }

  @Test
  void aRunOfADeploymentIsDueByItsJitterAfterItWasAskedFor() {
    Timer timer = HOURLY.jitter(Duration.ofMinutes(30)).runOnStartup();
    store.register(List.of(timer), "v1");

    tick(timer, at("10:00:05"));

    assertThat(control.history("t", 10)).extracting(RecordedRun::cause).containsOnly(Cause.STARTUP);
    assertThat(due()).containsExactly(withJitter(timer, at("10:00:00")));
  }

  @Test
  void whatSomebodyAskedForIsDueAtOnceWhateverTheJitter() {
    Timer timer = HOURLY.jitter(Duration.ofDays(3650)).overlap(OverlapPolicy.ALLOW_ALL);
    store.register(List.of(timer), null);
    assertThat(control.trigger("t", "x")).isTrue();
    assertThat(control.backfill(timer, at("08:00:00"), at("08:30:00"), "x", 10)).isEqualTo(1);
    Instant look = at("10:10:00");
    assertThat(withJitter(timer, at("08:00:00"))).isAfter(look);
    assertThat(withJitter(timer, at("10:00:00"))).isAfter(look);

    tick(timer, look);

    assertThat(control.history("t", 10))
        .extracting(RecordedRun::cause)
        .containsExactly(Cause.MANUAL, Cause.BACKFILL);
    assertThat(due()).containsExactly(look, look);
  }

  @Test
  void aRunThatWaitedIsDueWhenItBeginsUnlessItsJitterIsStillToCome() {
    Timer timer = HOURLY.jitter(Duration.ofMinutes(30));
    store.register(List.of(timer), null);
    tick(timer, at("11:00:05"));
    assertThat(due()).containsExactly(withJitter(timer, at("11:00:00")));

    tick(timer, at("12:00:00"));
    end();
    assertThat(withJitter(timer, at("12:00:00"))).isAfter(at("12:00:01"));
    tick(timer, at("12:00:01"));
    assertThat(due()).containsExactly(withJitter(timer, at("12:00:00")));

    tick(timer, at("13:00:00"));
    end();
    tick(timer, at("13:30:00"));
    assertThat(due()).containsExactly(at("13:30:00"));
  }

  @Test
  void aRunThatBeginsLateExpiresWhenTheNextInstantComes() {
    Timer timer = HOURLY.retryUntilNext().catchUp(CatchUp.ALL);
    store.register(List.of(timer), null);

    tick(timer, at("13:20:00"));
    assertThat(beginning()).isEqualTo(at("11:00:00"));
    assertThat(ofMessages("expires_at")).containsExactly(at("14:00:00"));

    end();
    tick(timer, at("15:10:00"));
    assertThat(beginning()).as("it has waited").isEqualTo(at("12:00:00"));
    assertThat(ofMessages("expires_at")).containsExactly(at("16:00:00"));
  }

  @Test
  void aRunThatIsPutOffByItsJitterExpiresWhenTheNextInstantAfterThatComes() {
    Timer timer = HOURLY.retryUntilNext().jitter(Duration.ofDays(10));
    store.register(List.of(timer), null);

    tick(timer, at("11:00:05"));

    Instant due = withJitter(timer, at("11:00:00"));
    assertThat(due).isAfter(at("12:00:00"));
    assertThat(due()).containsExactly(due);
    assertThat(ofMessages("expires_at"))
        .containsExactly(due.truncatedTo(ChronoUnit.HOURS).plus(1, ChronoUnit.HOURS));
  }

  private Instant beginning() {
    return database
        .one(OffsetDateTime.class, "select instant from outbox_timer_run where status = 'begun'")
        .toInstant();
  }
}
