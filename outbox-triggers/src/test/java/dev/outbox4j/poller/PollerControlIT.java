package dev.outbox4j.poller;

import static dev.outbox4j.poller.TestPollers.ANN;
import static dev.outbox4j.poller.TestPollers.ids;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.poller.TickResult.Outcome;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TcpProxy;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Connection;
import java.sql.Statement;
import java.time.Duration;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BiConsumer;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.postgresql.ds.PGSimpleDataSource;

/** What operators do to pollers, changed definitions, and rows at fault. */
@ExtendWith(PostgresExtension.class)
class PollerControlIT {
  private final TestDatabase database;
  private final PostgresOutbox outbox;
  private final PollerControl control;
  private final List<RowChange> handled = Collections.synchronizedList(new ArrayList<>());

  /** Ids at which the handler throws. */
  private final Set<Object> poison = ConcurrentHashMap.newKeySet();

  PollerControlIT(TestDatabase database) {
    this.database = database;
    this.outbox = PostgresOutbox.on(database.pool(8), database.table());
    this.control = PollerControl.of(outbox, "shop");
  }

  @BeforeEach
  void setUp() {
    TestPollers.setUp(database);
    TestPollers.createItems(database);
  }

  private Pollers pollers(Poller poller) {
    return Pollers.builder(outbox, "shop").on(poller, this::handle).build();
  }

  private void handle(List<RowChange> rows, PollContext context) {
    rows.forEach(
        row -> {
          if (poison.contains(row.key().get("id"))) {
            throw new IllegalArgumentException("poison " + row.key().get("id"));
          }
        });
    handled.addAll(rows);
  }

  private PollerStatus status() {
    return control.status("items").orElseThrow();
  }

  private List<PollerVerb> verbs() {
    return control.history("items", 100).stream().map(PollerChange::verb).toList();
  }

  @Test
  void aPausedPollerLooksNoMoreAndAResumedOneGoesOn() {
    TestPollers.insert(database, 1, 1);
    Pollers pollers = pollers(TestPollers.items());
    pollers.tick("items");
    assertThat(control.pause("items", Audit.of("ann", "a migration"))).isTrue();
    assertThat(control.pause("items", ANN)).isFalse();
    TestPollers.insert(database, 2, 2);
    assertThat(pollers.tick("items").outcome()).isEqualTo(Outcome.PAUSED);
    assertThat(pollers.health().pollers().get(0).state()).isEqualTo(PollerHealth.State.PAUSED);
    assertThat(pollers.health().pollers().get(0).healthy()).isTrue();
    assertThat(status().pause())
        .hasValueSatisfying(
            pause -> {
              assertThat(pause.by()).isEqualTo("ann");
              assertThat(pause.reason()).isEqualTo("a migration");
            });
    assertThat(control.resume("items", ANN)).isTrue();
    assertThat(control.resume("items", ANN)).isFalse();
    pollers.tick("items");
    assertThat(ids(handled)).containsExactly(1, 2);
    assertThat(verbs()).containsExactly(PollerVerb.RESUME, PollerVerb.PAUSE, PollerVerb.CREATE);
    assertThat(status().version()).isEqualTo(3);
  }

  @Test
  void aPauseDuringABatchEndsTheTickBehindIt() {
    TestPollers.insert(database, 1, 4);
    Pollers pollers =
        Pollers.builder(outbox, "shop")
            .on(
                TestPollers.items().batchSize(2),
                (rows, context) -> {
                  control.pause("items", ANN);
                  handled.addAll(rows);
                })
            .build();
    assertThat(pollers.tick("items").totalProcessed()).isEqualTo(2);
    assertThat(pollers.tick("items").outcome()).isEqualTo(Outcome.PAUSED);
    assertThat(status().holder()).isEmpty();
  }

