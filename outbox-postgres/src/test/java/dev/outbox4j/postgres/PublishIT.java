package dev.outbox4j.postgres;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.Payload;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.OptionalLong;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

@ExtendWith(PostgresExtension.class)
class PublishIT {
  /** All but the id, and the instants that are taken from the clock. */
  private static final String ROW =
      """
      select row(queue, type, ordering_key, md5(payload), octet_length(payload), headers::text,
          case when headers ? 'exact' then available_at end, created_at <= available_at,
          lease_until, lease_token, leased_by, deliveries_count, attempts_count,
          first_attempt_at, last_attempt_at, last_error, timer_id)::text
      from outbox order by id
      """
          .replace(" ? ", " ?? ");

  private final TestDatabase database;

  PublishIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void empty() {
    database.update("truncate outbox");
  }

  private static List<OutboxMessage> allKinds(PublishShape shape) {
    byte[] large = new byte[1 << 20];
    new Random(1).nextBytes(large);
    StringBuilder everything = new StringBuilder();
    IntStream.rangeClosed(1, 0xFFFF)
        .filter(c -> !Character.isSurrogate((char) c))
        .forEach(everything::appendCodePoint);
    return List.of(
        OutboxMessage.to("orders").build(),
        OutboxMessage.to("orders")
            .type("order.placed")
            .orderingKey("customer \"7\" \\ {a,b} NULL 🐘")
            .header("exact", "")
            .header("quotes \" and ' and \\", "a\"b'c\\d\\\\e\n\t\b\f\r/")
            .header("unicode", "Zoë 🐘 \u2028\u2029 \u0001\u007f\u0085\ufffe")
            .header("all", everything.toString())
            .header("NULL", "NULL")
            .correlationId("c-1")
            .deliverAt(Instant.parse("2031-03-04T05:06:07.123456Z"))
            .body("Zoë 🐘")
            .build(),
        shape
            .timer(OutboxMessage.to("{\"q\",}\\").type("null"), "t 'x' \"y\" \\")
            .body(large)
            .build(),
        shape.timer(OutboxMessage.to("NULL").type("NULL"), "NULL").body(42).build(),
        OutboxMessage.to("late").deliverIn(Duration.ofDays(400)).body(Payload.ofText("x")).build(),
        OutboxMessage.to("past")
            .header("exact", "")
            .deliverAt(Instant.parse("1815-06-18T09:00:00Z"))
            .build(),
        OutboxMessage.to("text").contentType("text/csv").body("a,b").build());
  }

  @ParameterizedTest
  @EnumSource
  void writesTheSameRowsWhateverTheApi(PublishShape shape) {
    List<List<String>> rows = new ArrayList<>();
    for (PublishApi api : PublishApi.values()) {
      empty();
      List<Published> published =
          shape.publish(
              api,
              database,
              PostgresOutbox.publisher(database.table()).codec(new CountCodec("application/count")),
              allKinds(shape));
      assertThat(published).hasSize(7).noneMatch(Published::deduplicated);
      rows.add(database.list(String.class, ROW));
    }
    assertThat(rows.get(0)).hasSize(7);
    assertThat(rows).containsOnly(rows.get(0));
  }

