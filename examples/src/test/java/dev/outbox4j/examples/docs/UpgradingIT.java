package dev.outbox4j.examples.docs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.Delivery;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.Payload;
import dev.outbox4j.RetryPolicy;
import dev.outbox4j.dlq.DeadLetterQueue;
import dev.outbox4j.migrations.LockMigrations;
import dev.outbox4j.migrations.MonitorMigrations;
import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.migrations.PollerMigrations;
import dev.outbox4j.migrations.TimerMigrations;
import dev.outbox4j.postgres.OutboxRole;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.io.IOException;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import javax.sql.DataSource;
import org.flywaydb.core.Flyway;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** The SQL of docs/upgrading.md, run on a schema of before with data. */
@ExtendWith(PostgresExtension.class)
class UpgradingIT {
  private static final String COLUMNS =
      """
      select concat_ws(' ', a.attname, format_type(a.atttypid, a.atttypmod), l.collname, a.attnotnull,
        pg_get_expr(d.adbin, d.adrelid), a.attidentity::text)
      from pg_attribute a
      left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
      left join pg_collation l on l.oid = a.attcollation
      where a.attrelid = ?::regclass and a.attnum > 0 and not a.attisdropped order by 1
      """;

  private static final String FUNCTION =
      "select pg_get_functiondef(?::regproc) || obj_description('outbox'::regclass, 'pg_class')";

  private final TestDatabase database;
  private final DataSource dataSource;

  UpgradingIT(TestDatabase database) {
    this.database = database;
    this.dataSource = database.plain();
  }

  @BeforeEach
  void asBefore() {
    OutboxMigrations.of("fresh", "outbox").migrate(dataSource);
    database.update("drop schema public cascade");
    database.update("create schema public");
    Flyway.configure()
        .dataSource(dataSource)
        .locations("classpath:dev/outbox4j/examples/docs/before")
        .table("outbox_schema_history")
        .placeholders(
            Map.of(
                "outbox_schema", "public",
                "outbox_table", "outbox",
                "outbox_dlq_schema", "public",
                "outbox_dlq_table", "outbox_dlq"))
        .load()
        .migrate();
    database.update(
        """
        insert into outbox (queue, type, payload, lease_until, lease_token, leased_by,
          deliveries_count, attempts_count, first_attempt_at, last_error, timer_id)
        values
          ('orders', 'good', 'waits', null, 0, null, 0, 0, null, null, 'a'),
          ('orders', 'good', 'retried', null, 7, null, 2, 2, now(), 'no', null),
          ('orders', 'bad', 'fails', null, 0, null, 0, 0, null, null, null),
          ('orders', 'good', 'held', now() + interval '1 hour', 40, 'me', 1, 0, null, null, 'b'),
          ('orders', 'good', 'left', now() - interval '1 hour', 3, 'dead', 1, 0, null, null, null)
        """);
    database.update("insert into outbox_sleepers values ('orders', 'me', 'infinity')");
    database.update(
        """
        insert into outbox_dlq (original_id, queue, payload, deliveries_count, attempts_count,
          created_at, failure_reason, timer_id, redriven_at, redriven_by, redriven_id)
        values
          (70, 'orders', 'open', 3, 2, '2026-01-01Z', 'rejected', 'c', null, null, null),
          (71, 'orders', 'done', 3, 2, '2026-01-01Z', 'rejected', null, now(), 'ops', 90),
          (72, 'orders', 'done', 3, 2, '2026-01-01Z', 'rejected', null, now(), 'ops', null)
        """);
  }

  @Test
  void bringsASchemaOfBeforeToSchema1() throws IOException, SQLException {
    runTheScript();

    assertThat(
            PostgresOutbox.on(dataSource, database.table())
                .validator()
                .deadLetters("outbox_dlq")
                .checkStorage()
                .checkGrants(OutboxRole.PUBLISHER, OutboxRole.values())
                .checkPublishFunction()
                .validateSchema())
        .hasToString("valid");
    for (String table :
        List.of(
            "outbox", "outbox_sleepers", "outbox_dlq", "outbox_dlq_trips", "outbox_dlq_audit")) {
      assertThat(database.list(String.class, COLUMNS, table))
          .isEqualTo(database.list(String.class, COLUMNS, "fresh." + table));
    }
    assertThat(database.one(String.class, FUNCTION, "outbox_publish"))
        .isEqualTo(
            database
                .one(String.class, FUNCTION, "fresh.outbox_publish")
                .replace("fresh.", "public.")
                .replace("\"fresh\"", "\"public\""));
    leasesAreKept();
    deadLettersAreKept();
    // tag::history
    OutboxMigrations migrations = OutboxMigrations.standard();
    migrations.configure(Flyway.configure().dataSource(dataSource)).load().repair();
    migrations
        .deadLetters()
        .configure(Flyway.configure().dataSource(dataSource))
        .baselineVersion("1")
        .load()
        .baseline();
    // end::history
    assertThat(migrations.migrate(dataSource)).isZero();
    everythingIsDelivered();
  }

  private void runTheScript() throws IOException, SQLException {
    try (Connection connection = dataSource.getConnection();
        Statement statement = connection.createStatement()) {
      connection.setAutoCommit(false);
      statement.execute(DocumentedSql.of("upgrading.md", "schema-1"));
      connection.commit();
    }
  }

  private void leasesAreKept() {
    assertThat(
            database.list(
                String.class,
                "select convert_from(payload, 'UTF8') || ' ' || lease_token"
                    + " || case when leased_at is null then '' else ' leased' end from outbox order by 1"))
        .containsExactly("fails 0", "held 40 leased", "left 3 leased", "retried 7", "waits 0");
  }