  @Test
  void startsPausedIfItIsToAndIsOnRecordBeforeItsFirstLook() {
    TestPollers.insert(database, 1, 1);
    Pollers pollers = pollers(TestPollers.items().startPaused().startAt(Position.after(0L)));
    assertThat(pollers.tick("items").outcome()).isEqualTo(Outcome.PAUSED);
    assertThat(status().position()).isEqualTo(Position.after(0L));
    assertThat(status().lastTick()).isEmpty();
    control.resume("items", ANN);
    assertThat(pollers.tick("items").totalProcessed()).isEqualTo(1);
    assertThat(status().fingerprint())
        .containsEntry("source", "public.items")
        .containsEntry("key", "id")
        .containsEntry("cursor type", "bigint")
        .containsEntry("database", database.name());
  }

  @Test
  void aPositionIsSetForwardAndBackAndThatIsOnRecord() {
    TestPollers.insert(database, 1, 5);
    Pollers pollers = pollers(TestPollers.items());
    pollers.tick("items");
    long version = control.set("items", Position.after(3L), Audit.of("bob", "again"));
    assertThat(version).isEqualTo(2);
    pollers.tick("items");
    assertThat(ids(handled)).containsExactly(1, 2, 3, 4, 5, 4, 5);
    PollerChange change = control.history("items", 1).get(0);
    assertThat(change.verb()).isEqualTo(PollerVerb.SET);
    assertThat(change.by()).isEqualTo("bob");
    assertThat(change.reason()).isEqualTo("again");
    assertThat(change.versionBefore()).isEqualTo(1);
    assertThat(change.versionAfter()).isEqualTo(2);
    assertThat(change.positionBefore())
        .isEqualTo(Position.of(Position.Side.ROW, "bigint", "5", List.of("5")));
    assertThat(change.positionAfter()).isEqualTo(Position.after(3L));
  }

  @Test
  void nothingIsDoneToAPollerThatHasAnotherVersion() {
    pollers(TestPollers.items()).tick("items");
    control.pause("items", ANN.expecting(1));
    assertThatThrownBy(() -> control.resume("items", ANN.expecting(1)))
        .isInstanceOfSatisfying(
            StaleVersionException.class, e -> assertThat(e.version()).isEqualTo(2))
        .hasMessageContaining("has version 2 and not 1");
    assertThat(status().pause()).isPresent();
    assertThatThrownBy(() -> control.pause("other", ANN))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("no poller 'other' on record");
    assertThat(control.status("other")).isEmpty();
    assertThat(control.status("")).isEmpty();
  }

  @Test
  void aBatchThatIsBeingHandledWhenThePositionIsSetIsNotCounted() {
    TestPollers.insert(database, 1, 2);
    boolean[] first = {true};
    Pollers pollers =
        Pollers.builder(outbox, "shop")
            .on(
                TestPollers.items(),
                (rows, context) -> {
                  handled.addAll(rows);
                  if (first[0]) {
                    first[0] = false;
                    control.set("items", Position.after(1L), ANN);
                  }
                })
            .build();
    TickResult result = pollers.tick("items");
    assertThat(result.failure()).hasValue(PollerFailure.COMMIT);
    assertThat(result.reason().orElse("")).contains("somebody took it");
    assertThat(result.totalProcessed()).isZero();
    pollers.tick("items");
    assertThat(ids(handled)).containsExactly(1, 2, 2);
  }

