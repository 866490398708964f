package dev.outbox4j.monitor.internal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.migrations.MonitorMigrations;
import dev.outbox4j.monitor.HistoryEntry;
import dev.outbox4j.monitor.Json;
import dev.outbox4j.monitor.MonitorAlert;
import dev.outbox4j.monitor.MonitorControl;
import dev.outbox4j.monitor.MonitorEvents;
import dev.outbox4j.monitor.MonitorInstance;
import dev.outbox4j.monitor.MonitorPage;
import dev.outbox4j.monitor.MonitorQuery;
import dev.outbox4j.monitor.MonitorStart;
import dev.outbox4j.monitor.MonitorStatus;
import dev.outbox4j.monitor.MonitorType;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.internal.Sql;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TimeZone;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

/** Queries, purges, and the look at what nobody would wake. */
@ExtendWith(PostgresExtension.class)
class InstanceStoreIT {
  private static final MonitorType<Json> WATCH = MonitorType.of("watch");

  private final TestDatabase database;
  private final MonitorControl control;
  private final InstanceStore store;
  private final Observer observer;
  private final AtomicInteger repaired = new AtomicInteger();

  InstanceStoreIT(TestDatabase database) {
    this.database = database;
    PostgresOutbox outbox = PostgresOutbox.on(database.pool(4), database.table());
    this.control = MonitorControl.of(outbox, "shop");
    this.store = new InstanceStore(outbox, "shop", "monitors.shop");
    this.observer =
        new Observer(
            List.of(
                new MonitorEvents() {
                  @Override
                  public void repaired(String application, int instances) {
                    repaired.addAndGet(instances);
                  }
                }));
  }

  @BeforeEach
  void setUp() {
    database.migrate(MonitorMigrations.of("public", "outbox"), MonitorMigrations::migrate);
    database.update("truncate outbox, outbox_monitor, outbox_monitor_event");
  }

  /** Three of each status, created a minute after one another, of two types and parents. */
  private void manyInstances() {
    database.update(
        "insert into outbox_monitor (application, id, type, status, input, parent, created_at,"
            + " ended_at)"
            + " select 'shop', s || '-' || n, case when n = 1 then 'watch' else 'other' end, s,"
            + " 'null', case when n = 2 then 'flow' end,"
            + " '2026-01-01T00:00:00Z'::timestamptz + make_interval(mins => (n * 10 + o)::int),"
            + " case when o > 3 then now() end"
            + " from unnest(array['pending', 'running', 'suspended', 'completed', 'failed',"
            + " 'canceled', 'terminated']) with ordinality as t (s, o), generate_series(1, 3) n");
    database.update(
        "insert into outbox_monitor (application, id, type, status, input) values"
            + " ('bank', 'running-1', 'watch', 'running', 'null')");
  }

  private List<String> ids(MonitorQuery query) {
    List<String> ids = new ArrayList<>();
    Optional<String> after = Optional.empty();
    do {
      MonitorPage page = control.query(after.map(query::after).orElse(query));
      assertThat(page.instances()).hasSizeLessThanOrEqualTo(query.limit());
      page.instances().forEach(instance -> ids.add(instance.id()));
      after = page.continuation();
    } while (after.isPresent());
    return ids;
  }

  @Test
  void pagesComeInTheOrderOfCreationOrOfIds() {
    manyInstances();
    MonitorQuery small = MonitorQuery.all().limit(4);
    assertThat(ids(small))
        .hasSize(21)
        .doesNotHaveDuplicates()
        .startsWith("pending-1", "running-1", "suspended-1")
        .endsWith("canceled-3", "terminated-3");
    assertThat(ids(small.status(MonitorStatus.FAILED)))
        .containsExactly("failed-1", "failed-2", "failed-3");
    assertThat(ids(small.limit(2).status(MonitorStatus.FAILED, MonitorStatus.RUNNING)))
        .containsExactly("running-1", "failed-1", "running-2", "failed-2", "running-3", "failed-3");
    assertThat(ids(small.limit(2).type("watch"))).hasSize(7);
    assertThat(ids(small.limit(2).idPrefix("c")))
        .containsExactly(
            "canceled-1", "canceled-2", "canceled-3", "completed-1", "completed-2", "completed-3");
    assertThat(ids(small.idPrefix("c").status(MonitorStatus.COMPLETED)))
        .containsExactly("completed-1", "completed-2", "completed-3");
    assertThat(ids(small.limit(3).parent("flow"))).hasSize(7).isSorted();
    Instant from = Instant.parse("2026-01-01T00:22:00Z");
    assertThat(ids(small.createdFrom(from).createdBefore(from.plusSeconds(120))))
        .containsExactly("running-2", "suspended-2");
  }

