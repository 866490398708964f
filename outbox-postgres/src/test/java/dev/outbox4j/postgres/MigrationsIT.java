package dev.outbox4j.postgres;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.read.ListAppender;
import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.internal.schema.Column;
import dev.outbox4j.internal.schema.Layout;
import dev.outbox4j.internal.schema.Place;
import dev.outbox4j.migrations.DeadLetterMigrations;
import dev.outbox4j.migrations.DedupMigrations;
import dev.outbox4j.migrations.InboxMigrations;
import dev.outbox4j.migrations.JobMigrations;
import dev.outbox4j.migrations.LockMigrations;
import dev.outbox4j.migrations.MonitorMigrations;
import dev.outbox4j.migrations.OrderedMigrations;
import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.migrations.PauseMigrations;
import dev.outbox4j.migrations.PollerMigrations;
import dev.outbox4j.migrations.SlotMigrations;
import dev.outbox4j.migrations.TimerMigrations;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.flywaydb.core.Flyway;
import org.flywaydb.core.api.FlywayException;
import org.junit.jupiter.api.Assertions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.postgresql.ds.PGSimpleDataSource;
import org.slf4j.LoggerFactory;

@ExtendWith(PostgresExtension.class)
class MigrationsIT {
  private final TestDatabase database;

  MigrationsIT(TestDatabase database) {
    this.database = database;
  }

  private SchemaReport report(String schema, String table, String dlqSchema, String dlqTable) {
    return PostgresOutbox.on(database.plain(), OutboxTable.named(table).inSchema(schema))
        .validator()
        .deadLetters(dlqSchema, dlqTable)
        .checkStorage()
        .checkGrants(OutboxRole.PUBLISHER, OutboxRole.values())
        .checkPublishFunction()
        .validateSchema();
  }

  @Test
  void appliesWhatIsMissingAndNothingTheSecondTime() {
    OutboxMigrations migrations = OutboxMigrations.of("fresh", "outbox");

    assertThat(migrations.migrate(database.plain())).isEqualTo(2);
    assertThat(migrations.migrate(database.plain())).isZero();
    assertThat(report("fresh", "outbox", "fresh", "outbox_dlq")).hasToString("valid");
    for (String history : List.of("outbox_schema_history", "outbox_dlq_schema_history")) {
      assertThat(database.count("fresh." + history + " where version = '1' and success"))
          .isEqualTo(1);
    }
  }

  @Test
  void createsTheColumnsOfTheListInItsOrder() {
    OrderedMigrations.of("public", "outbox", "columns").migrate(database.plain());
    PauseMigrations.of("public", "outbox").migrate(database.plain());
    DedupMigrations.of("public", "outbox").migrate(database.plain());
    SlotMigrations.of("public", "outbox").migrate(database.plain());
    TimerMigrations.of("public", "outbox").migrate(database.plain());
    LockMigrations.of("public", "outbox").migrate(database.plain());
    MonitorMigrations.of("public", "outbox").migrate(database.plain());
    JobMigrations.of("public", "outbox").migrate(database.plain());
    PollerMigrations.of("public", "outbox").migrate(database.plain());
    InboxMigrations.of("public", "inbox").migrate(database.plain());
    for (Place place : Place.values()) {
      String table =
          switch (place) {
            case OUTBOX -> "outbox";
            case SLEEPERS -> "outbox_sleepers";
            case DEAD_LETTERS -> "outbox_dlq";
            case DEAD_LETTER_TRIPS -> "outbox_dlq_trips";
            case DEAD_LETTER_AUDIT -> "outbox_dlq_audit";
            case BUCKETS -> "outbox_buckets";
            case BUCKET_OWNERS -> "outbox_bucket_owners";
            case PAUSES -> "outbox_pauses";
            case DEDUP -> "outbox_dedup";
            case SLOTS -> "outbox_slots";
            case TIMERS -> "outbox_timer";
            case TIMER_RUNS -> "outbox_timer_run";
            case LOCKS -> "outbox_lock";
            case MONITORS -> "outbox_monitor";
            case MONITOR_EVENTS -> "outbox_monitor_event";
            case JOBS -> "outbox_job";
            case JOB_ENDS -> "outbox_job_end";
            case POLLERS -> "outbox_poller";
            case POLLER_HISTORY -> "outbox_poller_history";
            case POLLER_QUARANTINE -> "outbox_poller_quarantine";
            case INBOX -> "inbox";
          };
      assertThat(
              database.list(
                  String.class,
                  "select attname::text from pg_attribute where attrelid = ?::regclass and attnum > 0 order by attnum",
                  table))
          .containsExactlyElementsOf(
              Layout.of(place).columns().stream().map(Column::name).toList());
    }
  }

