package dev.outbox4j.poller;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.SingleConnection;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Cursors and keys of each type, with many rows of the same cursor: each version of a row is handed
 * over once, whatever the size of batches and the time zones of sessions.
 */
@ExtendWith(PostgresExtension.class)
class CursorTypesIT {
  private static final List<String> ZONES =
      List.of("UTC", "Pacific/Auckland", "America/St_Johns", "Asia/Kathmandu");

  /** No multiple of a size of batches, so that these end among rows of the same cursor. */
  private static final int SAME = 37;

  /** More of the same cursor than the largest batch, where there are so many rows. */
  private static final int FIRST_OF_MANY = 100 * SAME;

  private static final int MANY = 3_000;

  private static final int AT_SIZE = 100_000;

  /** The file in which a run of that size is recorded. */
  private static final String REPORT = "outbox.test.cursors";

  /** By how much the number is greater that an update makes a cursor of. */
  private static final int LATER = 5_000;

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
        """
        case when i < 5000
          then (array['a', 'B', 'c', 'D', 'é'])[1 + i % 5] || lpad((i / 5)::text, 6, '0')
          else 'ź' || lpad(i::text, 6, '0') end
        """,
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

  /** What was handed over: the ids of the events, and of each the row's number and revision. */
  private record Handed(List<String> events, List<String> versions) {
    Handed() {
      this(new ArrayList<>(), new ArrayList<>());
    }

    void add(List<RowChange> rows) {
      for (RowChange row : rows) {
        events.add(row.eventId());
        versions.add(row.get("n", Integer.class) + "." + row.get("revision", Integer.class));
      }
    }

    void add(Handed more) {
      events.addAll(more.events);
      versions.addAll(more.versions);
    }

    int size() {
      return versions.size();
    }

    Map<String, String> byVersion() {
      Map<String, String> found = new HashMap<>();
      for (int i = 0; i < versions.size(); i++) {
        found.put(versions.get(i), events.get(i));
      }
      return found;
    }
  }

  @BeforeEach
  void setUp() {
    TestPollers.setUp(database);
  }

  /** Which number the cursor of a row is made of. */
  private static String number() {
    return "(case when n between %1$d and %2$d then %1$d else n end / %3$d)"
        .formatted(FIRST_OF_MANY, FIRST_OF_MANY + MANY - 1, SAME);
  }

  /** So many rows, with keys of four types. */
  private void fill(Type type, int rows) {
    database.update("drop table if exists typed");
    database.update(
        """
        create table typed (c %s not null, k1 uuid not null, k2 text collate "C" not null,
          k3 timestamptz not null, k4 numeric not null, n int not null,
          revision int not null default 1, primary key (k1, k2, k3, k4))
        """
            .formatted(type.declared(database)));
    database.update("create index on typed (c, k1, k2, k3, k4)");
    database.update(
        """
        insert into typed
        select %s, md5(n::text)::uuid, 'k"' || n, timestamptz '2026-03-29T00:59:59.999999Z' + n * interval '1 h',
          n / 4.0, n
        from (select n, %s as i from generate_series(0, %d - 1) n) s
        order by md5(n::text)
        """
            .formatted(type.value, number(), rows));
    database.update("analyze typed");
    if (type == Type.XID8) {
      spendTransactionIds(rows / SAME + 1 + LATER);
    }
  }

  /** Gives half of the rows a cursor that is greater than all others. */
  private void updateHalf(Type type) {
    database.update(
        """
        update typed t
        set c = %s, revision = 2
        from (select n, %s + %d as i from typed) s
        where s.n = t.n and t.n %% 2 = 0
        """
            .formatted(type.value, number(), LATER));
    database.update("analyze typed");
  }

  /** A row is of a transaction that the server has had. */
  private void spendTransactionIds(int upTo) {
    database.update(
        "do $$ begin while pg_current_xact_id()::text::bigint <= %d loop commit; end loop; end $$"
            .formatted(upTo));
  }

  /** By a statement, since the driver tells each session the zone of the JVM as it connects. */
  private Connection inZone(String zone) throws SQLException {
    Connection connection = database.plain().getConnection();
    try (Statement statement = connection.createStatement()) {
      statement.execute("set timezone = '" + zone + "'");
    }
    return connection;
  }

  private static void requireZone(Connection connection, String zone) throws SQLException {
    try (Statement statement = connection.createStatement();
        ResultSet row = statement.executeQuery("show timezone")) {
      row.next();
      assertThat(row.getString(1)).isEqualTo(zone);
    }
  }

  private static String zone(int number) {
    return ZONES.get(number % ZONES.size());
  }

  private Poller poller(Type type, int batch) {
    return Poller.of("typed", Source.table("typed"), type.cursor, Deletes.ignored())
        .batchSize(batch)
        .pollInterval(Duration.ofMillis(10));
  }

  /** A tick that ends when it has had so many rows, from sessions in two time zones. */
  private Handed tick(Type type, int batch, int most, int zone) throws SQLException {
    Handed found = new Handed();
    try (Connection state = inZone(zone(zone));
        Connection source = inZone(zone(zone + 1))) {
      Pollers pollers =
          Pollers.builder(PostgresOutbox.on(new SingleConnection(state), database.table()), "shop")
              .source(new SingleConnection(source))
              .on(
                  poller(type, batch),
                  (rows, context) -> {
                    if (found.size() >= most) {
                      throw new IllegalStateException("that is enough for a tick");
                    }
                    found.add(rows);
                  })
              .build();
      TickResult result = pollers.tick("typed");
      assertThat(result.failure().filter(step -> step != PollerFailure.HANDLER))
          .as(result.toString())
          .isEmpty();
      requireZone(state, zone(zone));
      requireZone(source, zone(zone + 1));
    }
    PollerControl.of(outbox, "shop").retry("typed", TestPollers.ANN);
    return found;
  }