  @ParameterizedTest
  @MethodSource("dev.outbox4j.postgres.PublishShape#ways")
  void storesWhatWasPublished(PublishApi api, PublishShape shape) {
    List<OutboxMessage> messages = allKinds(shape);
    List<Published> published =
        shape.publish(
            api,
            database,
            PostgresOutbox.publisher(database.table()).codec(new CountCodec("application/count")),
            messages);
    for (int i = 0; i < messages.size(); i++) {
      OutboxMessage message = messages.get(i);
      long id = published.get(i).rowId().orElseThrow();
      assertThat(column(String.class, "queue", id)).isEqualTo(message.queue());
      assertThat(column(String.class, "type", id)).isEqualTo(message.type().orElse(null));
      assertThat(column(String.class, "ordering_key", id))
          .isEqualTo(message.orderingKey().orElse(null));
      assertThat(column(String.class, "timer_id", id)).isEqualTo(message.timerId().orElse(null));
      for (String header : message.headers().keySet()) {
        assertThat(
                database.one(
                    String.class, "select headers->>? from outbox where id = ?", header, id))
            .isEqualTo(message.headers().get(header));
      }
      if (message.body() instanceof Payload payload) {
        assertThat(column(byte[].class, "payload", id)).isEqualTo(payload.bytes());
        assertThat(
                column(Integer.class, "(select count(*)::int from jsonb_object_keys(headers))", id))
            .isEqualTo(message.headers().size());
      }
    }
    assertThat(contentType(published.get(0))).isNull();
    assertThat(contentType(published.get(1))).isEqualTo("text/plain; charset=utf-8");
    assertThat(contentType(published.get(2))).isNull();
    assertThat(contentType(published.get(3))).isEqualTo("application/count");
    assertThat(contentType(published.get(6))).isEqualTo("text/csv");
    assertThat(utc(published.get(1))).isEqualTo("2031-03-04 05:06:07.123456");
    assertThat(utc(published.get(5))).isEqualTo("1815-06-18 09:00:00");
  }

  @ParameterizedTest
  @MethodSource("dev.outbox4j.postgres.PublishShape#ways")
  void addsTheDelayToTheTimeOfPublishing(PublishApi api, PublishShape shape) {
    List<Published> published =
        publish(
            api,
            shape,
            List.of(
                shape
                    .timer(OutboxMessage.to("q"), "delayed")
                    .deliverIn(Duration.ofDays(400))
                    .build(),
                OutboxMessage.to("q").deliverIn(Duration.ofDays(100_000_000)).build()));
    Published delayed = published.get(0);
    assertThat(
            column(
                Boolean.class,
                "available_at - created_at between interval '9600 hours' and interval '9600 hours 1 minute'",
                delayed.rowId().orElseThrow()))
        .isTrue();
    Published latest = published.get(1);
    assertThat(
            column(
                Boolean.class,
                "isfinite(available_at) and available_at > '200000-01-01'",
                latest.rowId().orElseThrow()))
        .isTrue();
  }

  @ParameterizedTest
  @MethodSource("dev.outbox4j.postgres.PublishShape#ways")
  void storesWhenMessagesExpire(PublishApi api, PublishShape shape) {
    List<Published> published =
        publish(
            api,
            shape,
            List.of(
                shape
                    .timer(OutboxMessage.to("q"), "expires")
                    .expiresAt(Instant.parse("2031-03-04T05:06:07.123456001Z"))
                    .build(),
                OutboxMessage.to("q").expiresIn(Duration.ofNanos(90_000_000_001L)).build(),
                OutboxMessage.to("q")
                    .deliverIn(Duration.ofDays(400))
                    .expiresIn(Duration.ofHours(1))
                    .build(),
                OutboxMessage.to("q")
                    .deliverAt(Instant.parse("2031-01-01T00:00:00Z"))
                    .expiresIn(Duration.ofHours(1))
                    .build(),
                OutboxMessage.to("q").build()));
    String inUtc = "(expires_at at time zone 'UTC')::text";
    String after =
        "expires_at - available_at between interval '%1$s' and interval '%1$s' + interval '1 s'";
    assertThat(column(String.class, inUtc, published.get(0).rowId().orElseThrow()))
        .isEqualTo("2031-03-04 05:06:07.123457");
    assertThat(
            column(
                Boolean.class,
                after.formatted("90.000001 s"),
                published.get(1).rowId().orElseThrow()))
        .isTrue();
    assertThat(
            column(Boolean.class, after.formatted("1 h"), published.get(2).rowId().orElseThrow()))
        .isTrue();
    assertThat(column(String.class, inUtc, published.get(3).rowId().orElseThrow()))
        .isEqualTo("2031-01-01 01:00:00");
    assertThat(column(String.class, inUtc, published.get(4).rowId().orElseThrow())).isNull();
  }

