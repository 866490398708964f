package dev.outbox4j.postgres;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.migrations.PauseMigrations;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.time.Duration;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.postgresql.ds.PGSimpleDataSource;

/** Pauses as rows: who may write them, and what they tell. */
@ExtendWith(PostgresExtension.class)
class QueuePausesIT {
  private static final OutboxTable TABLE = OutboxTable.named("outbox").inSchema("pausing");
  private static final PauseMigrations PAUSES = PauseMigrations.of("pausing", "outbox");

  private final TestDatabase database;
  private final String suffix = UUID.randomUUID().toString().substring(0, 8);
  private QueuePauses pauses;

  QueuePausesIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void fresh() {
    database.update("drop schema if exists pausing cascade");
    database.update(OutboxMigrations.of("pausing", "outbox").sql());
    PAUSES.migrate(database.plain());
    pauses = PostgresOutbox.on(database.plain(), TABLE).pauses();
  }

  @AfterEach
  void dropRoles() {
    for (String role : List.of("sub", "ops")) {
      String name = "\"" + role + suffix + "\"";
      if (database.one(Long.class, "select count(*) from pg_roles where rolname = ?", role + suffix)
          > 0) {
        database.update("drop owned by " + name);
        database.update("drop role " + name);
      }
    }
  }

  @Test
  void aPauseTellsWhoAndWhyAndStaysOnRecord() {
    Instant before = database.one(OffsetDateTime.class, "select now()").toInstant();
    assertThat(pauses.open()).isEmpty();
    assertThat(pauses.pause("orders", "ada", "the warehouse is down")).isTrue();
    assertThat(pauses.pause("orders", "grace", "me too")).isFalse();
    assertThat(pauses.pause("mail", "grace", "spam")).isTrue();

    assertThat(pauses.open()).extracting(QueuePause::queue).containsExactly("mail", "orders");
    QueuePause open = pauses.open().get(1);
    assertThat(open.pausedBy()).isEqualTo("ada");
    assertThat(open.reason()).hasValue("the warehouse is down");
    assertThat(open.pausedAt()).isBetween(before, before.plus(Duration.ofMinutes(1)));
    assertThat(open.lasts()).isTrue();

    assertThat(pauses.resume("orders", "grace")).isTrue();
    assertThat(pauses.resume("orders", "ada")).isFalse();
    assertThat(pauses.pause("orders", "ada", "again")).isTrue();

    List<QueuePause> history = pauses.history("orders", 10);
    assertThat(history)
        .extracting(QueuePause::reason)
        .containsExactly(Optional.of("again"), Optional.of("the warehouse is down"));
    assertThat(history.get(1).resumedBy()).hasValue("grace");
    assertThat(history.get(1).resumedAt())
        .hasValueSatisfying(at -> assertThat(at).isAfterOrEqualTo(open.pausedAt()));
    assertThat(history.get(1).lasts()).isFalse();
    assertThat(pauses.history("orders", 1)).hasSize(1);
  }

