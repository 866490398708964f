package dev.outbox4j.timer.internal;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.migrations.TimerMigrations;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.timer.CatchUp;
import dev.outbox4j.timer.Timer;
import dev.outbox4j.timer.TimerStatus;
import java.time.Duration;
import java.time.InstantSource;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.extension.ExtendWith;

/** The ticks of {@link CatchUpRows}, by a server's clock. */
@ExtendWith(PostgresExtension.class)
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class CatchUpIT {
  private final TestDatabase database;
  private final ServerClock clock;
  private final TimerStore store;
  private final ControlStore control;

  CatchUpIT(TestDatabase database) {
    this.database = database;
    this.clock = new ServerClock(database);
    PostgresOutbox outbox = PostgresOutbox.on(clock.sessions(), database.table());
    this.store = new TimerStore(outbox, "shop", "timers", InstantSource.system());
    this.control = new ControlStore(outbox, "shop");
  }

  @BeforeAll
  void setUp() {
    database.migrate(TimerMigrations.of("public", "outbox"), TimerMigrations::migrate);
  }

  @AfterAll
  void close() {
    clock.close();
  }

  private int tick(Timer timer) {
    return store.tick(Map.of("t", timer), Set.of(), 10).timers();
  }

  @CatchUpRows.Each
  void whatIsRunAfterATimeWithoutANode(
      CatchUp policy,
      String time,
      Duration window,
      String schedule,
      String deployment,
      String runs,
      long notRun) {
    database.update("truncate outbox, outbox_timer, outbox_timer_run");
    Timer before = CatchUpRows.before(policy, window);
    clock.set(CatchUpRows.LAST_LOOK);
    store.register(List.of(before), "v1");
    tick(before);
    database.update("delete from outbox_timer_run"); // the run of that deployment
    database.update("delete from outbox");
    Timer timer = CatchUpRows.now(policy, window, schedule);

    clock.set(CatchUpRows.at(time));
    store.register(List.of(timer), CatchUpRows.name(deployment));
    tick(timer);

    List<String> expected = CatchUpRows.list(runs);
    assertThat(tick(timer)).as("decided by a second look").isZero();
    assertThat(TestPlans.onRecord(control.history("t", 100))).isEqualTo(expected);
    TimerStatus status = control.timers().get(0);
    assertThat(status.notRun()).isEqualTo(notRun);
    assertThat(status.due()).isEqualTo(timer.schedule().next(CatchUpRows.at(time)));
    assertThat(database.count("outbox"))
        .isEqualTo(expected.stream().filter(run -> run.contains("BEGINS")).count());
  }
}
