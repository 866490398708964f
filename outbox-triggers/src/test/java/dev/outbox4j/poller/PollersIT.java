package dev.outbox4j.poller;

import static dev.outbox4j.poller.TestPollers.ANN;
import static dev.outbox4j.poller.TestPollers.ids;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.Payload;
import dev.outbox4j.poller.TickResult.Outcome;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.CountingDataSource;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.PayloadCodec;
import java.lang.reflect.Type;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.Statement;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What pollers hand to handlers, and what the settings of a definition do. */
@ExtendWith(PostgresExtension.class)
class PollersIT {
  private final TestDatabase database;
  private final PostgresOutbox outbox;
  private final PollerControl control;
  private final List<RowChange> handled = Collections.synchronizedList(new ArrayList<>());
  private final List<Pollers> started = new ArrayList<>();

  PollersIT(TestDatabase database) {
    this.database = database;
    this.outbox = PostgresOutbox.on(database.pool(8), database.table());
    this.control = PollerControl.of(outbox, "shop");
  }

  @BeforeEach
  void setUp() {
    TestPollers.setUp(database);
    TestPollers.createItems(database);
  }

  @AfterEach
  void stop() {
    started.forEach(Pollers::stop);
  }

  private Pollers.Builder builder() {
    return Pollers.builder(outbox, "shop");
  }

  private Pollers recording(Poller poller) {
    return builder().on(poller, (rows, context) -> handled.addAll(rows)).build();
  }

  /** Ticks until nothing is left. */
  private static long drain(Pollers pollers, String name) {
    long all = 0;
    for (int i = 0; i < 1_000; i++) {
      TickResult result = pollers.tick(name);
      assertThat(result.failure()).as(result.toString()).isEmpty();
      all += result.totalProcessed();
      if (result.outcome() != Outcome.PROCESSED) {
        return all;
      }
    }
    throw new AssertionError("no end");
  }

  @Test
  void handsOverEachRowOnceInTheOrderOfTheCursor() {
    TestPollers.insert(database, 1, 7);
    Pollers pollers = recording(TestPollers.items().batchSize(3));

    TickResult first = pollers.tick("items");

    assertThat(first.outcome()).isEqualTo(Outcome.PROCESSED);
    assertThat(first.totalProcessed()).isEqualTo(7);
    assertThat(first.batches()).isEqualTo(3);
    assertThat(ids(handled)).containsExactly(1, 2, 3, 4, 5, 6, 7);
    assertThat(pollers.tick("items").outcome()).isEqualTo(Outcome.EMPTY);

    database.update("update items set name = 'x', version = nextval('items_version') where id = 2");
    assertThat(pollers.tick("items").totalProcessed()).isEqualTo(1);
    RowChange change = handled.get(7);
    assertThat(change.key()).isEqualTo(Map.of("id", 2));
    assertThat(change.get("name", String.class)).isEqualTo("x");
    assertThat(change.operation()).isEqualTo(RowOperation.UPSERT);
    assertThat(change.source()).isEqualTo("public.items");
    assertThat(change.eventId()).matches("[0-9a-f]{64}");
    assertThat(new HashSet<>(handled.stream().map(RowChange::eventId).toList())).hasSize(8);
  }

  /** What was executed on the record and at the source, and how often rows were fetched there. */
  private record Costs(long state, long source, long fetches) {
    static Costs of(CountingDataSource state, CountingDataSource source) {
      return new Costs(
          state.executions(),
          source.executions(),
          source.executionsOf("order by s.\"version\", s.\"id\""));
    }

    Costs since(Costs before) {
      return new Costs(state - before.state, source - before.source, fetches - before.fetches);
    }
  }

  @Test
  void aFullBatchIsFollowedAtOnceAndAShortOneEndsTheTick() {
    CountingDataSource state = new CountingDataSource(database.plain());
    CountingDataSource source = new CountingDataSource(database.plain());
    Pollers pollers =
        Pollers.builder(PostgresOutbox.on(state, database.table()), "shop")
            .source(source)
            .on(TestPollers.items().batchSize(2), (rows, context) -> handled.addAll(rows))
            .build();
    TestPollers.insert(database, 1, 1);
    drain(pollers, "items"); // puts it on record, and asks the catalog
    handled.clear();

    TestPollers.insert(database, 2, 6);
    Costs before = Costs.of(state, source);
    TickResult result = pollers.tick("items");
    assertThat(result.batches()).isEqualTo(3);
    assertThat(ids(handled)).containsExactly(2, 3, 4, 5, 6);
    // takes the lease, moves three times, the last of which releases it; asks and fetches each time
    assertThat(Costs.of(state, source).since(before)).isEqualTo(new Costs(4, 6, 3));
    assertThat(control.status("items").orElseThrow().holder()).isEmpty();

    TestPollers.insert(database, 7, 10);
    before = Costs.of(state, source);
    result = pollers.tick("items");
    assertThat(result.batches()).isEqualTo(2);
    assertThat(result.totalProcessed()).isEqualTo(4);
    // none of both was short
    assertThat(Costs.of(state, source).since(before)).isEqualTo(new Costs(4, 6, 3));
    assertThat(control.status("items").orElseThrow().holder()).isEmpty();

    before = Costs.of(state, source);
    assertThat(pollers.tick("items").outcome()).isEqualTo(Outcome.EMPTY);
    assertThat(Costs.of(state, source).since(before)).isEqualTo(new Costs(2, 2, 1));
  }

