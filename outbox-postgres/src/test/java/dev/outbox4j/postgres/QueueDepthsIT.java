package dev.outbox4j.postgres;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.tuple;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.StoreException;
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
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

@ExtendWith(PostgresExtension.class)
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
        PostgresOutbox.depths(
            database.plain(), database.table(), List.of("orders", "nobody's", "other"));

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
    assertThat(depths.get(0).oldestReadyAge())
        .hasValueSatisfying(
            age -> assertThat(age).isBetween(Duration.ofSeconds(60), Duration.ofSeconds(120)));
    assertThat(depths.get(1).oldestReadyAge()).isEmpty();
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
            PostgresOutbox.depths(
                database.plain(), database.table(), List.of("exact", "more", "later"), 10))
        .extracting(QueueDepth::ready, QueueDepth::dueLater, QueueDepth::capped)
        .containsExactly(tuple(10L, 0L, false), tuple(10L, 0L, true), tuple(0L, 10L, true));
  }

  @Test
  void walksTheClaimIndexWhateverTheStatistics() throws SQLException {
    List<String> plans = new ArrayList<>();
    try (Connection connection = database.plain().getConnection();
        PreparedStatement explain =
            connection.prepareStatement(
                QueueDepths.PLANNER
                    + "; explain (analyze, buffers) "
                    + new QueueDepths(database.table()).statement())) {
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

  private String plan(PreparedStatement explain) throws SQLException {
    explain.setArray(1, explain.getConnection().createArrayOf("text", new String[] {"orders"}));
    explain.setInt(2, 1_001);
    explain.setInt(3, 1_001);
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
      PostgresOutbox.depths(pool, database.table(), List.of("orders"));
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
                PostgresOutbox.depths(
                    database.plain(), OutboxTable.named("nowhere"), List.of("orders")))
        .isInstanceOfSatisfying(
            StoreException.class, e -> assertThat(e.fault()).isEqualTo(StoreException.Fault.SETUP))
        .hasMessageContaining("42P01")
        .hasMessageContaining("validateSchema()");
  }

  @Test
  void refusesALimitThatIsNone() {
    assertThatIllegalArgumentException()
        .isThrownBy(
            () -> PostgresOutbox.depths(database.plain(), database.table(), List.of("q"), 0))
        .withMessageContaining("count limit is 0; it must be from 1 to 10000000");
  }

  @Test
  void asksNothingForNoQueue() {
    assertThat(
            PostgresOutbox.depths(
                database.server().dataSource("no_such_database"), database.table(), List.of()))
        .isEmpty();
  }
}
