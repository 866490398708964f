package dev.outbox4j.postgres;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.internal.schema.Names;
import dev.outbox4j.migrations.OrderedMigrations;
import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.util.List;
import javax.sql.DataSource;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.postgresql.ds.PGSimpleDataSource;

/** What the validator says of ordered queues. */
@ExtendWith(PostgresExtension.class)
class SchemaOrderedIT {
  private static final OutboxTable TABLE = OutboxTable.named("outbox").inSchema("ordered");
  private static final OutboxMigrations OUTBOX = OutboxMigrations.of("ordered", "outbox");
  private static final OrderedMigrations ORDERED =
      OrderedMigrations.of("ordered", "outbox", "orders", "it's");

  private final TestDatabase database;

  SchemaOrderedIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void fresh() {
    database.update("drop schema if exists ordered cascade");
    database.update(OUTBOX.sql());
  }

  private static SchemaValidator validator(DataSource dataSource, String... queues) {
    return PostgresOutbox.on(dataSource, TABLE)
        .validator()
        .deadLetters("outbox_dlq")
        .checkStorage()
        .orderedQueues("orders", queues);
  }

  private List<String> faults(String... queues) {
    return validator(database.plain(), queues).validateSchema().faults().stream()
        .map(SchemaFault::toString)
        .toList();
  }

  @Test
  void findsNothingAtFaultWhereTheMigrationsHaveRun() {
    ORDERED.migrate(database.plain());
    assertThat(faults("it's")).isEmpty();
    assertThat(PostgresOutbox.on(database.plain(), TABLE).validator().validateSchema())
        .as("without being asked for ordered queues")
        .hasToString("valid");
  }

  @Test
  void findsNothingAtFaultWhereTheSqlHasRun() {
    database.update(ORDERED.sql());
    assertThat(faults("it's")).isEmpty();
  }

  @Test
  void namesTablesThatAreMissing() {
    assertThat(faults())
        .containsExactly(
            "table ordered.outbox_buckets: expected the table of the buckets of ordered queues,"
                + " found no such table; to fix it: apply the migrations",
            "table ordered.outbox_bucket_owners: expected the table of the owners of buckets,"
                + " found no such table; to fix it: apply the migrations");
  }

  @Test
  void namesWhatAQueueLacks() {
    ORDERED.migrate(database.plain());
    String remedy =
        "; to fix it: OrderedMigrations.of(...).migrate(...) for that queue, or its queuesSql()";
    assertThat(faults("mail"))
        .containsExactly(
            "index %s: expected an index of ordered.outbox for ordered queue 'mail', found none%s"
                .formatted(Names.bucketIndex("outbox", "mail"), remedy),
            "index %s: expected an index of ordered.outbox for ordered queue 'mail', found none%s"
                .formatted(Names.keyIndex("outbox", "mail"), remedy),
            "index %s: expected an index of ordered.outbox for ordered queue 'mail', found none%s"
                .formatted(Names.dueIndex("outbox", "mail"), remedy),
            "table ordered.outbox_buckets: expected 64 buckets for ordered queue 'mail', found 0"
                + remedy);
  }

  @Test
  void namesAnIndexThatWasNotBuiltToItsEnd() {
    ORDERED.migrate(database.plain());
    database.update(
        "update pg_index set indisvalid = false where indexrelid = 'ordered.%s'::regclass"
            .formatted(Names.keyIndex("outbox", "orders")));
    assertThat(faults())
        .singleElement()
        .asString()
        .contains("a valid index of ordered.outbox for ordered queue 'orders', found an invalid");
    ORDERED.migrate(database.plain());
    assertThat(faults()).isEmpty();
  }

  @Test
  void namesColumnsThatDiffer() {
    ORDERED.migrate(database.plain());
    database.update("alter table ordered.outbox_buckets drop column epoch");
    assertThat(faults())
        .containsExactly(
            "column ordered.outbox_buckets.epoch: expected \"epoch\" bigint not null default 0,"
                + " found no such column; to fix it: alter table \"ordered\".\"outbox_buckets\" add"
                + " column \"epoch\" bigint not null default 0");
  }

  @Test
  void namesTheGrantsThatASubscriberLacks() {
    ORDERED.migrate(database.plain());
    if (database
        .list(String.class, "select rolname::text from pg_roles where rolname = 'in_order'")
        .isEmpty()) {
      database.update("create role in_order login password 'secret'");
    }
    PGSimpleDataSource role = database.plain();
    role.setUser("in_order");
    role.setPassword("secret");
    database.update(OUTBOX.grantsSql("in_order", "in_order", "in_order"));
    SchemaValidator wanted = validator(role).checkGrants(OutboxRole.SUBSCRIBER);

    assertThat(wanted.validateSchema().faults())
        .extracting(fault -> fault.object() + ": " + fault.expected())
        .containsExactly(
            "grant on ordered.outbox_buckets: select for role in_order",
            "grant on ordered.outbox_buckets: update for role in_order",
            "grant on ordered.outbox_bucket_owners: select for role in_order",
            "grant on ordered.outbox_bucket_owners: insert for role in_order",
            "grant on ordered.outbox_bucket_owners: update for role in_order",
            "grant on ordered.outbox_bucket_owners: delete for role in_order");
    database.update(ORDERED.grantsSql("in_order"));
    assertThat(wanted.validateSchema()).hasToString("valid");
  }
}