  @Test
  void aFailingBatchCanBeSkippedOrRetriedAtOnce() {
    TestPollers.insert(database, 1, 3);
    assertThatThrownBy(
            () -> {
              pollers(TestPollers.items("fine")).tick("fine");
              control.skip("fine", ANN);
            })
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("nothing to skip");

    handled.clear();
    poison.add(2);
    Pollers pollers =
        pollers(TestPollers.items().retry(Duration.ofHours(1), Duration.ofHours(1)).batchSize(2));
    TickResult failed = pollers.tick("items");
    assertThat(failed.failure()).hasValue(PollerFailure.HANDLER);
    assertThat(failed.reason()).hasValue("java.lang.IllegalArgumentException: poison 2");
    assertThat(pollers.tick("items").outcome()).isEqualTo(Outcome.WAITING);
    assertThat(status().retryAt()).isPresent();
    assertThat(status().failingSince()).isPresent();
    assertThat(status().failure()).hasValue(PollerFailure.HANDLER);
    assertThat(status().failingUntil())
        .hasValue(Position.of(Position.Side.ROW, "bigint", "2", List.of("2")));
    PollerHealth health = pollers.health().pollers().get(0);
    assertThat(health.healthy()).isFalse();
    assertThat(health.failingSince()).isPresent();
    assertThat(health.reason().orElse("")).contains("poison 2");

    assertThat(control.retry("items", ANN)).isTrue();
    assertThat(pollers.tick("items").failure()).hasValue(PollerFailure.HANDLER);
    assertThat(status().failures()).isEqualTo(2);

    control.skip("items", ANN);
    assertThat(pollers.tick("items").totalProcessed()).isEqualTo(1);
    assertThat(ids(handled)).containsExactly(3);
    assertThat(status().failingSince()).isEmpty();
    assertThat(pollers.health().pollers().get(0).healthy()).isTrue();
    assertThat(control.retry("items", ANN)).isFalse();
    assertThat(verbs()).containsExactly(PollerVerb.SKIP, PollerVerb.RETRY, PollerVerb.CREATE);
  }

  @Test
  void waitsLongerAfterEachFailedAttemptUpToTheLongest() {
    TestPollers.insert(database, 1, 1);
    poison.add(1);
    Pollers pollers =
        pollers(TestPollers.items().retry(Duration.ofSeconds(100), Duration.ofSeconds(300)));
    List<Long> waits = new ArrayList<>();
    for (int i = 0; i < 4; i++) {
      pollers.tick("items");
      waits.add(
          database.one(
              Long.class,
              "select round(extract(epoch from retry_at - last_tick_at))::bigint from outbox_poller"));
      control.retry("items", ANN);
    }
    assertThat(waits).containsExactly(100L, 200L, 300L, 300L);
  }

  @Test
  void isolationPutsTheRowAtFaultIntoQuarantineAndTheOthersArriveOnce() {
    TestPollers.insert(database, 1, 1_000);
    poison.add(617);
    Pollers pollers = pollers(TestPollers.items().batchSize(1_000).isolateAfter(2));

    assertThat(pollers.tick("items").failure()).hasValue(PollerFailure.HANDLER);
    await().until(() -> pollers.tick("items").outcome() == Outcome.PROCESSED);

    assertThat(ids(handled)).hasSize(999).doesNotContain(617).doesNotHaveDuplicates().isSorted();
    assertThat(status().rows()).isEqualTo(999);
    assertThat(status().quarantined()).isEqualTo(1);
    QuarantinedRow row = control.quarantine("items", 10).get(0);
    assertThat(row.error()).isEqualTo("java.lang.IllegalArgumentException: poison 617");
    assertThat(row.attempts()).isEqualTo(1);
    assertThat(row.key()).isEqualTo("{\"id\":617}");
    assertThat(row.row())
        .isEqualTo("{\"id\":617,\"name\":\"n617\",\"deleted\":false,\"version\":617}");
    assertThat(row.toString()).doesNotContain("n617");

    assertThat(control.redrive("items", row.id(), ANN)).isTrue();
    assertThat(control.redrive("items", row.id(), ANN)).isFalse();
    pollers.tick("items");
    assertThat(control.quarantine("items", 10).get(0).attempts()).isEqualTo(2);
    assertThat(control.quarantine("items", 10).get(0).redriven()).isFalse();

    poison.clear();
    handled.clear();
    control.redrive("items", row.id(), ANN);
    assertThat(pollers.tick("items").totalProcessed()).isEqualTo(1);
    assertThat(control.quarantine("items", 10)).isEmpty();
    assertThat(handled)
        .singleElement()
        .satisfies(
            again -> {
              assertThat(again.eventId()).isEqualTo(row.eventId());
              assertThat(again.key()).isEqualTo(Map.of("id", 617));
              assertThat(again.after().keySet())
                  .containsExactly("id", "name", "deleted", "version");
              assertThat(again.get("version", Long.class)).isEqualTo(617L);
              assertThat(again.get("deleted", Boolean.class)).isFalse();
            });
  }