  private void deadLettersAreKept() {
    assertThat(
            database.list(
                String.class,
                "select outbox || ' ' || original_id || ' ' || lease_token || ' ' || coalesce(resolved_by, '-')"
                    + " || ' ' || coalesce(resolution, '-') from outbox_dlq order by original_id"))
        .containsExactly(
            "public.outbox 70 2147483648 - -",
            "public.outbox 71 2147483648 ops redriven as 90",
            "public.outbox 72 2147483648 ops redriven");
  }

  private void everythingIsDelivered() throws IOException {
    database.update("update outbox set lease_until = now() where lease_until > now()");
    database.one(Long.class, "select outbox_publish('orders', 'new', 'good')");
    assertThat(
            database.one(
                Long.class,
                DocumentedSql.of("dead-letters.md", "redrive")
                    .replace("id = 7", "original_id = 70")))
        .isEqualTo(70);
    assertThat(database.update("delete from outbox where id = 70 and lease_token = 2147483648"))
        .isEqualTo(1);
    Set<String> delivered = ConcurrentHashMap.newKeySet();
    OutboxSubscriber subscriber =
        OutboxSubscriber.builder("orders")
            .store(PostgresOutbox.on(database.pool(3), database.table()).store())
            .deadLetters(DeadLetterQueue.in("outbox_dlq"))
            .retry(RetryPolicy.none())
            .on(
                "good",
                (payload, delivery) -> {
                  delivered.add(payload.text());
                })
            .on(
                "bad",
                (Payload payload, Delivery delivery) -> {
                  throw new IllegalStateException("no");
                })
            .build();
    try (subscriber) {
      subscriber.start();
      await().untilAsserted(() -> assertThat(database.count("outbox")).isZero());
    }
    assertThat(delivered).containsExactlyInAnyOrder("waits", "retried", "held", "left", "new");
    assertThat(database.count("outbox_dlq where resolved_at is null")).isEqualTo(1);
    assertThat(
            database.one(
                Boolean.class,
                "select outbox = 'public.outbox' and lease_token = 1 and attempts_count = 1"
                    + " from outbox_dlq where payload = 'fails'"))
        .isTrue();
  }

  @Test
  void setsTheSequencesAfterACopyOfTheRows() throws IOException, SQLException {
    runTheScript();
    database.update("insert into outbox (id, queue, payload) values (5000, 'orders', 'copied')");

    database.one(Long.class, DocumentedSql.of("upgrading.md", "setval"));

    assertThat(database.one(Long.class, "select outbox_publish('orders', 'new')"))
        .isEqualTo(1_005_001);
    database.update(
        """
        insert into outbox_dlq (outbox, original_id, lease_token, queue, payload,
          deliveries_count, attempts_count, created_at, available_at, failure_reason)
        values ('public.outbox', 7000000, 1, 'orders', '', 1, 1, now(), now(), 'rejected')
        """);

    database.one(Long.class, DocumentedSql.of("upgrading.md", "setval"));

    assertThat(database.one(Long.class, "select outbox_publish('orders', 'new')"))
        .isEqualTo(8_000_001);
  }

  @Test
  void setsTheSequencesOfTriggersAfterACopyOfTheRows() throws IOException {
    LockMigrations.of("public", "outbox").migrate(database.plain());
    TimerMigrations.of("public", "outbox").migrate(database.plain());
    database.update(
        "insert into outbox_lock (application, name, token, held_until)"
            + " values ('a', 'l', 70, now())");
    database.update(
        "insert into outbox_timer_run (id, application, name, instant, cause, status)"
            + " values (80, 'a', 't', now(), 'scheduled', 'succeeded')");

    assertThat(database.one(Long.class, DocumentedSql.of("upgrading.md", "setval-locks")))
        .isEqualTo(1_000_070);
    assertThat(database.one(Long.class, DocumentedSql.of("upgrading.md", "setval-timers")))
        .isEqualTo(1_000_080);
    MonitorMigrations.of("public", "outbox").migrate(database.plain());
    database.update(
        "insert into outbox_monitor (application, id, type, execution, input)"
            + " values ('shop', 'a', 'watch', 7000000, 'null')");
    assertThat(database.one(Long.class, DocumentedSql.of("upgrading.md", "setval-monitors")))
        .isEqualTo(8_000_000L);
    sequencesOfPollersAreSet();
  }

  private void sequencesOfPollersAreSet() throws IOException {
    PollerMigrations.of("public", "outbox").migrate(database.plain());
    database.update(
        "insert into outbox_poller_history (id, application, name, verb, changed_by, reason,"
            + " version_before, version_after, position_before, position_after)"
            + " values (90, 'shop', 'p', 'PAUSE', 'ann', 'a test', 1, 2, '{}', '{}')");
    database.update(
        "insert into outbox_poller_quarantine (id, application, name, event_id, operation, source,"
            + " cursor_type, cursor_text, row_key, row_after, row_types, last_error)"
            + " values (91, 'shop', 'p', 'e', 'UPSERT', 's', 'bigint', '1', '{}', '{}', '{}', 'no')");

    assertThat(database.one(Long.class, DocumentedSql.of("upgrading.md", "setval-pollers")))
        .isEqualTo(1_000_090);
    assertThat(
            database.one(
                Long.class,
                "select nextval(pg_get_serial_sequence('public.outbox_poller_quarantine', 'id'))"))
        .isEqualTo(1_000_092);
  }
}
