package dev.outbox4j.poller;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.SingleConnection;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.postgresql.ds.PGSimpleDataSource;

/**
 * Cursors and keys of each type, with many rows of the same cursor: each version of a row is handed
 * over once, whatever the size of batches and the time zones of sessions.
 */
@ExtendWith(PostgresExtension.class)
class CursorTypesIT {
  private static final List<String> ZONES =
      List.of("UTC", "Pacific/Auckland", "America/St_Johns", "Asia/Kathmandu");
  private static final int ROWS = 1_200;

  private final TestDatabase database;
  private final PostgresOutbox outbox;

  CursorTypesIT(TestDatabase database) {
    this.database = database;
    this.outbox = PostgresOutbox.on(database.plain(), database.table());
  }

  private enum Type {
    BIGINT("bigint", "i", Cursor.sequence("c")),
    INTEGER("integer", "i", Cursor.sequence("c")),
    SMALLINT("smallint", "i", Cursor.sequence("c")),
    NUMERIC("numeric", "i / 8.0", Cursor.sequence("c")),
    TIMESTAMPTZ(
        "timestamptz",
        "timestamptz '2025-10-26T00:30:00Z' + make_interval(secs => i * 0.000001) + make_interval(mins => i)",
        Cursor.serverTime("c").margin(Duration.ofMillis(1))),
    TIMESTAMP(
        "timestamp",
        "timestamp '2025-03-30T01:59:59.999' + make_interval(secs => i * 0.000001)",
        ascending()),
    LOCAL_TIME(
        "timestamp",
        "timestamp '2025-03-30T01:59:59.999' + make_interval(secs => i * 0.000001)",
        Cursor.serverTime("c").in(ZoneOffset.ofHours(-3)).margin(Duration.ofMillis(1))),
    DATE("date", "date '2024-12-30' + i", ascending()),
    UUID("uuid", "lpad(to_hex(i * 3), 32, '0')::uuid", ascending()),
    TEXT("text collate \"C\"", "'Zoë ' || lpad(i::text, 6, '0')", ascending()),
    LINGUISTIC_TEXT(
        "text collate \"unicode_or_default\"",
        "(array['a', 'B', 'c', 'D', 'é'])[1 + i % 5] || lpad((i / 5)::text, 6, '0')",
        ascending()),
    VARCHAR("varchar(40)", "'v' || lpad(i::text, 6, '0')", ascending()),
    XID8("xid8", "(i + 1)::text::xid8", Cursor.transactionId("c"));

    /** Ticks are too short here to wait for long. */
    private static Cursor ascending() {
      return Cursor.ascending("c").margin(Duration.ofMillis(20));
    }

    private final String sql;
    private final String value;

    @SuppressWarnings("ImmutableEnumChecker") // it is, but has no annotation
    private final Cursor cursor;

    Type(String sql, String value, Cursor cursor) {
      this.sql = sql;
      this.value = value;
      this.cursor = cursor;
    }

    /** The rows of the greatest cursor wait for a greater one. */
    private boolean isAscending() {
      return cursor.kind() == Cursor.Kind.ASCENDING;
    }

    /** ICU if the server has it, else the database's own. */
    private String declared(TestDatabase database) {
      return sql.replace(
          "unicode_or_default",
          database
                  .list(
                      String.class,
                      "select collname::text from pg_collation where collname = 'en-x-icu'")
                  .isEmpty()
              ? "default"
              : "en-x-icu");
    }
  }

  @BeforeEach
  void setUp() {
    TestPollers.setUp(database);
  }

  /** So many rows, of which each cursor has up to 40, with keys of four types. */
  private void fill(Type type, int rows) {
    database.update("drop table if exists typed");
    database.update(
        """
        create table typed (c %s not null, k1 uuid not null, k2 text collate "C" not null,
          k3 timestamptz not null, k4 numeric not null, payload text,
          primary key (k1, k2, k3, k4))
        """
            .formatted(type.declared(database)));
    database.update("create index on typed (c, k1, k2, k3, k4)");
    database.update(
        """
        insert into typed
        select %s, md5(n::text)::uuid, 'k"' || n, timestamptz '2026-03-29T00:59:59.999999Z' + n * interval '1 h',
          n / 4.0, 'p'
        from (select n, (n / 40)::int as i from generate_series(0, %d - 1) n) s
        order by md5(n::text)
        """
            .formatted(type.value, rows));
    if (type == Type.XID8) {
      spendTransactionIds(rows / 40 + 1);
    }
  }