  @ParameterizedTest
  @MethodSource("dev.outbox4j.postgres.PublishShape#ways")
  void storesTheFirstAndTheLastInstantsThatPostgresKnows(PublishApi api, PublishShape shape) {
    List<Published> published =
        publish(
            api,
            shape,
            List.of(
                shape
                    .timer(OutboxMessage.to("q"), "first")
                    .deliverAt(Instant.parse("-4713-11-24T00:00:00Z"))
                    .build(),
                OutboxMessage.to("q")
                    .deliverAt(Instant.parse("+294276-12-31T23:59:59.999999Z"))
                    .build()));
    assertThat(utc(published.get(0))).isEqualTo("4714-11-24 00:00:00 BC");
    assertThat(utc(published.get(1))).isEqualTo("294276-12-31 23:59:59.999999");
  }

  @ParameterizedTest
  @EnumSource
  void storesNothingForWhatNoMessageHas(PublishApi api) {
    List<Published> published =
        api.publish(database, OutboxMessage.to("q").build(), OutboxMessage.to("q").build());
    assertThat(published)
        .allSatisfy(
            row ->
                assertThat(
                        column(
                            Boolean.class,
                            "type is null and ordering_key is null and timer_id is null"
                                + " and headers = '{}' and payload = ''"
                                + " and available_at between created_at and clock_timestamp()",
                            row.rowId().orElseThrow()))
                    .isTrue());
  }

  @ParameterizedTest
  @EnumSource
  void givesIdsInTheOrderOfTheMessages(PublishApi api) {
    List<Published> published =
        api.publish(
            database,
            PostgresOutbox.publisher(database.table()),
            IntStream.range(0, 10_000)
                .mapToObj(i -> OutboxMessage.to("q" + i % 3).type("n" + i).build())
                .toList());
    assertThat(published).hasSize(10_000);
    List<Long> ids = published.stream().map(p -> p.rowId().orElseThrow()).toList();
    assertThat(ids).isSorted().doesNotHaveDuplicates();
    assertThat(database.list(String.class, "select type from outbox order by available_at, id"))
        .isEqualTo(IntStream.range(0, 10_000).mapToObj(i -> "n" + i).toList());
    assertThat(database.list(Long.class, "select id from outbox order by id")).isEqualTo(ids);
  }

  @ParameterizedTest
  @EnumSource
  void givesIdsInTheOrderOfTheMessagesAmongWhichAreTimers(PublishApi api) {
    List<Published> published =
        api.publish(
            database,
            OutboxMessage.to("q").orderingKey("k").type("1").build(),
            OutboxMessage.to("q").orderingKey("k").type("2").timerId("a").build(),
            OutboxMessage.to("q").orderingKey("k").type("3").build(),
            OutboxMessage.to("q").type("4").timerId("b").build(),
            OutboxMessage.to("q").type("5").build());
    assertThat(published).extracting(p -> p.rowId().orElseThrow()).isSorted();
    assertThat(database.list(String.class, "select type from outbox order by id"))
        .containsExactly("1", "2", "3", "4", "5");
  }

  @ParameterizedTest
  @EnumSource
  void givesIdsInTheOrderOfEachOrderingKeyWhereTimerIdsComeInAnother(PublishApi api) {
    List<OutboxMessage> messages = new ArrayList<>();
    for (String order : List.of("o3", "o1", "o2")) {
      messages.add(OutboxMessage.to("q").orderingKey(order).type("placed").build());
      messages.add(OutboxMessage.to("q").orderingKey(order).type("due").timerId(order).build());
      messages.add(OutboxMessage.to("q").orderingKey(order).type("shown").build());
    }
    api.publish(database, messages.toArray(OutboxMessage[]::new));
    assertThat(
            database.list(
                String.class,
                "select string_agg(type, ' ' order by id) from outbox group by ordering_key"))
        .hasSize(3)
        .containsOnly("placed due shown");
  }