  @Test
  void noTransactionAndNoConnectionIsHeldWhileAHandlerRuns() {
    TestPollers.insert(database, 1, 1);
    HikariDataSource pool = database.pool(4);
    List<Long> seen = new ArrayList<>();
    Pollers pollers =
        Pollers.builder(PostgresOutbox.on(pool, database.table()), "shop")
            .on(
                TestPollers.items(),
                (rows, context) -> {
                  seen.add((long) pool.getHikariPoolMXBean().getActiveConnections());
                  seen.add(
                      database.one(
                          Long.class,
                          """
                          select count(*) from pg_stat_activity
                          where datname = current_database() and state like 'idle in transaction%'
                          """));
                })
            .build();
    assertThat(pollers.tick("items").totalProcessed()).isEqualTo(1);
    assertThat(seen).containsExactly(0L, 0L);
  }

  @Test
  void namesMayHaveAnyCharacters() {
    database.update(
        """
        drop schema if exists "odd schema" cascade;
        create schema "odd schema";
        create sequence "odd schema"."next change";
        create table "odd schema"."Order""s" (
          "a b" int primary key, "it's" text, "Gone?" boolean not null default false,
          "select" bigint not null default nextval('"odd schema"."next change"'));
        create table "odd schema"."Order""s gone" (
          "a b" int not null, "by: whom" text default 'ann',
          "select" bigint not null default nextval('"odd schema"."next change"'));
        insert into "odd schema"."Order""s" ("a b", "it's") values (1, 'one'), (2, 'two');
        insert into "odd schema"."Order""s gone" ("a b") values (3);
        insert into "odd schema"."Order""s" ("a b", "it's", "Gone?")
        values (4, 'four', true), (5, 'not', false);
        """);
    Source orders = Source.table("odd schema", "Order\"s");
    Deletes tombstones = Deletes.tombstones(Source.table("odd schema", "Order\"s gone"));
    for (Deletes deletes : List.of(tombstones, Deletes.softDelete("Gone?"))) {
      handled.clear();
      String name = deletes.toString();
      Poller poller =
          Poller.of(name, orders, Cursor.sequence("select"), deletes)
              .columns("it's")
              .where("\"it's\" <> ?", "not")
              .batchSize(1)
              .pollInterval(Duration.ofMillis(10));
      Pollers pollers = recording(poller);
      drain(pollers, name);
      boolean marked = deletes.softDeleteColumn().isPresent();
      assertThat(handled)
          .extracting(row -> row.operation() + " " + row.key().get("a b"))
          .isEqualTo(
              marked
                  ? List.of("UPSERT 1", "UPSERT 2", "DELETE 4")
                  : List.of("UPSERT 1", "UPSERT 2", "DELETE 3", "UPSERT 4"));
      assertThat(handled.get(0).get("it's", String.class)).isEqualTo("one");
      assertThat(pollers.health().pollers().get(0).warnings())
          .anySatisfy(
              warning ->
                  assertThat(warning)
                      .contains(
                          "create index on \"odd schema\".\"Order\"\"s\" (\"select\", \"a b\")"));
    }
  }

  @Test
  void readsOnlyTheColumnsThatAreNamedAndThoseItNeeds() {
    TestPollers.insert(database, 1, 1);
    drain(recording(TestPollers.items().columns("name")), "items");
    assertThat(handled.get(0).after().keySet()).containsExactly("id", "name", "version");
  }

  @Test
  void aConditionIsInParenthesesAndItsValuesAreBound() {
    TestPollers.insert(database, 1, 6);
    drain(recording(TestPollers.items().where("id = ? or name = ? -- or not", 2, "n5")), "items");
    assertThat(ids(handled)).containsExactly(2, 5);
  }

