package dev.outbox4j.postgres;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.migrations.InboxMigrations;
import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.UUID;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.postgresql.ds.PGSimpleDataSource;

/** What the check of the schema finds of an inbox, in whatever database it is. */
@ExtendWith(PostgresExtension.class)
class SchemaInboxIT {
  private static final InboxMigrations MIGRATIONS = InboxMigrations.of("billing", "inbox");
  private static final Inbox INBOX = Inbox.in("billing", "inbox");

  private final TestDatabase database;
  private final String suffix = UUID.randomUUID().toString().substring(0, 8);
  private PGSimpleDataSource other;

  SchemaInboxIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void setUp() {
    OutboxMigrations.standard().migrate(database.plain());
    database.update("create database \"other %s\"".formatted(suffix));
    other = database.plain();
    other.setDatabaseName("other " + suffix);
    MIGRATIONS.migrate(other);
  }

  @AfterEach
  void tearDown() {
    database.update("drop database \"other %s\"".formatted(suffix));
  }

  private SchemaValidator validator() {
    return PostgresOutbox.on(database.plain(), database.table()).validator();
  }

  private void inOther(String sql) {
    try (Connection connection = other.getConnection()) {
      connection.createStatement().execute(sql);
    } catch (SQLException e) {
      throw new AssertionError(sql, e);
    }
  }

  @Test
  void anInboxOfAnotherDatabaseThatIsRightIsNoFault() {
    assertThat(validator().inbox(other, INBOX).checkGrants().checkStorage().validateSchema())
        .hasToString("valid");
  }

  @Test
  void looksForItInTheDatabaseThatIsNamed() {
    assertThat(validator().inbox(INBOX).validateSchema())
        .hasToString(
            "table billing.inbox: expected the inbox table, found no such table;"
                + " to fix it: apply the migrations");
    assertThat(validator().inbox(Inbox.in("inbox")).validateSchema().toString())
        .contains("table inbox: expected the inbox table, found none on the search path")
        .endsWith("or name the schema with Inbox.in(schema, table)");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "drop table billing.inbox|table billing.inbox: expected the inbox table, found no such table",
        "alter table billing.inbox drop column processed_at|column billing.inbox.processed_at: expected"
            + " \"processed_at\" timestamp with time zone not null default now(), found no such column",
        "alter table billing.inbox drop constraint inbox_pkey|of billing.inbox: expected",
        "drop index billing.inbox_expires_idx|(expires_at)",
        "alter table billing.inbox add check (queue <> 'x')|constraint",
        "alter table billing.inbox set unlogged|table billing.inbox: expected a logged table, found"
            + " an unlogged one, which a crash empties",
        "comment on table billing.inbox is null|schema version of billing.inbox: expected 1, found"
            + " none in the table's comment",
        "alter table billing.inbox reset (autovacuum_vacuum_threshold)|storage setting"
            + " autovacuum_vacuum_threshold of billing.inbox: expected 10000 or less, found not set",
      })
  void namesWhatIsMissing(String change, String expected) {
    inOther(change);
    assertThat(validator().inbox(other, INBOX).checkStorage().validateSchema().faults())
        .singleElement()
        .asString()
        .contains(expected);
  }

  @Test
  void aServiceNeedsItsGrants() {
    String role = "inbox " + suffix;
    database.update("create role \"%s\" login password 'secret'".formatted(role));
    try {
      PGSimpleDataSource as = new PGSimpleDataSource();
      as.setURL(other.getURL());
      as.setUser(role);
      as.setPassword("secret");
      SchemaValidator validator = validator().inbox(as, INBOX);

      assertThat(validator.checkGrants(OutboxRole.PUBLISHER).validateSchema().faults())
          .extracting(SchemaFault::object)
          .containsExactly("schema billing");
      assertThat(validator.checkGrants().validateSchema().faults())
          .extracting(SchemaFault::toString)
          .hasSize(5)
          .anySatisfy(
              fault ->
                  assertThat(fault)
                      .startsWith("schema billing: expected usage for role \"" + role + "\""))
          .anySatisfy(
              fault ->
                  assertThat(fault).startsWith("grant on billing.inbox: expected delete for role"));

      inOther(MIGRATIONS.grantsSql(role));
      assertThat(validator.checkGrants().validateSchema()).hasToString("valid");
    } finally {
      inOther("drop owned by \"%s\"".formatted(role));
      database.update("drop role \"%s\"".formatted(role));
    }
  }

  @Test
  void saysOfWhichDatabaseItSpeaks() {
    PGSimpleDataSource away = database.plain();
    away.setDatabaseName("away " + suffix);
    assertThat(validator().inbox(away, INBOX).validateSchema().faults())
        .singleElement()
        .asString()
        .startsWith("database of inbox billing.inbox: expected an answer, found ");
    inOther("alter database \"other %s\" set default_transaction_read_only = on".formatted(suffix));
    assertThat(validator().inbox(other, INBOX).validateSchema().faults())
        .singleElement()
        .asString()
        .startsWith("session of inbox billing.inbox: expected transactions that may write");
  }

  @Test
  void aDatabaseThatDoesNotAnswerIsToldOfOnceForAllThatIsInIt() {
    PGSimpleDataSource away = database.plain();
    away.setDatabaseName("away " + suffix);
    assertThat(
            PostgresOutbox.on(away, database.table())
                .validator()
                .inbox(INBOX)
                .validateSchema()
                .faults())
        .hasSize(1);
  }
}
