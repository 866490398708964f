package dev.outbox4j.postgres;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.migrations.LockMigrations;
import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.util.List;
import javax.sql.DataSource;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.postgresql.ds.PGSimpleDataSource;

/** What the check of the schema finds of locks, and which rights who takes them needs. */
@ExtendWith(PostgresExtension.class)
class SchemaLocksIT {
  private static final OutboxMigrations OUTBOX = OutboxMigrations.of("locked", "outbox");
  private static final LockMigrations LOCKS = LockMigrations.of("locked", "outbox");
  private static final OutboxTable TABLE = OutboxTable.named("outbox").inSchema("locked");

  private final TestDatabase database;

  SchemaLocksIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void setUp() {
    database.update("drop schema if exists locked cascade");
    OUTBOX.migrate(database.plain());
  }

  private static SchemaValidator validator(DataSource source) {
    return PostgresOutbox.on(source, TABLE).validator().locks();
  }

  @Test
  void namesTheTableThatIsMissing() {
    assertThat(validator(database.plain()).validateSchema().faults())
        .singleElement()
        .asString()
        .contains("locked.outbox_lock: expected the table of locks, found no such");
    assertThat(LOCKS.migrate(database.plain())).isEqualTo(1);
    assertThat(validator(database.plain()).checkStorage().validateSchema()).hasToString("valid");
    assertThat(LOCKS.migrate(database.plain())).isZero();
  }

  @Test
  void namesTheMissingKeyThatKeepsGuardedWritesApart() {
    LOCKS.migrate(database.plain());
    database.update("alter table locked.outbox_lock drop constraint outbox_lock_token_uq");
    assertThat(validator(database.plain()).validateSchema().faults())
        .singleElement()
        .satisfies(fault -> assertThat(fault.object()).contains("outbox_lock"));
  }

  @Test
  void whoTakesLocksNeedsGrantsOnTheTable() {
    LOCKS.migrate(database.plain());
    if (database
        .list(String.class, "select rolname::text from pg_roles where rolname = 'locker'")
        .isEmpty()) {
      database.update("create role locker login password 'secret'");
    }
    PGSimpleDataSource role = database.plain();
    role.setUser("locker");
    role.setPassword("secret");
    database.update(OUTBOX.grantsSql("locker", "locker", "locker"));
    SchemaValidator wanted = validator(role).checkGrants(OutboxRole.SUBSCRIBER);

    assertThat(wanted.validateSchema().faults().stream().map(SchemaFault::object).distinct())
        .isEqualTo(List.of("grant on locked.outbox_lock"));

    database.update(LOCKS.grantsSql("locker"));
    assertThat(wanted.validateSchema()).hasToString("valid");
  }
}