  @Test
  void conditionsTakeEachTypeOfValue() {
    database.update(
        """
        drop table if exists typed;
        create table typed (id bigint primary key, at timestamptz default '2026-01-01T00:00:00Z',
          local timestamp default '2026-01-01', day date default '2026-01-01', flag boolean default true,
          amount numeric default 1.5, u uuid default '00000000-0000-0000-0000-000000000001');
        insert into typed (id) values (1);
        """);
    Poller poller =
        Poller.of("typed", Source.table("typed"), Cursor.sequence("id"), Deletes.ignored())
            .pollInterval(Duration.ofMillis(10))
            .where(
                "at = ? and local = ? and day = ? and flag = ? and amount = ? and u = ? and id = ?",
                Instant.parse("2026-01-01T00:00:00Z"),
                java.time.LocalDateTime.parse("2026-01-01T00:00:00"),
                java.time.LocalDate.parse("2026-01-01"),
                true,
                new java.math.BigDecimal("1.5"),
                java.util.UUID.fromString("00000000-0000-0000-0000-000000000001"),
                1L);
    assertThat(drain(recording(poller), "typed")).isEqualTo(1);
    assertThat(handled.get(0).after())
        .containsEntry("at", Instant.parse("2026-01-01T00:00:00Z"))
        .containsEntry("local", java.time.LocalDateTime.parse("2026-01-01T00:00:00"))
        .containsEntry("day", java.time.LocalDate.parse("2026-01-01"))
        .containsEntry("flag", true)
        .containsEntry("amount", new java.math.BigDecimal("1.5"));
  }

  @Test
  void beginsNowOrAtAPlace() {
    TestPollers.insert(database, 1, 3);
    Pollers now = recording(TestPollers.items("now").startNow());
    assertThat(drain(now, "now")).isZero();
    TestPollers.insert(database, 4, 4);
    drain(now, "now");
    assertThat(ids(handled)).containsExactly(4);

    handled.clear();
    drain(recording(TestPollers.items("after").startAt(Position.after(2L))), "after");
    assertThat(ids(handled)).containsExactly(3, 4);

    handled.clear();
    drain(recording(TestPollers.items("before").startAt(Position.before(2L))), "before");
    assertThat(ids(handled)).containsExactly(2, 3, 4);
  }

  @Test
  void beginsNowInATableWithoutRows() {
    Pollers now = recording(TestPollers.items().startNow());
    drain(now, "items");
    TestPollers.insert(database, 1, 1);
    drain(now, "items");
    assertThat(ids(handled)).containsExactly(1);
  }

  @Test
  void softDeletedRowsAreDeletes() {
    TestPollers.insert(database, 1, 2);
    Poller poller =
        Poller.of(
                "items",
                Source.table("items"),
                Cursor.sequence("version"),
                Deletes.softDelete("deleted"))
            .pollInterval(Duration.ofMillis(10));
    Pollers pollers = recording(poller);
    drain(pollers, "items");
    database.update(
        "update items set deleted = true, version = nextval('items_version') where id = 1");
    drain(pollers, "items");
    assertThat(handled)
        .extracting(RowChange::operation)
        .containsExactly(RowOperation.UPSERT, RowOperation.UPSERT, RowOperation.DELETE);
  }

  @Test
  void tombstonesAreReadInOrderWithTheRowsInEachBatchSize() {
    database.update(
        """
        drop table if exists items_deleted;
        create table items_deleted (id int not null, version bigint not null, by_whom text);
        create index on items_deleted (version, id);
        """);
    TestPollers.insert(database, 1, 3); // 1, 2, 3
    database.update("delete from items where id = 2");
    database.update("insert into items_deleted values (2, nextval('items_version'), 'ann')"); // 4
    TestPollers.insert(database, 4, 4); // 5
    database.update("insert into items_deleted values (9, 5, 'bob'), (4, 5, 'eve')");
    for (int size : List.of(1, 2, 100)) {
      handled.clear();
      String name = "items" + size;
      Poller poller =
          Poller.of(
                  name,
                  Source.table("items"),
                  Cursor.sequence("version"),
                  Deletes.tombstones(Source.table("items_deleted")))
              .batchSize(size)
              .pollInterval(Duration.ofMillis(10));
      drain(recording(poller), name);
      assertThat(handled)
          .extracting(row -> row.operation() + " " + row.key().get("id"))
          .containsExactly("UPSERT 1", "UPSERT 3", "DELETE 2", "DELETE 4", "UPSERT 4", "DELETE 9");
      assertThat(handled.get(2).get("by_whom", String.class)).isEqualTo("ann");
      assertThat(handled.get(0).after()).doesNotContainKey("by_whom");
    }
  }

  @Test
  void rowsWithoutACursorWaitUntilTheyHaveOne() {
    database.update("alter table items alter version drop not null");
    TestPollers.insert(database, 1, 2);
    database.update("update items set version = null where id = 1");
    Poller poller =
        Poller.of(
                "items",
                Source.table("items"),
                Cursor.sequence("version").nulls(NullCursors.IGNORED),
                Deletes.ignored())
            .pollInterval(Duration.ofMillis(10));
    Pollers pollers = recording(poller);
    drain(pollers, "items");
    assertThat(ids(handled)).containsExactly(2);
    database.update("update items set version = nextval('items_version') where id = 1");
    drain(pollers, "items");
    assertThat(ids(handled)).containsExactly(2, 1);
  }