  @Test
  void aRowInQuarantineCanBeDiscarded() {
    TestPollers.insert(database, 1, 1);
    poison.add(1);
    Pollers pollers = pollers(TestPollers.items().isolateAfter(1));
    assertThat(pollers.tick("items").quarantined()).isEqualTo(1);
    long id = control.quarantine("items", 1).get(0).id();
    assertThat(control.discard("items", id, ANN)).isTrue();
    assertThat(control.discard("items", id, ANN)).isFalse();
    assertThat(control.quarantine("items", 1)).isEmpty();
    assertThat(verbs()).containsExactly(PollerVerb.DISCARD, PollerVerb.CREATE);
  }

  @Test
  void isolationWorksInTransactions() {
    database.update("drop table if exists ledger");
    database.update("create table ledger (id int)");
    TestPollers.insert(database, 1, 1_000);
    Pollers pollers =
        Pollers.builder(outbox, "shop")
            .transactional(
                TestPollers.items().batchSize(1_000).isolateAfter(1),
                (rows, context, connection) -> {
                  try (var insert = connection.prepareStatement("insert into ledger values (?)")) {
                    for (RowChange row : rows) {
                      insert.setObject(1, row.key().get("id"));
                      insert.executeUpdate();
                      if (row.key().get("id").equals(617)) {
                        insert.getConnection().createStatement().execute("select 1 / 0");
                      }
                    }
                  }
                })
            .build();
    TickResult result = pollers.tick("items");
    assertThat(result.quarantined()).isEqualTo(1);
    assertThat(result.totalProcessed()).isEqualTo(999);
    assertThat(database.list(Integer.class, "select id from ledger order by id"))
        .containsExactlyElementsOf(
            IntStream.rangeClosed(1, 1_000).filter(id -> id != 617).boxed().toList());
    assertThat(control.quarantine("items", 10))
        .singleElement()
        .satisfies(
            row -> {
              assertThat(row.key()).isEqualTo("{\"id\":617}");
              assertThat(row.error()).contains("division by zero");
            });
  }

  @Test
  void whenEveryRowFailsItIsNoRowsFault() {
    TestPollers.insert(database, 1, 100);
    for (int i = 1; i <= 100; i++) {
      poison.add(i);
    }
    Pollers pollers = pollers(TestPollers.items().isolateAfter(1));
    TickResult result = pollers.tick("items");
    assertThat(result.failure()).hasValue(PollerFailure.HANDLER);
    assertThat(result.reason().orElse("")).contains("11 rows in a row");
    assertThat(control.quarantine("items", 1_000)).hasSize(10);
    poison.clear();
    await().until(() -> pollers.tick("items").outcome() == Outcome.PROCESSED);
    assertThat(handled).hasSize(90);
  }

  /** An outage of what the handler needs would bring row after row there. */
  @Test
  void nothingMoreGoesToQuarantineUntilSomethingSucceeds() {
    TestPollers.insert(database, 1, 100);
    for (int i = 1; i <= 100; i++) {
      poison.add(i);
    }
    Pollers pollers = pollers(TestPollers.items().isolateAfter(1));
    for (int i = 0; i < 5; i++) {
      await().until(() -> pollers.tick("items").outcome() == Outcome.FAILED);
    }
    assertThat(control.quarantine("items", 1_000)).hasSize(10);
    poison.clear();
    poison.add(50);
    await().until(() -> pollers.tick("items").outcome() == Outcome.PROCESSED);
    assertThat(handled).hasSize(89);
    assertThat(control.quarantine("items", 1_000)).hasSize(11);
  }

