package dev.outbox4j.examples.docs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.SubscriberHealth;
import dev.outbox4j.dlq.DeadLetterQueue;
import dev.outbox4j.migrations.DeadLetterMigrations;
import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.postgres.OutboxHealth;
import dev.outbox4j.postgres.OutboxHealthCheck;
import dev.outbox4j.postgres.OutboxRole;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.QueueDepth;
import dev.outbox4j.postgres.SchemaReport;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;
import java.util.stream.Collectors;
import javax.sql.DataSource;
import org.flywaydb.core.Flyway;
import org.flywaydb.core.api.configuration.FluentConfiguration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/** The samples of docs/schema-and-validation.md, run. */
@ExtendWith(PostgresExtension.class)
class SchemaSamplesIT {
  private final TestDatabase database;
  private final DataSource dataSource;

  SchemaSamplesIT(TestDatabase database) {
    this.database = database;
    this.dataSource = database.plain();
  }

  @Test
  void migratesInOneCall() {
    // tag::migrate
    OutboxMigrations.of("shop", "outbox").deadLetters("graveyard", "shop_dead").migrate(dataSource);
    // end::migrate
    assertThat(database.count("graveyard.shop_dead")).isZero();
  }

  @Test
  void keepsSeveralOutboxes() {
    // tag::several
    OutboxMigrations.of("public", "orders_outbox").migrate(dataSource);
    OutboxMigrations.of("public", "mail_outbox").migrate(dataSource);
    // end::several
    assertThat(database.count("mail_outbox_dlq")).isZero();
  }

  @Test
  void usesAFlywayOfItsOwn() {
    // tag::own-flyway
    Flyway outbox =
        OutboxMigrations.of("own", "outbox")
            .configure(Flyway.configure().dataSource(dataSource).installedBy("order-service"))
            .load();
    outbox.migrate();
    Flyway deadLetters =
        DeadLetterMigrations.of("own", "outbox_dlq")
            .configure(Flyway.configure().dataSource(dataSource).installedBy("order-service"))
            .load();
    deadLetters.migrate();
    // end::own-flyway
    assertThat(database.count("own.outbox_schema_history where installed_by = 'order-service'"))
        .isPositive();
  }

  @Test
  void aServiceThatMigratesTheSameSchemaAfterwardsNeedsABaseline(@TempDir Path folder)
      throws IOException {
    Files.writeString(folder.resolve("V1__orders.sql"), "create table orders (id bigint)");
    OutboxMigrations.of("taken", "outbox").migrate(dataSource);
    FluentConfiguration service =
        Flyway.configure()
            .dataSource(dataSource)
            .schemas("taken")
            .locations("filesystem:" + folder);

    assertThatThrownBy(() -> service.load().migrate())
        .hasMessageContaining("Found non-empty schema(s)");
    service.baselineOnMigrate(true).baselineVersion("0").load().migrate();

    assertThat(database.count("taken.orders")).isZero();
  }

  @Test
  void aServiceMayMigrateTheSameSchemaBefore(@TempDir Path folder) throws IOException {
    Files.writeString(folder.resolve("V1__orders.sql"), "create table orders (id bigint)");
    Flyway.configure()
        .dataSource(dataSource)
        .schemas("before")
        .locations("filesystem:" + folder)
        .load()
        .migrate();

    OutboxMigrations.of("before", "outbox").migrate(dataSource);

    assertThat(database.count("before.outbox")).isZero();
    assertThat(database.count("before.orders")).isZero();
  }

  @Test
  void sharesDeadLetters() {
    // tag::shared
    OutboxMigrations.of("sales", "orders").deadLetters("sales", "failed").migrate(dataSource);
    OutboxMigrations.of("sales", "mails").deadLetters("sales", "failed").migrate(dataSource);
    // end::shared
    assertThat(database.count("sales.failed")).isZero();
  }

  @Test
  void writesTheSqlOfEachVersionToAFile(@TempDir Path folder) throws IOException {
    // tag::numbered
    OutboxMigrations migrations = OutboxMigrations.of("numbered", "outbox");
    Files.writeString(folder.resolve("V57__dead_letters.sql"), migrations.deadLetters().sql(0, 1));
    Files.writeString(folder.resolve("V58__outbox.sql"), migrations.sql(0, 1));
    // end::numbered
    database.update("create schema numbered");
    database.update(Files.readString(folder.resolve("V57__dead_letters.sql")));
    database.update(Files.readString(folder.resolve("V58__outbox.sql")));
    assertThat(database.count("numbered.outbox")).isZero();
  }