  @Test
  void aPrefixThatEndsWithTheLastCharactersIsFound() {
    for (String id : List.of("a\uD7FF", "a\uD7FFb", "a\uE000", "b", "b\uDBFF\uDFFFc")) {
      control.start(WATCH, id, Json.NULL);
    }
    assertThat(ids(MonitorQuery.all().idPrefix("a\uD7FF"))).containsExactly("a\uD7FF", "a\uD7FFb");
    assertThat(ids(MonitorQuery.all().idPrefix("b\uDBFF\uDFFF"))).containsExactly("b\uDBFF\uDFFFc");
    assertThat(ids(MonitorQuery.all().idPrefix("a"))).hasSize(3);
  }

  @Test
  void aContinuationOfAnotherQueryIsRefused() {
    manyInstances();
    String byTime = control.query(MonitorQuery.all().limit(1)).continuation().orElseThrow();
    for (String wrong : List.of("", "?", "eHg", byTime.substring(1))) {
      assertThatThrownBy(() -> control.query(MonitorQuery.all().after(wrong)))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("the continuation is not one of such a query");
    }
    assertThatThrownBy(() -> control.query(MonitorQuery.all().idPrefix("a").after(byTime)))
        .isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void aPurgeDeletesWhatHasEndedWithItsHistory() {
    manyInstances();
    database.update(
        "insert into outbox_monitor_event (application, monitor_id, execution, kind)"
            + " select application, id, execution, 'started' from outbox_monitor");
    Instant since = Instant.parse("2026-01-01T00:00:00Z");
    MonitorQuery old = MonitorQuery.all().createdFrom(since);

    assertThat(control.purge(old.status(MonitorStatus.FAILED).limit(2))).isEqualTo(2);
    assertThat(control.purge(old.status(MonitorStatus.FAILED).limit(2))).isEqualTo(1);
    assertThat(control.purge(old.createdBefore(since.plusSeconds(1)))).isZero();
    assertThat(control.purge(old)).isEqualTo(9);
    assertThat(control.purge(old)).isZero();

    assertThat(ids(MonitorQuery.all())).hasSize(9);
    assertThat(database.count("outbox_monitor_event where application = 'shop'")).isEqualTo(9);
    assertThat(database.count("outbox_monitor where application = 'bank'")).isEqualTo(1);
    assertThatThrownBy(() -> control.purge(MonitorQuery.all()))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("no lower bound");
    assertThatThrownBy(() -> control.purge(old.status(MonitorStatus.RUNNING)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("have not ended");
    assertThatThrownBy(() -> control.purge(old.after("x")))
        .isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void aPurgePassesALockedInstanceBy() throws SQLException {
    manyInstances();
    try (Connection stranger = database.plain().getConnection()) {
      stranger.setAutoCommit(false);
      stranger
          .createStatement()
          .execute("select 1 from outbox_monitor where id = 'failed-2' for update");
      assertThat(
              control.purge(
                  MonitorQuery.all().createdFrom(Instant.EPOCH).status(MonitorStatus.FAILED)))
          .isEqualTo(2);
      stranger.rollback();
    }
  }

  /** Each takes the server 0.4 s of the 2.4 s that a statement has. */
  @Test
  void aPurgeOfMoreThanTheServerDoesInTimeIsDoneInParts() {
    database.update(
        "create or replace function slow_purge() returns trigger language plpgsql as"
            + " $$ begin perform pg_sleep(case when old.id = 'slowest' then 3 else 0.4 end);"
            + " return old; end $$");
    database.update(
        "create trigger slow_purge before delete on outbox_monitor for each row"
            + " execute function slow_purge()");
    try {
      InstanceStore hasty =
          new InstanceStore(
              PostgresOutbox.on(database.pool(2), database.table()),
              "shop",
              "monitors.shop",
              Duration.ofSeconds(3));
      failed(9, "1 hour", "1 hour");
      MonitorQuery old = MonitorQuery.all().createdFrom(Instant.EPOCH);

      assertThat(hasty.purge(new InstanceQuery(old.limit(8)))).isEqualTo(8);
      assertThat(database.count("outbox_monitor")).isEqualTo(1);
      assertThat(hasty.purge(new InstanceQuery(old))).isEqualTo(1);

      failed(1, "1 hour", "1 hour");
      database.update("update outbox_monitor set id = 'slowest'");
      assertThatThrownBy(() -> hasty.purge(new InstanceQuery(old.limit(2))))
          .isInstanceOf(OutboxStoreException.class)
          .hasMessageContaining("57014");
    } finally {
      database.update("drop trigger slow_purge on outbox_monitor");
    }
  }

  /** Instances that have the same values, of so many bytes. */
  private void large(int count, String column, int bytes) {
    database.update(
        "insert into outbox_monitor (application, id, type, status, input, created_at, "
            + column
            + ") select 'shop', 'l' || n, 'watch', 'running', '1',"
            + " '2026-01-01T00:00:00Z'::timestamptz + make_interval(secs => n),"
            + " to_json(repeat('x', ?)) from generate_series(100, 99 + ?) n",
        bytes,
        count);
  }

  @ParameterizedTest
  @EnumSource(MonitorQuery.Value.class)
  void aValueIsReadIfItIsAskedForAndThenPagesAreShortWhereItIsLarge(MonitorQuery.Value value) {
    boolean ofInput = value == MonitorQuery.Value.INPUT;
    large(70, ofInput ? "output" : CheckWrites.stored(value), 250_000);
    if (ofInput) {
      database.update("update outbox_monitor set input = output, output = null");
    }
    MonitorQuery all = MonitorQuery.all().limit(1_000);

    assertThat(control.query(all).instances())
        .hasSize(70)
        .allSatisfy(
            found -> {
              assertThat(found.input()).isEmpty();
              assertThat(found.state()).isEmpty();
              assertThat(found.output()).isEmpty();
            });
    MonitorPage first = control.query(all.with(value));
    assertThat(first.instances())
        .as("8 MiB, and what goes beyond")
        .hasSize(34)
        .allSatisfy(
            found -> assertThat(valueOf(found, value).orElseThrow().size()).isEqualTo(250_002));
    assertThat(ids(all.with(value))).hasSize(70).doesNotHaveDuplicates().isSorted();
    assertThat(ids(all.with(value).status(MonitorStatus.RUNNING, MonitorStatus.FAILED)))
        .hasSize(70);
    assertThat(ids(all.with(value).idPrefix("l1").limit(50))).hasSize(70).isSorted();
  }

  private static Optional<Json> valueOf(MonitorInstance instance, MonitorQuery.Value value) {
    return switch (value) {
      case INPUT -> instance.input();
      case STATE -> instance.state();
      case OUTPUT -> instance.output();
    };
  }

  @Test
  void aPageIsShortAlsoWhereCustomStatusesOrStackTracesAreLarge() {
    large(300, "custom_status", 16_000);
    assertThat(control.query(MonitorQuery.all().limit(1_000)).instances()).hasSize(300);
    database.update("update outbox_monitor set error_stack = repeat('x', 16000)");
    MonitorPage page = control.query(MonitorQuery.all().limit(1_000));
    assertThat(page.instances()).hasSizeBetween(260, 270);
    assertThat(page.continuation()).isPresent();
  }

  @Test
  void aHistoryHasRoomForSoMuchAndGoesOnBehindItsLastEntry() {
    start("x", Duration.ZERO);
    for (int number = 0; number < 40; number++) {
      database.update(
          "insert into outbox_monitor_event (application, monitor_id, execution, kind, name,"
              + " payload) values ('shop', 'x', 1, 'event', ?, to_json(repeat('x', 250000)))",
          "e" + number);
    }

    List<HistoryEntry> latest = control.history("x", 10_000);

    assertThat(latest).hasSize(34);
    assertThat(latest.get(0).name()).contains("e39");
    assertThat(latest.get(33).name()).contains("e6");
    List<HistoryEntry> before = control.history("x", 10_000, latest.get(33).id());
    assertThat(before).hasSize(7);
    assertThat(before.get(6).kind()).isEqualTo(HistoryEntry.Kind.STARTED);
    assertThat(control.history("x", 3, latest.get(33).id())).isEqualTo(before.subList(0, 3));
    assertThat(control.history("x", 10, before.get(6).id())).isEmpty();
  }

  @Test
  void aNodeThatDoesNotKnowATypeSeesHowFarItsInstancesAre() {
    start("x", Duration.ZERO);
    database.update("update outbox_monitor set iteration = 7");
    InstanceReads reads =
        new InstanceReads(PostgresOutbox.on(database.plain(), database.table()), "shop");
    assertThat(reads.iteration("x")).isEqualTo(7);
    assertThat(reads.iteration("nobody")).isZero();
  }

  @Test
  void whetherARowIsFreeIsToldWithoutAWait() throws SQLException {
    start("x", Duration.ZERO);
    start("y", Duration.ZERO);
    InstanceReads reads =
        new InstanceReads(PostgresOutbox.on(database.plain(), database.table()), "shop");
    List<Instance> found = new ArrayList<>();
    for (String id : List.of("x", "y")) {
      Instance each =
          reads.read(
              id,
              database.one(Long.class, "select message_id from outbox_monitor where id = ?", id));
      assertThat(each).isNotNull();
      found.add(each);
    }
    try (Connection stranger = database.plain().getConnection()) {
      stranger.setAutoCommit(false);
      stranger.createStatement().execute("select 1 from outbox_monitor where id = 'x' for update");
      assertThat(reads.isFree(found.get(0))).isFalse();
      assertThat(reads.isFree(found.get(1))).isTrue();
      stranger.rollback();
    }
    assertThat(reads.isFree(found.get(0))).isTrue();
  }

  @Test
  void countsAreOfTheApplicationAndEachStatus() {
    manyInstances();
    assertThat(control.counts())
        .hasSize(7)
        .allSatisfy((status, count) -> assertThat(count).isEqualTo(3));
  }

  private void start(String id, Duration ago) {
    control.start(MonitorStart.of(WATCH, Json.NULL).id(id).firstCheckIn(Duration.ofHours(1)));
    database.update(
        "update outbox_monitor set due_at = now() - make_interval(secs => ?) where id = ?",
        (double) ago.toSeconds(),
        id);
  }

  private LookLoop looks(NodeState state, int page) {
    return new LookLoop(store, "shop", "monitors.shop", state, observer, page);
  }

  @Test
  void anInstanceWithoutItsMessageGetsOne() {
    start("well", Duration.ofMinutes(5));
    start("deleted", Duration.ofMinutes(5));
    start("none", Duration.ofMinutes(-30));
    start("suspended", Duration.ofMinutes(5));
    control.suspend("suspended", "reason");
    database.update(
        "delete from outbox where id in (select message_id from outbox_monitor"
            + " where id in ('deleted', 'suspended'))");
    database.update(
        "delete from outbox where id = (select message_id from outbox_monitor where id = 'none')");
    database.update("update outbox_monitor set message_id = null where id = 'none'");
    String well =
        database.one(String.class, "select m::text from outbox_monitor m where id = 'well'");

    NodeState state = new NodeState("shop", InstantSource.system());
    assertThat(looks(state, 100).step()).isTrue();

    assertThat(repaired).hasValue(2);
    assertThat(
            database.list(
                String.class,
                "select m.id || ' ' || (o.available_at <= now()) from outbox_monitor m"
                    + " join outbox o on o.id = m.message_id order by m.id"))
        .containsExactly("deleted true", "none false", "well false");
    assertThat(database.one(String.class, "select m::text from outbox_monitor m where id = 'well'"))
        .isEqualTo(well);
    assertThat(looks(state, 100).step()).isTrue();
    assertThat(repaired).as("it is done").hasValue(2);
  }

  @Test
  void whoWasToBeWokenWhileAStrangerHadTheMessageIsWokenLater() throws SQLException {
    start("x", Duration.ofMinutes(-30));
    try (Connection stranger = database.plain().getConnection()) {
      stranger.setAutoCommit(false);
      stranger.createStatement().execute("select 1 from outbox for update");
      control.wake("x");
      stranger.rollback();
    }
    assertThat(database.count("outbox where available_at <= now()")).isZero();

    looks(new NodeState("shop", InstantSource.system()), 100).step();

    assertThat(database.count("outbox where available_at <= now()")).isEqualTo(1);
    assertThat(database.count("outbox_monitor where woken")).isZero();
    assertThat(repaired).hasValue(0);
  }

  @Test
  void aLookGoesThroughAllPagesAndALockedInstanceStopsItNot() throws SQLException {
    for (int number = 0; number < 7; number++) {
      start("i" + number, Duration.ofMinutes(number));
    }
    database.update("delete from outbox");
    NodeState state = new NodeState("shop", InstantSource.system());
    LookLoop looks = looks(state, 3);
    try (Connection stranger = database.plain().getConnection()) {
      stranger.setAutoCommit(false);
      stranger.createStatement().execute("select 1 from outbox_monitor where id = 'i1' for update");
      assertThat(looks.step()).isFalse();
      assertThat(looks.step()).isFalse();
      assertThat(looks.step()).isTrue();
      stranger.rollback();
    }
    assertThat(repaired).as("all but one that is not due and one that is locked").hasValue(5);
    MonitorAlert longest = control.alerts().get(0);
    assertThat(longest.id()).isEqualTo("i6");
    assertThat(longest.rule()).isEqualTo(MonitorAlert.Rule.OVERDUE);
    assertThat(longest.lasting()).isBetween(Duration.ofMinutes(6), Duration.ofMinutes(8));
    assertThat(control.alerts()).extracting(MonitorAlert::id).startsWith("i6", "i5");
  }

  @Test
  void oneThatFailedLatelyIsAnAlertUntilItIsRestarted() {
    manyInstances();
    database.update(
        "update outbox_monitor set ended_at = now() - interval '2 days' where id = 'failed-1'");
    assertThat(control.alerts())
        .extracting(MonitorAlert::id)
        .containsExactlyInAnyOrder("failed-2", "failed-3");
    control.restart("failed-2", "mended");
    assertThat(control.alerts()).extracting(MonitorAlert::id).containsExactly("failed-3");
  }

  private void failed(int count, String created, String ended) {
    database.update(
        "insert into outbox_monitor (application, id, type, status, input, created_at, ended_at)"
            + " select 'shop', ? || n, 'watch', 'failed', 'null', now() - ?::interval,"
            + " now() - ?::interval from generate_series(1, ?) n",
        ended,
        created,
        ended,
        count);
  }

  @Test
  void manyThatHaveFailedHideNeitherWhatIsOverdueNorWhatFailedLast() {
    start("overdue", Duration.ofHours(2));
    failed(1_000, "9 days", "8 days");
    failed(100, "1 day", "5 hours");
    failed(1, "10 days", "1 minute");

    assertThat(control.alerts())
        .hasSize(101)
        .extracting(MonitorAlert::id)
        .startsWith("overdue")
        .endsWith("1 minute1");
  }

  /** An id may be another message's, where the table was emptied or restored. */
  @Test
  void noVerbTouchesAMessageThatIsNotTheInstances() {
    start("x", Duration.ofMinutes(5));
    long id = database.one(Long.class, "select message_id from outbox_monitor");
    database.update("delete from outbox");
    String other =
        "insert into outbox (id, queue, payload, headers, available_at)"
            + " values (?, ?, 'x'::bytea, '{\"monitor-id\": \"y\"}', now() + interval '1 day')";
    for (String queue : List.of("orders", "monitors.shop")) {
      database.update("update outbox_monitor set message_id = ?", id);
      database.update(other, id, queue);
      looks(new NodeState("shop", InstantSource.system()), 100).step();
      assertThat(database.count("outbox where headers ->> 'monitor-id' = 'x'")).isEqualTo(1);
      database.update("delete from outbox where headers ->> 'monitor-id' = 'x'");
      database.update("update outbox_monitor set message_id = ?", id);
      control.wake("x");
      database.update("update outbox_monitor set message_id = ?", id);
      control.terminate("x", "reason");
      assertThat(database.count("outbox where available_at > now() and id = " + id)).isEqualTo(1);
      database.update("delete from outbox");
      control.restart("x", "reason");
    }
  }

  @Test
  void aRestartGivesAsMuchTimeAsItHadAlsoWhereClocksAreChanged() {
    control.start(MonitorStart.of(WATCH, Json.NULL).id("x").expiresAfter(Duration.ofDays(200)));
    control.terminate("x", "reason");
    database.update("update outbox_monitor set created_at = '2026-01-01T00:00:00Z'");
    database.update(
        "update outbox_monitor set expires_at = created_at + make_interval(secs => 17280000)");
    TimeZone before = TimeZone.getDefault();
    TimeZone.setDefault(TimeZone.getTimeZone("Europe/Berlin")); // pgjdbc tells the server
    try {
      MonitorControl there =
          MonitorControl.of(PostgresOutbox.on(database.plain(), database.table()), "shop");
      there.restart("x", "reason");
    } finally {
      TimeZone.setDefault(before);
    }
    MonitorInstance found = control.get("x").orElseThrow();
    assertThat(Duration.between(found.createdAt(), found.expiresAt().orElseThrow()))
        .isEqualTo(Duration.ofDays(200));
  }

  static Stream<Arguments> queries() {
    MonitorQuery all = MonitorQuery.all().limit(10);
    Instant from = Instant.parse("2026-01-01T06:00:00Z");
    return Stream.of(
        Arguments.of(all, "outbox_monitor_created_idx"),
        Arguments.of(all.createdFrom(from), "outbox_monitor_created_idx"),
        Arguments.of(all.status(MonitorStatus.RUNNING), "outbox_monitor_status_idx"),
        Arguments.of(
            all.status(MonitorStatus.RUNNING, MonitorStatus.FAILED).createdFrom(from),
            "outbox_monitor_status_idx"),
        Arguments.of(all.idPrefix("i17"), "outbox_monitor_pkey"),
        Arguments.of(all.parent("p3"), "outbox_monitor_parent_idx"));
  }

  /** Few pages, whatever is in the table. */
  @ParameterizedTest
  @MethodSource("queries")
  @Tag("plans")
  void aPageIsReadByAnIndex(MonitorQuery query, String index) throws SQLException {
    database.update(
        "insert into outbox_monitor (application, id, type, status, input, parent, created_at)"
            + " select 'shop', 'i' || n, 'watch', case when n % 2 = 0 then 'running'"
            + " else 'completed' end, 'null', 'p' || n % 100,"
            + " '2026-01-01T00:00:00Z'::timestamptz + make_interval(secs => n)"
            + " from generate_series(1, 50000) n");
    database.update("vacuum analyze outbox_monitor");
    MonitorInstance somewhere = control.get("i25000").orElseThrow();
    InstanceQuery first = new InstanceQuery(query);
    InstanceQuery next = new InstanceQuery(query.after(first.continuation(somewhere)));
    for (InstanceQuery each : List.of(first, next)) {
      String plan = explain(each.select(), each.values());
      assertThat(plan).contains(index).doesNotContain("Seq Scan", "Bitmap");
      assertThat(buffers(plan)).as(plan).isLessThan(100);
    }
  }

  private String explain(String template, Map<String, Object> values) throws SQLException {
    Sql sql = Sql.of("explain (analyze, buffers) " + template, database.table());
    Map<String, Object> all = new HashMap<>(values);
    all.put("application", "shop");
    StringBuilder plan = new StringBuilder();
    try (Connection connection = database.plain().getConnection()) {
      connection
          .createStatement()
          .execute(
              "set enable_seqscan = off; set enable_bitmapscan = off; set enable_sort = off;"
                  + " set enable_hashjoin = off; set enable_mergejoin = off; set jit = off");
      try (PreparedStatement statement = connection.prepareStatement(sql.text())) {
        sql.bind(statement, all);
        try (ResultSet rows = statement.executeQuery()) {
          while (rows.next()) {
            plan.append(rows.getString(1)).append('\n');
          }
        }
      }
    }
    return plan.toString();
  }

  /** Of the topmost node, which has those of all others. */
  private static long buffers(String plan) {
    String line = plan.lines().filter(each -> each.contains("Buffers: ")).findFirst().orElseThrow();
    return Stream.of(line.replaceAll(".*shared ", "").split(" ", -1))
        .filter(part -> part.startsWith("hit=") || part.startsWith("read="))
        .mapToLong(part -> Long.parseLong(part.replaceAll("\\D", "")))
        .sum();
  }

  /** What a check writes is in no index. */
  @Test
  void aChecksWriteIsAHotUpdate() {
    start("x", Duration.ZERO);
    database.update("update outbox_monitor set status = 'running', started_at = now()");
    String updates =
        "select n_tup_hot_upd from pg_stat_user_tables where relname = 'outbox_monitor'";
    long before = database.one(Long.class, updates);
    for (int n = 0; n < 5; n++) {
      database.update(
          "update outbox_monitor set iteration = iteration + 1, state = '1', waits_for = '{a}',"
              + " due_at = now(), updated_at = clock_timestamp(), unseen = unseen[1:]");
    }
    await().until(() -> database.one(Long.class, updates) >= before + 5);
  }
}
