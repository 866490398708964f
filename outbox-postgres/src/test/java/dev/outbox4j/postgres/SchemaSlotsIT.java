package dev.outbox4j.postgres;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.migrations.SlotMigrations;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.ClaimRequest;
import dev.outbox4j.spi.ClaimRequest.Idle;
import dev.outbox4j.spi.ClaimRequest.Range;
import java.time.Duration;
import javax.sql.DataSource;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.postgresql.ds.PGSimpleDataSource;

/** What the check of the schema finds of slots, and which rights a subscriber needs for them. */
@ExtendWith(PostgresExtension.class)
class SchemaSlotsIT {
  private static final OutboxMigrations OUTBOX = OutboxMigrations.of("slotted", "outbox");
  private static final SlotMigrations SLOTS = SlotMigrations.of("slotted", "outbox");
  private static final OutboxTable TABLE = OutboxTable.named("outbox").inSchema("slotted");

  private final TestDatabase database;

  SchemaSlotsIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void setUp() {
    database.update("drop schema if exists slotted cascade");
    OUTBOX.migrate(database.plain());
  }

  private static SchemaValidator validator(DataSource source) {
    return PostgresOutbox.on(source, TABLE).validator().slots();
  }

  @Test
  void namesTheTableThatIsMissing() {
    assertThat(validator(database.plain()).validateSchema().faults())
        .singleElement()
        .asString()
        .contains("slotted.outbox_slots: expected the table of slots, found no such table");
    SLOTS.migrate(database.plain());
    assertThat(validator(database.plain()).validateSchema()).hasToString("valid");
  }

  @Test
  void namesAKeyThatIsMissing() {
    SLOTS.migrate(database.plain());
    database.update("alter table slotted.outbox_slots drop constraint outbox_slots_pkey");
    assertThat(validator(database.plain()).validateSchema().faults())
        .isNotEmpty()
        .allSatisfy(fault -> assertThat(fault.object()).contains("outbox_slots"));
  }

  @Test
  void aSubscriberWithALimitNeedsItsGrantsAndNoMore() {
    SLOTS.migrate(database.plain());
    if (database
        .list(String.class, "select rolname::text from pg_roles where rolname = 'limited'")
        .isEmpty()) {
      database.update("create role limited login password 'secret'");
    }
    PGSimpleDataSource role = database.plain();
    role.setUser("limited");
    role.setPassword("secret");
    database.update(OUTBOX.grantsSql("limited", "limited", "limited"));
    SchemaValidator wanted = validator(role).checkGrants(OutboxRole.SUBSCRIBER);

    assertThat(wanted.validateSchema().faults())
        .isNotEmpty()
        .allSatisfy(
            fault -> assertThat(fault.object()).startsWith("grant on slotted.outbox_slots"));
    PostgresStore store = PostgresOutbox.on(role, TABLE).store();
    assertThatThrownBy(() -> store.slots().orElseThrow().open("orders", 2))
        .hasMessageContaining("outbox_slots");

    database.update(SLOTS.grantsSql("limited"));
    assertThat(wanted.validateSchema()).hasToString("valid");
    assertThat(store.slots().orElseThrow().open("orders", 2)).isEqualTo(2);
    database.update("insert into slotted.outbox (queue, payload) values ('orders', 'x')");
    assertThat(
            store
                .claim(
                    new ClaimRequest(
                        "orders",
                        Range.ALL,
                        10,
                        1 << 20,
                        Duration.ofMinutes(1),
                        "me",
                        Idle.UNCHANGED,
                        null,
                        2))
                .rows())
        .hasSize(1);
  }
}