  /** A row is of a transaction that the server has had. */
  private void spendTransactionIds(int upTo) {
    database.update(
        "do $$ begin while pg_current_xact_id()::text::bigint <= %d loop commit; end loop; end $$"
            .formatted(upTo));
  }

  private PGSimpleDataSource inZone(int number) {
    PGSimpleDataSource source = database.plain();
    source.setOptions("-c TimeZone=" + ZONES.get(number % ZONES.size()));
    return source;
  }

  private Poller poller(Type type, int batch) {
    return Poller.of("typed", Source.table("typed"), type.cursor, Deletes.ignored())
        .batchSize(batch)
        .pollInterval(Duration.ofMillis(10));
  }

  /** Ticks, each time from sessions in other time zones. */
  private List<RowChange> drain(Type type, int batch, int expected) throws SQLException {
    List<RowChange> all = new ArrayList<>();
    for (int i = 0; i < 20 && all.size() < expected; i++) {
      try (Connection state = inZone(i).getConnection();
          Connection source = inZone(i + 1).getConnection()) {
        all.addAll(tick(type, batch, state, source));
      }
      PollerControl.of(outbox, "shop").retry("typed", TestPollers.ANN);
    }
    return all;
  }

  private List<RowChange> tick(Type type, int batch, Connection state, Connection source) {
    List<RowChange> found = new ArrayList<>();
    int most = batch == 1 ? 400 : batch == 7 ? 500 : 100_000;
    Pollers pollers =
        Pollers.builder(PostgresOutbox.on(new SingleConnection(state), database.table()), "shop")
            .source(new SingleConnection(source))
            .on(
                poller(type, batch),
                (rows, context) -> {
                  if (found.size() >= most) {
                    throw new IllegalStateException("that is enough for a tick");
                  }
                  found.addAll(rows);
                })
            .build();
    TickResult result = pollers.tick("typed");
    assertThat(result.failure().filter(step -> step != PollerFailure.HANDLER))
        .as(result.toString())
        .isEmpty();
    return found;
  }

  @ParameterizedTest
  @EnumSource(Type.class)
  void eachRowIsHandedOverOnceInEachBatchSizeAndTimeZone(Type type) throws Exception {
    fill(type, ROWS);
    int expected = type.isAscending() ? ROWS - ROWS % 40 - 40 : ROWS;
    Set<String> events = null;
    for (int batch : List.of(1, 7, 1_000)) {
      if (batch > 1) {
        PollerControl.of(outbox, "shop").reset("typed", TestPollers.ANN);
      }
      List<RowChange> all = drain(type, batch, expected);
      List<String> ids = all.stream().map(RowChange::eventId).toList();
      assertThat(ids).as(type + " in batches of " + batch).hasSize(expected);
      assertThat(new HashSet<>(ids)).hasSize(expected);
      if (events == null) {
        events = new HashSet<>(ids);
      }
      assertThat(new HashSet<>(ids)).isEqualTo(events);
    }
  }

  @Test
  @Tag("large")
  void aHundredThousandRowsAreHandedOverOnce() throws Exception {
    for (Type type : Type.values()) {
      TestPollers.setUp(database);
      fill(type, 100_000);
      int expected = type.isAscending() ? 100_000 - 40 : 100_000;
      List<RowChange> all = drain(type, 1_000, expected);
      assertThat(all).as(type.name()).hasSize(expected);
      assertThat(new HashSet<>(all.stream().map(RowChange::eventId).toList())).hasSize(expected);
    }
  }

  @Test
  void microsecondsCountAndTimesAreThoseOfTheRow() {
    database.update("drop table if exists typed");
    database.update("create table typed (c timestamptz not null, id int primary key)");
    database.update("create index on typed (c, id)");
    database.update(
        """
        insert into typed values ('2026-10-25T00:30:00.000001Z', 1),
          ('2026-10-25T00:30:00.000002Z', 2), ('2026-10-25T01:30:00.000001Z', 3),
          ('0044-03-15T00:00:00Z BC', 0)
        """);
    Pollers pollers =
        Pollers.builder(outbox, "shop")
            .source(inZone(2))
            .on(
                poller(Type.TIMESTAMPTZ, 1),
                (rows, context) ->
                    assertThat(context.after().value()).hasValue(rows.get(0).cursor()))
            .build();
    TickResult result = pollers.tick("typed");
    assertThat(result.failure()).as(result.toString()).isEmpty();
    assertThat(result.totalProcessed()).isEqualTo(4);
    assertThat(PollerControl.of(outbox, "shop").status("typed").orElseThrow().position().cursor())
        .hasValue("2026-10-25T01:30:00.000001Z");
  }
}
