package dev.outbox4j.postgres.internal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.tuple;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.QueueDepth;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

@ExtendWith(PostgresExtension.class)
@Tag("plans")
class QueueDepthsIT {
  private static final Pattern BUFFERS = Pattern.compile("shared hit=(\\d+)(?: read=(\\d+))?");

  private final TestDatabase database;

  QueueDepthsIT(TestDatabase database) {
    this.database = database;
  }

  @AfterEach
  void empty() {
    database.update("truncate outbox");
  }

  @Test
  void countsWhatIsReadyLeasedAndDueLater() {
    database.update(
        """
        insert into outbox (queue, payload, available_at, lease_until)
        select 'orders', 'x'::bytea, now() - make_interval(secs => n), null from generate_series(1, 5) n
        union all select 'orders', 'x'::bytea, now() - interval '1 hour', now() + interval '1 minute' from generate_series(1, 3)
        union all select 'orders', 'x'::bytea, now() - interval '1 minute', now() - interval '1 second'
        union all select 'orders', 'x'::bytea, now() + interval '1 hour', null from generate_series(1, 2)
        union all select 'other', 'x'::bytea, now() - interval '1 minute', null
        """);

    List<QueueDepth> depths =
        PostgresOutbox.on(database.plain(), database.table())
            .depths(List.of("orders", "nobody's", "other"));

    assertThat(depths)
        .extracting(
            QueueDepth::queue,
            QueueDepth::ready,
            QueueDepth::leased,
            QueueDepth::dueLater,
            QueueDepth::capped)
        .containsExactly(
            tuple("orders", 6L, 3L, 2L, false),
            tuple("nobody's", 0L, 0L, 0L, false),
            tuple("other", 1L, 0L, 0L, false));
    assertThat(depths.get(0).oldestReady())
        .hasValueSatisfying(
            age -> assertThat(age).isBetween(Duration.ofSeconds(60), Duration.ofSeconds(120)));
    assertThat(depths.get(1).oldestReady()).isEmpty();
  }

  @Test
  void countsEveryQueueThatHasRows() {
    PostgresOutbox outbox = PostgresOutbox.on(database.plain(), database.table());
    assertThat(outbox.depths()).isEmpty();
    database.update(
        """
        insert into outbox (queue, payload, available_at, lease_until)
        select 'b', 'x'::bytea, now() - make_interval(secs => n), null from generate_series(1, 5) n
        union all select 'leased', 'x'::bytea, now(), now() + interval '1 minute'
        union all select 'Ä', 'x'::bytea, 'infinity', null
        union all select 'a', 'x'::bytea, '-infinity', null
        """);

    assertThat(outbox.depths())
        .extracting(QueueDepth::queue, QueueDepth::ready, QueueDepth::leased, QueueDepth::dueLater)
        .containsExactly(
            tuple("a", 1L, 0L, 0L),
            tuple("b", 5L, 0L, 0L),
            tuple("leased", 0L, 1L, 0L),
            tuple("Ä", 0L, 0L, 1L));
  }

  @Test
  void findsTheQueuesWithoutReadingTheirRows() throws SQLException {
    database.update(
        """
        insert into outbox (queue, payload)
        select 'q' || n % 20, 'x'::bytea from generate_series(1, 200000) n
        """);
    try (Connection connection = database.plain().getConnection();
        PreparedStatement explain =
            connection.prepareStatement(
                explained(new QueueDepths(database.table()).statementOfAll()))) {
      explain.setString(1, "10000");
      explain.setString(2, "100");
      explain.setInt(3, 11);
      explain.setInt(4, 11);
      String plan = textOf(explain);

      assertThat(plan).contains("outbox_claim_idx").doesNotContain("Seq Scan on outbox");
      assertThat(buffers(plan)).describedAs(plan).isLessThan(1_000);
    }
  }

  @Test
  void stopsCountingAtTheLimitAndSaysSo() {
    database.update(
        """
        insert into outbox (queue, payload, available_at)
        select 'exact', 'x'::bytea, now() - interval '1 s' from generate_series(1, 10)
        union all select 'more', 'x'::bytea, now() - interval '1 s' from generate_series(1, 11)
        union all select 'later', 'x'::bytea, now() + interval '1 h' from generate_series(1, 11)
        """);

    assertThat(
            PostgresOutbox.on(database.plain(), database.table())
                .depths(List.of("exact", "more", "later"), 10))
        .extracting(QueueDepth::ready, QueueDepth::dueLater, QueueDepth::capped)
        .containsExactly(tuple(10L, 0L, false), tuple(10L, 0L, true), tuple(0L, 10L, true));
  }

