package dev.outbox4j.poller;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.migrations.PollerMigrations;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Connection;
import java.sql.Statement;
import java.time.Duration;
import java.time.ZoneOffset;
import java.util.List;
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

  /** A node needs its own tables, and what it follows, and nothing else. */
  @Test
  void aRoleNeedsItsGrantsAndSelectOnTheSource() throws Exception {
    drop();
    database.update("drop schema if exists polled cascade");
    OutboxMigrations.of("polled", "outbox").migrate(database.plain());
    PollerMigrations migrations = PollerMigrations.of("polled", "outbox");
    migrations.migrate(database.plain());
    if (database
        .list(String.class, "select rolname::text from pg_roles where rolname = 'least'")
        .isEmpty()) {
      database.update("create role least login password 'secret'");
    }
    database.update(migrations.grantsSql("least"));
    database.update("create table bad (id int primary key, v bigint not null)");
    database.update("create index on bad (v, id)");
    database.update("insert into bad values (1, 1)");
    PGSimpleDataSource role = database.plain();
    role.setUser("least");
    role.setPassword("secret");
    PostgresOutbox own =
        PostgresOutbox.on(
            role, dev.outbox4j.postgres.OutboxTable.named("outbox").inSchema("polled"));
    Pollers pollers =
        Pollers.builder(own, "shop")
            .on(
                Poller.of("least", Source.table("bad"), VERSION, Deletes.ignored())
                    .pollInterval(Duration.ofMillis(10)),
                (rows, context) -> {})
            .build();
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
        PostgresOutbox.on(
            database.plain(),
            dev.outbox4j.postgres.OutboxTable.named("outbox").inSchema("without"));
    TickResult result =
        Pollers.builder(without, "shop")
            .on(TestPollers.items(), (rows, context) -> {})
            .build()
            .tick("items");
    assertThat(result.failure()).hasValue(PollerFailure.LEASE);
    assertThat(result.reason().orElse("")).contains("PollerMigrations");
  }
}
