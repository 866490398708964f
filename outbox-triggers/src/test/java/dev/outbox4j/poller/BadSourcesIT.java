package dev.outbox4j.poller;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.migrations.PollerMigrations;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Connection;
import java.sql.Statement;
import java.time.Duration;
import java.time.ZoneOffset;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.postgresql.ds.PGSimpleDataSource;

/** Sources that cannot be followed are refused: what is wrong, the rule, and what to do. */
@ExtendWith(PostgresExtension.class)
class BadSourcesIT {
  private static final Cursor VERSION = Cursor.sequence("v");
  private static final OutboxTable POLLED = OutboxTable.named("outbox").inSchema("polled");

  private final TestDatabase database;
  private final PostgresOutbox outbox;

  BadSourcesIT(TestDatabase database) {
    this.database = database;
    this.outbox = PostgresOutbox.on(database.plain(), database.table());
  }

  @BeforeEach
  void setUp() {
    TestPollers.setUp(database);
  }

  private static Arguments bad(
      String ddl, Source source, Cursor cursor, Deletes deletes, String... words) {
    return Arguments.of(ddl, source, cursor, deletes, words);
  }

  private static Arguments bad(String ddl, Cursor cursor, String... words) {
    return bad(ddl, Source.table("bad"), cursor, Deletes.ignored(), words);
  }

  static Stream<Arguments> sources() {
    return Stream.of(
        bad(
            "select 1",
            VERSION,
            "source bad is no table that there is on the search path",
            "grant usage"),
        bad(
            "select 1",
            Source.table("nowhere", "bad"),
            VERSION,
            Deletes.ignored(),
            "source nowhere.bad is no table that there is; correct its name"),
        bad(
            "create table bad (v bigint not null)",
            VERSION,
            "public.bad has no primary key",
            "Source.key(...)"),
        bad(
            "create table bad (id int primary key, v bigint)",
            VERSION,
            "cursor 'v' of public.bad may be null",
            "Cursor.nulls(IGNORED)"),
        bad(
            "create table bad (id int primary key)",
            VERSION,
            "cursor 'v' is no column of public.bad, which has [id]"),
        bad(
            "create table bad (id int primary key, v bigint not null, a int, b int not null)",
            Source.table("bad").key("a"),
            VERSION,
            Deletes.ignored(),
            "column 'a' of the key of public.bad may be null"),
        bad(
            "create table bad (id int primary key, v bigint not null, a int, b int not null)",
            Source.table("bad").key("b"),
            VERSION,
            Deletes.ignored(),
            "key [b] of public.bad is not unique by any index"),
        bad(
            "create table bad (id int primary key, v bigint not null, b int not null);"
                + " create unique index on bad (b) where v > 5",
            Source.table("bad").key("b"),
            VERSION,
            Deletes.ignored(),
            "is not unique by any index",
            "without a condition"),
        bad(
            "create table bad (id int primary key, v double precision not null)",
            VERSION,
            "cursor 'v' of public.bad is of type double precision; it may be smallint"),
        bad(
            "create table bad (id int primary key, v text not null)",
            VERSION,
            "cursor 'v' is of type text, which SEQUENCE is not kept in"),
        bad(
            "create table bad (id int primary key, v timestamp not null)",
            Cursor.serverTime("v"),
            "is of type timestamp without time zone: say by Cursor.in(ZoneOffset)"),
        bad(
            "create table bad (id int primary key, v timestamptz not null)",
            Cursor.serverTime("v").in(ZoneOffset.UTC),
            "leave Cursor.in out"),
        bad(
            "create table bad (id int primary key, v date not null)",
            Cursor.serverTime("v"),
            "is of type date, which SERVER_TIME"),
        bad(
            "create table bad (id int primary key, v bigint not null)",
            Cursor.transactionId("v"),
            "is of type bigint, which TRANSACTION_ID"),
        bad(
            "create table bad (id jsonb primary key, v bigint not null)",
            VERSION,
            "key 'id' of public.bad is of type jsonb"),
        bad(
            "create sequence bad_cached cache 20; create table bad (id int primary key, v bigint"
                + " not null default nextval('bad_cached'))",
            VERSION,
            "sequence public.bad_cached has cache 20",
            "alter sequence public.bad_cached cache 1"),
        bad(
            "create table bad (id int primary key, v bigint generated always as identity (cycle))",
            VERSION,
            "cycles: its numbers begin anew",
            "no cycle"),
        bad(
            "create sequence bad_hilo increment 50; create table bad (id int primary key, v bigint"
                + " not null default nextval('bad_hilo'))",
            VERSION,
            "steps by 50",
            "Hibernate"),
        bad(
            "create table bad_table (id int primary key, v bigint not null); create view bad as"
                + " select * from bad_table",
            VERSION,
            "source public.bad is a view, which has no key",
            "Source.query"),
        bad(
            "create table bad (id int primary key, v bigint not null)",
            Source.table("bad"),
            VERSION,
            Deletes.softDelete("gone"),
            "soft-delete column 'gone' is no column of public.bad"),
        bad(
            "create table bad (id int primary key, v bigint not null);"
                + " create table bad_dead (id bigint not null, v bigint not null)",
            Source.table("bad"),
            VERSION,
            Deletes.tombstones(Source.table("bad_dead")),
            "column 'id' of tombstones public.bad_dead is of type bigint; it must be integer"),
        bad(
            "create table bad (id int primary key, v bigint not null);"
                + " create table bad_dead (id int, v bigint not null)",
            Source.table("bad"),
            VERSION,
            Deletes.tombstones(Source.table("bad_dead")),
            "is of type integer and may be null"),
        bad(
            "create table bad (id int, v bigint); insert into bad values (1, null)",
            Source.query("q", "select * from bad", "id"),
            VERSION,
            Deletes.ignored(),
            "query 'q' has rows whose cursor or key is null"),
        bad(
            "create table bad (id int, v bigint)",
            Source.query("q", "select id, v, v from bad", "id"),
            VERSION,
            Deletes.ignored(),
            "query 'q' has two columns of one name"),
        bad(
            "create table bad (id int, v bigint)",
            Source.query("q", "select id from bad", "id"),
            VERSION,
            Deletes.ignored(),
            "cursor 'v' is no column of q, which has [id]"),
        bad(
            "create table bad (id int, v bigint)",
            Source.query("q", "selct 1", "id"),
            VERSION,
            Deletes.ignored(),
            "read the columns of query 'q' failed [42601: ERROR: syntax error"));
  }

