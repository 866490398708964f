package dev.outbox4j.postgres;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.params.provider.Arguments.arguments;

import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.postgresql.ds.PGSimpleDataSource;

/** Tables and columns are right in every test; something else stands in the way of the library. */
@ExtendWith(PostgresExtension.class)
class SchemaObstaclesIT {
  private static final OutboxTable TABLE = OutboxTable.named("outbox").inSchema("t");

  private final TestDatabase database;

  SchemaObstaclesIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void fresh() {
    database.update("drop schema if exists t, dead cascade");
    database.update(OutboxMigrations.of("t", "outbox").deadLetters("dead", "letters").sql());
    database.update(
        "create function t.swallow() returns trigger language plpgsql as 'begin return null; end'");
  }

  private SchemaValidator validator() {
    return validator(database.plain());
  }

  private static SchemaValidator validator(PGSimpleDataSource source) {
    return PostgresOutbox.on(source, TABLE)
        .validator()
        .deadLetters("dead", "letters")
        .checkStorage()
        .checkGrants()
        .checkPublishFunction();
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("obstacles")
  void namesTheDifference(String change, String fault) {
    assertThat(validator().validateSchema()).hasToString("valid");

    database.update(change);

    assertThat(validator().validateSchema()).hasToString(fault);
  }

  static Stream<Arguments> obstacles() {
    String wanted = ": expected no %1$s of your own, since it may drop or refuse what the library";
    String trigger = wanted.formatted("trigger") + " writes, found ";
    String rule = wanted.formatted("rule") + " writes, found ";
    String constraint = wanted.formatted("constraint") + " writes, found ";
    String accept = ", or name it in accept(...) of the SchemaValidator if it is meant to be there";
    return Stream.of(
        arguments(
            "create trigger mine before delete on t.outbox for each row execute function t.swallow()",
            "trigger mine of t.outbox"
                + trigger
                + "CREATE TRIGGER mine BEFORE DELETE ON t.outbox FOR EACH ROW EXECUTE FUNCTION t.swallow(); to fix it: drop trigger \"mine\" on \"t\".\"outbox\""
                + accept),
        arguments(
            "create trigger mine after insert on dead.letters for each row execute function t.swallow()",
            "trigger mine of dead.letters"
                + trigger
                + "CREATE TRIGGER mine AFTER INSERT ON dead.letters FOR EACH ROW EXECUTE FUNCTION t.swallow(); to fix it: drop trigger \"mine\" on \"dead\".\"letters\""
                + accept),
        arguments(
            "create trigger mine before update on t.outbox_sleepers for each row execute function t.swallow()",
            "trigger mine of t.outbox_sleepers"
                + trigger
                + "CREATE TRIGGER mine BEFORE UPDATE ON t.outbox_sleepers FOR EACH ROW EXECUTE FUNCTION t.swallow(); to fix it: drop trigger \"mine\" on \"t\".\"outbox_sleepers\""
                + accept),
        arguments(
            "create rule mine as on insert to dead.letters do instead nothing",
            "rule mine of dead.letters"
                + rule
                + "CREATE RULE mine AS ON INSERT TO dead.letters DO INSTEAD NOTHING; to fix it: drop rule \"mine\" on \"dead\".\"letters\""
                + accept),
        arguments(
            "alter table t.outbox add constraint few check (attempts_count < 3)",
            "constraint few of t.outbox"
                + constraint
                + "CHECK ((attempts_count < 3)); to fix it: alter table \"t\".\"outbox\" drop constraint \"few\""
                + accept),
        arguments(
            "create table t.known (name text primary key); alter table dead.letters add constraint known foreign key (queue) references t.known",
            "constraint known of dead.letters"
                + constraint
                + "FOREIGN KEY (queue) REFERENCES t.known(name); to fix it: alter table \"dead\".\"letters\" drop constraint \"known\""
                + accept),
        arguments(
            "create table t.follow (id bigint constraint follows references t.outbox)",
            "constraint follows of t.outbox"
                + constraint
                + "FOREIGN KEY (id) REFERENCES t.outbox(id) on table t.follow; to fix it: drop constraint \"follows\" of the table that refers to this one"
                + accept));
  }

  @Test
  void acceptsWhatIsMeantToBeThere() {
    database.update(
        "create trigger mine before delete on t.outbox for each row execute function t.swallow()");
    database.update("alter table t.outbox add constraint few check (attempts_count < 3)");

    assertThat(validator().accept("mine", "few").validateSchema()).hasToString("valid");
    assertThat(validator().accept("mine").validateSchema().faults())
        .extracting(SchemaFault::object)
        .containsExactly("constraint few of t.outbox");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "create trigger mine before delete on t.outbox for each row execute function t.swallow();"
            + " alter table t.outbox disable trigger mine",
        "create trigger mine after truncate on t.outbox for each statement execute function t.swallow()",
        "alter table dead.letters add constraint mine unique (original_id, failed_at)"
      })
  void leavesInPeaceWhatCannotStandInTheWay(String change) {
    database.update(change);

    assertThat(validator().validateSchema()).hasToString("valid");
  }

