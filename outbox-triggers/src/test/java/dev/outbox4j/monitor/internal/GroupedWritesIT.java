package dev.outbox4j.monitor.internal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.OutboxStoreException.Fault;
import dev.outbox4j.migrations.MonitorMigrations;
import dev.outbox4j.monitor.Json;
import dev.outbox4j.monitor.MonitorControl;
import dev.outbox4j.monitor.MonitorStart;
import dev.outbox4j.monitor.MonitorType;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.CountingDataSource;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.LeaseRef;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.postgresql.ds.PGSimpleDataSource;

/** Checks that are committed together: each of a group is judged by itself. */
@ExtendWith(PostgresExtension.class)
class GroupedWritesIT {
  private static final MonitorType<Json> WATCH = MonitorType.of("watch").history(3);
  private static final String QUEUE = "monitors.shop";
  private static final String OWNER = "node";
  private static final String OF_GROUPS = "with held as materialized";
  private static final Duration MINUTE = Duration.ofMinutes(1);
  private static final Duration HOUR = Duration.ofHours(1);

  private final TestDatabase database;
  private final PostgresOutbox outbox;
  private final MonitorControl control;
  private final GroupedWrites groups;

  GroupedWritesIT(TestDatabase database) {
    this.database = database;
    this.outbox = PostgresOutbox.on(database.pool(4), database.table());
    this.control = MonitorControl.of(outbox, "shop");
    this.groups = new GroupedWrites(outbox, "shop");
  }

  @BeforeEach
  void setUp() {
    database.migrate(MonitorMigrations.of("public", "outbox"), MonitorMigrations::migrate);
    database.update("truncate outbox, outbox_monitor, outbox_monitor_event");
  }

  /** Starts instances whose messages the owner has. */
  private void started(String... ids) {
    for (String id : ids) {
      control.start(MonitorStart.of(WATCH, Json.NULL).id(id).expiresAfter(HOUR));
    }
    database.update("update outbox_monitor set status = 'running', started_at = now()");
    database.update(
        "update outbox set lease_token = 7, lease_until = now() + interval '1 minute',"
            + " leased_at = now(), leased_by = ?, deliveries_count = 3",
        OWNER);
  }

  private Instance read(String id) {
    long message =
        database.one(Long.class, "select message_id from outbox_monitor where id = ?", id);
    Instance found = new InstanceReads(outbox, "shop").read(id, message);
    assertThat(found).isNotNull();
    return found;
  }

  private static CheckResult again(Duration delay) {
    return new CheckResult(
        CheckResult.Kind.AGAIN, delay, null, null, true, null, null, List.of(), List.of());
  }

  private GroupedWrites.Asked asked(String id, CheckResult result) {
    Instance instance = read(id);
    return new GroupedWrites.Asked(
        new LeaseRef(QUEUE, instance.message(), 7), OWNER, new Again(instance, result, false));
  }

  private List<GroupedWrites.Asked> asked(String... ids) {
    List<GroupedWrites.Asked> all = new ArrayList<>();
    for (String id : ids) {
      all.add(asked(id, again(MINUTE)));
    }
    return all;
  }

  private List<String> checked() {
    return database.list(
        String.class,
        "select m.id from outbox_monitor m join outbox o on o.id = m.message_id"
            + " where m.iteration = 1 and o.lease_until is null and o.deliveries_count = 0"
            + " and o.available_at = m.due_at order by m.id");
  }

  /** No instance of a group, and no message of one, is written in part. */
  private void assertChecked(String... ids) {
    assertThat(checked()).containsExactly(ids);
    assertThat(database.count("outbox_monitor where iteration > 0")).isEqualTo(ids.length);
    assertThat(database.count("outbox where lease_until is null")).isEqualTo(ids.length);
    assertThat(database.count("outbox_monitor_event where kind = 'checked'")).isEqualTo(ids.length);
  }

