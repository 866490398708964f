package dev.outbox4j.postgres;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.ClaimRequest;
import dev.outbox4j.spi.ClaimRequest.Idle;
import dev.outbox4j.spi.ClaimedRow;
import dev.outbox4j.spi.LeaseRef;
import dev.outbox4j.spi.RescheduleUpdate;
import dev.outbox4j.spi.RetryUpdate;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Hostile values come back as they went, and names that could leave their quotes are refused,
 * through all that publishes, stores, counts and validates. The table's own name is as odd as is
 * allowed.
 */
@ExtendWith(PostgresExtension.class)
@Tag("once")
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class PublishInjectionIT {
  private static final OutboxTable TABLE =
      OutboxTable.named("Drop Table -- Ünï").inSchema("select -- Schemä");

  private static final String LONGEST = "'\"\\;--$$".repeat(31) + "ü".repeat(3) + "x";

  /** Each as queue, type, key, timer id, header and body; unique, since tests share the table. */
  static final List<String> HOSTILE =
      List.of(
          "'; drop table outbox; --",
          "\"; drop table outbox; --",
          "$$; drop table outbox; $$",
          "\\'; drop table outbox; --",
          "\\",
          "'",
          "\"",
          "{\"a\",NULL}",
          "{}",
          "NULL",
          "(1,2)",
          "?",
          "$1 $2",
          "{0} {table} {channel}",
          "${outbox_table}",
          "%s %n",
          "{d '2020-01-01'}",
          "{call x()}",
          "/* */ ; --",
          "\\x41",
          "E'\\n'",
          "a\tb\r\nc\u0001\u007f\u0085\u2028",
          "\u202egnirts \ufeff\u200b",
          "🐘 ﷽ e\u0301",
          "<script>alert(1)</script>",
          "=cmd|' /C calc'!A0",
          LONGEST);

  private static final List<String> BAD_NAMES =
      List.of(
          "",
          " ",
          "a\"b",
          "a'b",
          "a;b",
          "a.b",
          "$$",
          "a\\b",
          "a\0b",
          "a\nb",
          "a{0}",
          "a?",
          "(a)",
          "a/*b*/",
          "a%b",
          "\"outbox\"",
          "o".repeat(64),
          "ü".repeat(32));

  private final TestDatabase database;

  PublishInjectionIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeAll
  void migrate() {
    OutboxMigrations.of("select -- Schemä", "Drop Table -- Ünï")
        .deadLetters("Deäd -- or", "table--")
        .migrate(database.plain());
  }

  @AfterEach
  void stillThere() {
    assertThat(database.count("outbox")).isZero();
    assertThat(database.count("outbox_dlq")).isZero();
  }

  private static List<String> hostile() {
    return HOSTILE;
  }

  @ParameterizedTest
  @MethodSource("dev.outbox4j.postgres.PublishShape#ways")
  void valuesComeBackAsTheyWent(PublishApi api, PublishShape shape) {
    boolean timed = shape == PublishShape.TIMERS;
    String suffix = api.name();
    List<OutboxMessage> messages = new ArrayList<>();
    for (String value : HOSTILE) {
      messages.add(
          shape
              .timer(OutboxMessage.to(value), value)
              .type(value)
              .orderingKey(value)
              .header(value, value)
              .correlationId(value)
              .contentType(value)
              .body(value + suffix)
              .build());
    }
    NotifyMode[] modes = NotifyMode.values();
    for (NotifyMode mode : modes) {
      assertThat(
              shape.publish(api, database, PostgresOutbox.publisher(TABLE).notify(mode), messages))
          .allMatch(each -> each.rowId().isPresent() == (!timed || mode == NotifyMode.AUTO));
    }
    PostgresStore store = PostgresOutbox.on(database.plain(), TABLE).store();
    for (String value : HOSTILE) {
      List<ClaimedRow> rows =
          store.claim(claim(value, value, Idle.awake(Duration.ofSeconds(1)))).rows();
      assertThat(rows).hasSize(timed ? 1 : modes.length);
      for (ClaimedRow row : rows) {
        assertThat(row.lease().queue()).isEqualTo(value);
        assertThat(row.message().type()).isEqualTo(value);
        assertThat(row.message().orderingKey()).isEqualTo(value);
        assertThat(row.message().timerId()).isEqualTo(timed ? value : null);
        assertThat(text(row)).isEqualTo(value + suffix);
        assertThat(row.message().headers())
            .containsExactlyInAnyOrderEntriesOf(
                Map.of(
                    value,
                    value,
                    OutboxMessage.CORRELATION_ID,
                    value,
                    OutboxMessage.CONTENT_TYPE,
                    value));
      }
      List<LeaseRef> leases = rows.stream().map(ClaimedRow::lease).toList();
      if (timed) {
        assertThat(store.release(leases).done()).hasSize(1);
        assertThat(api.cancel(database, TABLE, value, value)).isTrue();
      } else {
        assertThat(store.ack(leases).done()).hasSize(modes.length);
      }
    }
    assertThat(database.count("\"select -- Schemä\".\"Drop Table -- Ünï\"")).isZero();
  }

  @ParameterizedTest
  @MethodSource("hostile")
  void theStoreBindsThemToo(String value) {
    PublishApi.JDBC.publish(
        database,
        PostgresOutbox.publisher(TABLE),
        List.of(OutboxMessage.to(value).body("one").build()));
    PostgresStore store = PostgresOutbox.on(database.plain(), TABLE).store();
    store.claim(claim("other", value, Idle.sleep(Duration.ofSeconds(1), null)));
    LeaseRef lease = lease(store, value);
    assertThat(store.renew(List.of(lease), Duration.ofSeconds(30)).done()).hasSize(1);
    assertThat(store.retry(List.of(new RetryUpdate(lease, Duration.ZERO, value))).done())
        .hasSize(1);
    assertThat(
            database.one(
                String.class,
                "select last_error from \"select -- Schemä\".\"Drop Table -- Ünï\" where queue = ?",
                value))
        .isEqualTo(value);
    LeaseRef again = lease(store, value);
    assertThat(store.reschedule(List.of(new RescheduleUpdate(again, Duration.ZERO))).done())
        .hasSize(1);
    assertThat(PostgresOutbox.on(database.plain(), TABLE).depths(List.of(value, "other")))
        .extracting(QueueDepth::queue, QueueDepth::ready)
        .containsExactly(
            org.assertj.core.groups.Tuple.tuple(value, 1L),
            org.assertj.core.groups.Tuple.tuple("other", 0L));
    assertThat(store.ack(List.of(lease(store, value))).done()).hasSize(1);
    store.forget(value);
    assertThat(database.count("\"select -- Schemä\".\"Drop Table -- Ünï_sleepers\"")).isZero();
  }

  @Test
  void theFunctionBindsThemToo() {
    for (String value : HOSTILE) {
      database.one(
          Long.class,
          """
          select "select -- Schemä"."Drop Table -- Ünï_publish"(queue => $1, payload => convert_to($1, 'UTF8'),
            type => $1, headers => jsonb_build_object($1, $1), ordering_key => $1, timer_id => $1)
          """
              .replace("$1", "?::text"),
          value,
          value,
          value,
          value,
          value,
          value,
          value);
      PostgresStore store = PostgresOutbox.on(database.plain(), TABLE).store();
      ClaimedRow row =
          store.claim(claim(value, value, Idle.awake(Duration.ofSeconds(1)))).rows().get(0);
      assertThat(row.message().type()).isEqualTo(value);
      assertThat(text(row)).isEqualTo(value);
      assertThat(row.message().headers()).containsExactly(Map.entry(value, value));
      store.ack(List.of(row.lease()));
    }
  }

  private static String text(ClaimedRow row) {
    return new String(row.message().payload().bytes(), StandardCharsets.UTF_8);
  }

  private static LeaseRef lease(PostgresStore store, String queue) {
    return store
        .claim(claim(queue, queue, Idle.awake(Duration.ofSeconds(1))))
        .rows()
        .get(0)
        .lease();
  }

  @Test
  void namesThatCouldLeaveTheirQuotesAreRefusedEverywhere() {
    for (String bad : BAD_NAMES) {
      SchemaValidator validator = PostgresOutbox.on(database.plain(), TABLE).validator();
      for (org.assertj.core.api.ThrowableAssert.ThrowingCallable entry :
          List.<org.assertj.core.api.ThrowableAssert.ThrowingCallable>of(
              () -> OutboxTable.named(bad),
              () -> OutboxTable.named("outbox").inSchema(bad),
              () -> OutboxTable.requireIdentifier("name", bad),
              () -> validator.deadLetters(bad),
              () -> validator.deadLetters(bad, "outbox_dlq"),
              () -> validator.deadLetters("public", bad),
              () -> OutboxMigrations.of("public", bad),
              () -> OutboxMigrations.of(bad, "outbox"),
              () -> OutboxMigrations.standard().deadLetters("public", bad),
              () -> OutboxMigrations.standard().deadLetters(bad, "outbox_dlq"))) {
        assertThatIllegalArgumentException().describedAs(bad).isThrownBy(entry);
      }
    }
  }

  @Test
  void whatPostgresCannotStoreIsRefusedBeforeItIsSent() {
    for (String bad : List.of("a\0b", "\ud83d", "\udc18x", "")) {
      OutboxMessage.Builder message = OutboxMessage.to("q");
      assertThatIllegalArgumentException().isThrownBy(() -> OutboxMessage.to(bad));
      assertThatIllegalArgumentException().isThrownBy(() -> message.type(bad));
      assertThatIllegalArgumentException().isThrownBy(() -> message.orderingKey(bad));
      assertThatIllegalArgumentException().isThrownBy(() -> message.timerId(bad));
      assertThatIllegalArgumentException().isThrownBy(() -> message.header(bad, "v"));
      if (!bad.isEmpty()) {
        assertThatIllegalArgumentException().isThrownBy(() -> message.header("h", bad));
        assertThatIllegalArgumentException().isThrownBy(() -> message.contentType(bad));
      }
    }
    assertThat(LONGEST.getBytes(StandardCharsets.UTF_8)).hasSize(255);
    assertThatIllegalArgumentException().isThrownBy(() -> OutboxMessage.to(LONGEST + "x"));
  }

  @Test
  void aQueueThatCannotBeStoredIsAnErrorOfTheRowAndNothingElse() {
    PostgresStore store = PostgresOutbox.on(database.plain(), TABLE).store();
    assertThatThrownBy(() -> store.claim(claim("a\0b", "s", Idle.UNCHANGED)))
        .isInstanceOfSatisfying(
            OutboxStoreException.class,
            e -> assertThat(e.fault()).isEqualTo(OutboxStoreException.Fault.ROW));
    assertThatThrownBy(() -> PostgresOutbox.on(database.plain(), TABLE).depths(List.of("a\0b")))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("NUL");
  }

  @Test
  void theValidatorQuotesWhatItFinds() {
    assertThat(
            PostgresOutbox.on(database.plain(), TABLE)
                .validator()
                .deadLetters("Deäd -- or", "table--")
                .checkStorage()
                .checkGrants(OutboxRole.PUBLISHER, OutboxRole.values())
                .checkPublishFunction()
                .validateSchema())
        .hasToString("valid");
    String role = "r\"; drop table outbox; -- ü " + UUID.randomUUID().toString().substring(0, 8);
    String quoted = '"' + role.replace("\"", "\"\"") + '"';
    database.update("create role " + quoted + " login password 'secret'");
    try {
      database.update(
          OutboxMigrations.of("select -- Schemä", "Drop Table -- Ünï")
              .deadLetters("Deäd -- or", "table--")
              .grantsSql(role, role, role));
      var source = database.plain();
      source.setUser(role);
      source.setPassword("secret");
      SchemaValidator validator =
          PostgresOutbox.on(source, TABLE)
              .validator()
              .deadLetters("Deäd -- or", "table--")
              .checkGrants(OutboxRole.PUBLISHER, OutboxRole.values());
      assertThat(validator.validateSchema()).hasToString("valid");
      database.update("revoke delete on \"Deäd -- or\".\"table--\" from " + quoted);
      List<SchemaFault> faults = validator.validateSchema().faults();
      assertThat(faults).hasSize(1);
      database.update(faults.get(0).remedy());
      assertThat(validator.validateSchema()).hasToString("valid");
    } finally {
      database.update("drop owned by " + quoted);
      database.update("drop role " + quoted);
    }
  }

  private static ClaimRequest claim(String queue, String owner, Idle idle) {
    return new ClaimRequest(
        queue, ClaimRequest.Range.ALL, 10, 1 << 20, Duration.ofSeconds(30), owner, idle, null);
  }
}
