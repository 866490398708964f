package dev.outbox4j.poller;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.SingleConnection;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.SQLWarning;
import java.sql.Statement;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The plans that the server really executes for a fetch. */
@ExtendWith(PostgresExtension.class)
@Tag("plans")
class FetchPlanIT {
  private static final int ROWS = 300_000;
  private static final int BATCH = 500;

  /** So many rows have the same cursor. */
  private static final int SAME = 100;

  private static final Pattern PAGES =
      Pattern.compile("Buffers: shared(?: hit=(\\d+))?(?: read=(\\d+))?");

  private final TestDatabase database;

  FetchPlanIT(TestDatabase database) {
    this.database = database;
  }

  private void fill() {
    if (!database
        .list(String.class, "select relname::text from pg_class where relname = 'many'")
        .isEmpty()) {
      return;
    }
    database.update(
        "create table many (id int primary key, changed_at timestamptz not null, payload text)");
    database.update(
        """
        insert into many
        select i, timestamptz '2026-01-01' + (i / 20) * interval '1 second', repeat('x', 100)
        from generate_series(1, %d) i
        """
            .formatted(ROWS));
    database.update("create index on many (changed_at, id)");
    database.update("analyze many");
    try (Connection connection = database.plain().getConnection();
        Statement statement = connection.createStatement()) {
      statement.execute("vacuum many");
    } catch (SQLException e) {
      throw new IllegalStateException(e);
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 50, 99})
  void isAnIndexConditionWithoutASortAndReadsFewPages(int percent) throws Exception {
    fill();
    TestPollers.setUp(database);
    long at = (long) ROWS * percent / 100;
    Poller poller =
        Poller.of(
                "many",
                Source.table("many"),
                Cursor.serverTime("changed_at").margin(Duration.ofMillis(1)),
                Deletes.ignored())
            .batchSize(BATCH)
            .startAt(
                Position.of(
                    Position.Side.ROW,
                    "timestamptz",
                    Instant.parse("2026-01-01T00:00:00Z").plusSeconds(at / 20).toString(),
                    List.of(String.valueOf(at))));
    try (Connection connection = database.plain().getConnection()) {
      List<String> plans = new ArrayList<>();
      explainAll(connection);
      Pollers pollers =
          Pollers.builder(PostgresOutbox.on(database.plain(), database.table()), "shop")
              .source(new Watched(connection, plans))
              .on(poller, (rows, context) -> {})
              .build();
      assertThat(pollers.dryTick("many").totalProcessed()).isEqualTo(BATCH);
      String plan =
          plans.stream()
              .filter(text -> text.contains("Limit") && text.contains("ROW("))
              .findFirst()
              .orElseThrow(() -> new AssertionError(plans.toString()));
      assertThat(plan).contains("Index Cond: ((ROW(changed_at, id) > ROW(").doesNotContain("Sort");
      assertThat(pages(plan)).as(plan).isLessThan(20 + BATCH);
      // rows lie in the order of their index, about 55 on a page
      assertThat(pages(plan)).as(plan).isLessThan(20 + BATCH / 40);
    }
  }

  /** What else a fetch may be, of rows that do not lie in the order of their index. */
  private enum Kind {
    SEQUENCE("bigint", Cursor.sequence("version"), Deletes.ignored()),
    WITHOUT_A_BOUND(
        "bigint", Cursor.sequence("version").assumingThatWritersNeverOverlap(), Deletes.ignored()),
    TRANSACTION_ID("xid8", Cursor.transactionId("written_in"), Deletes.ignored()),
    TOMBSTONES(
        "bigint",
        Cursor.sequence("version"),
        Deletes.tombstones(Source.table("scattered_deleted")));

    private final String tag;

    @SuppressWarnings("ImmutableEnumChecker") // it is, but has no annotation
    private final Cursor cursor;

    @SuppressWarnings("ImmutableEnumChecker") // it is, but has no annotation
    private final Deletes deletes;

    Kind(String tag, Cursor cursor, Deletes deletes) {
      this.tag = tag;
      this.cursor = cursor;
      this.deletes = deletes;
    }
  }

  private void scatter() {
    if (!database
        .list(String.class, "select relname::text from pg_class where relname = 'scattered'")
        .isEmpty()) {
      return;
    }
    database.update(
        """
        create table scattered (id int primary key, version bigint not null,
          written_in xid8 not null, payload text)
        """);
    database.update(
        """
        insert into scattered
        select i, i / %1$d, (1 + i / %1$d)::text::xid8, repeat('x', 100)
        from generate_series(1, %2$d) i
        order by md5(i::text)
        """
            .formatted(SAME, ROWS));
    database.update("create index on scattered (version, id)");
    database.update("create index on scattered (written_in, id)");
    database.update(
        "create table scattered_deleted (version bigint, id int, primary key (version, id))");
    database.update(
        """
        insert into scattered_deleted
        select i / %d, -i from generate_series(1, %d, 3) i order by md5(i::text)
        """
            .formatted(SAME, ROWS));
    database.update("analyze scattered, scattered_deleted");
    database.update( // a row is of a transaction that the server has had
        "do $$ begin while pg_current_xact_id()::text::bigint <= %d loop commit; end loop; end $$"
            .formatted(ROWS / SAME + 1));
    try (Connection connection = database.plain().getConnection();
        Statement statement = connection.createStatement()) {
      statement.execute("vacuum scattered, scattered_deleted");
    } catch (SQLException e) {
      throw new IllegalStateException(e);
    }
  }