  @Test
  void followsAQueryByTheKeyThatItNames() {
    TestPollers.insert(database, 1, 5);
    Source joined =
        Source.query(
            "big items",
            "select i.id, i.version, upper(i.name) as loud from items i where i.id > 2 -- those",
            "id");
    Poller poller =
        Poller.of("query", joined, Cursor.sequence("version"), Deletes.ignored())
            .batchSize(2)
            .pollInterval(Duration.ofMillis(10));
    Pollers pollers = recording(poller);
    drain(pollers, "query");
    assertThat(ids(handled)).containsExactly(3, 4, 5);
    assertThat(handled.get(0).get("loud", String.class)).isEqualTo("N3");
    assertThat(handled.get(0).source()).isEqualTo("big items");
    assertThat(pollers.health().pollers().get(0).warnings())
        .anySatisfy(warning -> assertThat(warning).contains("is unique cannot be checked"));
  }

  @Test
  void aKeyThatHoldsTheCursorIsReadOnce() {
    TestPollers.insert(database, 1, 5);
    Poller poller =
        Poller.of("keyed", Source.table("items"), Cursor.sequence("id"), Deletes.ignored())
            .batchSize(2)
            .pollInterval(Duration.ofMillis(10));
    drain(recording(poller), "keyed");
    assertThat(ids(handled)).containsExactly(1, 2, 3, 4, 5);
  }

  @Test
  void eventIdsAreThoseOfTheVersionWhateverElseChanges() {
    TestPollers.insert(database, 1, 2);
    drain(recording(TestPollers.items()), "items");
    List<String> first = handled.stream().map(RowChange::eventId).toList();
    handled.clear();
    control.reset("items", ANN);
    drain(recording(TestPollers.items().columns("id").batchSize(1)), "items");
    assertThat(handled.stream().map(RowChange::eventId)).isEqualTo(first);

    handled.clear();
    drain(recording(TestPollers.items("other")), "other");
    assertThat(handled.stream().map(RowChange::eventId)).doesNotContainAnyElementsOf(first);
  }

  @Test
  void aBackfillEndsWithWhatWasThereAndTellsItsProgress() {
    TestPollers.insert(database, 1, 10);
    Poller backfill = TestPollers.items("backfill").untilNow().batchSize(4).rate(1_000_000);
    List<Double> progress = new ArrayList<>();
    Pollers pollers =
        builder()
            .on(
                backfill,
                (rows, context) -> {
                  if (handled.isEmpty()) {
                    TestPollers.insert(database, 11, 12);
                  }
                  handled.addAll(rows);
                  control.status("backfill").orElseThrow().progress().ifPresent(progress::add);
                })
            .build();
    await().until(() -> pollers.tick("backfill").outcome() == Outcome.FINISHED);
    assertThat(ids(handled)).containsExactly(1, 2, 3, 4, 5, 6, 7, 8, 9, 10);
    assertThat(progress).isSorted().allMatch(share -> share >= 0 && share < 1).isNotEmpty();
    PollerStatus status = control.status("backfill").orElseThrow();
    assertThat(status.finishedAt()).isPresent();
    assertThat(status.progress()).hasValue(1);
    assertThat(status.end()).hasValue(Position.after(10L));
    assertThat(control.history("backfill", 10))
        .extracting(PollerChange::verb)
        .containsExactly(PollerVerb.FINISH, PollerVerb.CREATE);
    assertThat(pollers.tick("backfill").outcome()).isEqualTo(Outcome.FINISHED);
    assertThat(pollers.health().pollers().get(0).state()).isEqualTo(PollerHealth.State.FINISHED);
    assertThat(pollers.health().pollers().get(0).healthy()).isTrue();
  }

  /** As of a table whose rows are deleted once they are of no use. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void aBackfillEndsAlsoIfItsLastRowIsGone(boolean ascending) {
    TestPollers.insert(database, 1, 10);
    Cursor cursor =
        ascending
            ? Cursor.ascending("version").margin(Duration.ofMillis(1))
            : Cursor.sequence("version");
    Poller backfill =
        Poller.of("backfill", Source.table("items"), cursor, Deletes.ignored())
            .pollInterval(Duration.ofMillis(10))
            .untilNow()
            .batchSize(4);
    Pollers pollers =
        builder()
            .on(
                backfill,
                (rows, context) -> {
                  database.update("delete from items where id >= 9");
                  handled.addAll(rows);
                })
            .build();
    await().until(() -> pollers.tick("backfill").outcome() == Outcome.FINISHED);
    assertThat(ids(handled)).containsExactly(1, 2, 3, 4, 5, 6, 7, 8);
    assertThat(control.status("backfill").orElseThrow().lag()).isEmpty();
  }

  /** The lag is that of what is handled, and not the time since a batch was not full. */
  @Test
  void theLagIsKnownWhileOneFullBatchFollowsTheOther() {
    TestPollers.insert(database, 1, 1);
    AtomicLong until = new AtomicLong();
    List<Duration> lags = new ArrayList<>();
    Pollers pollers =
        builder()
            .on(
                TestPollers.items().batchSize(1),
                (rows, context) -> {
                  handled.addAll(rows);
                  if (System.nanoTime() < until.get()) {
                    TestPollers.insert(database, handled.size() + 1, handled.size() + 1);
                  } else {
                    control.status("items").orElseThrow().lag().ifPresent(lags::add);
                  }
                })
            .build();
    await() // a tick ends before that if a stranger's transaction holds back a row
        .atMost(Duration.ofMinutes(1))
        .until(
            () -> {
              until.set(System.nanoTime() + Duration.ofSeconds(3).toNanos());
              pollers.tick("items");
              return !lags.isEmpty();
            });
    assertThat(lags).singleElement().satisfies(lag -> assertThat(lag.toMillis()).isLessThan(1_500));
  }