  @Test
  void aGroupOfAHundredIsOneExecutionThatCommitsByItself() {
    String[] ids = IntStream.range(100, 200).mapToObj(n -> "i" + n).toArray(String[]::new);
    started(ids);
    CountingDataSource counting = new CountingDataSource(database.pool(4));
    GroupedWrites counted =
        new GroupedWrites(PostgresOutbox.on(counting, database.table()), "shop");

    List<@Nullable Boolean> answers = counted.write(asked(ids));

    assertThat(answers).hasSize(100).containsOnly(true);
    assertThat(counting.executions()).isEqualTo(1);
    assertThat(counting.transactionEnds()).isZero();
    assertChecked(ids);
    assertThat(
            database.count(
                "outbox_monitor where due_at between now() + interval '50 s' and now() +"
                    + " interval '60 s'"))
        .isEqualTo(100);
  }

  @ParameterizedTest
  @CsvSource({
    "update outbox_monitor set status = 'terminated' where id = 'b'",
    "update outbox_monitor set ended_at = now() where id = 'b'; update outbox_monitor set status ="
        + " 'completed' where id = 'b'",
    "update outbox_monitor set iteration = -1 where id = 'b'",
    "update outbox_monitor set execution = default where id = 'b'",
    "update outbox_monitor set status = 'pending' where id = 'b'",
    "update outbox_monitor set expires_at = now() where id = 'b'",
    "update outbox_monitor set application = 'bank' where id = 'b'",
    "delete from outbox_monitor where id = 'b'",
    "update outbox set lease_token = 8 where headers ->> 'monitor-id' = 'b'",
    "update outbox set leased_by = 'other' where headers ->> 'monitor-id' = 'b'",
    "delete from outbox where headers ->> 'monitor-id' = 'b'",
  })
  void whatHasChangedSinceIsLeftOutAndNoOtherIs(String change) {
    started("a", "b", "c");
    List<GroupedWrites.Asked> asked = asked("a", "b", "c");
    database.update(change);
    String before = rowsOfB();

    assertThat(groups.write(asked)).containsExactly(true, false, true);

    assertThat(checked()).containsExactly("a", "c");
    assertThat(database.count("outbox_monitor_event where kind = 'checked'")).isEqualTo(2);
    assertThat(rowsOfB()).isEqualTo(before);
  }

  private String rowsOfB() {
    return database
        .list(
            String.class,
            "select m::text from outbox_monitor m where m.id = 'b' union all"
                + " select o::text from outbox o where o.headers ->> 'monitor-id' = 'b'")
        .toString();
  }

  @Test
  void aLeaseThatWasGivenBackIsLeftOut() {
    started("a", "b");
    List<GroupedWrites.Asked> asked = asked("a", "b");
    database.update("update outbox set lease_until = null where headers ->> 'monitor-id' = 'b'");

    assertThat(groups.write(asked)).containsExactly(true, false);

    assertThat(checked()).containsExactly("a");
  }

  @ParameterizedTest
  @CsvSource({
    "select 1 from outbox_monitor where id = 'b' for update",
    "select 1 from outbox_monitor where id = 'b' for no key update",
    "select 1 from outbox where headers ->> 'monitor-id' = 'b' for update",
    "select 1 from outbox where headers ->> 'monitor-id' = 'b' for share"
  })
  void whatAStrangerHasLockedIsLeftOutWithoutAWait(String lock) throws SQLException {
    started("a", "b", "c");
    List<GroupedWrites.Asked> asked = asked("a", "b", "c");
    try (Connection stranger = database.plain().getConnection()) {
      stranger.setAutoCommit(false);
      stranger.createStatement().execute(lock);

      assertThat(groups.write(asked)).containsExactly(true, false, true);

      stranger.rollback();
    }
    assertChecked("a", "c");
    assertThat(groups.write(asked("b"))).containsExactly(true);
  }

  @Test
  void aSuspendedOneKeepsItsResult() {
    started("a", "b");
    List<GroupedWrites.Asked> asked = asked("a", "b");
    control.suspend("b", "reason");

    assertThat(groups.write(asked)).containsExactly(true, true);

    assertChecked("a", "b");
    assertThat(database.one(String.class, "select status from outbox_monitor where id = 'b'"))
        .isEqualTo("suspended");
  }

