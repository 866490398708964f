package dev.outbox4j.job;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.postgres.internal.Sql;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** The plans that the server really executes on many jobs, with and without statistics. */
@ExtendWith(PostgresExtension.class)
@Tag("plans")
class JobPlansIT {
  private static final int JOBS = 50_000;

  private final TestDatabase database;

  JobPlansIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void fill() {
    JobKit.migrate(database);
    // the planner knows nothing of what comes
    database.update("analyze outbox_job, outbox_job_end, outbox");
    database.update(
        """
        insert into outbox_job (queue, job_id, type, message_id, enqueued_at, due_at)
        select 'analyses', 'analyse:' || n, 'analyse', n, now() - make_interval(mins => n),
          now() - make_interval(mins => n)
        from generate_series(1, %d) n
        """
            .formatted(JOBS));
    database.update(
        """
        insert into outbox_job_end (message_id, queue, job_id, status, ended_at)
        select n, 'analyses', 'analyse:' || n,
          case when n %% 10 = 0 then 'dead_lettered' else 'completed' end,
          now() - make_interval(mins => n)
        from generate_series(1, %d) n
        where n > 1000
        """
            .formatted(JOBS));
    database.update(
        """
        insert into outbox (id, queue, type, payload, lease_until, lease_token)
        select n, 'analyses', 'analyse', '', now() + interval '1 hour', 1
        from generate_series(1, 1000) n
        """);
    database.list(Long.class, "select setval('outbox_id_seq', 1000000)");
  }

  private String explain(String template, Map<String, Object> values) throws SQLException {
    Sql sql = Sql.of("explain (analyze, buffers) " + template, database.table());
    Map<String, Object> all = new HashMap<>(values);
    all.put("queue", "analyses");
    StringBuilder plan = new StringBuilder();
    try (Connection connection = database.plain().getConnection()) {
      connection.setAutoCommit(false);
      try (PreparedStatement statement = connection.prepareStatement(sql.text())) {
        sql.bind(statement, all);
        try (ResultSet rows = statement.executeQuery()) {
          while (rows.next()) {
            plan.append(rows.getString(1)).append('\n');
          }
        }
      }
      connection.rollback();
    }
    return plan.toString();
  }

  private static long buffers(String plan) {
    String line = plan.lines().filter(each -> each.contains("Buffers: ")).findFirst().orElseThrow();
    return Stream.of(line.replaceAll(".*shared ", "").split(" ", -1))
        .filter(part -> part.startsWith("hit=") || part.startsWith("read="))
        .mapToLong(part -> Long.parseLong(part.replaceAll("\\D", "")))
        .sum();
  }

  private void isCheap(String template, Map<String, Object> values, long most) throws SQLException {
    for (boolean analyzed : new boolean[] {false, true}) {
      if (analyzed) {
        database.update("analyze outbox_job, outbox_job_end, outbox");
      }
      String plan = explain(template, values);
      assertThat(buffers(plan)).as("analyzed: %s\n%s", analyzed, plan).isLessThan(most);
    }
  }

  @Test
  void theStatusOfAJobIsAFewProbes() throws SQLException {
    isCheap(JobSql.STATUS, Map.of("ids", new String[] {"analyse:40000"}), 60);
  }

  @Test
  void aSampleReadsTheEndsOfItsTimeOnly() throws SQLException {
    // some 500 of a day and 15 minutes end there
    isCheap(JobSql.SAMPLE, Map.of(), 1_500);
  }

  /** More in each time than are looked at, and then three times as many, not in their order. */
  @Test
  void aSampleCostsNoMoreTheMoreHasEnded() throws SQLException {
    List<Long> costs = new ArrayList<>();
    for (int times = 1; times <= 4; times++) {
      database.update(
          """
          insert into outbox_job_end (message_id, queue, job_id, status, ended_at)
          select ?::bigint * 1000000 + n, 'analyses', 'busy:' || n, 'completed',
            now() - case when n % 2 = 0 then make_interval(secs => 900.0 * n / ?::int)
              else make_interval(secs => 900 + 86400.0 * n / ?::int) end
          from generate_series(1, ?::int) n
          """,
          times, times * 25_000, times * 25_000, times * 25_000);
      database.update("analyze outbox_job, outbox_job_end, outbox");
      costs.add(buffers(explain(JobSql.SAMPLE, Map.of())));
    }
    assertThat(costs.get(3)).isLessThan(costs.get(1) * 3 / 2);
  }

  /** Two jobs a second, of which each tenth fails. */
  @Test
  void theLatestEndsOfATimeStandForAllOfThem() throws SQLException {
    database.update(
        """
        insert into outbox_job_end (message_id, queue, job_id, status, ended_at)
        select 1000000 + n, 'analyses', 'busy:' || n,
          case when n % 10 = 0 then 'dead_lettered' else 'completed' end,
          now() - make_interval(secs => n / 2.0)
        from generate_series(1, 200000) n
        """);
    isCheap(JobSql.SAMPLE, Map.of(), 60_000);
    JobSample sample = new JobKit(database, database.plain()).producer().sample();
    assertThat(sample.recent().total()).isBetween(1_000L, 1_800L);
    assertThat(sample.baseline().total()).isEqualTo(24 * 400);
    assertThat(sample.recent().deadLetterRatio()).isBetween(0.09, 0.11);
    assertThat(sample.baseline().deadLetterRatio()).isBetween(0.09, 0.11);
  }

  /** However many types there are, and however many have ended; on record or not. */
  @Test
  void whichTypesOthersHandleIsAskedOfFewEnds() throws SQLException {
    database.update(
        """
        insert into outbox_job_end (message_id, queue, job_id, status, ended_at)
        select 2000000 + n, 'analyses', 'now:' || n, 'completed', now()
        from generate_series(1, 20000) n
        """);
    isCheap(JobSql.HANDLED_LATELY, Map.of(), 4_000);
    database.update(
        """
        insert into outbox_job (queue, job_id, type, message_id, enqueued_at, due_at)
        select 'analyses', 'now:' || n, 'now.' || n % 1000, 2000000 + n, now(), now()
        from generate_series(1, 20000) n
        """);
    isCheap(JobSql.HANDLED_LATELY, Map.of(), 4_000);
  }

  @Test
  void whatIsAskedOfOneJobIsAFewProbes() throws SQLException {
    isCheap(JobSql.LEFT_FOR, Map.of("message_id", 500L, "left_at", " at delivery 0"), 60);
    isCheap(
        JobSql.RECORD,
        Map.of(
            "job_id", "analyse:new",
            "type", "analyse",
            "message_id", 2_000_000L,
            "enqueued_at", "2026-01-01T00:00:00Z",
            "reason", "rejected",
            "attempts", 1L,
            "deliveries", 1L,
            "ended_at", "2026-01-01T00:00:00Z"),
        200);
  }

  @Test
  void aPartOfAPurgeReadsWhatItDeletes() throws SQLException {
    isCheap(JobSql.PURGE, Map.of("seconds", 30.0 * 24 * 3_600, "most", 100L), 20_000);
  }

  @Test
  void anEnqueueIsAFewProbes() throws SQLException {
    for (String job : List.of("analyse:500", "analyse:40000", "analyse:new")) {
      isCheap(
          "select decision from outbox_job_enqueue('analyses', :job, 'analyse', '', '{}',"
              + " interval '0', interval '180 seconds', interval '1 hour')",
          Map.of("job", job),
          1_000); // planning included
    }
  }
}