  @Test
  void tenThousandRowsAreInQuarantineAndNoMore() {
    TestPollers.insert(database, 1, 1);
    Pollers pollers = pollers(TestPollers.items().isolateAfter(1));
    pollers.tick("items");
    database.update(
        """
        insert into outbox_poller_quarantine (application, name, event_id, operation, source,
          cursor_type, cursor_text, row_key, row_after, row_types, last_error)
        select 'shop', 'items', 'event ' || i, 'UPSERT', 'public.items', 'bigint', '1', '{}', '{}',
          '{}', 'a test'
        from generate_series(1, 10000) i
        """);
    TestPollers.insert(database, 2, 3);
    poison.add(2);
    TickResult result = pollers.tick("items");
    assertThat(result.failure()).hasValue(PollerFailure.HANDLER);
    assertThat(result.reason().orElse(""))
        .contains("10000 rows are in quarantine, which is the most", "poison 2");
    assertThat(status().quarantined()).isEqualTo(10_000);
    assertThat(status().position().key()).containsExactly("1");

    control.discard("items", firstRow(control), ANN);
    await().until(() -> pollers.tick("items").quarantined() == 1);
    assertThat(status().quarantined()).isEqualTo(10_000);
    assertThat(ids(handled)).containsExactly(1, 3);
  }

  /** A part of the fingerprint, and how it alone is changed: in the database, in the definition. */
  private record Change(String part, String ddl, Poller before, Poller after) {
    @Override
    public String toString() {
      return part + (ddl.isEmpty() ? "" : " by " + ddl) + " " + after.cursor();
    }
  }

  private static Change change(String part, Poller after) {
    return new Change(part, "", filtered(TestPollers.items()), after);
  }

  private static Change change(String part, Source source, Cursor cursor, Deletes deletes) {
    return change(part, of(source, cursor, deletes));
  }

  private static Poller filtered(Poller poller) {
    return poller.where("id > ?", 0);
  }

  private static Poller of(Source source, Cursor cursor, Deletes deletes) {
    return filtered(Poller.of("items", source, cursor, deletes))
        .pollInterval(Duration.ofMillis(10));
  }