  @Test
  void dueAreTheNextChecksByTheirDelaysTheirExpiryAndWhoWantsThemSooner() {
    started("delay", "expires", "woken", "event", "other");
    CheckResult orOn =
        new CheckResult(
            CheckResult.Kind.AGAIN,
            MINUTE,
            null,
            null,
            true,
            null,
            null,
            List.of("si,gn\"{ed}", "paid"),
            List.of());
    List<GroupedWrites.Asked> asked =
        List.of(
            asked("delay", again(MINUTE)),
            asked("expires", again(HOUR.plus(HOUR))),
            asked("woken", again(MINUTE)),
            asked("event", orOn),
            asked("other", orOn));
    control.wake("woken");
    control.raiseEvent("event", "si,gn\"{ed}", Json.NULL);
    control.raiseEvent("other", "not waited for", Json.NULL);

    assertThat(groups.write(asked)).hasSize(5).containsOnly(true);

    assertThat(
            database.list(
                String.class,
                "select m.id || ' ' || case when o.available_at = m.expires_at then 'expiry'"
                    + " else round(extract(epoch from o.available_at - now()) / 60)::int::text end"
                    + " from outbox_monitor m join outbox o on o.id = m.message_id order by m.id"))
        .containsExactly("delay 1", "event 0", "expires expiry", "other 1", "woken 0");
    assertThat(control.get("other").orElseThrow().waitsFor())
        .containsExactly("si,gn\"{ed}", "paid");
    assertThat(control.get("delay").orElseThrow().waitsFor()).isEmpty();
    assertThat(database.count("outbox_monitor where woken")).isZero();
    assertThat(database.count("outbox_monitor where cardinality(unseen) = 1")).isEqualTo(2);
  }

  @Test
  void valuesAreKeptReplacedOrTakenAway() {
    started("keeps", "replaces", "clears");
    database.update("update outbox_monitor set state = '1', custom_status = '\"old\"'");
    List<GroupedWrites.Asked> asked =
        List.of(
            asked("keeps", again(MINUTE)),
            asked("replaces", values(" {\"a\" : \"\\u0000\"}", "\"new\"")),
            asked("clears", values(null, null)));

    assertThat(groups.write(asked)).containsExactly(true, true, true);

    assertThat(
            database.list(
                String.class,
                "select coalesce(state::text, '-') || ' ' || custom_status::text"
                    + " from outbox_monitor order by id"))
        .containsExactly("- \"old\"", "1 \"old\"", " {\"a\" : \"\\u0000\"} \"new\"");
  }

  private static CheckResult values(@Nullable String state, @Nullable String customStatus) {
    return new CheckResult(
        CheckResult.Kind.AGAIN,
        MINUTE,
        null,
        null,
        false,
        state,
        customStatus,
        List.of(),
        List.of());
  }

  @Test
  void ofAGroupThatTheServerRefusesNothingIsWritten() {
    started("a", "b");

    assertThat(groups.write(List.of(asked("a", again(MINUTE)), asked("b", values("no", null)))))
        .containsExactly(false, false);

    assertChecked();
  }

  @Test
  void whatTheExpiryOrAFailedAttemptOrASizeSetsApartIsNotOfAGroup() {
    started("a");
    Instance a = read("a");
    assertThat(new Again(a, again(MINUTE), false).fits()).isTrue();
    assertThat(new Again(a, values("1".repeat(16 * 1024), null), false).fits()).isTrue();
    assertThat(new Again(a, values("1".repeat(16 * 1024), "1"), false).fits()).isFalse();
    database.update("update outbox_monitor set attempts_count = 1");
    assertThat(new Again(read("a"), again(MINUTE), false).fits()).isFalse();
    database.update("update outbox_monitor set attempts_count = 0, expires_at = now()");
    assertThat(new Again(read("a"), again(MINUTE), false).fits()).isFalse();
    database.update("update outbox_monitor set expires_at = null");
    assertThat(new Again(read("a"), again(MINUTE), false).fits()).isTrue();
    database.update("update outbox_monitor set attempts_count = 0, unseen = '{e}'");
    assertThat(new Again(read("a"), again(MINUTE), false).fits()).isFalse();
  }