  private void drop() {
    database.update("drop view if exists bad_view");
    String kind =
        database
            .list(String.class, "select relkind::text from pg_class where relname = 'bad'")
            .stream()
            .findFirst()
            .orElse("");
    if (kind.equals("v")) {
      database.update("drop view bad");
    }
    database.update("drop table if exists bad, bad_table, bad_dead cascade");
    database.update("drop sequence if exists bad_cached, bad_hilo");
  }

  @ParameterizedTest
  @MethodSource("sources")
  void isRefusedAndSaysWhatToDo(
      String ddl, Source source, Cursor cursor, Deletes deletes, String[] words) {
    drop();
    if (!ddl.equals("select 1")) {
      database.update(ddl);
    }
    TickResult result = tick(Poller.of("bad", source, cursor, deletes));
    assertThat(result.failure()).as(result.toString()).hasValue(PollerFailure.SOURCE);
    assertThat(result.reason().orElse("")).contains(words);
  }

  private TickResult tick(Poller poller) {
    return Pollers.builder(outbox, "shop")
        .on(poller.pollInterval(Duration.ofMillis(10)), (rows, context) -> {})
        .build()
        .tick(poller.name());
  }

  @Test
  void aTextThatIsEqualToOthersIsRefused() {
    if (database
        .list(String.class, "select collname::text from pg_collation where collname = 'en-x-icu'")
        .isEmpty()) {
      return; // a server without ICU has no such collation
    }
    drop();
    database.update(
        "drop collation if exists loose; create collation loose (provider = icu,"
            + " locale = 'und-u-ks-level2', deterministic = false)");
    database.update("create table bad (id text collate loose primary key, v bigint not null)");
    assertThat(
            tick(Poller.of("bad", Source.table("bad"), VERSION, Deletes.ignored()))
                .reason()
                .orElse(""))
        .contains("nondeterministic collation", "collate \"C\"");
    assertThat(
            tick(Poller.of(
                    "bad",
                    Source.query("q", "select * from bad", "id"),
                    VERSION,
                    Deletes.ignored()))
                .reason()
                .orElse(""))
        .contains("nondeterministic collation");
    drop();
  }

  @Test
  void aConditionThatIsWrongIsToldWithTheServersWords() {
    drop();
    database.update("create table bad (id int primary key, v bigint not null)");
    database.update("create index on bad (v, id)");
    TickResult result =
        tick(
            Poller.of("bad", Source.table("bad"), VERSION, Deletes.ignored())
                .where("nothing = ?", "secret"));
    assertThat(result.failure()).as(result.toString()).hasValue(PollerFailure.SOURCE);
    assertThat(result.reason().orElse(""))
        .contains("42703", "column \"nothing\" does not exist")
        .doesNotContain("secret");
  }