  /** The versions that are there, in the order of cursor and key; of those that are handled. */
  private List<String> versions(Type type) {
    return database.list(
        String.class,
        "select n || '.' || revision from typed"
            + (type.isAscending() ? " where c < (select c from typed order by c desc limit 1)" : "")
            + " order by c, k1, k2, k3, k4");
  }

  /**
   * What was handed over.
   *
   * @param events the event's id of each version
   * @param ticks in how many ticks
   */
  private record Shown(Map<String, String> events, int ticks) {}

  /** Ticks until all rows were handed over, half of which are updated after the first tick. */
  private Shown requireEachVersionOnce(Type type, int batch, int rows, int leastTicks, int zone)
      throws SQLException {
    int most = rows * 3 / 10;
    List<String> first = versions(type);
    Handed handed = tick(type, batch, most, zone);
    assertThat(handed.size()).isBetween(most, most + batch);
    assertThat(handed.versions()).isEqualTo(first.subList(0, handed.size()));
    Set<String> expected = new HashSet<>(handed.versions());

    updateHalf(type);
    expected.addAll(versions(type));
    int ticks = 1;
    for (; ticks < 20 && handed.size() < expected.size(); ticks++) {
      handed.add(tick(type, batch, most, zone + ticks));
    }
    String what = "%s in batches of %d".formatted(type, batch);
    assertThat(ticks).as(what).isGreaterThanOrEqualTo(leastTicks);
    assertThat(handed.size()).as(what).isEqualTo(expected.size());
    assertThat(Set.copyOf(handed.versions())).as(what).isEqualTo(expected);
    assertThat(new HashSet<>(handed.events())).as(what).hasSameSizeAs(expected);
    assertThat(tick(type, batch, most, zone + ticks).versions()).as(what).isEmpty();
    return new Shown(handed.byVersion(), ticks);
  }

  @ParameterizedTest
  @EnumSource(Type.class)
  void eachRowIsHandedOverOnceInEachBatchSizeAndTimeZone(Type type) throws Exception {
    Map<String, String> events = new HashMap<>();
    int zone = 0;
    for (int batch : List.of(1, 7, 1_000)) {
      TestPollers.setUp(database);
      fill(type, 1_200);
      requireEachVersionOnce(type, batch, 1_200, 2, zone++)
          .events()
          .forEach(
              (version, event) ->
                  assertThat(events.computeIfAbsent(version, key -> event))
                      .as(version)
                      .isEqualTo(event));
    }
  }

  /**
   * A batch of a row costs nearly what one of a thousand does, so there are fewer rows of those;
   * all of them are in the run below.
   */
  static Stream<Arguments> many() {
    return Stream.concat(
        Stream.of(Type.values()).map(type -> Arguments.of(type, 1_000, 100_000)),
        Stream.of(
            Arguments.of(Type.TIMESTAMPTZ, 7, 100_000), Arguments.of(Type.BIGINT, 1, 10_000)));
  }

  @ParameterizedTest(name = "{2} rows by {0} in batches of {1}")
  @MethodSource("many")
  @Tag("large")
  void manyRowsAreHandedOverOnce(Type type, int batch, int rows) throws Exception {
    fill(type, rows);
    requireEachVersionOnce(type, batch, rows, 4, 0);
  }

  /**
   * The whole of it takes long, and so is run before a release: {@code ./mvnw -Pcursors -pl
   * outbox-triggers -am verify}.
   */
  @Test
  @Tag("cursors")
  @EnabledIfSystemProperty(named = REPORT, matches = ".+")
  void eachTypeIsHandedOverOnceInEachBatchSizeAtSize() throws Exception {
    CursorReport report =
        new CursorReport(
            Path.of(System.getProperty(REPORT)),
            database.one(String.class, "select current_setting('server_version')"),
            AT_SIZE);
    int zone = 0;
    for (int batch : List.of(1_000, 7, 1)) { // what takes longest comes last
      for (Type type : Type.values()) {
        zone++;
        if (report.has(type.name(), batch)) {
          continue;
        }
        TestPollers.setUp(database);
        fill(type, AT_SIZE);
        long begun = System.nanoTime();
        Shown shown = requireEachVersionOnce(type, batch, AT_SIZE, 4, zone);
        report.add(
            type.name(),
            batch,
            shown.events().size(),
            shown.ticks(),
            Duration.ofNanos(System.nanoTime() - begun));
      }
    }
    report.complete();
  }

  @Test
  void microsecondsCountAndTimesAreThoseOfTheRow() throws Exception {
    database.update("drop table if exists typed");
    database.update("create table typed (c timestamptz not null, id int primary key)");
    database.update("create index on typed (c, id)");
    database.update(
        """
        insert into typed values ('2026-10-25T00:30:00.000001Z', 1),
          ('2026-10-25T00:30:00.000002Z', 2), ('2026-10-25T01:30:00.000001Z', 3),
          ('0044-03-15T00:00:00Z BC', 0)
        """);
    try (Connection source = inZone("America/St_Johns")) {
      Pollers pollers =
          Pollers.builder(outbox, "shop")
              .source(new SingleConnection(source))
              .on(
                  poller(Type.TIMESTAMPTZ, 1),
                  (rows, context) ->
                      assertThat(context.after().value()).hasValue(rows.get(0).cursor()))
              .build();
      TickResult result = pollers.tick("typed");
      assertThat(result.failure()).as(result.toString()).isEmpty();
      assertThat(result.totalProcessed()).isEqualTo(4);
    }
    assertThat(PollerControl.of(outbox, "shop").status("typed").orElseThrow().position().cursor())
        .hasValue("2026-10-25T01:30:00.000001Z");
  }
}
