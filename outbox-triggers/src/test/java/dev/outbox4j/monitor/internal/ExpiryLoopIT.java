package dev.outbox4j.monitor.internal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.migrations.MonitorMigrations;
import dev.outbox4j.monitor.Json;
import dev.outbox4j.monitor.MonitorControl;
import dev.outbox4j.monitor.MonitorEvents;
import dev.outbox4j.monitor.MonitorOutcome;
import dev.outbox4j.monitor.MonitorStart;
import dev.outbox4j.monitor.MonitorStatus;
import dev.outbox4j.monitor.MonitorType;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.CountingDataSource;
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
  private static final Duration GRACE = Duration.ofMillis(500);
  private static final Duration LONG_GRACE = Duration.ofMinutes(1);
  private static final Duration EVERY = Duration.ofSeconds(5);
  private static final Duration SOON = Duration.ofMinutes(1);

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
    this.expiries = loop(GRACE);
  }

  private ExpiryLoop loop(Duration grace) {
    return loop(grace, running);
  }

  /** Of a node that runs checks of its own. */
  private ExpiryLoop loop(Duration grace, RunningChecks running) {
    return loop(grace, EVERY, running);
  }

  private ExpiryLoop loop(Duration grace, Duration every, RunningChecks running) {
    return loop(outbox, grace, every, running);
  }

  private ExpiryLoop loop(
      PostgresOutbox outbox, Duration grace, Duration every, RunningChecks running) {
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
        grace,
        every);
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

    assertThat(expiries.step()).isEqualTo(EVERY);

    assertThat(ended()).containsExactly("a completed expired", "b completed expired");
    assertThat(told).containsExactlyInAnyOrder("shop watch a EXPIRED", "shop watch b EXPIRED");
    assertThat(database.list(String.class, "select headers ->> 'monitor-id' from outbox"))
        .as("what somebody has finds nothing to do")
        .containsExactly("a");
    assertThat(database.count("outbox_monitor_event where kind = 'completed'")).isEqualTo(2);
    assertThat(new InstanceReads(outbox, "shop").read("a", messageOf("a"))).isNull();
    assertThat(expiries.step()).isEqualTo(EVERY);
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

    assertThat(expiries.step()).isEqualTo(EVERY);

    assertThat(told).isEmpty();
    assertThat(database.list(String.class, "select status from outbox_monitor order by id"))
        .containsExactly("terminated", "running", "running", "running", "suspended");
  }

  @Test
  void itLooksAgainWhenTheNextOneExpiresAndWhenItsMessageHasHadTime() {
    expires("a", 4);
    assertThat(expiries.step()).isLessThan(EVERY); // its message has half a second
    runs("a", running);
    assertThat(expiries.step()).isLessThan(Duration.ofSeconds(4)); // and its check is told of
    running.ends(instance("a"));
    database.update("update outbox_monitor set expires_at = clock_timestamp()");
    ExpiryLoop patient = loop(Duration.ofMinutes(1));
    assertThat(patient.step()).isEqualTo(EVERY);
    assertThat(loop(Duration.ofSeconds(3)).step()).isLessThan(Duration.ofSeconds(3));
    assertThat(told).isEmpty();
  }

  /** What has begun since, and expires at once, is ended in time though its node is killed. */
  @Test
  void whatBeginsOnOtherNodesIsLookedForMoreOftenThanEachSecond() {
    ExpiryLoop asItIs =
        new ExpiryLoop(outbox, "shop", "monitors.shop", running, new Observer(List.of()));

    assertThat(asItIs.step()).isLessThan(Duration.ofSeconds(1));

    expires("far", 3_600);
    assertThat(asItIs.step()).isLessThan(Duration.ofSeconds(1));
  }

  @Test
  void thoseThatExpireTogetherAreEndedAHundredAtATime() {
    CountingDataSource counting = new CountingDataSource(database.pool(4));
    ExpiryLoop counted = loop(PostgresOutbox.on(counting, database.table()), GRACE, EVERY, running);
    haveExpired(250);

    assertThat(counted.step()).isEqualTo(EVERY);

    assertThat(counting.executionsOf("outcome = 'expired'")).isEqualTo(3);
    assertThat(counting.executions()).as("and the look").isEqualTo(4);
    assertThat(ended()).hasSize(250);
    assertThat(told).hasSize(250).doesNotHaveDuplicates();
    assertThat(database.count("outbox_monitor_event where kind = 'completed'")).isEqualTo(250);
    assertThat(database.count("outbox")).as("those that nobody has").isZero();
  }

  @Test
  void moreThanALookFindsAreEndedWithoutAPause() {
    haveExpired(1_500);

    assertThat(expiries.step()).isZero();

    assertThat(ended()).hasSize(1_000);
    assertThat(expiries.step()).isEqualTo(EVERY);
    assertThat(ended()).hasSize(1_500);
  }

  /** Their messages are due, and nobody has come to them. */
  private void haveExpired(int instances) {
    database.update(
        """
        with messages as (
          insert into outbox (queue, type, payload, headers)
          select 'monitors.shop', 'watch', '',
            jsonb_build_object('monitor-id', 'i' || n, 'monitor-application', 'shop')
          from generate_series(1, ?) n
          returning id, headers)
        insert into outbox_monitor (application, id, type, status, iteration, input, message_id,
          started_at, expires_at, due_at)
        select 'shop', m.headers ->> 'monitor-id', 'watch', 'running', 1, 'null', m.id, now(),
          now() - interval '1 s', now() - interval '1 s'
        from messages m""",
        instances);
  }

  /** A check of it runs on a node. */
  private void runs(String id, RunningChecks node) {
    node.begins(instance(id));
  }

  private Instance instance(String id) {
    Instance instance = new InstanceReads(outbox, "shop").read(id, messageOf(id));
    assertThat(instance).isNotNull();
    return instance;
  }

  private List<String> inOvertime() {
    return database.list(
        String.class, "select id from outbox_monitor where overtime_at is not null order by id");
  }

  @Test
  void aCheckThatRunsHereGoesOnUntilItIsCommitted() {
    ExpiryLoop patient = loop(LONG_GRACE);
    expires("a", -120);
    runs("a", running);

    patient.step();
    assertThat(inOvertime()).containsExactly("a");
    loop(LONG_GRACE, new RunningChecks()).step();

    assertThat(ended()).isEmpty();
    database.update("update outbox_monitor set overtime_at = null"); // as a commit does
    loop(LONG_GRACE, new RunningChecks()).step();
    assertThat(ended()).containsExactly("a completed expired");
  }

  /** The lease of its message lasts much longer. */
  @Test
  void aCheckOfANodeThatIsKilledInOvertimeIsNotWaitedFor() {
    RunningChecks ofKilled = new RunningChecks();
    expires("a", -1);
    runs("a", ofKilled);
    loop(GRACE, ofKilled).step();
    assertThat(ended()).isEmpty();

    await()
        .atMost(SOON)
        .untilAsserted(
            () -> {
              expiries.step();
              assertThat(ended()).containsExactly("a completed expired");
            });
    assertThat(told).containsExactly("shop watch a EXPIRED");
  }

  @Test
  void aNodeSaysAgainAndAgainThatItsCheckGoesOn() {
    expires("a", -120);
    runs("a", running);
    String at = "select overtime_at::text from outbox_monitor";

    assertThat(expiries.step()).isBetween(Duration.ofMillis(100), Duration.ofMillis(167));
    String first = database.one(String.class, at);
    assertThat(expiries.step()).isLessThanOrEqualTo(Duration.ofMillis(167));

    assertThat(database.one(String.class, at)).isGreaterThan(first);
    assertThat(ended()).isEmpty();
  }

  @Test
  void aCheckOfAnInstanceThatIsYoungerThanTheLookBeforeIsToldOf() {
    ExpiryLoop loop = loop(GRACE, HOUR, running);
    expires("seen", -1);
    runs("seen", running);
    loop.start(); // its first look finds it
    try {
      await().atMost(SOON).until(() -> inOvertime().contains("seen"));
      running.ends(instance("seen"));
      await().atMost(SOON).until(() -> ended().size() == 1); // and nothing else is near its end

      expires("young", 3);
      runs("young", running);

      await().atMost(SOON).until(() -> inOvertime().contains("young"));
      assertThat(ended()).containsExactly("seen completed expired");
    } finally {
      loop.stop();
    }
  }

  @Test
  void oneInOvertimeThatIsLockedOrRefusedKeepsNoOther() throws SQLException {
    for (String id : List.of("locked", "refused", "well")) {
      expires(id, -120);
      runs(id, running);
    }
    refuse("refused");
    try (Connection stranger = database.plain().getConnection()) {
      stranger.setAutoCommit(false);
      stranger
          .createStatement()
          .execute("select 1 from outbox_monitor where id = 'locked' for update");
      expiries.step();
      stranger.rollback();
    } finally {
      database.update("drop function refuse() cascade");
    }
    assertThat(inOvertime()).containsExactly("well");
    assertThat(ended()).isEmpty();
  }

  private void refuse(String id) {
    database.update(
        "create function refuse() returns trigger language plpgsql as"
            + " $$ begin raise exception 'no'; end $$");
    database.update(
        "create trigger refuse before update on outbox_monitor for each row"
            + " when (new.id = '"
            + id
            + "') execute function refuse()");
  }

  @Test
  void oneThatTheServerRefusesToEndKeepsNoOtherAndIsTriedAgainLater() {
    CountingDataSource counting = new CountingDataSource(database.pool(4));
    ExpiryLoop counted = loop(PostgresOutbox.on(counting, database.table()), GRACE, EVERY, running);
    for (String id : List.of("a", "refused", "z")) {
      expires(id, -1);
    }
    refuse("refused");
    try {
      assertThat(counted.step()).isEqualTo(EVERY);
      assertThat(ended()).containsExactly("a completed expired", "z completed expired");
      assertThat(counting.executionsOf("outcome = 'expired'"))
          .as("together, and each by itself")
          .isEqualTo(4);

      expires("b", -1);
      assertThat(counted.step()).isEqualTo(EVERY);
      assertThat(ended()).hasSize(3);
      assertThat(counting.executionsOf("outcome = 'expired'")).isEqualTo(5);
    } finally {
      database.update("drop function refuse() cascade");
    }
    await()
        .atMost(SOON)
        .untilAsserted(
            () -> {
              counted.step();
              assertThat(ended()).contains("refused completed expired");
            });
    assertThat(told).hasSize(4);
  }

  @Test
  void aLockedInstanceIsPassedByAndKeepsNoOther() throws SQLException {
    expires("a", -2);
    expires("b", -1);
    try (Connection stranger = database.plain().getConnection()) {
      stranger.setAutoCommit(false);
      stranger.createStatement().execute("select 1 from outbox_monitor where id = 'a' for update");
      assertThat(expiries.step()).as("until it is free").isEqualTo(Duration.ofMillis(100));
      assertThat(ended()).containsExactly("b completed expired");
      stranger.rollback();
    }
    expiries.step();
    assertThat(ended()).containsExactly("a completed expired", "b completed expired");
  }
}