  @Test
  void looksAtPartitionsToo() {
    database.update("drop table dead.letters, dead.letters_trips, dead.letters_audit");
    database.update(
        OutboxMigrations.of("t", "outbox")
            .deadLetters("dead", "letters")
            .deadLetters()
            .sql(0, 1)
            .replace(
                "primary key (id, failed_at)\n);",
                "primary key (id, failed_at)\n) partition by range (failed_at);")
            .replaceFirst("generated by default as identity", "")); // the letters' own
    database.update("create sequence dead.ids");
    database.update("alter table dead.letters alter column id set default nextval('dead.ids')");
    database.update("create table dead.rest partition of dead.letters default");
    assertThat(validator().validateSchema()).hasToString("valid");

    database.update(
        "create trigger mine before insert on dead.rest for each row execute function t.swallow()");

    assertThat(validator().validateSchema().faults())
        .extracting(SchemaFault::object)
        .containsExactly("trigger mine of dead.rest");
  }

  @Test
  void tellsOfASessionThatMayNotWrite() {
    assertThat(validator(withOptions("-c default_transaction_read_only=on")).validateSchema())
        .hasToString(
            "session: expected transactions that may write, found read-only transactions; to fix it: set default_transaction_read_only to off for the database and the role, and read-only to false in the pool");
  }

  @ParameterizedTest
  @ValueSource(strings = {"repeatable\\ read", "serializable"})
  void anIsolationThatStatementsSetForThemselvesIsNoFault(String isolation) {
    assertThat(
            validator(withOptions("-c default_transaction_isolation=" + isolation))
                .validateSchema())
        .hasToString("valid");
  }

  private PGSimpleDataSource withOptions(String options) {
    PGSimpleDataSource source = database.plain();
    source.setOptions(options);
    return source;
  }

  @ParameterizedTest
  @ValueSource(strings = {"t.outbox", "t.outbox_sleepers", "dead.letters"})
  void looksAtTheSchemaVersion(String table) {
    String quoted = table.replaceAll("\\w+", "\"$0\"");
    database.update("comment on table " + table + " is 'mine, outbox4j schema 0'");
    assertThat(validator().validateSchema())
        .hasToString(
            "schema version of %s: expected 1, found 0; to fix it: apply the migrations of this version of the library"
                .formatted(table));

    database.update("comment on table " + table + " is 'mine'");
    assertThat(validator().validateSchema())
        .hasToString(
            "schema version of %s: expected 1, found none in the table's comment; to fix it: apply the migrations; if all else is right: comment on table %s is 'outbox4j schema 1'"
                .formatted(table, quoted));

    database.update("comment on table " + table + " is 'mine, outbox4j schema 2'");
    assertThat(validator().validateSchema()).hasToString("valid");
  }

  @ParameterizedTest(name = "{0}")
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      value = {
        "stable|a volatile function, since it writes|stable",
        "security definer|a function that runs with its caller's rights|security definer, so that whoever may call it publishes with its owner's rights",
        "reset search_path|search_path set to pg_catalog, pg_temp|not set so"
      })
  void looksAtTheFunctionsProperties(String change, String expected, String found) {
    database.update("alter function t.outbox_publish " + change);

    assertThat(validator().validateSchema())
        .hasToString(
            "function t.outbox_publish: expected %s, found %s; to fix it: drop it and create it as the migration does"
                .formatted(expected, found));
  }

  @Test
  void looksAtTheFunctionsBody() {
    database.update("drop function t.outbox_publish");
    database.update(
        """
        create function t.outbox_publish(queue text, payload bytea) returns bigint
        language sql set search_path = pg_catalog, pg_temp as 'select 1::bigint'
        """);

    assertThat(validator().validateSchema())
        .hasToString(
            "function t.outbox_publish: expected the body of schema 1, found another body; to fix it: drop it and create it as the migration does");
  }

  @Test
  void namesASecondFunctionThatMakesCallsAmbiguous() {
    database.update(
        """
        create function t.outbox_publish(queue text, payload bytea, type text default null) returns bigint
        language sql as 'select 1::bigint'
        """);

    assertThat(validator().validateSchema().faults())
        .extracting(SchemaFault::expected)
        .contains("one function of that name that can be called with (queue text, payload bytea)");
  }
}