  /** What a node has that has its grants and no others; its source is another matter. */
  private PostgresOutbox least() {
    drop();
    database.update("drop schema if exists polled cascade");
    OutboxMigrations.of("polled", "outbox").migrate(database.plain());
    PollerMigrations migrations = PollerMigrations.of("polled", "outbox");
    migrations.migrate(database.plain());
    for (String role : List.of("least", "least_subscriber", "least_operator")) {
      if (database
          .list(String.class, "select rolname::text from pg_roles where rolname = ?", role)
          .isEmpty()) {
        database.update("create role %s login password 'secret'".formatted(role));
      }
    }
    database.update(migrations.grantsSql("least"));
    database.update("create table bad (id int primary key, v bigint not null)");
    database.update("create index on bad (v, id)");
    database.update("insert into bad values (1, 1)");
    PGSimpleDataSource role = database.plain();
    role.setUser("least");
    role.setPassword("secret");
    return PostgresOutbox.on(role, POLLED);
  }

  private static Poller followed(String name) {
    return Poller.of(name, Source.table("bad"), VERSION, Deletes.ignored())
        .pollInterval(Duration.ofMillis(10))
        .retry(Duration.ofMillis(1), Duration.ofMillis(1));
  }

  /** A node needs its own tables, and what it follows, and nothing else. */
  @Test
  void aRoleNeedsItsGrantsAndSelectOnTheSource() throws Exception {
    PostgresOutbox own = least();
    Pollers pollers =
        Pollers.builder(own, "shop").on(followed("least"), (rows, context) -> {}).build();
    assertThat(pollers.tick("least").reason().orElse("")).contains("permission denied");

    database.update("grant select on bad to least");
    TickResult result = pollers.tick("least");
    assertThat(result.failure()).as(result.toString()).isEmpty();
    assertThat(result.totalProcessed()).isEqualTo(1);

    // a transaction of another role is seen, though not what it does
    try (Connection open = database.plain().getConnection();
        Statement statement = open.createStatement()) {
      open.setAutoCommit(false);
      statement.execute("select 1");
      database.update("insert into bad values (2, 2)");
      for (int i = 0; i < 5; i++) {
        assertThat(pollers.tick("least").totalProcessed()).isZero();
      }
      HeldBack held = pollers.health().pollers().get(0).heldBack().orElseThrow();
      assertThat(held.process()).isPresent();
      assertThat(held.began()).isEmpty();
      assertThat(held.toString()).contains("whose begin may not be seen");
      open.rollback();
    }
    assertThat(pollers.tick("least").totalProcessed()).isEqualTo(1);
    PollerControl control = PollerControl.of(own, "shop");
    control.pause("least", TestPollers.ANN);
    control.set("least", Position.beginning(), TestPollers.ANN);
    assertThat(control.history("least", 9)).hasSize(3);
    assertThat(control.remove("least")).isTrue();
  }

  @Test
  void theGrantsAreEnoughForAllThatPeopleDo() {
    PostgresOutbox own = least();
    database.update("grant select on bad to least");
    AtomicBoolean fails = new AtomicBoolean(true);
    PollerHandler handler =
        (rows, context) -> {
          if (fails.get()) {
            throw new IllegalStateException("poison");
          }
        };
    Pollers pollers =
        Pollers.builder(own, "shop")
            .on(followed("least").isolateAfter(1), handler)
            .on(followed("stuck").retry(Duration.ofHours(1), Duration.ofHours(1)), handler)
            .build();
    PollerControl control = PollerControl.of(own, "shop");
    assertThat(pollers.tick("least").quarantined()).isEqualTo(1);
    database.update("insert into bad values (2, 2)");
    await().until(() -> pollers.tick("least").quarantined() == 1);
    List<QuarantinedRow> rows = control.quarantine("least", 9);
    assertThat(rows).hasSize(2);
    assertThat(control.discard("least", rows.get(1).id(), TestPollers.ANN)).isTrue();
    assertThat(control.redrive("least", rows.get(0).id(), TestPollers.ANN)).isTrue();
    pollers.tick("least"); // it fails again
    assertThat(control.quarantine("least", 9)).hasSize(1);
    fails.set(false);
    assertThat(control.redrive("least", rows.get(0).id(), TestPollers.ANN)).isTrue();
    assertThat(pollers.tick("least").totalProcessed()).isEqualTo(1);
    assertThat(control.quarantine("least", 9)).isEmpty();

    fails.set(true);
    assertThat(pollers.tick("stuck").failure()).hasValue(PollerFailure.HANDLER);
    assertThat(control.retry("stuck", TestPollers.ANN)).isTrue();
    assertThat(pollers.tick("stuck").failure()).hasValue(PollerFailure.HANDLER);
    control.skip("stuck", TestPollers.ANN);
    assertThat(pollers.tick("stuck").failure()).isEmpty();
    control.adopt("stuck", TestPollers.ANN);
    control.reset("stuck", TestPollers.ANN);
    fails.set(false);
    assertThat(pollers.tick("stuck").totalProcessed()).isEqualTo(2);
    assertThat(control.resume("stuck", TestPollers.ANN)).isFalse();
    assertThat(control.pollers()).hasSize(2);
  }

