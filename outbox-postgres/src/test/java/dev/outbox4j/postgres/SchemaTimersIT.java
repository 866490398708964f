package dev.outbox4j.postgres;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.migrations.TimerMigrations;
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

/** What the check of the schema finds of timers, and which rights their nodes need. */
@ExtendWith(PostgresExtension.class)
class SchemaTimersIT {
  private static final OutboxMigrations OUTBOX = OutboxMigrations.of("timed", "outbox");
  private static final TimerMigrations TIMERS = TimerMigrations.of("timed", "outbox");
  private static final OutboxTable TABLE = OutboxTable.named("outbox").inSchema("timed");

  private final TestDatabase database;

  SchemaTimersIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void setUp() {
    database.update("drop schema if exists timed cascade");
    OUTBOX.migrate(database.plain());
  }

  private static SchemaValidator validator(DataSource source) {
    return PostgresOutbox.on(source, TABLE).validator().timers();
  }

  @Test
  void namesTheTablesThatAreMissing() {
    assertThat(validator(database.plain()).validateSchema().faults())
        .hasSize(2)
        .anySatisfy(
            fault ->
                assertThat(fault)
                    .asString()
                    .contains("timed.outbox_timer: expected the table of timers, found no such"))
        .anySatisfy(
            fault ->
                assertThat(fault)
                    .asString()
                    .contains("timed.outbox_timer_run: expected the table of the runs of timers"));
    assertThat(TIMERS.migrate(database.plain())).isEqualTo(1);
    assertThat(validator(database.plain()).checkStorage().validateSchema()).hasToString("valid");
    assertThat(TIMERS.migrate(database.plain())).isZero();
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "outbox_timer_due_idx",
        "outbox_timer_run_instant_uq",
        "outbox_timer_run_request_uq",
        "outbox_timer_run_open_idx",
        "outbox_timer_run_waiting_idx",
        "outbox_timer_run_success_idx",
        "outbox_timer_run_message_idx"
      })
  void namesAnIndexThatIsMissing(String index) {
    TIMERS.migrate(database.plain());
    database.update("drop index timed." + index);
    assertThat(validator(database.plain()).validateSchema().faults())
        .singleElement()
        .satisfies(fault -> assertThat(fault.object()).contains("outbox_timer"));
  }

  @Test
  void aNodeNeedsItsGrantsOnBothTables() {
    TIMERS.migrate(database.plain());
    if (database
        .list(String.class, "select rolname::text from pg_roles where rolname = 'timekeeper'")
        .isEmpty()) {
      database.update("create role timekeeper login password 'secret'");
    }
    PGSimpleDataSource role = database.plain();
    role.setUser("timekeeper");
    role.setPassword("secret");
    database.update(OUTBOX.grantsSql("timekeeper", "timekeeper", "timekeeper"));
    SchemaValidator wanted =
        validator(role).checkGrants(OutboxRole.PUBLISHER, OutboxRole.SUBSCRIBER);

    assertThat(wanted.validateSchema().faults().stream().map(SchemaFault::object).distinct())
        .isEqualTo(List.of("grant on timed.outbox_timer", "grant on timed.outbox_timer_run"));

    database.update(TIMERS.grantsSql("timekeeper"));
    assertThat(wanted.validateSchema()).hasToString("valid");
  }
}
