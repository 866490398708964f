package dev.outbox4j.timer.internal;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.migrations.TimerMigrations;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.timer.CatchUp;
import dev.outbox4j.timer.OverlapPolicy;
import dev.outbox4j.timer.Timer;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.extension.ExtendWith;

/** The ticks of {@link OverlapRows}, by a server's clock. */
@ExtendWith(PostgresExtension.class)
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class OverlapIT {
  private final TestDatabase database;
  private final ServerClock clock;

  OverlapIT(TestDatabase database) {
    this.database = database;
    this.clock = new ServerClock(database);
  }

  @BeforeAll
  void setUp() {
    database.migrate(TimerMigrations.of("public", "outbox"), TimerMigrations::migrate);
  }

  @AfterAll
  void close() {
    clock.close();
  }

  private ServerTimer onServer(Timer timer) {
    database.update("truncate outbox, outbox_timer, outbox_timer_run");
    return new ServerTimer(database, clock, timer, OverlapRows.REGISTERED, OverlapRows.LASTS);
  }

  @OverlapRows.Each
  void whatBecomesOfInstantsWhileARunLasts(OverlapPolicy policy, String expected) {
    ServerTimer onServer = onServer(OverlapRows.HOURLY.overlap(policy));
    onServer.heedCancelAfter(OverlapRows.HEEDS_CANCEL_AFTER);

    onServer.runUntil(OverlapRows.at("16:00"));

    assertThat(onServer.events()).isEqualTo(OverlapRows.list(expected));
  }

  @OverlapRows.EachCaughtUp
  void thoseThatAreAllCaughtUpWaitForOneAnotherAndAreNotSkipped(
      OverlapPolicy policy, String expected) {
    ServerTimer onServer = onServer(OverlapRows.HOURLY.overlap(policy).catchUp(CatchUp.ALL));
    onServer.nobodyLooksUntil(OverlapRows.at("12:30"));

    onServer.runUntil(OverlapRows.at("15:00"));

    assertThat(onServer.events()).isEqualTo(OverlapRows.list(expected));
  }
}