  @Test
  void aHistoryIsTrimmedAndAStrangersLockOnItStopsNothing() throws SQLException {
    started("a", "b");
    database.update(
        "insert into outbox_monitor_event (application, monitor_id, execution, kind)"
            + " select application, id, execution, 'checked' from outbox_monitor,"
            + " generate_series(1, 50)");
    List<GroupedWrites.Asked> asked = new ArrayList<>();
    asked("a", "b")
        .forEach(
            each ->
                asked.add(
                    new GroupedWrites.Asked(
                        each.lease(),
                        each.owner(),
                        new Again(each.again().instance(), each.again().result(), true))));
    try (Connection stranger = database.plain().getConnection()) {
      stranger.setAutoCommit(false);
      stranger
          .createStatement()
          .execute("select 1 from outbox_monitor_event where monitor_id = 'b' for update");

      assertThat(groups.write(asked)).containsExactly(true, true);

      stranger.rollback();
    }
    assertThat(checked()).containsExactly("a", "b");
    assertThat(database.count("outbox_monitor_event where monitor_id = 'a'")).isEqualTo(4);
    assertThat(database.count("outbox_monitor_event where monitor_id = 'b'")).isGreaterThan(50);
  }

  @Test
  void aTypeWithoutHistoryGetsNone() {
    started("a");
    database.update("update outbox_monitor set history = 0");
    database.update("delete from outbox_monitor_event");

    assertThat(groups.write(asked("a"))).containsExactly(true);

    assertThat(database.count("outbox_monitor_event")).isZero();
  }

  @Test
  void whereTransactionsAreSerializableByDefaultItIsReadCommitted() {
    started("a", "b");
    PGSimpleDataSource strict = database.plain();
    strict.setOptions("-c default_transaction_isolation=serializable");
    GroupedWrites of = new GroupedWrites(PostgresOutbox.on(strict, database.table()), "shop");
    List<GroupedWrites.Asked> asked = asked("a", "b");
    database.update("update outbox_monitor set updated_at = clock_timestamp()");

    assertThat(of.write(asked)).containsExactly(true, true);

    assertChecked("a", "b");
  }

  @Test
  void aLostConnectionIsToldAndNothingIsTriedBehindIt() {
    started("a", "b");
    CountingDataSource counting = new CountingDataSource(named("cut"));
    counting.beforeEach(
        sql -> {
          if (sql.contains(OF_GROUPS)) {
            cut("cut");
          }
        });
    GroupedWrites of = new GroupedWrites(PostgresOutbox.on(counting, database.table()), "shop");
    List<GroupedWrites.Asked> asked = asked("a", "b");

    OutboxStoreException thrown =
        catchThrowableOfType(OutboxStoreException.class, () -> of.write(asked));

    assertThat(thrown.outcomeUnknown()).isTrue();
    assertThat(counting.executionsOf(OF_GROUPS)).isEqualTo(1);
    assertChecked();
  }

  @Test
  void withoutAConnectionItIsKnownThatNothingWasWritten() {
    started("a");
    PGSimpleDataSource wrong = database.plain();
    wrong.setPortNumbers(new int[] {1});
    GroupedWrites of = new GroupedWrites(PostgresOutbox.on(wrong, database.table()), "shop");
    List<GroupedWrites.Asked> asked = asked("a");

    OutboxStoreException thrown =
        catchThrowableOfType(OutboxStoreException.class, () -> of.write(asked));

    assertThat(thrown.fault()).isEqualTo(Fault.CONNECTION);
    assertThat(thrown.outcomeUnknown()).isFalse();
    assertChecked();
  }

  private PGSimpleDataSource named(String application) {
    PGSimpleDataSource source = database.plain();
    source.setApplicationName(application);
    return source;
  }

  private void cut(String application) {
    database.list(
        Boolean.class,
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name = ?",
        application);
  }
}