  @Test
  void walksTheClaimIndexWhateverTheStatistics() throws SQLException {
    List<String> plans = new ArrayList<>();
    try (Connection connection = database.plain().getConnection();
        PreparedStatement explain =
            connection.prepareStatement(explained(new QueueDepths(database.table()).statement()))) {
      plans.add(plan(explain));
      database.update(
          """
          insert into outbox (queue, payload, available_at)
          select 'orders', 'x'::bytea, now() + case when n % 10 = 0 then interval '1 h' else interval '-1 s' end
          from generate_series(1, 200000) n
          """);
      plans.add(plan(explain));
      database.update("analyze outbox");
      plans.add(plan(explain));
    }

    assertThat(plans)
        .allSatisfy(
            plan ->
                assertThat(plan)
                    .contains("outbox_claim_idx")
                    .doesNotContain("Seq Scan")
                    .doesNotContain("Bitmap"));
    assertThat(plans.get(1)).doesNotContainPattern("Sort .*\\n.*outbox o");
    assertThat(buffers(plans.get(2)))
        .describedAs(plans.get(2))
        .isLessThan(2_000); // two times 1,001 entries of an index and a half-full table
  }

  /** The statement behind the preamble, as the library runs it, with its second part explained. */
  private static String explained(String text) {
    int second = text.indexOf(';') + 1;
    return text.substring(0, second) + " explain (analyze, buffers) " + text.substring(second);
  }

  private String plan(PreparedStatement explain) throws SQLException {
    explain.setString(1, "10000");
    explain.setString(2, "100");
    explain.setArray(3, explain.getConnection().createArrayOf("text", new String[] {"orders"}));
    explain.setInt(4, 1_001);
    explain.setInt(5, 1_001);
    return textOf(explain);
  }

  private static String textOf(PreparedStatement explain) throws SQLException {
    explain.execute();
    assertThat(explain.getMoreResults()).isTrue();
    StringBuilder text = new StringBuilder();
    try (ResultSet rows = explain.getResultSet()) {
      while (rows.next()) {
        text.append(rows.getString(1)).append('\n');
      }
    }
    return text.toString();
  }

  private static long buffers(String plan) {
    Matcher found = BUFFERS.matcher(plan);
    assertThat(found.find()).isTrue();
    return Long.parseLong(found.group(1))
        + (found.group(2) == null ? 0 : Long.parseLong(found.group(2)));
  }

  @Test
  void leavesNoSettingAndNoTransactionOnThePoolsConnection() throws SQLException {
    try (HikariDataSource pool = database.pool(1)) {
      PostgresOutbox.on(pool, database.table()).depths(List.of("orders"));
      pool.getHikariConfigMXBean().setConnectionTimeout(1_000);
      try (Connection connection = pool.getConnection();
          PreparedStatement show =
              connection.prepareStatement("select current_setting('enable_seqscan')");
          ResultSet rows = show.executeQuery()) {
        rows.next();
        assertThat(rows.getString(1)).isEqualTo("on");
      }
    }
  }

  @Test
  void saysWhatIsWrongWhenTheTableIsMissing() {
    assertThatThrownBy(
            () ->
                PostgresOutbox.on(database.plain(), OutboxTable.named("nowhere"))
                    .depths(List.of("orders")))
        .isInstanceOfSatisfying(
            OutboxStoreException.class,
            e -> assertThat(e.fault()).isEqualTo(OutboxStoreException.Fault.SETUP))
        .hasMessageContaining("42P01")
        .hasMessageContaining("run the migrations");
  }

  @Test
  void refusesALimitThatIsNone() {
    assertThatIllegalArgumentException()
        .isThrownBy(
            () -> PostgresOutbox.on(database.plain(), database.table()).depths(List.of("q"), 0))
        .withMessageContaining("count limit is 0; it must be from 1 to 10000000");
  }

  @Test
  void asksNothingForNoQueue() {
    assertThat(
            PostgresOutbox.on(database.server().dataSource("no_such_database"), database.table())
                .depths(List.of()))
        .isEmpty();
  }
}