  @ParameterizedTest
  @EnumSource
  void refusesTwoTimerIdsOfOneOrderingKeyBeforeAnyStatement(PublishApi api) {
    OutboxMessage.Builder first = OutboxMessage.to("q").type("one").orderingKey("k").timerId("a");
    OutboxMessage.Builder second = OutboxMessage.to("q").type("two").orderingKey("k").timerId("b");
    assertThatThrownBy(() -> api.publish(database, first.build(), second.build()))
        .isInstanceOf(OutboxException.class)
        .hasMessage(
            "OutboxMessage[queue=q, type=one] and OutboxMessage[queue=q, type=two] of one call have the same ordering key and different timer ids; rows with timer ids are inserted in the order of these, lest two transactions wait for each other, so the two might get row ids against the order of the call; publish them in a call each, or give them no common ordering key");
    assertThat(database.count("outbox")).isZero();
    api.publish(database, first.build(), second.orderingKey("other").build());
    api.publish(
        database, first.build(), OutboxMessage.to("r").orderingKey("k").timerId("b").build());
  }

  @ParameterizedTest
  @EnumSource
  void publishesNothingForNoMessages(PublishApi api) {
    assertThat(api.publish(database)).isEmpty();
    assertThat(database.count("outbox")).isZero();
  }

  @ParameterizedTest
  @EnumSource
  void keepsOneLiveRowForATimerId(PublishApi api) {
    OutboxMessage timer = OutboxMessage.to("q").timerId("t").type("first").build();
    OutboxMessage again = OutboxMessage.to("q").timerId("t").type("again").build();
    OutboxMessage elsewhere = OutboxMessage.to("r").timerId("t").type("elsewhere").build();
    OutboxMessage plain = OutboxMessage.to("q").type("plain").build();
    List<Published> published = api.publish(database, plain, timer, again, elsewhere, plain);
    assertThat(published.stream().map(Published::deduplicated))
        .containsExactly(false, false, true, false, false);
    assertThat(api.publish(database, again, elsewhere, plain).stream().map(Published::deduplicated))
        .containsExactly(true, true, false);
    assertThat(column(String.class, "type", published.get(1).rowId().orElseThrow()))
        .isEqualTo("first");
    assertThat(database.list(String.class, "select type from outbox order by type"))
        .containsExactly("elsewhere", "first", "plain", "plain", "plain");

    database.update("delete from outbox where timer_id = 't' and queue = 'q'");
    assertThat(api.publish(database, again).get(0).deduplicated()).isFalse();
  }

  @ParameterizedTest
  @EnumSource
  void cancelsATimerUnlessItIsLeased(PublishApi api) {
    api.publish(
        database,
        OutboxMessage.to("q").timerId("t").build(),
        OutboxMessage.to("r").timerId("t").build(),
        OutboxMessage.to("q").build());
    assertThat(api.cancel(database, database.table(), "q", "other")).isFalse();
    database.update("update outbox set lease_until = now() + interval '1 minute'");
    assertThat(api.cancel(database, database.table(), "q", "t")).isFalse();
    assertThat(database.count("outbox")).isEqualTo(3);
    database.update("update outbox set lease_until = now() - interval '1 second'");
    assertThat(api.cancel(database, database.table(), "q", "t")).isTrue();
    assertThat(api.cancel(database, database.table(), "q", "t")).isFalse();
    database.update("update outbox set lease_until = null");
    assertThat(api.cancel(database, database.table(), "r", "t")).isTrue();
    assertThat(database.count("outbox")).isEqualTo(1);
    assertThatThrownBy(() -> api.cancel(database, database.table(), "", "t"))
        .hasStackTraceContaining("queue is blank");
    assertThatThrownBy(() -> api.cancel(database, database.table(), "q", "a\0"))
        .hasStackTraceContaining("timerId has a NUL character");
  }