  @Test
  void whoUsesNoFeatureHasNoIndexOfOne() {
    OutboxMigrations.of("plain", "outbox").migrate(database.plain());
    assertThat(
            database.list(
                String.class, "select indexname from pg_indexes where schemaname = 'plain'"))
        .filteredOn(name -> !name.contains("history"))
        .containsExactlyInAnyOrder(
            "outbox_pkey",
            "outbox_claim_idx",
            "outbox_timer_uq",
            "outbox_sleepers_pkey",
            "outbox_dlq_pkey",
            "outbox_dlq_queue_failed_idx",
            "outbox_dlq_failed_idx",
            "outbox_dlq_message_idx",
            "outbox_dlq_open_idx",
            "outbox_dlq_trips_pkey",
            "outbox_dlq_audit_pkey",
            "outbox_dlq_audit_retention_idx",
            "outbox_dlq_key_idx"); // of the few dead letters that have a key
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void letsSeveralOutboxesShareOneDeadLetterTable(boolean deadLettersFirst) {
    String schema = deadLettersFirst ? "shared_first" : "shared_last";
    DeadLetterMigrations letters = DeadLetterMigrations.of(schema, "letters");
    List<OutboxMigrations> outboxes =
        List.of(
            OutboxMigrations.of(schema, "orders").deadLetters(schema, "letters"),
            OutboxMigrations.of(schema, "mails").deadLetters(schema, "letters"));
    if (deadLettersFirst) {
      assertThat(letters.migrate(database.plain())).isEqualTo(1);
    }

    assertThat(outboxes.get(0).migrate(database.plain())).isEqualTo(deadLettersFirst ? 1 : 2);
    assertThat(outboxes.get(1).migrate(database.plain())).isEqualTo(1);
    assertThat(letters.migrate(database.plain())).isZero();
    for (OutboxMigrations each : outboxes) {
      assertThat(each.migrate(database.plain())).isZero();
    }

    assertThat(report(schema, "orders", schema, "letters")).hasToString("valid");
    assertThat(report(schema, "mails", schema, "letters")).hasToString("valid");
  }

  @Test
  void keepsSeveralOutboxesInOneSchemaBesideTheServicesOwnTables() {
    database.update("create schema busy");
    database.update("create table busy.orders (id int)");

    assertThat(OutboxMigrations.of("busy", "orders_outbox").migrate(database.plain())).isEqualTo(2);
    assertThat(OutboxMigrations.of("busy", "mail_outbox").migrate(database.plain())).isEqualTo(2);
    assertThat(OutboxMigrations.of("busy", "orders_outbox").migrate(database.plain())).isZero();
    assertThat(report("busy", "orders_outbox", "busy", "orders_outbox_dlq")).hasToString("valid");
    assertThat(report("busy", "mail_outbox", "busy", "mail_outbox_dlq")).hasToString("valid");
    assertThat(database.count("busy.orders")).isZero();
  }

  @Test
  void putsDeadLettersIntoAnotherSchemaAndCreatesBoth() {
    OutboxMigrations migrations =
        OutboxMigrations.of("Own Schema", "Out-Box").deadLetters("Grave Yard", "Dead Letters");

    assertThat(migrations.migrate(database.plain())).isEqualTo(2);
    assertThat(report("Own Schema", "Out-Box", "Grave Yard", "Dead Letters")).hasToString("valid");
    assertThat(
            database.one(
                Long.class, "select \"Own Schema\".\"Out-Box_publish\"('orders', 'x'::bytea)"))
        .isEqualTo(1);
  }

  @Test
  void takesTheLongestNamesThatAreAllowed() {
    String table = "o".repeat(32);
    String letters = "d".repeat(36);

    assertThat(
            OutboxMigrations.of("longest", table)
                .deadLetters("longest", letters)
                .migrate(database.plain()))
        .isEqualTo(2);
    assertThat(report("longest", table, "longest", letters)).hasToString("valid");
    assertThat(
            database.list(
                String.class,
                "select relname::text from pg_class where relnamespace = 'longest'::regnamespace and relkind in ('r', 'i')"))
        .contains(
            table + "_schema_history",
            table + "_schema_history_s_idx",
            table + "_schema_history_pk",
            letters + "_queue_failed_idx",
            letters + "_schema_history_s_idx");
  }

  @Test
  void isContentWithAPoolOfOne() throws Exception {
    try (HikariDataSource pool = database.pool(1)) {
      pool.getHikariConfigMXBean().setConnectionTimeout(5_000);
      String before = path(pool);

      int applied =
          Assertions.assertTimeoutPreemptively(
              Duration.ofSeconds(10), () -> OutboxMigrations.of("tight", "outbox").migrate(pool));

      assertThat(applied).isEqualTo(2);
      assertThat(path(pool)).isEqualTo(before);
      assertThat(pool.getHikariPoolMXBean().getActiveConnections()).isZero();
    }
  }

  private static String path(HikariDataSource pool) throws Exception {
    try (var connection = pool.getConnection();
        var statement = connection.createStatement();
        var rows = statement.executeQuery("show search_path")) {
      rows.next();
      return rows.getString(1);
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"crowded", "crowded_dead"})
  void letsManyProcessesMigrateAtOnce(String dead) throws Exception {
    database.update("drop schema if exists crowded, crowded_dead cascade");
    int callers = 6;
    CyclicBarrier together = new CyclicBarrier(callers);
    ExecutorService threads = Executors.newFixedThreadPool(callers);
    try {
      List<Future<Integer>> applied = new ArrayList<>();
      for (int i = 0; i < callers; i++) {
        applied.add(
            threads.submit(
                () -> {
                  together.await(10, TimeUnit.SECONDS);
                  return OutboxMigrations.of("crowded", "outbox")
                      .deadLetters(dead, "letters")
                      .migrate(database.plain());
                }));
      }
      List<Integer> counts = new ArrayList<>();
      for (Future<Integer> each : applied) {
        counts.add(each.get(60, TimeUnit.SECONDS));
      }
      assertThat(counts.stream().mapToInt(Integer::intValue).sum()).isEqualTo(2);
    } finally {
      threads.shutdownNow();
    }
    assertThat(report("crowded", "outbox", dead, "letters")).hasToString("valid");
  }

  @Test
  void needsNoRightToCreateSchemasThatExist() {
    database.update("create role owning login password 'secret'");
    database.update("create schema owned authorization owning");
    PGSimpleDataSource owner = database.plain();
    owner.setUser("owning");
    owner.setPassword("secret");

    assertThat(OutboxMigrations.of("owned", "outbox").migrate(owner)).isEqualTo(2);
    assertThatThrownBy(() -> OutboxMigrations.of("not_owned", "outbox").migrate(owner))
        .isInstanceOf(FlywayException.class)
        .hasMessageContaining("permission denied");
  }

  @Test
  void leavesNothingOfAMigrationThatFails() {
    database.update("create schema torn");
    database.update("create table torn.outbox_dlq (id int)");

    assertThatThrownBy(() -> OutboxMigrations.of("torn", "outbox").migrate(database.plain()))
        .isInstanceOf(FlywayException.class)
        .hasMessageContaining("outbox_dlq");
    assertThat(
            database.list(
                String.class,
                "select relname::text from pg_class where relnamespace = 'torn'::regnamespace and relname like 'outbox%' and relname not like '%schema_history%'"))
        .containsExactly("outbox_dlq");

    database.update("drop table torn.outbox_dlq");
    assertThat(OutboxMigrations.of("torn", "outbox").migrate(database.plain())).isEqualTo(2);
  }

  @Test
  void warnsOfNothing() {
    Logger root = (Logger) LoggerFactory.getLogger(org.slf4j.Logger.ROOT_LOGGER_NAME);
    ListAppender<ILoggingEvent> heard = new ListAppender<>();
    heard.start();
    root.addAppender(heard);
    try {
      OutboxMigrations.of("quiet", "outbox").migrate(database.plain());
      OutboxMigrations.of("quiet", "second")
          .deadLetters("quiet", "outbox_dlq")
          .migrate(database.plain());
      OutboxMigrations.of("quiet", "outbox").migrate(database.plain());
    } finally {
      root.detachAppender(heard);
    }
    assertThat(new ArrayList<>(heard.list))
        .filteredOn(event -> event.getLoggerName().startsWith("org.flywaydb"))
        .filteredOn(event -> event.getLevel().isGreaterOrEqual(Level.WARN))
        .extracting(ILoggingEvent::getFormattedMessage)
        .isEmpty();
  }

  @Test
  void runsAsPlainSqlWithoutFlyway() {
    database.update(
        OutboxMigrations.of("plain_sql", "Outbox 2").deadLetters("plain_dead", "letters").sql());

    assertThat(report("plain_sql", "Outbox 2", "plain_dead", "letters")).hasToString("valid");
  }

  @Test
  void isPartOfAServicesOwnNumberingByVersion(@TempDir Path folder) throws IOException {
    OutboxMigrations migrations = OutboxMigrations.of("service", "outbox");
    Files.writeString(folder.resolve("V20240101__orders.sql"), "create table orders (id int);");
    Files.writeString(
        folder.resolve("V20240102__dead_letters.sql"), migrations.deadLetters().sql(0, 1));
    Files.writeString(folder.resolve("V20240103__outbox.sql"), migrations.sql(0, 1));
    database.update("create schema service");
    Flyway flyway =
        Flyway.configure()
            .dataSource(database.plain())
            .defaultSchema("service")
            .locations("filesystem:" + folder)
            .load();

    assertThat(flyway.migrate().migrationsExecuted).isEqualTo(3);
    assertThat(flyway.migrate().migrationsExecuted).isZero();
    assertThat(report("service", "outbox", "service", "outbox_dlq")).hasToString("valid");
  }

  @Test
  void leavesTheRestOfAConfiguredFlywayToTheService() {
    OutboxMigrations migrations = OutboxMigrations.of("configured", "outbox");
    Flyway flyway =
        migrations
            .configure(
                Flyway.configure().dataSource(database.plain()).installedBy("the order service"))
            .load();

    assertThat(flyway.migrate().migrationsExecuted).isEqualTo(1);
    assertThat(
            database.list(
                String.class, "select distinct installed_by from configured.outbox_schema_history"))
        .containsExactly("the order service");
    assertThat(migrations.migrate(database.plain())).describedAs("the dead letters").isEqualTo(1);
  }
}
