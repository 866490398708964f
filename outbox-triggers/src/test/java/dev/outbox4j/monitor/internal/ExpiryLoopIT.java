package dev.outbox4j.monitor.internal;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.migrations.MonitorMigrations;
import dev.outbox4j.monitor.Json;
import dev.outbox4j.monitor.MonitorControl;
import dev.outbox4j.monitor.MonitorEvents;
import dev.outbox4j.monitor.MonitorOutcome;
import dev.outbox4j.monitor.MonitorStart;
import dev.outbox4j.monitor.MonitorStatus;
import dev.outbox4j.monitor.MonitorType;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** What is ended whose time is over, and what is not. */
@ExtendWith(PostgresExtension.class)
class ExpiryLoopIT {
  private static final MonitorType<Json> WATCH = MonitorType.of("watch");
  private static final Duration HOUR = Duration.ofHours(1);

  private final TestDatabase database;
  private final MonitorControl control;
  private final RunningChecks running = new RunningChecks();
  private final List<String> told = new CopyOnWriteArrayList<>();
  private final ExpiryLoop expiries;
  private final PostgresOutbox outbox;

  ExpiryLoopIT(TestDatabase database) {
    this.database = database;
    this.outbox = PostgresOutbox.on(database.pool(4), database.table());
    this.control = MonitorControl.of(outbox, "shop");
    this.expiries = loop(Duration.ofMillis(500));
  }

  private ExpiryLoop loop(Duration grace) {
    return new ExpiryLoop(
        outbox,
        "shop",
        "monitors.shop",
        running,
        new Observer(
            List.of(
                new MonitorEvents() {
                  @Override
                  public void ended(
                      String application,
                      String type,
                      String id,
                      MonitorStatus status,
                      @Nullable MonitorOutcome outcome) {
                    told.add(application + " " + type + " " + id + " " + outcome);
                  }
                })),
        grace);
  }

  @BeforeEach
  void setUp() {
    database.migrate(MonitorMigrations.of("public", "outbox"), MonitorMigrations::migrate);
    database.update("truncate outbox, outbox_monitor, outbox_monitor_event");
  }

  /** One whose message somebody has. */
  private void expires(String id, double in) {
    control.start(MonitorStart.of(WATCH, Json.NULL).id(id).firstCheckIn(HOUR).expiresAfter(HOUR));
    database.update(
        "update outbox_monitor set status = 'running', started_at = now(),"
            + " expires_at = clock_timestamp() + make_interval(secs => ?) where id = ?",
        in,
        id);
    database.update(
        "update outbox set lease_token = 1, leased_by = 'killed',"
            + " lease_until = now() + interval '1 hour' where headers ->> 'monitor-id' = ?",
        id);
  }

  private List<String> ended() {
    return database.list(
        String.class,
        "select id || ' ' || status || ' ' || outcome from outbox_monitor"
            + " where ended_at is not null order by id");
  }

  @Test
  void whatHasExpiredIsEndedWhoeverHasItsMessage() {
    expires("a", -1);
    expires("b", -1);
    database.update("update outbox set lease_until = null where headers ->> 'monitor-id' = 'b'");

    assertThat(expiries.step()).isEqualTo(Duration.ofMillis(100));

    assertThat(ended()).containsExactly("a completed expired", "b completed expired");
    assertThat(told).containsExactlyInAnyOrder("shop watch a EXPIRED", "shop watch b EXPIRED");
    assertThat(database.list(String.class, "select headers ->> 'monitor-id' from outbox"))
        .as("what somebody has finds nothing to do")
        .containsExactly("a");
    assertThat(database.count("outbox_monitor_event where kind = 'completed'")).isEqualTo(2);
    assertThat(new InstanceReads(outbox, "shop").read("a", messageOf("a"))).isNull();
    assertThat(expiries.step()).isEqualTo(Duration.ofSeconds(5));
    assertThat(told).hasSize(2);
  }

  private long messageOf(String id) {
    return database.one(Long.class, "select message_id from outbox_monitor where id = ?", id);
  }

  @Test
  void whatHasTimeLeftOrIsSuspendedOrOfAnotherApplicationIsNotEnded() {
    expires("soon", 60);
    expires("later", 600);
    expires("suspended", -1);
    control.suspend("suspended", "reason");
    expires("ended", -1);
    control.terminate("ended", "reason");
    expires("other", -1);
    database.update("update outbox_monitor set application = 'bank' where id = 'other'");

    assertThat(expiries.step()).isEqualTo(Duration.ofSeconds(5));

    assertThat(told).isEmpty();
    assertThat(database.list(String.class, "select status from outbox_monitor order by id"))
        .containsExactly("terminated", "running", "running", "running", "suspended");
  }

  @Test
  void itLooksAgainWhenTheNextOneExpiresAndWhenItsMessageHasHadTime() {
    expires("a", 4);
    assertThat(expiries.step()).isBetween(Duration.ofMillis(100), Duration.ofSeconds(4));
    database.update("update outbox_monitor set expires_at = clock_timestamp()");
    ExpiryLoop patient = loop(Duration.ofMinutes(1));
    assertThat(patient.step()).isEqualTo(Duration.ofSeconds(5));
    assertThat(loop(Duration.ofSeconds(3)).step()).isLessThan(Duration.ofSeconds(3));
    assertThat(told).isEmpty();
  }

  @Test
  void aCheckThatRunsHereGoesOnUntilItIsCommitted() {
    expires("a", -1);
    Instance instance = new InstanceReads(outbox, "shop").read("a", messageOf("a"));
    assertThat(instance).isNotNull();
    running.begins(instance);

    expiries.step();
    running.ends(instance);
    expiries.step();

    assertThat(ended()).isEmpty();
    assertThat(database.count("outbox_monitor where overtime")).isEqualTo(1);
    database.update("update outbox_monitor set overtime = false");
    expiries.step();
    assertThat(ended()).containsExactly("a completed expired");
  }

  @Test
  void aLockedInstanceIsPassedByAndKeepsNoOther() throws SQLException {
    expires("a", -2);
    expires("b", -1);
    try (Connection stranger = database.plain().getConnection()) {
      stranger.setAutoCommit(false);
      stranger.createStatement().execute("select 1 from outbox_monitor where id = 'a' for update");
      expiries.step();
      assertThat(ended()).containsExactly("b completed expired");
      stranger.rollback();
    }
    expiries.step();
    assertThat(ended()).containsExactly("a completed expired", "b completed expired");
  }
}