  @Test
  void writesTheSqlToAFile(@TempDir Path folder) throws IOException {
    // tag::sql
    Path file = folder.resolve("V7__outbox.sql");
    Files.writeString(file, OutboxMigrations.of("printed", "outbox").sql());
    // end::sql
    database.update(Files.readString(file));
    assertThat(database.count("printed.outbox")).isZero();
  }

  @Test
  void switchesNotificationsOffForOneTransaction() throws IOException, SQLException {
    try (Connection connection = dataSource.getConnection();
        Statement statement = connection.createStatement()) {
      connection.setAutoCommit(false);
      statement.execute(DocumentedSql.of("schema-and-validation.md", "two-phase"));
      assertThat(setting(statement)).isEqualTo("off");
      connection.commit();
      assertThat(setting(statement)).isNotEqualTo("off");
      connection.commit();
    }
  }

  private static String setting(Statement statement) throws SQLException {
    try (ResultSet rows =
        statement.executeQuery("select coalesce(current_setting('outbox4j.notify', true), '')")) {
      rows.next();
      return rows.getString(1);
    }
  }

  @Test
  void validates() {
    // tag::validate
    OutboxTable table = OutboxTable.named("outbox").inSchema("public");
    SchemaReport report =
        PostgresOutbox.on(dataSource, table)
            .validator()
            .deadLetters("outbox_dlq")
            .checkStorage()
            .checkGrants(OutboxRole.PUBLISHER, OutboxRole.SUBSCRIBER)
            .validateSchema();
    report.requireValid(); // throws an OutboxException that lists every fault
    // end::validate
    assertThat(report.valid()).isTrue();
  }

  @Test
  void answersAHealthEndpoint() {
    OutboxTable table = database.table();
    try (OutboxSubscriber subscriber =
        OutboxSubscriber.builder("orders")
            .store(PostgresOutbox.on(database.pool(3), table).store())
            .otherwise((payload, delivery) -> {})
            .deadLetters(DeadLetterQueue.in("outbox_dlq"))
            .build()) {
      subscriber.start();
      answer(subscriber, table);
    }
  }

  private void answer(OutboxSubscriber subscriber, OutboxTable table) {
    // tag::health
    PostgresOutbox outbox = PostgresOutbox.on(dataSource, table);
    OutboxHealthCheck check =
        outbox
            .healthCheck()
            .validator(outbox.validator().deadLetters("outbox_dlq"))
            .queues("orders", "mails");

    SubscriberHealth memory = subscriber.health(); // of this process, from memory
    OutboxHealth health = check.check(); // of the database, which it asks
    int status = memory.healthy() && health.healthy() ? 200 : 503;
    String body =
        health.healthy()
            ? health.queues().stream().map(QueueDepth::toString).collect(Collectors.joining("\n"))
            : health.schema().toString(); // one line for each fault; no address, no credentials
    // end::health
    assertThat(status).isEqualTo(200);
    assertThat(body).contains("queue=orders, ready=0");
  }

  @Test
  void grants() {
    for (String role : List.of("shop_publisher", "shop_subscriber", "shop_operator")) {
      database.update(
          "do $$ begin create role "
              + role
              + "; exception when duplicate_object then null; end $$");
    }
    // tag::grants
    OutboxMigrations migrations = OutboxMigrations.standard();
    String sql =
        migrations.grantsSql("shop_publisher", "shop_subscriber", "shop_operator")
            + migrations.timerCancellationGrantsSql("shop_publisher")
            + migrations.timerReplacementGrantsSql("shop_publisher");
    // end::grants
    database.update(sql);
    assertThat(
            database.one(
                Boolean.class,
                """
                select has_column_privilege('shop_subscriber', 'outbox', 'lease_until', 'update')
                  and not has_column_privilege('shop_subscriber', 'outbox', 'payload', 'update')
                """))
        .isTrue();
  }
}