  @Test
  void whoPublishesRowsNeedsTheGrantsOfAPublisherToo() {
    PostgresOutbox own = least();
    database.update("grant select on bad to least");
    Pollers pollers =
        Pollers.builder(own, "shop").publishTo(followed("published"), "queue").build();
    assertThat(pollers.tick("published").reason().orElse("")).contains("permission denied");
    database.update(
        OutboxMigrations.of("polled", "outbox")
            .grantsSql("least", "least_subscriber", "least_operator"));
    await().until(() -> pollers.tick("published").totalProcessed() == 1);
    assertThat(database.count("polled.outbox where queue = 'queue'")).isEqualTo(1);
  }

  /** A role may end its own sessions. */
  @Test
  void theGrantsAreEnoughToEndTheTransactionOfTheNodeBefore() {
    PostgresOutbox own = least();
    database.update("grant select on bad to least");
    database.update("drop table if exists least_ledger");
    database.update("create table least_ledger (id int primary key)");
    database.update("grant insert on least_ledger to least");
    TransactionalPollerHandler<Connection> insert =
        (rows, context, connection) -> {
          try (Statement statement = connection.createStatement()) {
            for (RowChange row : rows) {
              statement.execute("insert into least_ledger values (" + row.cursor() + ")");
            }
          }
        };
    Poller poller = followed("least").lease(Duration.ofSeconds(1));
    Pollers second = Pollers.builder(own, "shop").transactional(poller, insert).build();
    Pollers first =
        Pollers.builder(own, "shop")
            .transactional(
                poller,
                (rows, context, connection) -> {
                  insert.handle(rows, context, connection);
                  TickResult other;
                  do { // as if it had stood still for longer than its lease, which a renewal mends
                    database.update(
                        "update polled.outbox_poller set lease_until = now() - interval '1 s'");
                    other = CompletableFuture.supplyAsync(() -> second.tick("least")).join();
                  } while (other.outcome() == TickResult.Outcome.STANDBY);
                  // else it would wait for the row of the same key
                  assertThat(other.totalProcessed()).as(other.toString()).isEqualTo(1);
                })
            .build();
    TickResult result = first.tick("least");
    assertThat(result.failure()).as(result.toString()).hasValue(PollerFailure.COMMIT);
    assertThat(database.count("least_ledger")).isEqualTo(1);
  }

  /** Ordinary triggers do not fire for what a subscription brings. */
  @Test
  void aTableThatASubscriptionWritesToIsWarnedOf() throws Exception {
    drop();
    try (Connection connection = database.plain().getConnection();
        Statement statement = connection.createStatement()) {
      for (String sql :
          List.of(
              "create table bad (id int primary key, tx xid8 not null, v bigint not null)",
              "create subscription bad_subscription connection 'dbname=nowhere' publication none"
                  + " with (connect = false, slot_name = none)",
              "set allow_system_table_mods = on",
              "insert into pg_subscription_rel (srsubid, srrelid, srsubstate, srsublsn)"
                  + " select oid, 'bad'::regclass, 'r', '0/1' from pg_subscription"
                  + " where subname = 'bad_subscription'")) {
        statement.execute(sql);
      }
      Poller byId =
          Poller.of("ids", Source.table("bad"), Cursor.transactionId("tx"), Deletes.ignored());
      Poller byTime =
          Poller.of("values", Source.table("bad"), Cursor.ascending("v"), Deletes.ignored());
      Pollers pollers =
          Pollers.builder(outbox, "shop")
              .on(byId, (rows, context) -> {})
              .on(byTime, (rows, context) -> {})
              .build();
      pollers.tick("ids");
      pollers.tick("values");
      List<List<String>> warnings =
          pollers.health().pollers().stream().map(PollerHealth::warnings).toList();
      assertThat(warnings.get(0)).anyMatch(each -> each.contains("enable always trigger"));
      assertThat(warnings.get(1)).anyMatch(each -> each.contains("values of another server"));
      statement.execute("drop subscription bad_subscription");
    }
  }

  @Test
  void missingTablesAreToldWithTheirMigrations() {
    database.update("drop schema if exists without cascade");
    OutboxMigrations.of("without", "outbox").migrate(database.plain());
    PostgresOutbox without =
        PostgresOutbox.on(database.plain(), OutboxTable.named("outbox").inSchema("without"));
    TickResult result =
        Pollers.builder(without, "shop")
            .on(TestPollers.items(), (rows, context) -> {})
            .build()
            .tick("items");
    assertThat(result.failure()).hasValue(PollerFailure.LEASE);
    assertThat(result.reason().orElse("")).contains("PollerMigrations");
  }
}