  @Test
  void aStopBetweenBatchesDoesNotSayThatAllIsHandled() {
    TestPollers.insert(database, 1, 3);
    Set<String> seen = Collections.synchronizedSet(new HashSet<>());
    Pollers pollers =
        builder()
            .on(
                TestPollers.items().batchSize(1),
                (rows, context) -> {
                  seen.add("begun");
                  await().until(context::isStopping);
                })
            .build();
    started.add(pollers);
    pollers.start();
    await().until(() -> seen.contains("begun"));
    pollers.stop();
    PollerStatus status = control.status("items").orElseThrow();
    assertThat(status.rows()).isEqualTo(1);
    assertThat(status.holder()).isEmpty();
    assertThat(status.lag()).isEmpty();
  }

  @Test
  void aBackfillOfNothingIsFinishedAtOnce() {
    Pollers pollers = recording(TestPollers.items().untilNow());
    assertThat(pollers.tick("items").outcome()).isEqualTo(Outcome.FINISHED);
  }

  @Test
  void anAscendingBackfillEndsWithAllRowsOfTheGreatestCursor() {
    TestPollers.insert(database, 1, 5);
    database.update("update items set version = 7");
    Poller poller =
        Poller.of("days", Source.table("items"), Cursor.ascending("version"), Deletes.ignored())
            .untilNow()
            .pollInterval(Duration.ofMillis(10));
    Pollers pollers = recording(poller);
    await().until(() -> pollers.tick("days").outcome() == Outcome.FINISHED);
    assertThat(ids(handled)).containsExactly(1, 2, 3, 4, 5);
  }

  @Test
  void endsBehindACursorThatIsGivenOnceSomethingIsBehindThat() {
    TestPollers.insert(database, 1, 2);
    Pollers pollers = recording(TestPollers.items().until(3L));
    drain(pollers, "items");
    assertThat(control.status("items").orElseThrow().finishedAt()).isEmpty();
    TestPollers.insert(database, 3, 5);
    await().until(() -> pollers.tick("items").outcome() == Outcome.FINISHED);
    assertThat(ids(handled)).containsExactly(1, 2, 3);
  }

  @Test
  void handlesNoMoreRowsInASecondThanItsRate() {
    TestPollers.insert(database, 1, 6);
    Pollers pollers = recording(TestPollers.items().batchSize(2).rate(20));
    long begun = System.nanoTime();
    drain(pollers, "items");
    assertThat(Duration.ofNanos(System.nanoTime() - begun)).isGreaterThan(Duration.ofMillis(200));
  }

  @Test
  void aTransactionalHandlerWritesWithThePositionOrNotAtAll() {
    database.update("drop table if exists ledger");
    database.update("create table ledger (id int)");
    TestPollers.insert(database, 1, 5);
    int[] calls = {0};
    Pollers pollers =
        builder()
            .transactional(
                TestPollers.items().batchSize(2),
                (rows, context, connection) -> {
                  try (PreparedStatement insert =
                      connection.prepareStatement("insert into ledger values (?)")) {
                    for (RowChange row : rows) {
                      insert.setObject(1, row.key().get("id"));
                      insert.executeUpdate();
                    }
                  }
                  assertThatThrownBy(connection::commit).hasMessageContaining("ends with its");
                  connection.close();
                  if (++calls[0] % 2 == 1) {
                    throw new IllegalStateException("half of the time");
                  }
                })
            .build();
    await()
        .until(
            () -> {
              pollers.tick("items");
              return database.count("ledger") == 5;
            });
    assertThat(database.list(Integer.class, "select id from ledger order by id"))
        .containsExactly(1, 2, 3, 4, 5);
    assertThat(control.status("items").orElseThrow().rows()).isEqualTo(5);
  }

