package dev.outbox4j.postgres;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.params.provider.Arguments.arguments;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.OutboxException;
import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.SingleConnection;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.postgresql.ds.PGSimpleDataSource;

/** Each test has a schema {@code t} of its own, with an outbox, in which something is changed. */
@ExtendWith(PostgresExtension.class)
class SchemaValidatorIT {
  private static final String DEAD_LETTER =
      "outbox, original_id, lease_token, queue, type, ordering_key, payload, headers, deliveries_count, attempts_count, created_at, available_at, first_attempt_at, last_attempt_at, failure_reason, last_exception, timer_id";

  private static final OutboxTable TABLE = OutboxTable.named("outbox").inSchema("t");

  private final TestDatabase database;

  SchemaValidatorIT(TestDatabase database) {
    this.database = database;
  }

  private SchemaReport afterChange(String... changes) {
    fresh();
    for (String change : changes) {
      database.update(change);
    }
    return all().validateSchema();
  }

  private void fresh() {
    database.update("drop schema if exists t, dead cascade");
    database.update(OutboxMigrations.of("t", "outbox").deadLetters("dead", "letters").sql());
  }

  private SchemaValidator all() {
    return PostgresOutbox.on(database.plain(), TABLE)
        .validator()
        .deadLetters("dead", "letters")
        .checkStorage()
        .checkGrants()
        .checkPublishFunction();
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("differences")
  void namesTheDifference(String change, String fault) {
    SchemaReport report = afterChange(change);

    assertThat(report.valid()).isFalse();
    assertThat(report.faults()).extracting(SchemaFault::toString).containsExactly(fault);
  }

  static Stream<Arguments> differences() {
    return Stream.concat(columns(), Stream.concat(indexes(), tables()));
  }

  private static Stream<Arguments> columns() {
    return Stream.of(
        arguments(
            "alter table t.outbox drop column last_error",
            "column t.outbox.last_error: expected \"last_error\" text, found no such column; to fix it: alter table \"t\".\"outbox\" add column \"last_error\" text"),
        arguments(
            "alter table t.outbox rename column attempts_count to attempts",
            "column t.outbox.attempts_count: expected \"attempts_count\" integer not null default 0, found no such column; to fix it: alter table \"t\".\"outbox\" add column \"attempts_count\" integer not null default 0"),
        arguments(
            "alter table t.outbox alter column ordering_key type varchar(100)",
            "column t.outbox.ordering_key: expected type text collate \"C\", found type character varying(100); to fix it: alter table \"t\".\"outbox\" alter column \"ordering_key\" type text collate \"C\""),
        arguments(
            "alter table t.outbox alter column queue type text collate \"default\"",
            "column t.outbox.queue: expected type text collate \"C\", found type text; to fix it: alter table \"t\".\"outbox\" alter column \"queue\" type text collate \"C\""),
        arguments(
            "alter table t.outbox_sleepers alter column subscriber type text collate \"en-x-icu\"",
            "column t.outbox_sleepers.subscriber: expected type text collate \"C\", found type text collate \"en-x-icu\"; to fix it: alter table \"t\".\"outbox_sleepers\" alter column \"subscriber\" type text collate \"C\""),
        arguments(
            "alter table t.outbox alter column lease_token type int",
            "column t.outbox.lease_token: expected type bigint, found type integer; to fix it: alter table \"t\".\"outbox\" alter column \"lease_token\" type bigint"),
        arguments(
            "alter table t.outbox alter column available_at type timestamptz(0)",
            "column t.outbox.available_at: expected type timestamp with time zone, found type timestamp(0) with time zone; to fix it: alter table \"t\".\"outbox\" alter column \"available_at\" type timestamp with time zone"),
        arguments(
            "alter table t.outbox alter column payload drop not null",
            "column t.outbox.payload: expected not null, found nullable; to fix it: alter table \"t\".\"outbox\" alter column \"payload\" set not null"),
        arguments(
            "alter table t.outbox alter column type set not null",
            "column t.outbox.type: expected nullable, found not null; to fix it: alter table \"t\".\"outbox\" alter column \"type\" drop not null"),
        arguments(
            "alter table t.outbox alter column lease_token drop default",
            "column t.outbox.lease_token: expected default 0, found no default; to fix it: alter table \"t\".\"outbox\" alter column \"lease_token\" set default 0"),
        arguments(
            "alter table t.outbox alter column available_at set default now()",
            "column t.outbox.available_at: expected default clock_timestamp(), found default now(); to fix it: alter table \"t\".\"outbox\" alter column \"available_at\" set default clock_timestamp()"),
        arguments(
            "alter table t.outbox alter column lease_until set default now()",
            "column t.outbox.lease_until: expected no default, found default now(); to fix it: alter table \"t\".\"outbox\" alter column \"lease_until\" drop default"),
        arguments(
            "alter table t.outbox alter column created_at drop default",
            "column t.outbox.created_at: expected default now(), found no default; to fix it: alter table \"t\".\"outbox\" alter column \"created_at\" set default now()"),
        arguments(
            "alter table t.outbox alter column id drop identity",
            "column t.outbox.id: expected generated by default as identity, found no default; to fix it: alter table \"t\".\"outbox\" alter column \"id\" add generated by default as identity"),
        arguments(
            "alter table t.outbox add column tenant text not null",
            "column t.outbox.tenant: expected a column of your own to be nullable or to have a default, since inserts do not name it, found not null without default; to fix it: alter table \"t\".\"outbox\" alter column \"tenant\" drop not null, or set a default"),
        arguments(
            "alter table t.outbox_sleepers alter column wake_at type timestamp",
            "column t.outbox_sleepers.wake_at: expected type timestamp with time zone, found type timestamp without time zone; to fix it: alter table \"t\".\"outbox_sleepers\" alter column \"wake_at\" type timestamp with time zone"),
        arguments(
            "alter table dead.letters drop column resolution",
            "column dead.letters.resolution: expected \"resolution\" text, found no such column; to fix it: alter table \"dead\".\"letters\" add column \"resolution\" text"),
        arguments(
            "alter table dead.letters alter column failed_at drop default",
            "column dead.letters.failed_at: expected default now(), found no default; to fix it: alter table \"dead\".\"letters\" alter column \"failed_at\" set default now()"));
  }

  private static Stream<Arguments> indexes() {
    String claim =
        "index (queue, available_at, id) of t.outbox: expected index (queue, available_at, id) where (available_at IS NOT NULL), found %s; to fix it: create index concurrently on \"t\".\"outbox\" (queue, available_at, id) where (available_at IS NOT NULL)";
    String timer =
        "index (queue, timer_id) of t.outbox: expected unique index (queue, timer_id) where (timer_id IS NOT NULL), found %s; to fix it: create unique index concurrently on \"t\".\"outbox\" (queue, timer_id) where (timer_id IS NOT NULL)";
    String hot =
        "index t.mine of t.outbox: expected no index to mention %1$s, since every claim writes it, found %1$s %2$s; to fix it: drop index concurrently \"t\".\"mine\"";
    return Stream.of(
        arguments("drop index t.outbox_claim_idx", claim.formatted("no such index")),
        arguments(
            "drop index t.outbox_claim_idx; create index mine on t.outbox (queue, id, available_at)",
            claim.formatted("mine, index (queue, id, available_at)")),
        arguments(
            "drop index t.outbox_claim_idx; create index mine on t.outbox (queue, available_at desc, id)",
            claim.formatted("mine, index (queue, available_at desc, id)")),
        arguments(
            "drop index t.outbox_claim_idx; create index mine on t.outbox (queue collate \"POSIX\", available_at, id)",
            claim.formatted("mine, index (queue collate POSIX, available_at, id)")),
        arguments(
            "drop index t.outbox_claim_idx; create index mine on t.outbox (queue, available_at, id) where id > 0",
            claim.formatted("mine, index (queue, available_at, id) where (id > 0)")),
        arguments("drop index t.outbox_timer_uq", timer.formatted("no such index")),
        arguments(
            "drop index t.outbox_timer_uq; create index mine on t.outbox (queue, timer_id) where timer_id is not null",
            timer.formatted("mine, index (queue, timer_id) where (timer_id IS NOT NULL)")),
        arguments(
            "drop index t.outbox_timer_uq; create unique index mine on t.outbox (queue, timer_id)",
            timer.formatted("mine, unique index (queue, timer_id)")),
        arguments(
            "drop index t.outbox_timer_uq; create unique index mine on t.outbox (timer_id) where timer_id is not null",
            timer.formatted("mine, unique index (timer_id) where (timer_id IS NOT NULL)")),
        arguments(
            "update pg_index set indisvalid = false where indexrelid = 't.outbox_claim_idx'::regclass",
            "index t.outbox_claim_idx of t.outbox: expected a valid index, found an invalid one, left by a build that failed or has not ended; to fix it: reindex index concurrently \"t\".\"outbox_claim_idx\""),
        arguments(
            "alter table t.outbox drop constraint outbox_pkey",
            "primary key (id) of t.outbox: expected primary key (id), found no such key; to fix it: alter table \"t\".\"outbox\" add primary key (id)"),
        arguments(
            "alter table t.outbox_sleepers drop constraint outbox_sleepers_pkey, add primary key (subscriber, queue) deferrable",
            "primary key (queue, subscriber) of t.outbox_sleepers: expected primary key (queue, subscriber), found outbox_sleepers_pkey, primary key (subscriber, queue) deferrable; to fix it: alter table \"t\".\"outbox_sleepers\" add primary key (queue, subscriber)"),
        arguments(
            "alter table t.outbox_sleepers drop constraint outbox_sleepers_pkey, add primary key (queue, subscriber) deferrable",
            "primary key (queue, subscriber) of t.outbox_sleepers: expected primary key (queue, subscriber), found outbox_sleepers_pkey, primary key (queue, subscriber) deferrable; to fix it: alter table \"t\".\"outbox_sleepers\" add primary key (queue, subscriber)"),
        arguments(
            "alter table t.outbox drop constraint outbox_pkey, add primary key (id, queue)",
            "primary key (id) of t.outbox: expected primary key (id), found outbox_pkey, primary key (id, queue); to fix it: alter table \"t\".\"outbox\" add primary key (id)"),
        arguments(
            "create index mine on t.outbox (lease_until)",
            hot.formatted("lease_until", "as a key column")),
        arguments(
            "create index mine on t.outbox (queue) include (lease_token)",
            hot.formatted("lease_token", "as an included column")),
        arguments(
            "create index mine on t.outbox ((lower(leased_by)))",
            hot.formatted("leased_by", "in an expression or its predicate")),
        arguments(
            "create index mine on t.outbox (queue) where deliveries_count > 3",
            hot.formatted("deliveries_count", "in an expression or its predicate")),
        arguments(
            "create index mine on t.outbox_sleepers (wake_at)",
            "index t.mine of t.outbox_sleepers: expected no index to mention wake_at, since a subscriber writes it whenever it falls asleep, found wake_at as a key column; to fix it: drop index concurrently \"t\".\"mine\""),
        arguments(
            "drop index dead.letters_queue_failed_idx",
            "index (outbox, queue, failed_at, id) of dead.letters: expected index (outbox, queue, failed_at, id) where (resolved_at IS NULL), found no such index; to fix it: create index concurrently on \"dead\".\"letters\" (outbox, queue, failed_at, id) where (resolved_at IS NULL)"));
  }

  private static Stream<Arguments> tables() {
    return Stream.of(
        arguments(
            "drop table t.outbox_sleepers",
            "table t.outbox_sleepers: expected the table of sleeping subscribers, found no such table, but one in schema public; to fix it: apply the migrations"),
        arguments(
            "alter table dead.letters set schema t",
            "table dead.letters: expected the dead-letter table, found no such table, but one in schema t; to fix it: apply the migrations"),
        arguments(
            "drop table dead.letters; create view dead.letters as select 1 as id",
            "table dead.letters: expected a table, found a view; to fix it: drop it and apply the migrations"),
        arguments(
            "alter table dead.letters set unlogged",
            "table dead.letters: expected a logged table, found an unlogged one, which a crash empties; to fix it: alter table \"dead\".\"letters\" set logged"),
        arguments(
            "alter table t.outbox_sleepers set logged",
            "table t.outbox_sleepers: expected an unlogged table, found a logged one: each time a subscriber falls asleep is written to the WAL; to fix it: alter table \"t\".\"outbox_sleepers\" set unlogged"),
        arguments(
            "alter table t.outbox set (fillfactor = 100)",
            "storage setting fillfactor of t.outbox: expected 42 or less, found 100; to fix it: alter table \"t\".\"outbox\" set (fillfactor = 42)"),
        arguments(
            "alter table t.outbox reset (autovacuum_vacuum_cost_delay)",
            "storage setting autovacuum_vacuum_cost_delay of t.outbox: expected 0, found not set; to fix it: alter table \"t\".\"outbox\" set (autovacuum_vacuum_cost_delay = 0)"),
        arguments(
            "alter table t.outbox set (autovacuum_vacuum_insert_threshold = -1)",
            "storage setting autovacuum_vacuum_insert_threshold of t.outbox: expected 100000 or less, found -1; to fix it: alter table \"t\".\"outbox\" set (autovacuum_vacuum_insert_threshold = 100000)"),
        arguments(
            "alter table t.outbox reset (vacuum_truncate)",
            "storage setting vacuum_truncate of t.outbox: expected off, found not set; to fix it: alter table \"t\".\"outbox\" set (vacuum_truncate = off)"),
        arguments(
            "alter table t.outbox set (autovacuum_enabled = off)",
            "storage setting autovacuum_enabled of t.outbox: expected autovacuum to run, found autovacuum switched off; to fix it: alter table \"t\".\"outbox\" reset (autovacuum_enabled)"),
        arguments(
            "alter function t.outbox_publish rename to publish",
            "function t.outbox_publish: expected a function that can be called with (queue text, payload bytea) and returns bigint, found no such function; to fix it: create it as the migration does"),
        arguments(
            "drop function t.outbox_publish; create function t.outbox_publish(text) returns bigint language sql as 'select 1::bigint'",
            "function t.outbox_publish: expected a function that can be called with (queue text, payload bytea) and returns bigint, found (text) returns bigint; to fix it: create it as the migration does"));
  }

  @Test
  void namesAllDifferencesInOneReport() {
    SchemaReport report =
        afterChange(
            "alter table t.outbox drop column last_error, alter column queue type varchar, alter column headers drop default",
            "drop index t.outbox_timer_uq",
            "create index mine on t.outbox (leased_by, lease_until)",
            "drop table t.outbox_sleepers",
            "alter table dead.letters drop column failure_reason");

    assertThat(report.faults())
        .extracting(SchemaFault::object)
        .containsExactlyInAnyOrder(
            "column t.outbox.last_error",
            "column t.outbox.queue",
            "column t.outbox.headers",
            "index (queue, timer_id) of t.outbox",
            "index t.mine of t.outbox",
            "index t.mine of t.outbox",
            "table t.outbox_sleepers",
            "column dead.letters.failure_reason");
    assertThat(report.toString().lines()).hasSize(8);
    assertThatThrownBy(report::requireValid)
        .isInstanceOf(OutboxException.class)
        .hasMessageStartingWith("the schema of outbox 't.outbox' has 8 faults:")
        .hasMessageContaining(
            "column t.outbox.queue: expected type text collate \"C\", found type character varying")
        .hasMessageContaining("column dead.letters.failure_reason");
  }

  @Test
  void findsNothingAtFaultWithTheStandardMigration() {
    SchemaReport report =
        PostgresOutbox.on(database.plain(), database.table())
            .validator()
            .deadLetters("outbox_dlq")
            .checkStorage()
            .checkGrants(OutboxRole.PUBLISHER, OutboxRole.values())
            .checkPublishFunction()
            .validateSchema();

    assertThat(report).hasToString("valid");
    assertThat(report.requireValid()).isSameAs(report);
  }

  @Test
  void findsNothingAtFaultWithOddNamesInSchemasOffTheSearchPath() {
    OutboxMigrations.of("Mein Schéma", "My Outbox-1")
        .deadLetters("dead ones", "Dead-Letters")
        .migrate(database.plain());

    assertThat(
            PostgresOutbox.on(
                    database.plain(), OutboxTable.named("My Outbox-1").inSchema("Mein Schéma"))
                .validator()
                .deadLetters("dead ones", "Dead-Letters")
                .checkStorage()
                .checkGrants()
                .checkPublishFunction()
                .validateSchema())
        .hasToString("valid");
  }

  @Test
  void leavesColumnsAndIndexesOfTheUsersOwnInPeace() {
    assertThat(
            afterChange(
                "alter table t.outbox add column tenant text, add column region text not null default 'eu'",
                "alter table t.outbox add column size int generated always as (octet_length(payload)) stored",
                "create index mine on t.outbox (tenant, created_at) include (attempts_count)",
                "create index on dead.letters (deliveries_count, resolved_at)",
                "alter table dead.letters add column note text"))
        .hasToString("valid");
  }

  @Test
  void recognisesIndexesByWhatTheyAre() {
    assertThat(
            afterChange(
                "alter index t.outbox_claim_idx rename to another",
                "drop index t.outbox_timer_uq",
                "create unique index u on t.outbox (queue, timer_id) include (id) where (timer_id is not null)",
                "alter table t.outbox rename constraint outbox_pkey to pk",
                "alter table t.outbox alter column created_at set default current_timestamp"))
        .hasToString("valid");
  }

  @Test
  void acceptsAnInvalidDuplicateBesideAValidIndex() {
    assertThat(
            afterChange(
                "create index mine on t.outbox (queue, available_at, id)",
                "update pg_index set indisvalid = false where indexrelid = 't.mine'::regclass"))
        .hasToString("valid");
  }

  @Test
  void acceptsATablePartitionedByQueueAndLooksAtItsPartitions() {
    fresh();
    database.update("drop table t.outbox");
    database.update(
        """
        create table t.outbox (
          id bigint not null, queue text collate "C" not null, type text collate "C",
          ordering_key text collate "C", payload bytea not null,
          headers jsonb not null default '{}', created_at timestamptz not null default now(),
          available_at timestamptz not null default clock_timestamp(), lease_until timestamptz,
          leased_at timestamptz, lease_token bigint not null default 0, leased_by text, deliveries_count int not null default 0,
          attempts_count int not null default 0, first_attempt_at timestamptz, last_attempt_at timestamptz,
          last_error text, timer_id text collate "C", expires_at timestamptz,
          next_id bigint, primary key (id, queue)) partition by list (queue)
        """);
    database.update("create sequence t.outbox_id_seq");
    database.update("alter table t.outbox alter column id set default nextval('t.outbox_id_seq')");
    database.update("create index on t.outbox (queue, available_at, id)");
    database.update("create unique index on t.outbox (queue, timer_id) where timer_id is not null");
    database.update("create table t.outbox_a partition of t.outbox for values in ('a')");

    database.update("comment on table t.outbox is 'by queue; outbox4j schema 1, made by hand'");

    SchemaValidator validator = PostgresOutbox.on(database.plain(), TABLE).validator();
    assertThat(validator.validateSchema())
        .hasToString(
            "table t.outbox: expected a default partition, for rows that no other partition takes, found none; to fix it: create table \"t\".\"outbox_default\" partition of \"t\".\"outbox\" default");
    database.update("create table t.outbox_default partition of t.outbox default");
    assertThat(validator.validateSchema()).hasToString("valid");
    assertThat(validator.checkStorage().validateSchema().faults())
        .extracting(SchemaFault::object)
        .hasSize(14)
        .contains(
            "storage setting fillfactor of t.outbox_a",
            "storage setting vacuum_truncate of t.outbox_default");

    database.update("create index mine on t.outbox_a (lease_until)");
    assertThat(validator.validateSchema().faults())
        .extracting(SchemaFault::object)
        .containsExactly("index t.mine of t.outbox");

    database.update("drop index t.mine");
    database.update("create index mine on t.outbox (lease_until)"); // and one of each partition
    assertThat(validator.validateSchema().faults())
        .extracting(SchemaFault::object)
        .containsExactly("index t.mine of t.outbox");

    database.update("drop index t.mine");
    database.update(
        "alter table t.outbox drop constraint outbox_pkey, add primary key (queue, created_at)");
    assertThat(validator.validateSchema().faults())
        .extracting(SchemaFault::object)
        .containsExactly("primary key (id) of t.outbox");
  }

  @Test
  void tellsWhereElseAMissingTableIs() {
    fresh();
    database.update("create schema if not exists aside");
    database.update("create table if not exists aside.parcels (id int)");

    assertThat(
            PostgresOutbox.on(database.plain(), OutboxTable.named("parcels"))
                .validator()
                .validateSchema()
                .faults())
        .extracting(SchemaFault::toString)
        .containsExactly(
            "table parcels: expected the outbox table, found none on the search path (public), but one in schema aside; to fix it: apply the migrations, or name the schema with inSchema(...)",
            "table parcels_sleepers: expected the table of sleeping subscribers, found none on the search path (public); to fix it: apply the migrations, or name the schema with inSchema(...)");
  }

  @Test
  void needsNoRightsOnTheTablesAndNamesTheGrantsThatAreMissing() {
    fresh();
    PGSimpleDataSource nobody = login("nobody");

    assertThat(
            PostgresOutbox.on(nobody, TABLE)
                .validator()
                .deadLetters("dead", "letters")
                .validateSchema())
        .extracting(SchemaReport::faults)
        .asString()
        .contains(
            "schema t: expected usage for role nobody, found none; to fix it: grant usage on schema \"t\" to \"nobody\"");

    database.update("grant usage on schema t, dead to nobody");
    SchemaValidator validator =
        PostgresOutbox.on(nobody, TABLE)
            .validator()
            .deadLetters("dead", "letters")
            .checkPublishFunction();
    assertThat(validator.validateSchema()).hasToString("valid");

    database.update("revoke execute on function t.outbox_publish from public");
    database.update("grant insert (queue, payload), select on t.outbox to nobody");
    assertThat(validator.checkGrants().validateSchema().faults())
        .extracting(SchemaFault::toString)
        .contains(
            "grant on function t.outbox_publish: expected execute for role nobody, found none; to fix it: grant execute on function \"t\".\"outbox_publish\" to \"nobody\"",
            "grant on t.outbox: expected insert (queue, type, ordering_key, payload, headers, available_at, timer_id, expires_at) for role nobody, found none for type, ordering_key, headers, available_at, timer_id, expires_at; to fix it: grant insert (queue, type, ordering_key, payload, headers, available_at, timer_id, expires_at) on \"t\".\"outbox\" to \"nobody\"",
            "grant on t.outbox: expected delete for role nobody, found none; to fix it: grant delete on \"t\".\"outbox\" to \"nobody\"",
            "grant on dead.letters: expected insert (%s) for role nobody, found none; to fix it: grant insert (%s) on \"dead\".\"letters\" to \"nobody\""
                .formatted(DEAD_LETTER, DEAD_LETTER))
        .noneMatch(fault -> fault.startsWith("grant on t.outbox: expected select"));
  }

  @Test
  void namesRowSecurityThatHidesRows() {
    fresh();
    PGSimpleDataSource hidden = login("hidden");
    database.update(
        OutboxMigrations.of("t", "outbox")
            .deadLetters("dead", "letters")
            .grantsSql("hidden", "hidden", "hidden"));
    database.update("alter table t.outbox enable row level security");

    assertThat(PostgresOutbox.on(hidden, TABLE).validator().validateSchema())
        .hasToString(
            "row security of t.outbox: expected role hidden to see all rows, found row security is active for it; to fix it: alter table \"t\".\"outbox\" disable row level security, or use a role with bypassrls");
  }

  private PGSimpleDataSource login(String role) {
    if (database
        .list(String.class, "select rolname::text from pg_roles where rolname = ?", role)
        .isEmpty()) {
      database.update("create role " + role + " login password 'secret'");
    }
    PGSimpleDataSource source = database.plain();
    source.setUser(role);
    source.setPassword("secret");
    return source;
  }

  @Test
  void changesNothingAndNeedsNoWritableTransaction() {
    fresh();
    PGSimpleDataSource readOnly = database.plain();
    readOnly.setOptions("-c default_transaction_read_only=on");
    String before = snapshot();

    assertThat(
            PostgresOutbox.on(readOnly, TABLE)
                .validator()
                .deadLetters("dead", "letters")
                .checkStorage()
                .checkGrants()
                .checkPublishFunction()
                .validateSchema()
                .faults())
        .extracting(SchemaFault::found)
        .containsExactly("read-only transactions");
    assertThat(snapshot()).isEqualTo(before);
  }

  private String snapshot() {
    return database.one(
        String.class,
        """
        select md5(string_agg(line, E'\\n' order by line)) from (
          select c.oid::text || c.relname || c.relfilenode || coalesce(c.relacl::text, '') || coalesce(c.reloptions::text, '') || c.xmin::text as line from pg_class c where c.relnamespace::regnamespace::text in ('t', 'dead')
          union all select a.attrelid::text || a.attname || a.attnum || a.xmin::text from pg_attribute a join pg_class c on c.oid = a.attrelid where c.relnamespace::regnamespace::text in ('t', 'dead')
        ) s
        """);
  }

  @Test
  void looksAtTheTableWhileAnotherSessionHoldsItLocked() throws SQLException {
    fresh();
    try (Connection locking = database.plain().getConnection();
        Statement lock = locking.createStatement()) {
      locking.setAutoCommit(false);
      lock.execute("lock table t.outbox in row exclusive mode");
      assertThat(all().validateSchema()).hasToString("valid");
    }
  }

  @Test
  void doesNotWaitForeverForALock() throws SQLException {
    fresh();
    try (Connection locking = database.plain().getConnection();
        Statement lock = locking.createStatement()) {
      locking.setAutoCommit(false);
      lock.execute("lock table t.outbox in access exclusive mode");
      Instant before = Instant.now();

      SchemaReport report = all().timeout(Duration.ofSeconds(1)).validateSchema();

      assertThat(Duration.between(before, Instant.now())).isLessThan(Duration.ofSeconds(8));
      assertThat(report.faults())
          .extracting(SchemaFault::found)
          .isNotEmpty()
          .allMatch(found -> found.startsWith("no answer in time (SQLSTATE 57014"));
    }
  }

  @Test
  void usesOneConnectionAndLeavesNoTransactionOpen() {
    fresh();
    try (HikariDataSource pool = database.pool(1)) {
      pool.getHikariConfigMXBean().setConnectionTimeout(2_000);
      SchemaValidator validator =
          PostgresOutbox.on(pool, TABLE).validator().deadLetters("dead", "letters");
      assertThat(validator.validateSchema()).hasToString("valid");
      assertThat(validator.validateSchema()).hasToString("valid");
      assertThat(pool.getHikariPoolMXBean().getActiveConnections()).isZero();
      assertThat(
              database.list(
                  String.class,
                  "select state from pg_stat_activity where datname = current_database() and state like 'idle in%'"))
          .isEmpty();
    }
  }

  @Test
  void leavesNoTransactionOpenOnAConnectionWithoutAutoCommit() throws SQLException {
    fresh();
    try (Connection connection = database.plain().getConnection()) {
      connection.setAutoCommit(false);
      assertThat(
              PostgresOutbox.on(new SingleConnection(connection), TABLE)
                  .validator()
                  .validateSchema())
          .hasToString("valid");
      assertThat(
              database.list(
                  String.class,
                  "select state from pg_stat_activity where datname = current_database() and state like 'idle in%'"))
          .isEmpty();
    }
  }

  @Test
  void reportsADatabaseThatDoesNotAnswerWithoutItsAddress() {
    PGSimpleDataSource gone = new PGSimpleDataSource();
    gone.setServerNames(new String[] {"localhost"});
    gone.setPortNumbers(new int[] {1});
    gone.setUser("secret-user");
    gone.setPassword("secret-password");

    SchemaReport report = PostgresOutbox.on(gone, TABLE).validator().validateSchema();

    assertThat(report)
        .hasToString(
            "database: expected an answer, found database not reachable (SQLSTATE 08001, PSQLException); to fix it: check that the server runs, that its address is right, and that the pool has a free connection");
    assertThatThrownBy(report::requireValid)
        .hasMessageNotContaining("localhost")
        .hasMessageNotContaining("secret");
  }

  @Test
  void reportsAPoolThatThrowsWhatItLikes() {
    try (HikariDataSource pool = new HikariDataSource()) {
      pool.setJdbcUrl("jdbc:none://secret-host/db"); // there is no such driver

      assertThat(PostgresOutbox.on(pool, TABLE).validator().validateSchema().faults())
          .extracting(SchemaFault::found)
          .containsExactly("database not reachable (SQLSTATE 08001, RuntimeException)");
    }
  }

  @Test
  void reportsALoginThatIsRefused() {
    PGSimpleDataSource wrong = database.server().dataSource("no_such_database");

    assertThat(PostgresOutbox.on(wrong, TABLE).validator().validateSchema().faults())
        .extracting(SchemaFault::found)
        .containsExactly("database refused the connection (SQLSTATE 3D000, PSQLException)");
  }

  @Test
  void reportsAPoolWithoutAFreeConnection() throws SQLException {
    try (HikariDataSource pool = new HikariDataSource()) {
      pool.setDataSource(database.plain());
      pool.setMaximumPoolSize(1);
      pool.setConnectionTimeout(250); // a pool that has begun takes no other
      try (Connection taken = pool.getConnection()) {
        assertThat(PostgresOutbox.on(pool, TABLE).validator().validateSchema().faults())
            .extracting(SchemaFault::found)
            .containsExactly("database not reachable (SQLTransientConnectionException)");
      }
    }
  }

  @Test
  void refusesBadNamesAndTimeouts() {
    SchemaValidator validator = PostgresOutbox.on(database.plain(), TABLE).validator();
    assertThatIllegalArgumentException()
        .isThrownBy(() -> validator.deadLetters("dead.letters"))
        .withMessageContaining("dead-letter table name 'dead.letters' is not allowed");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> validator.deadLetters("a\"b", "letters"))
        .withMessageContaining("dead-letter schema name");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> validator.timeout(Duration.ofMillis(999)))
        .withMessageContaining("timeout is PT0.999S; it must be from 1 s to 1 h");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> validator.timeout(Duration.ofHours(1).plusNanos(1)));
    assertThat(validator.timeout(Duration.ofHours(1))).isNotNull();
  }

  @Test
  void isImmutable() {
    SchemaValidator plain =
        PostgresOutbox.on(database.plain(), OutboxTable.named("outbox")).validator();
    SchemaValidator unused = plain.deadLetters("nowhere");

    assertThat(plain.validateSchema()).hasToString("valid");
    assertThat(unused.validateSchema().faults()).hasSize(1);
    assertThat(List.of(plain)).doesNotContain(unused);
  }
}