  @ParameterizedTest
  @EnumSource
  void worksInAnotherSchemaWithAnOddName(PublishApi api) {
    OutboxTable odd = OutboxTable.named("Odd name-1").inSchema("Other schéma");
    database.update("drop schema if exists \"Other schéma\" cascade");
    database.update("create schema \"Other schéma\"");
    dev.outbox4j.migrations.OutboxMigrations.of("Other schéma", "Odd name-1")
        .migrate(database.plain());
    List<Published> published =
        api.publish(
            database,
            PostgresOutbox.publisher(odd).notify(NotifyMode.ALWAYS),
            List.of(OutboxMessage.to("q").timerId("t").build()));
    assertThat(published).containsExactly(new Published(OptionalLong.of(1)));
    assertThat(api.cancel(database, odd, "q", "t")).isTrue();
  }

  @ParameterizedTest
  @EnumSource
  void saysThatTheTableIsMissing(PublishApi api) {
    OutboxTable missing = OutboxTable.named("missing");
    assertSetup(
        () ->
            api.publish(
                database,
                PostgresOutbox.publisher(missing),
                List.of(OutboxMessage.to("q").build())),
        "publish on missing failed",
        "run the migrations");
    assertSetup(
        () -> api.cancel(database, missing, "q", "t"),
        "cancelTimer on missing failed",
        "run the migrations");
    assertSetup(
        () -> api.cancel(database, missing.inSchema("nowhere"), "q", "t"),
        "cancelTimer on nowhere.missing failed",
        "run the migrations");
  }

  @ParameterizedTest
  @EnumSource
  void refusesWhatCannotBeEncodedBeforeAnyStatement(PublishApi api) {
    assertThatThrownBy(() -> api.publish(database, OutboxMessage.to("q").body(42).build()))
        .isInstanceOf(OutboxException.class)
        .hasMessageContaining("needs a codec and the publisher has none");
    assertThatThrownBy(
            () ->
                api.publish(
                    database,
                    OutboxMessage.to("q").build(),
                    OutboxMessage.to("q").deliverAt(Instant.MAX).build()))
        .isInstanceOf(OutboxException.class)
        .hasMessageContaining("PostgreSQL stores instants from");
    assertThat(database.count("outbox")).isZero();
  }

  @ParameterizedTest
  @EnumSource
  void blamesTheRowForTheTablesOwnConstraintsWithoutQuotingIt(PublishApi api) {
    database.update("alter table outbox add constraint short check (octet_length(payload) < 3)");
    try {
      assertThatThrownBy(() -> api.publish(database, OutboxMessage.to("q").body("secret").build()))
          .isInstanceOfSatisfying(
              OutboxStoreException.class,
              e -> assertThat(e.fault()).isEqualTo(OutboxStoreException.Fault.ROW))
          .hasMessageContaining(
              api == PublishApi.R2DBC
                  ? "[23514" // only pgjdbc's words are passed on
                  : "violates check constraint \"short\"")
          .hasMessageContaining("[23514")
          .hasMessageNotContaining("secret")
          .hasMessageNotContaining("736563726574");
    } finally {
      database.update("alter table outbox drop constraint short");
    }
  }

  private List<Published> publish(
      PublishApi api, PublishShape shape, List<OutboxMessage> messages) {
    return shape.publish(api, database, PostgresOutbox.publisher(database.table()), messages);
  }

  private static void assertSetup(Runnable work, String... parts) {
    assertThatThrownBy(work::run)
        .isInstanceOfSatisfying(
            OutboxStoreException.class,
            e -> {
              assertThat(e.fault()).isEqualTo(OutboxStoreException.Fault.SETUP);
              assertThat(e.outcomeUnknown()).isFalse();
            })
        .satisfies(e -> Arrays.stream(parts).forEach(p -> assertThat(e).hasMessageContaining(p)));
  }

  private String contentType(Published published) {
    return column(String.class, "headers->>'content-type'", published.rowId().orElseThrow());
  }

  private String utc(Published published) {
    return column(
        String.class, "(available_at at time zone 'UTC')::text", published.rowId().orElseThrow());
  }

  private <T> T column(Class<T> type, String expression, long id) {
    return database.one(type, "select " + expression + " from outbox where id = ?", id);
  }
}