  static Stream<Arguments> kinds() {
    return Stream.of(Kind.values())
        .flatMap(kind -> Stream.of(1, 50, 99).map(percent -> Arguments.of(kind, percent)));
  }

  @ParameterizedTest(name = "{0} at {1} %")
  @MethodSource("kinds")
  void readsNotMuchMoreThanTheRowsWhereverTheseLie(Kind kind, int percent) throws Exception {
    scatter();
    TestPollers.setUp(database);
    int at = ROWS / 100 * percent;
    long cursor = (long) (at / SAME) + (kind == Kind.TRANSACTION_ID ? 1 : 0);
    Poller poller =
        Poller.of("scattered", Source.table("scattered"), kind.cursor, kind.deletes)
            .where("id > ? or payload is null", 0)
            .batchSize(BATCH)
            .startAt(
                Position.of(Position.Side.ROW, kind.tag, String.valueOf(cursor), List.of("" + at)));
    try (Connection connection = database.plain().getConnection()) {
      List<String> plans = new ArrayList<>();
      explainAll(connection);
      Pollers pollers =
          Pollers.builder(PostgresOutbox.on(database.plain(), database.table()), "shop")
              .source(new Watched(connection, plans))
              .on(poller, (rows, context) -> {})
              .build();
      TickResult result = pollers.dryTick("scattered");
      assertThat(result.totalProcessed()).as(result.toString()).isEqualTo(BATCH);
      String plan =
          plans.stream()
              .filter(text -> text.contains("Limit") && text.contains("ROW("))
              .filter(text -> pages(text) > BATCH / 4) // not the probe for rows that wait
              .findFirst()
              .orElseThrow(() -> new AssertionError(plans.toString()));
      assertThat(plan.split("Index Cond: \\(+ROW\\(", -1))
          .as(plan)
          .hasSize(kind == Kind.TOMBSTONES ? 3 : 2);
      assertThat(plan).doesNotContain("Seq Scan").doesNotContain("Bitmap");
      if (kind == Kind.TOMBSTONES) { // of each table as many rows may be read as make a batch
        assertThat(pages(plan)).as(plan).isLessThan(2 * (20 + BATCH));
      } else {
        assertThat(plan).doesNotContain("Sort");
        assertThat(pages(plan)).as(plan).isLessThan(20 + BATCH);
      }
    }
  }

  private static void explainAll(Connection connection) throws SQLException {
    try (Statement statement = connection.createStatement()) {
      statement.execute(
          """
          load 'auto_explain';
          set auto_explain.log_min_duration = 0;
          set auto_explain.log_analyze = on;
          set auto_explain.log_buffers = on;
          set auto_explain.log_timing = off;
          set auto_explain.log_level = 'notice'
          """);
    }
  }

  private static long pages(String plan) {
    Matcher found = PAGES.matcher(plan);
    assertThat(found.find()).as(plan).isTrue();
    return number(found.group(1)) + number(found.group(2));
  }

  private static long number(String text) {
    return text == null ? 0 : Long.parseLong(text);
  }

  @Test
  void aSourceWithoutAnIndexIsWarnedOfWithItsPlan() {
    TestPollers.setUp(database);
    database.update("drop table if exists plain_table");
    database.update("create table plain_table (id int primary key, v bigint not null)");
    Pollers pollers =
        Pollers.builder(PostgresOutbox.on(database.plain(), database.table()), "shop")
            .on(
                Poller.of(
                    "plain", Source.table("plain_table"), Cursor.sequence("v"), Deletes.ignored()),
                (rows, context) -> {})
            .build();
    assertThat(pollers.tick("plain").failure()).isEmpty();
    assertThat(pollers.health().pollers().get(0).warnings())
        .anySatisfy(
            warning ->
                assertThat(warning)
                    .contains("no index of public.plain_table begins with [v, id]")
                    .contains("create index on \"public\".\"plain_table\" (\"v\", \"id\")")
                    .contains("the plan is Limit"));
  }

  /** Lends one connection, and keeps the server's notices of each statement. */
  private static final class Watched extends SingleConnection {
    private final List<String> notices;

    Watched(Connection connection, List<String> notices) {
      super(connection);
      this.notices = notices;
    }

    @Override
    protected void executed(PreparedStatement statement) throws SQLException {
      for (SQLWarning each = statement.getWarnings(); each != null; each = each.getNextWarning()) {
        notices.add(String.valueOf(each.getMessage()));
      }
    }
  }
}