  @Test
  void aTransactionalHandlerWorksWhereTheDefaultIsSerializable() {
    database.update(
        "alter database \"%s\" set default_transaction_isolation = 'serializable'"
            .formatted(database.name()));
    try {
      PostgresOutbox strict = PostgresOutbox.on(database.plain(), database.table());
      database.update("drop table if exists ledger");
      database.update("create table ledger (id int)");
      TestPollers.insert(database, 1, 3);
      Pollers pollers =
          Pollers.builder(strict, "shop")
              .transactional(
                  TestPollers.items().lease(Duration.ofSeconds(1)),
                  (rows, context, connection) -> {
                    connection.createStatement().execute("insert into ledger values (1)");
                    // a renewal writes the poller's row meanwhile
                    await()
                        .until(
                            () -> context.leaseRemaining().compareTo(Duration.ofMillis(700)) < 0);
                    await()
                        .until(
                            () -> context.leaseRemaining().compareTo(Duration.ofMillis(800)) > 0);
                  })
              .build();
      TickResult result = pollers.tick("items");
      assertThat(result.failure()).as(result.toString()).isEmpty();
      assertThat(result.totalProcessed()).isEqualTo(3);
    } finally {
      database.update(
          "alter database \"%s\" reset default_transaction_isolation".formatted(database.name()));
    }
  }

  @Test
  void publishesAMessageForEachRow() {
    TestPollers.insert(database, 1, 3);
    Pollers pollers = builder().publishTo(TestPollers.items(), "items").build();
    assertThat(pollers.tick("items").totalProcessed()).isEqualTo(3);
    assertThat(
            database.list(
                String.class,
                "select queue || ' ' || type || ' ' || ordering_key from outbox order by id"))
        .containsExactly("items upsert 1", "items upsert 2", "items upsert 3");
    assertThat(
            database.one(
                String.class,
                """
                select (convert_from(payload, 'UTF8')::jsonb - 'eventId')::text
                from outbox order by id limit 1
                """))
        .isEqualTo(
            "{\"key\": {\"id\": 1}, \"after\": {\"id\": 1, \"name\": \"n1\", \"deleted\": false, "
                + "\"version\": 1}, \"cursor\": 1, \"source\": \"public.items\", \"operation\": \"upsert\"}");
  }

  @Test
  void theContextTellsWhereABatchBeginsAndEndsAndUnderWhichLease() {
    TestPollers.insert(database, 1, 5);
    List<String> told = new ArrayList<>();
    List<Long> tokens = new ArrayList<>();
    Pollers pollers =
        builder()
            .on(
                TestPollers.items().batchSize(2).lease(Duration.ofMinutes(1)),
                (rows, context) -> {
                  told.add(
                      "%s to %s, attempt %d"
                          .formatted(
                              context.before().cursor().orElse("the beginning"),
                              context.after().cursor().orElseThrow(),
                              context.attempt()));
                  tokens.add(context.token());
                  assertThat(context.leaseRemaining())
                      .isPositive()
                      .isLessThanOrEqualTo(Duration.ofMinutes(1));
                  assertThat(context.isLeaseLost()).isFalse();
                  assertThat(context.isRedriven()).isFalse();
                })
            .build();
    assertThat(pollers.tick("items").totalProcessed()).isEqualTo(5);
    TestPollers.insert(database, 6, 6);
    pollers.tick("items");

    assertThat(told)
        .containsExactly(
            "the beginning to 2, attempt 1",
            "2 to 4, attempt 1",
            "4 to 5, attempt 1",
            "5 to 6, attempt 1");
    assertThat(tokens.subList(0, 3)).containsOnly(tokens.get(0));
    assertThat(tokens.get(3)).as("of another lease").isGreaterThan(tokens.get(0));
  }

  @Test
  void publishesEachTypeOfValueAsTheDocumentSays() {
    database.update(
        """
        drop table if exists odd;
        create table odd (a text, b int, c bigint not null, amount numeric, share float8,
          nothing text, flag boolean, bytes bytea, at timestamptz, local timestamp, day date,
          hour time, u uuid, json jsonb, list int[], primary key (a, b));
        insert into odd values (E'k"\\\\\n\t\u0001é', 7, 1, 12.50, 0.25, null, true, '\\x00ff',
          '2026-11-29T10:15:30.123456Z', '2026-11-29T10:15:30.5', '2026-11-29', '10:15:30',
          '00000000-0000-0000-0000-000000000001', '{"x": 1}', '{1,2}');
        insert into odd (a, b, c, amount, share) values ('k', 7, 2, 'NaN', 'infinity');
        insert into odd (a, b, c) values (repeat('x', 300), 7, 3);
        """);
    Poller odd = Poller.of("odd", Source.table("odd"), Cursor.sequence("c"), Deletes.ignored());
    assertThat(builder().publishTo(odd, "odd").build().tick("odd").totalProcessed()).isEqualTo(3);

    assertThat(after(1))
        .isEqualTo(
            database.one(
                String.class,
                """
                select jsonb_build_object('a', E'k"\\\\\n\t\u0001é', 'b', 7, 'c', 1, 'amount', 12.50,
                  'share', 0.25, 'nothing', null, 'flag', true, 'bytes', 'AP8=',
                  'at', '2026-11-29T10:15:30.123456Z', 'local', '2026-11-29T10:15:30.500',
                  'day', '2026-11-29', 'hour', '10:15:30',
                  'u', '00000000-0000-0000-0000-000000000001', 'json', '{"x": 1}',
                  'list', '{1,2}')::text
                """));
    assertThat(after(2)).contains("\"amount\": \"NaN\"", "\"share\": \"Infinity\"");
    List<String> keys =
        database.list(String.class, "select ordering_key from outbox order by id offset 1");
    assertThat(keys.get(0)).isEqualTo("k/7");
    assertThat(keys.get(1)).as("a hash").matches("[0-9a-f]{64}");
  }

