package dev.outbox4j.postgres;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.migrations.MonitorMigrations;
import dev.outbox4j.migrations.OutboxMigrations;
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

/** What the check of the schema finds of monitors, and which rights their nodes need. */
@ExtendWith(PostgresExtension.class)
class SchemaMonitorsIT {
  private static final OutboxMigrations OUTBOX = OutboxMigrations.of("watched", "outbox");
  private static final MonitorMigrations MONITORS = MonitorMigrations.of("watched", "outbox");
  private static final OutboxTable TABLE = OutboxTable.named("outbox").inSchema("watched");

  private final TestDatabase database;

  SchemaMonitorsIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void setUp() {
    database.update("drop schema if exists watched cascade");
    OUTBOX.migrate(database.plain());
  }

  private static SchemaValidator validator(DataSource source) {
    return PostgresOutbox.on(source, TABLE).validator().monitors();
  }

  @Test
  void namesTheTablesThatAreMissing() {
    assertThat(validator(database.plain()).validateSchema().faults())
        .hasSize(2)
        .anySatisfy(
            fault ->
                assertThat(fault)
                    .asString()
                    .contains(
                        "watched.outbox_monitor: expected the table of monitors, found no such"))
        .anySatisfy(
            fault ->
                assertThat(fault)
                    .asString()
                    .contains(
                        "watched.outbox_monitor_event: expected the table of the events of monitors"));
    assertThat(MONITORS.migrate(database.plain())).isEqualTo(1);
    assertThat(validator(database.plain()).checkStorage().validateSchema()).hasToString("valid");
    assertThat(MONITORS.migrate(database.plain())).isZero();
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "outbox_monitor_created_idx",
        "outbox_monitor_status_idx",
        "outbox_monitor_parent_idx",
        "outbox_monitor_open_idx",
        "outbox_monitor_expiry_idx",
        "outbox_monitor_failed_idx",
        "outbox_monitor_message_idx",
        "outbox_monitor_event_of_idx"
      })
  void namesAnIndexThatIsMissing(String index) {
    MONITORS.migrate(database.plain());
    database.update("drop index watched." + index);
    assertThat(validator(database.plain()).validateSchema().faults())
        .singleElement()
        .satisfies(fault -> assertThat(fault.object()).contains("outbox_monitor"));
  }

  @Test
  void aNodeNeedsItsGrantsOnBothTables() {
    MONITORS.migrate(database.plain());
    if (database
        .list(String.class, "select rolname::text from pg_roles where rolname = 'watcher'")
        .isEmpty()) {
      database.update("create role watcher login password 'secret'");
    }
    PGSimpleDataSource role = database.plain();
    role.setUser("watcher");
    role.setPassword("secret");
    database.update(OUTBOX.grantsSql("watcher", "watcher", "watcher"));
    SchemaValidator wanted =
        validator(role).checkGrants(OutboxRole.PUBLISHER, OutboxRole.SUBSCRIBER);

    assertThat(wanted.validateSchema().faults().stream().map(SchemaFault::object).distinct())
        .isEqualTo(
            List.of("grant on watched.outbox_monitor", "grant on watched.outbox_monitor_event"));

    database.update(MONITORS.grantsSql("watcher"));
    assertThat(wanted.validateSchema()).hasToString("valid");
  }
}
