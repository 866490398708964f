package dev.outbox4j.postgres;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.migrations.PollerMigrations;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.util.List;
import javax.sql.DataSource;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.postgresql.ds.PGSimpleDataSource;

/** What the check of the schema finds of table pollers, and which rights their nodes need. */
@ExtendWith(PostgresExtension.class)
class SchemaPollersIT {
  private static final OutboxMigrations OUTBOX = OutboxMigrations.of("polled", "outbox");
  private static final PollerMigrations POLLERS = PollerMigrations.of("polled", "outbox");
  private static final OutboxTable TABLE = OutboxTable.named("outbox").inSchema("polled");

  private final TestDatabase database;

  SchemaPollersIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void setUp() {
    database.update("drop schema if exists polled cascade");
    OUTBOX.migrate(database.plain());
  }

  private static SchemaValidator validator(DataSource source) {
    return PostgresOutbox.on(source, TABLE).validator().pollers();
  }

  @Test
  void namesTheTablesThatAreMissing() {
    assertThat(validator(database.plain()).validateSchema().faults())
        .extracting(SchemaFault::object)
        .containsExactlyInAnyOrder(
            "table polled.outbox_poller",
            "table polled.outbox_poller_history",
            "table polled.outbox_poller_quarantine");
    assertThat(POLLERS.migrate(database.plain())).isEqualTo(1);
    assertThat(validator(database.plain()).checkStorage().validateSchema()).hasToString("valid");
    assertThat(POLLERS.migrate(database.plain())).isZero();
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "outbox_poller_history_idx",
        "outbox_poller_quarantine_event_uq",
        "outbox_poller_quarantine_redrive_idx"
      })
  void namesAnIndexThatIsMissing(String index) {
    POLLERS.migrate(database.plain());
    database.update("drop index polled." + index);
    assertThat(validator(database.plain()).validateSchema().faults())
        .singleElement()
        .satisfies(fault -> assertThat(fault.object()).contains("outbox_poller"));
  }

  @Test
  void aNodeNeedsItsGrantsOnAllThreeTables() {
    POLLERS.migrate(database.plain());
    if (database
        .list(String.class, "select rolname::text from pg_roles where rolname = 'follower'")
        .isEmpty()) {
      database.update("create role follower login password 'secret'");
    }
    PGSimpleDataSource role = database.plain();
    role.setUser("follower");
    role.setPassword("secret");
    database.update(OUTBOX.grantsSql("follower", "follower", "follower"));
    SchemaValidator wanted =
        validator(role).checkGrants(OutboxRole.PUBLISHER, OutboxRole.SUBSCRIBER);

    assertThat(wanted.validateSchema().faults().stream().map(SchemaFault::object).distinct())
        .isEqualTo(
            List.of(
                "grant on polled.outbox_poller",
                "grant on polled.outbox_poller_history",
                "grant on polled.outbox_poller_quarantine"));

    database.update(POLLERS.grantsSql("follower"));
    assertThat(wanted.validateSchema()).hasToString("valid");
  }
}