  private String after(int row) {
    return database.one(
        String.class,
        "select (convert_from(payload, 'UTF8')::jsonb -> 'after')::text from outbox order by id"
            + " offset %d limit 1".formatted(row - 1));
  }

  @Test
  void publishesWhatAMappingMakesOfRows() {
    TestPollers.insert(database, 1, 3);
    Pollers pollers =
        builder()
            .publish(
                TestPollers.items(),
                row ->
                    row.key().get("id").equals(2)
                        ? Optional.empty()
                        : Optional.of(OutboxMessage.to("mapped").type("t").body("b").build()))
            .build();
    assertThat(pollers.tick("items").totalProcessed()).isEqualTo(3);
    assertThat(database.count("outbox where queue = 'mapped'")).isEqualTo(2);
  }

  /** Writes numbers backwards. */
  private static final class Backwards implements PayloadCodec {
    @Override
    public String contentType() {
      return "text/backwards";
    }

    @Override
    public Payload encode(Object body) {
      return Payload.ofText(new StringBuilder(body.toString()).reverse().toString());
    }

    @Override
    public Object decode(Payload payload, Map<String, String> headers, Type type) {
      throw new UnsupportedOperationException();
    }
  }

  @Test
  void publishesByThePublisherThatIsGiven() {
    TestPollers.insert(database, 17, 17);
    Pollers pollers =
        builder()
            .publish(
                TestPollers.items(),
                row -> Optional.of(OutboxMessage.to("coded").body(row.key().get("id")).build()))
            .publisher(PostgresOutbox.publisher(database.table()).codec(new Backwards()).build())
            .build();
    TickResult result = pollers.tick("items");
    assertThat(result.totalProcessed()).as(result.toString()).isEqualTo(1);
    assertThat(
            database.one(
                String.class,
                "select convert_from(payload, 'UTF8') || ' ' || headers::text from outbox"
                    + " where queue = 'coded'"))
        .startsWith("71 ")
        .contains("text/backwards");
  }

  @Test
  void theRecordAndTheHistoryNameTheNode() {
    TestPollers.insert(database, 1, 1);
    List<String> holders = new ArrayList<>();
    Pollers pollers =
        builder()
            .node("node 7")
            .on(
                TestPollers.items(),
                (rows, context) ->
                    control.status("items").orElseThrow().holder().ifPresent(holders::add))
            .build();
    pollers.tick("items");
    assertThat(holders).singleElement().asString().startsWith("node 7/");
    assertThat(control.history("items", 1).get(0).by()).isEqualTo(holders.get(0));
  }

  @Test
  void twoApplicationsHaveNothingToDoWithEachOther() {
    TestPollers.insert(database, 1, 2);
    Pollers one = recording(TestPollers.items());
    Pollers other =
        Pollers.builder(outbox, "mail")
            .on(TestPollers.items(), (rows, context) -> handled.addAll(rows))
            .build();
    drain(one, "items");
    drain(other, "items");
    assertThat(ids(handled)).containsExactly(1, 2, 1, 2);
    PollerControl.of(outbox, "mail").pause("items", ANN);
    assertThat(control.status("items").orElseThrow().pause()).isEmpty();
    assertThat(control.pollers()).hasSize(1);
  }

  @Test
  void aDryTickHandlesNothingAndWritesNothing() {
    TestPollers.insert(database, 1, 3);
    Pollers pollers = recording(TestPollers.items().batchSize(2));
    TickResult dry = pollers.dryTick("items");
    assertThat(dry.outcome()).isEqualTo(Outcome.PROCESSED);
    assertThat(dry.totalProcessed()).isEqualTo(2);
    assertThat(ids(dry.rows())).containsExactly(1, 2);
    assertThat(handled).isEmpty();
    assertThat(control.pollers()).isEmpty();
    drain(pollers, "items");
    assertThat(pollers.dryTick("items").outcome()).isEqualTo(Outcome.EMPTY);
  }