  static Stream<Change> changes() {
    Poller items = filtered(TestPollers.items());
    Source table = Source.table("public", "items");
    Cursor version = Cursor.sequence("version");
    Cursor local = Cursor.serverTime("local_at").margin(Duration.ofMillis(1));
    return Stream.of(
        change("condition", items.where("id >= ?", 0)),
        change("values of the condition", items.where("id > ?", -1)),
        change("columns", items.columns("name")),
        change("cursor", table, Cursor.sequence("number"), Deletes.ignored()),
        new Change("cursor type", "alter table items alter version type numeric", items, items),
        change("cursor kind", table, Cursor.ascending("version"), Deletes.ignored()),
        change("cursor kind", table, version.assumingThatWritersNeverOverlap(), Deletes.ignored()),
        new Change(
            "cursor kind",
            "",
            of(table, local.in(ZoneOffset.UTC), Deletes.ignored()),
            of(table, local.in(ZoneOffset.ofHours(1)), Deletes.ignored())),
        change("nulls", table, version.nulls(NullCursors.IGNORED), Deletes.ignored()),
        change("deletes", table, version, Deletes.softDelete("deleted")),
        change("deletes", table, version, Deletes.tombstones(Source.table("items_deleted"))),
        change("key", table.key("number"), version, Deletes.ignored()),
        new Change("key types", "alter table items alter id type numeric", items, items),
        change("source", Source.table("items_copy").key("id"), version, Deletes.ignored()),
        change(
            "query",
            Source.query("public.items", "select * from items", "id"),
            version,
            Deletes.ignored()));
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("changes")
  void aChangedDefinitionIsNotRunAndSaysWhichPartDiffers(Change change) {
    database.update(
        """
        alter table items add number bigint not null generated always as identity unique,
          add local_at timestamp not null default (now() at time zone 'UTC');
        drop table if exists items_copy, items_deleted;
        create table items_copy (like items including all);
        create table items_deleted (id int not null, version bigint not null);
        """);
    TestPollers.insert(database, 1, 2);
    pollers(change.before()).tick("items");
    if (!change.ddl().isEmpty()) {
      database.update(change.ddl());
    }
    TestPollers.insert(database, 3, 3);
    requireRefused(pollers(change.after()), change.part());
  }

  @Test
  void anotherDatabaseIsAChangedDefinition() throws Exception {
    TestPollers.insert(database, 1, 2);
    pollers(TestPollers.items()).tick("items");
    String name = database.name() + "_other";
    database.update("create database \"%s\"".formatted(name));
    try {
      PGSimpleDataSource other = database.plain();
      other.setDatabaseName(name);
      try (Connection connection = other.getConnection();
          Statement statement = connection.createStatement()) {
        statement.execute(
            "create table items (id int primary key, version bigint not null,"
                + " unique (version, id)); insert into items values (1, 1), (2, 2), (3, 3)");
      }
      requireRefused(
          Pollers.builder(outbox, "shop")
              .source(other)
              .on(TestPollers.items(), this::handle)
              .build(),
          "database");
    } finally {
      database.update("drop database \"%s\" with (force)".formatted(name));
    }
  }

  /** By this part and by no other. */
  private void requireRefused(Pollers pollers, String part) {
    Position before = status().position();
    handled.clear();
    for (int i = 0; i < 2; i++) {
      TickResult result = pollers.tick("items");
      assertThat(result.failure()).hasValue(PollerFailure.SOURCE);
      assertThat(result.reason().orElse(""))
          .containsPattern(
              "another than the one on record: "
                  + part
                  + ", which is '[^']*' on record and '[^']*' here; correct it, or adopt it by"
                  + " PollerControl.adopt");
    }
    assertThat(handled).isEmpty();
    assertThat(status().position()).isEqualTo(before);
    assertThat(status().failure()).hasValue(PollerFailure.SOURCE);
    assertThat(status().failures()).isEqualTo(2);
    assertThat(pollers.health().healthy()).isFalse();
    assertThat(pollers.dryTick("items").failure()).hasValue(PollerFailure.SOURCE);
  }

  @Test
  void anAdoptedDefinitionKeepsThePositionAndIsOnRecord() {
    TestPollers.insert(database, 1, 2);
    pollers(TestPollers.items()).tick("items");
    TestPollers.insert(database, 3, 3);
    Pollers changed = pollers(TestPollers.items().columns("name"));
    changed.tick("items");
    control.adopt("items", Audit.of("ann", "fewer columns"));
    handled.clear();
    changed.tick("items");
    assertThat(ids(handled)).containsExactly(3);
    assertThat(status().fingerprint()).containsEntry("columns", "name");
    PollerChange adopted = control.history("items", 1).get(0);
    assertThat(adopted.verb()).isEqualTo(PollerVerb.ADOPT);
    assertThat(adopted.by()).isEqualTo("ann");
    assertThat(adopted.reason()).isEqualTo("fewer columns");
    assertThat(adopted.versionBefore()).isEqualTo(1);
    assertThat(adopted.versionAfter()).isEqualTo(2);
    assertThat(adopted.positionBefore().cursor()).hasValue("2");
    assertThat(adopted.positionAfter()).isEqualTo(adopted.positionBefore());
    assertThat(pollers(TestPollers.items()).tick("items").failure()).hasValue(PollerFailure.SOURCE);
  }

  @Test
  void aResetPollerBeginsAsItsDefinitionSays() {
    TestPollers.insert(database, 1, 3);
    pollers(TestPollers.items()).tick("items");
    handled.clear();
    Pollers changed = pollers(TestPollers.items().columns("name").startAt(Position.after(2L)));
    control.reset("items", Audit.of("ann", "anew"));
    assertThat(status().position()).isEqualTo(Position.beginning());
    changed.tick("items");
    assertThat(ids(handled)).containsExactly(3);
    PollerChange reset = control.history("items", 1).get(0);
    assertThat(reset.verb()).isEqualTo(PollerVerb.RESET);
    assertThat(reset.by()).isEqualTo("ann");
    assertThat(reset.reason()).isEqualTo("anew");
    assertThat(reset.versionBefore()).isEqualTo(1);
    assertThat(reset.versionAfter()).isEqualTo(2);
    assertThat(reset.positionBefore().cursor()).hasValue("3");
    assertThat(reset.positionAfter()).isEqualTo(Position.beginning());
  }

  @Test
  void credentialsHostPortAndPoolAreNoPartOfADefinition() {
    if (database
        .list(String.class, "select rolname::text from pg_roles where rolname = 'renamed'")
        .isEmpty()) {
      database.update("create role renamed superuser login password 'other'");
    }
    TestPollers.insert(database, 1, 1);
    pollers(TestPollers.items()).tick("items");
    TestPollers.insert(database, 2, 2);
    PGSimpleDataSource other = database.plain();
    try (TcpProxy path = new TcpProxy(other.getServerNames()[0], other.getPortNumbers()[0])) {
      other.setServerNames(new String[] {path.host()});
      other.setPortNumbers(new int[] {path.port()});
      other.setUser("renamed");
      other.setPassword("other");
      other.setApplicationName("other pool");
      HikariConfig config = new HikariConfig();
      config.setDataSource(other);
      config.setMaximumPoolSize(2);
      try (HikariDataSource pool = new HikariDataSource(config)) {
        TickResult result =
            Pollers.builder(PostgresOutbox.on(pool, database.table()), "shop")
                .on(
                    TestPollers.items()
                        .batchSize(9)
                        .lease(Duration.ofSeconds(7))
                        .pollInterval(Duration.ofMillis(11))
                        .isolateAfter(4),
                    this::handle)
                .build()
                .tick("items");
        assertThat(result.failure()).as(result.toString()).isEmpty();
        assertThat(result.totalProcessed()).isEqualTo(1);
      }
    }
  }

  /** What a verb needs to have something to change, what it does, and where the poller is then. */
  private record Verb(PollerVerb verb, boolean isolates, BiConsumer<PollerControl, Audit> does) {
    @Override
    public String toString() {
      return verb.toString();
    }
  }

  static Stream<Verb> verbsOfPeople() {
    return Stream.of(
        new Verb(PollerVerb.PAUSE, false, (control, audit) -> control.pause("items", audit)),
        new Verb(PollerVerb.RESUME, false, (control, audit) -> control.resume("items", audit)),
        new Verb(
            PollerVerb.SET,
            false,
            (control, audit) -> control.set("items", Position.after(1L), audit)),
        new Verb(PollerVerb.RESET, false, (control, audit) -> control.reset("items", audit)),
        new Verb(PollerVerb.ADOPT, false, (control, audit) -> control.adopt("items", audit)),
        new Verb(PollerVerb.SKIP, false, (control, audit) -> control.skip("items", audit)),
        new Verb(PollerVerb.RETRY, false, (control, audit) -> control.retry("items", audit)),
        new Verb(
            PollerVerb.REDRIVE,
            true,
            (control, audit) -> control.redrive("items", firstRow(control), audit)),
        new Verb(
            PollerVerb.DISCARD,
            true,
            (control, audit) -> control.discard("items", firstRow(control), audit)));
  }

  private static long firstRow(PollerControl control) {
    return control.quarantine("items", 1).get(0).id();
  }

  @ParameterizedTest
  @MethodSource("verbsOfPeople")
  void eachVerbAsksForTheVersionAndIsOnRecord(Verb verb) {
    TestPollers.insert(database, 1, 2);
    Poller items = TestPollers.items().retry(Duration.ofHours(1), Duration.ofHours(1));
    Pollers pollers = pollers(verb.isolates() ? items.isolateAfter(1) : items);
    pollers.tick("items");
    poison.add(3);
    TestPollers.insert(database, 3, 3);
    pollers.tick("items");
    if (verb.verb() == PollerVerb.RESUME) {
      control.pause("items", ANN);
    }
    PollerStatus before = status();
    List<PollerChange> history = control.history("items", 100);
    List<QuarantinedRow> quarantine = control.quarantine("items", 100);

    assertThatThrownBy(
            () ->
                verb.does()
                    .accept(control, Audit.of("eve", "too late").expecting(before.version() - 1)))
        .isInstanceOf(StaleVersionException.class)
        .hasMessageContaining(
            "has version %d and not %d".formatted(before.version(), before.version() - 1));
    assertThat(status().version()).isEqualTo(before.version());
    assertThat(status().position()).isEqualTo(before.position());
    assertThat(status().pause()).isEqualTo(before.pause());
    assertThat(status().retryAt()).isEqualTo(before.retryAt());
    assertThat(control.history("items", 100)).isEqualTo(history);
    assertThat(control.quarantine("items", 100)).isEqualTo(quarantine);

    verb.does().accept(control, Audit.of("ann", "for a reason").expecting(before.version()));
    PollerChange change = control.history("items", 1).get(0);
    assertThat(change.verb()).isEqualTo(verb.verb());
    assertThat(change.by()).isEqualTo("ann");
    assertThat(change.reason()).isEqualTo("for a reason");
    assertThat(change.versionBefore()).isEqualTo(before.version());
    assertThat(change.versionAfter()).isEqualTo(before.version() + 1);
    assertThat(status().version()).isEqualTo(before.version() + 1);
    assertThat(change.positionBefore()).isEqualTo(before.position());
    assertThat(change.positionAfter())
        .isEqualTo(
            switch (verb.verb()) {
              case SET -> Position.after(1L);
              case RESET -> Position.beginning();
              case SKIP -> before.failingUntil().orElseThrow();
              default -> before.position();
            });
    assertThat(status().position()).isEqualTo(change.positionAfter());
    assertThat(control.history("items", 100)).hasSize(history.size() + 1);
  }

  @Test
  void theHistoryIsBounded() {
    pollers(TestPollers.items()).tick("items");
    database.update(
        """
        insert into outbox_poller_history (application, name, verb, changed_by, reason,
          version_before, version_after, position_before, position_after)
        select 'shop', 'items', 'PAUSE', 'x', 'x', i, i + 1,
          '{"side": "BEGINNING", "type": "", "cursor": "", "key": []}',
          '{"side": "BEGINNING", "type": "", "cursor": "", "key": []}'
        from generate_series(1, 1500) i
        """);
    control.pause("items", ANN);
    assertThat(control.history("items", 10_000)).hasSize(1_000);
    assertThat(control.history("items", 1).get(0).by()).isEqualTo("ann");
  }

  @Test
  void aRemovedPollerIsPutOnRecordAnew() {
    TestPollers.insert(database, 1, 1);
    poison.add(1);
    Pollers pollers = pollers(TestPollers.items().isolateAfter(1));
    pollers.tick("items");
    assertThat(control.remove("items")).isTrue();
    assertThat(control.remove("items")).isFalse();
    assertThat(control.pollers()).isEmpty();
    assertThat(control.history("items", 9)).isEmpty();
    assertThat(control.quarantine("items", 9)).isEmpty();
    poison.clear();
    pollers.tick("items");
    assertThat(ids(handled)).containsExactly(1);
  }
}