  @Test
  void ofManyWhoPauseAtOnceOneDoes() throws Exception {
    ExecutorService threads = Executors.newFixedThreadPool(8);
    try (HikariDataSource pool = database.pool(8)) {
      QueuePauses shared = PostgresOutbox.on(pool, TABLE).pauses();
      for (int round = 0; round < 10; round++) {
        List<Callable<Boolean>> calls = new ArrayList<>();
        for (int i = 0; i < 8; i++) {
          calls.add(() -> shared.pause("orders", "ada", "a race"));
        }
        int paused = 0;
        for (Future<Boolean> each : threads.invokeAll(calls)) {
          paused += each.get() ? 1 : 0;
        }
        assertThat(paused).isOne();
        assertThat(shared.resume("orders", "ada")).isTrue();
      }
    } finally {
      threads.shutdown();
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"", " ", "a\0b"})
  void refusesWordsThatSayNothing(String words) {
    assertThatThrownBy(() -> pauses.pause("orders", words, "why"))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("by is blank");
    assertThatThrownBy(() -> pauses.pause("orders", "ada", words))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("reason is blank");
    assertThatThrownBy(() -> pauses.resume("orders", words))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("by is blank");
    assertThatThrownBy(() -> pauses.pause(words, "ada", "why"))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> pauses.history("orders", 0))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("limit is 0");
    assertThat(pauses.open()).isEmpty();
  }

  @Test
  void theSubscriberReadsAndTheOperatorWrites() {
    for (String role : List.of("sub", "ops")) {
      database.update("create role \"%s%s\" login password 'secret'".formatted(role, suffix));
    }
    String sub = "sub" + suffix;
    String ops = "ops" + suffix;
    database.update(OutboxMigrations.of("pausing", "outbox").grantsSql(sub, sub, ops));
    assertThat(faults(sub, OutboxRole.SUBSCRIBER))
        .containsExactly(
            "grant on pausing.outbox_pauses: expected select for role %s, found none; to fix it: grant select on \"pausing\".\"outbox_pauses\" to \"%s\""
                .formatted(sub, sub));
    database.update(PAUSES.grantsSql(sub, ops));
    assertThat(faults(sub, OutboxRole.SUBSCRIBER)).isEmpty();
    assertThat(faults(ops, OutboxRole.OPERATOR)).isEmpty();

    QueuePauses operator = PostgresOutbox.on(as(ops), TABLE).pauses();
    assertThat(operator.pause("orders", "ada", "a try")).isTrue();
    QueuePauses subscriber = PostgresOutbox.on(as(sub), TABLE).pauses();
    assertThat(subscriber.open()).hasSize(1);
    assertThatThrownBy(() -> subscriber.pause("mail", "eve", "a try"))
        .isInstanceOf(OutboxStoreException.class)
        .hasMessageContaining("permission");
    assertThatThrownBy(() -> subscriber.resume("orders", "eve"))
        .isInstanceOf(OutboxStoreException.class)
        .hasMessageContaining("permission");
    assertThat(operator.resume("orders", "ada")).isTrue();
  }

  private List<String> faults(String role, OutboxRole as) {
    return PostgresOutbox.on(as(role), TABLE)
        .validator()
        .pauses()
        .checkGrants(as)
        .validateSchema()
        .faults()
        .stream()
        .map(SchemaFault::toString)
        .filter(fault -> fault.contains("pauses"))
        .toList();
  }

  private PGSimpleDataSource as(String role) {
    PGSimpleDataSource source = database.plain();
    source.setUser(role);
    source.setPassword("secret");
    return source;
  }

  @Test
  void theValidatorAsksForTheTableIfItIsTold() {
    SchemaValidator validator = PostgresOutbox.on(database.plain(), TABLE).validator();
    assertThat(validator.pauses().checkStorage().validateSchema()).hasToString("valid");

    database.update("drop index pausing.outbox_pauses_open_uq");
    database.update("alter table pausing.outbox_pauses alter paused_by drop default");
    assertThat(validator.pauses().validateSchema().faults())
        .extracting(SchemaFault::toString)
        .hasSize(2)
        .anyMatch(fault -> fault.contains("paused_by") && fault.contains("SESSION_USER"))
        .anyMatch(fault -> fault.contains("unique") && fault.contains("resumed_at IS NULL"));

    database.update("drop table pausing.outbox_pauses");
    assertThat(validator.pauses().validateSchema().faults())
        .extracting(SchemaFault::toString)
        .singleElement()
        .asString()
        .contains("the table of the pauses of queues");
    assertThat(validator.validateSchema()).as("if it is not told").hasToString("valid");
  }

  @Test
  void theMigrationIsAppliedOnceAndPrintsTheSame() {
    assertThat(PAUSES.migrate(database.plain())).isZero();
    database.update("drop table pausing.outbox_pauses");
    database.update(PAUSES.sql());
    assertThat(PostgresOutbox.on(database.plain(), TABLE).validator().pauses().validateSchema())
        .hasToString("valid");
  }
}