  /** As a tick does, which would find them. */
  @Test
  void aDryTickWaitsForRowsThatAreCompleteSoon() {
    database.update(
        "alter table items add changed_at timestamptz not null default clock_timestamp()");
    database.update("create index on items (changed_at, id)");
    TestPollers.insert(database, 1, 3);
    for (Cursor cursor : List.of(Cursor.ascending("version"), Cursor.serverTime("changed_at"))) {
      Poller poller =
          Poller.of("items", Source.table("public", "items"), cursor, Deletes.ignored())
              .pollInterval(Duration.ofMillis(10));
      TickResult dry = recording(poller).dryTick("items");
      assertThat(dry.outcome()).as("by %s", cursor.kind()).isEqualTo(Outcome.PROCESSED);
      assertThat(ids(dry.rows()))
          .as("but for the greatest, which may be written again")
          .isEqualTo(cursor.kind() == Cursor.Kind.ASCENDING ? List.of(1, 2) : List.of(1, 2, 3));
    }
    assertThat(handled).isEmpty();
    assertThat(control.pollers()).isEmpty();
  }

  @Test
  void aDryTickTellsThatRowsWaitForATransaction() throws Exception {
    try (Connection open = database.plain().getConnection();
        Statement statement = open.createStatement()) {
      open.setAutoCommit(false);
      statement.execute("select 1");
      TestPollers.insert(database, 1, 3);
      assertThat(recording(TestPollers.items()).dryTick("items").outcome())
          .isEqualTo(Outcome.HELD_BACK);
      open.rollback();
    }
    assertThat(recording(TestPollers.items()).dryTick("items").totalProcessed()).isEqualTo(3);
  }

  @Test
  void startedPollersFollowTheTableAndStop() {
    Pollers pollers = recording(TestPollers.items().lease(Duration.ofSeconds(1)));
    started.add(pollers);
    pollers.start();
    for (int i = 1; i <= 20; i++) {
      TestPollers.insert(database, i, i);
    }
    await().until(() -> handled.size() == 20);
    assertThat(ids(handled))
        .containsExactlyElementsOf(IntStream.rangeClosed(1, 20).boxed().toList());
    await().until(() -> pollers.health().healthy());
    assertThat(pollers.health().pollers().get(0).lag().orElseThrow())
        .isLessThan(Duration.ofSeconds(5));
    assertThatThrownBy(() -> pollers.tick("items")).isInstanceOf(IllegalStateException.class);
    pollers.stop();
    pollers.stop();
    assertThat(pollers.health().started()).isFalse();
    assertThat(pollers.health().pollers().get(0).state()).isEqualTo(PollerHealth.State.STOPPED);
    assertThat(control.status("items").orElseThrow().holder()).isEmpty();
    assertThatThrownBy(pollers::start).isInstanceOf(IllegalStateException.class);
  }

  @Test
  void aStopWaitsForTheHandlerAndCountsItsBatch() throws Exception {
    TestPollers.insert(database, 1, 1);
    Set<String> seen = Collections.synchronizedSet(new HashSet<>());
    Pollers pollers =
        builder()
            .on(
                TestPollers.items(),
                (rows, context) -> {
                  seen.add("begun");
                  await().until(context::isStopping);
                  seen.add("told");
                })
            .build();
    pollers.start();
    await().until(() -> seen.contains("begun"));
    pollers.stop();
    assertThat(seen).contains("told");
    assertThat(control.status("items").orElseThrow().rows()).isEqualTo(1);
    assertThat(control.status("items").orElseThrow().holder()).isEmpty();
  }

  @Test
  void aHandlerThatDoesNotEndIsInterruptedAndItsBatchComesAgain() {
    TestPollers.insert(database, 1, 1);
    Set<String> seen = Collections.synchronizedSet(new HashSet<>());
    Pollers pollers =
        builder()
            .gracefulTimeout(Duration.ofMillis(50))
            .on(
                TestPollers.items(),
                (rows, context) -> {
                  seen.add("begun");
                  new CountDownLatch(1).await();
                })
            .build();
    pollers.start();
    await().until(() -> seen.contains("begun"));
    pollers.stop();
    PollerStatus status = control.status("items").orElseThrow();
    assertThat(status.rows()).isZero();
    assertThat(status.holder()).isEmpty();
    assertThat(status.failingSince()).isEmpty();
    List<Integer> attempts = new ArrayList<>();
    Pollers other =
        builder()
            .on(TestPollers.items(), (rows, context) -> attempts.add(context.attempt()))
            .build();
    assertThat(other.tick("items").totalProcessed()).isEqualTo(1);
    assertThat(attempts).containsExactly(2); // the rows may have been handled before
  }

  @Test
  void nodesShareTheWorkOneAtATime() {
    List<Pollers> nodes = new ArrayList<>();
    for (int i = 0; i < 8; i++) {
      nodes.add(recording(TestPollers.items().batchSize(7)));
    }
    started.addAll(nodes);
    nodes.forEach(Pollers::start);
    for (int i = 0; i < 50; i++) {
      TestPollers.insert(database, i * 10 + 1, i * 10 + 10);
    }
    await().atMost(Duration.ofSeconds(30)).until(() -> handled.size() >= 500);
    nodes.forEach(Pollers::stop);
    assertThat(ids(handled))
        .containsExactlyElementsOf(IntStream.rangeClosed(1, 500).boxed().toList());
  }
}
