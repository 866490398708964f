package dev.outbox4j.monitor;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.RetryPolicy;
import dev.outbox4j.migrations.MonitorMigrations;
import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.notify.pgjdbc.PgjdbcListen;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.time.Duration;
import java.time.Instant;
import java.util.UUID;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.extension.ExtendWith;
import org.postgresql.ds.PGSimpleDataSource;

/**
 * Monitors in a database that is others' as well: in schemas and tables of other names, by a role
 * with the grants that they need and no others, beside another application.
 */
@ExtendWith(PostgresExtension.class)
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class SharedMonitorsIT {
  private static final Duration SOON = Duration.ofMinutes(1);
  private static final MonitorType<Json> WATCH =
      MonitorType.of("watch").every(Duration.ofHours(1)).retry(RetryPolicy.none());
  private static final OutboxTable MINE = OutboxTable.named("my jobs").inSchema("box");
  private static final OutboxTable OTHERS = OutboxTable.named("my jobs").inSchema("other");

  private final TestDatabase database;
  private final String role = "watcher " + UUID.randomUUID().toString().substring(0, 8);

  SharedMonitorsIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeAll
  void grant() {
    database.update("create role \"%s\" login password 'secret'".formatted(role));
    for (String schema : new String[] {"box", "other"}) {
      OutboxMigrations outbox = OutboxMigrations.of(schema, "my jobs");
      MonitorMigrations monitors = MonitorMigrations.of(schema, "my jobs");
      outbox.migrate(database.plain());
      monitors.migrate(database.plain());
      database.update(outbox.grantsSql(role, role, role));
      database.update(monitors.grantsSql(role));
    }
  }

  @AfterAll
  void revoke() {
    database.update("drop owned by \"%s\"".formatted(role));
    database.update("drop role \"%s\"".formatted(role));
  }

  @BeforeEach
  void empty() {
    for (String schema : new String[] {"box", "other"}) {
      database.update(
          "truncate %1$s.\"my jobs\", %1$s.\"my jobs_dlq\", %1$s.\"my jobs_monitor\", %1$s.\"my jobs_monitor_event\""
              .formatted(schema));
    }
  }

  @Test
  void aNodeWhoseChecksCannotBeginIsNotHealthy() {
    String table = "box.\"my jobs_monitor\"";
    database.update("revoke update on %s from \"%s\"".formatted(table, role));
    try (Monitors monitors = start(MINE, "shop")) {
      MonitorControl control = MonitorControl.of(PostgresOutbox.on(database.plain(), MINE), "shop");
      control.start(WATCH, "x", Json.NULL);
      await().atMost(SOON).until(() -> monitors.health().failing());
      assertThat(monitors.health().lastFailure())
          .hasValueSatisfying(
              failure -> assertThat(failure).contains("start of a monitor", "42501"));

      database.update("grant update on %s to \"%s\"".formatted(table, role));
      await().atMost(SOON).until(() -> monitors.health().healthy());
      control.raiseEvent("x", "end", Json.NULL);
      await()
          .atMost(SOON)
          .until(() -> control.get("x").orElseThrow().status() == MonitorStatus.COMPLETED);
    } finally {
      database.update("grant update on %s to \"%s\"".formatted(table, role));
    }
  }

  private PGSimpleDataSource as() {
    PGSimpleDataSource source = database.plain();
    source.setUser(role);
    source.setPassword("secret");
    return source;
  }

  private MonitorControl control(OutboxTable table, String application) {
    return MonitorControl.of(PostgresOutbox.on(as(), table), application);
  }

  private Monitors start(OutboxTable table, String application) {
    Monitors monitors =
        Monitors.builder(PostgresOutbox.on(as(), table), application)
            .listen(PgjdbcListen.on(as()))
            .on(
                WATCH,
                call -> {
                  if (call.events("break").isEmpty()) {
                    return call.events("end").isEmpty()
                        ? MonitorResult.again().orOn("end", "break")
                        : MonitorResult.done(
                            Json.of("1"), OutboxMessage.to("alerts").body(application).build());
                  }
                  throw new IllegalStateException("broken");
                })
            .build();
    monitors.start();
    return monitors;
  }

  private static void awaitStatus(MonitorControl control, String id, MonitorStatus status) {
    await()
        .atMost(SOON)
        .untilAsserted(
            () -> assertThat(control.get(id).map(MonitorInstance::status)).contains(status));
  }

  private static void awaitChecked(MonitorControl control, String id) {
    await().atMost(SOON).until(() -> control.get(id).orElseThrow().iterations() > 0);
  }

  @Test
  void aRoleWithTheGrantsOfMonitorsDoesAllThatMonitorsDo() {
    MonitorControl control = control(MINE, "shop");
    try (Monitors monitors = start(MINE, "shop")) {
      await().atMost(SOON).until(() -> monitors.health().healthy());
      control.start(WATCH, "x", Json.NULL);
      awaitChecked(control, "x");
      assertThat(control.suspend("x", "reason")).isEqualTo(MonitorAnswer.DONE);
      assertThat(control.resume("x", "reason")).isEqualTo(MonitorAnswer.DONE);
      assertThat(control.wake("x")).isEqualTo(MonitorAnswer.DONE);
      assertThat(control.raiseEvent("x", "end", Json.NULL)).isEqualTo(MonitorAnswer.DONE);
      awaitStatus(control, "x", MonitorStatus.COMPLETED);
      assertThat(control.restart("x", "reason")).isEqualTo(MonitorAnswer.DONE);
      awaitChecked(control, "x");
      control.raiseEvent("x", "break", Json.NULL);
      awaitStatus(control, "x", MonitorStatus.FAILED);
      control.start(WATCH, "y", Json.NULL);
      assertThat(control.terminate("y", "reason")).isEqualTo(MonitorAnswer.DONE);
      assertThat(control.history("x", 10)).isNotEmpty();
      assertThat(control.alerts()).hasSize(1);
      assertThat(control.query(MonitorQuery.all()).instances()).hasSize(2);
      assertThat(control.purge("y")).isEqualTo(MonitorAnswer.DONE);
      assertThat(control.purge(MonitorQuery.all().createdFrom(Instant.EPOCH))).isEqualTo(1);
    }
    control.start(WATCH, "poison", Json.NULL);
    database.update("update box.\"my jobs\" set deliveries_count = 1000 where type is not null");
    try (Monitors monitors = start(MINE, "shop")) {
      awaitStatus(control, "poison", MonitorStatus.FAILED);
      assertThat(monitors.health().subscriber().healthy()).isTrue();
    }
  }

  @Test
  void applicationsAndOutboxesHaveNothingToDoWithEachOther() {
    MonitorControl shop = control(MINE, "shop");
    MonitorControl bank = control(MINE, "bank");
    MonitorControl other = control(OTHERS, "shop");
    shop.start(WATCH, "same", Json.NULL);
    bank.start(WATCH, "same", Json.NULL);
    other.start(WATCH, "same", Json.NULL);
    assertThat(shop.terminate("same", "reason")).isEqualTo(MonitorAnswer.DONE);
    assertThat(bank.raiseEvent("same", "end", Json.NULL)).isEqualTo(MonitorAnswer.DONE);
    try (Monitors ofBank = start(MINE, "bank")) {
      awaitStatus(bank, "same", MonitorStatus.COMPLETED);
      assertThat(ofBank.health().application()).isEqualTo("bank");
    }
    awaitStatus(shop, "same", MonitorStatus.TERMINATED);
    awaitStatus(other, "same", MonitorStatus.PENDING);
    assertThat(other.counts().get(MonitorStatus.PENDING)).isEqualTo(1);
    assertThat(bank.counts().get(MonitorStatus.TERMINATED)).isZero();
    assertThat(other.history("same", 10)).hasSize(1);
  }
}
