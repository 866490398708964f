package dev.outbox4j.examples.jobs;

import dev.outbox4j.examples.run.Report;
import dev.outbox4j.job.JobQueue;
import dev.outbox4j.job.JobState;
import dev.outbox4j.job.JobStatus;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import javax.sql.DataSource;

/**
 * Compares what was asked for with what became of it, in one snapshot; and then, once nothing
 * happens any more, with the states that the queue tells.
 */
final class Reconciliation {
  /** Each message that was committed, and what became of it. */
  private static final String FATES =
      """
      create temporary table fate on commit drop as
      select r.number, r.user_id, r.content_hash, r.job_id, r.message_id,
        (select count(*) from taste_analyses a where a.message_id = r.message_id) as done,
        exists (select from outbox o where o.id = r.message_id) as waiting,
        exists (
          select from outbox_dlq d
          where d.original_id = r.message_id and d.resolved_at is null) as dead,
        exists (
          select from outbox_dlq d
          where d.original_id = r.message_id and d.resolution like 'discarded: %') as discarded
      from taste_requests r
      where r.decision = 'ENQUEUED'
      """;

  private static final String ONE_END =
      """
      select count(*), count(*) filter (where not holds),
        (array_agg('message ' || message_id) filter (where not holds))[1:3]
      from (
        select f.message_id,
          (f.done > 0)::int + f.waiting::int + f.dead::int + f.discarded::int = 1 as holds
        from fate f) c
      """;

  private static final String DONE_ONCE =
      """
      select count(*), count(*) filter (where done > 1),
        (array_agg('message ' || message_id) filter (where done > 1))[1:3]
      from fate
      where done > 0
      """;

  private static final String ASKED_FOR =
      """
      select count(*), count(*) filter (where f.message_id is null),
        (array_agg('message ' || a.message_id) filter (where f.message_id is null))[1:3]
      from taste_analyses a left join fate f using (message_id)
      """;

  /** Who is refused is promised that a message is there, or was, which is not lost. */
  private static final String REFUSED =
      """
      select count(*), count(*) filter (where f.message_id is null),
        (array_agg('request ' || r.number) filter (where f.message_id is null))[1:3]
      from taste_requests r left join fate f using (message_id, job_id)
      where r.decision <> 'ENQUEUED'
      """;

  private static final String ENQUEUED_ONCE =
      """
      select count(*), count(*) filter (where enqueued > 1),
        (array_agg('job ' || job_id) filter (where enqueued > 1))[1:3]
      from (select job_id, count(*) as enqueued from fate group by job_id) j
      """;

  /** The last request of a user is of what the user likes now, as they are made in turn. */
  private static final String PROFILES =
      """
      select count(*), count(*) filter (where not holds),
        (array_agg('user ' || user_id) filter (where not holds))[1:3]
      from (
        select distinct on (f.user_id) f.user_id,
          f.done = 0 or p.content_hash is not distinct from f.content_hash as holds
        from fate f left join taste_profiles p using (user_id)
        order by f.user_id, f.number desc) u
      """;

  private static final String LIKED =
      """
      select count(*), count(*) filter (where not asked),
        (array_agg('user ' || user_id) filter (where not asked))[1:3]
      from (
        select l.user_id, exists (select from fate f where f.user_id = l.user_id) as asked
        from liked_items l
        group by l.user_id) u
      """;

  private static final String COUNTS =
      """
      select
        (select count(*) from taste_requests) || ' requests were committed, and '
        || count(*) || ' messages: ' || count(*) filter (where done > 0) || ' were handled, '
        || count(*) filter (where waiting) || ' wait, '
        || count(*) filter (where dead) || ' are dead letters, '
        || count(*) filter (where discarded) || ' were discarded'
      from fate
      """;

  /** The last message of each job: it is what the state of the job is about. */
  private static final String STATES =
      """
      select distinct on (job_id) job_id, done > 0, waiting
      from fate
      order by job_id, number desc
      """;

  private static final int MOST_ASKED = 1_000;

  private final DataSource dataSource;
  private final JobQueue queue;

  Reconciliation(DataSource dataSource, JobQueue queue) {
    this.dataSource = dataSource;
    this.queue = queue;
  }

  /** Compares all but how often a job was enqueued, which depends on the windows. */
  Report compare() throws SQLException {
    return compare(false);
  }

  /** Compares a time that is shorter than the windows: each job was enqueued once, too. */
  Report compareWithinTheWindows() throws SQLException {
    return compare(true);
  }

  private Report compare(boolean once) throws SQLException {
    Map<String, Set<JobState>> expected = new HashMap<>();
    List<Report.Line> lines = new ArrayList<>();
    List<String> counts = new ArrayList<>();
    try (Connection connection = dataSource.getConnection()) {
      connection.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
      connection.setAutoCommit(false);
      try (Statement statement = connection.createStatement()) {
        statement.execute(FATES);
        add(lines, connection, "enqueued: done, waiting, dead or discarded, and only one", ONE_END);
        add(lines, connection, "done: once", DONE_ONCE);
        add(lines, connection, "done: was enqueued, and committed", ASKED_FOR);
        add(lines, connection, "refused: the message it names was committed", REFUSED);
        if (once) {
          add(lines, connection, "a job: enqueued once", ENQUEUED_ONCE);
        }
        add(lines, connection, "what is liked: its analysis was enqueued", LIKED);
        add(lines, connection, "a profile: of what is liked now, if that is done", PROFILES);
        try (ResultSet row = statement.executeQuery(COUNTS)) {
          row.next();
          counts.add(row.getString(1));
        }
        try (ResultSet row = statement.executeQuery(STATES)) {
          while (row.next()) {
            expected.put(row.getString(1), states(row.getBoolean(2), row.getBoolean(3)));
          }
        }
      } finally {
        connection.rollback();
      }
    }
    lines.add(states(expected));
    return new Report(lines, counts);
  }

  private static void add(List<Report.Line> lines, Connection connection, String what, String sql)
      throws SQLException {
    lines.add(Report.Line.of(connection, what, sql));
  }

  private static Set<JobState> states(boolean isDone, boolean isWaiting) {
    if (isWaiting) {
      return EnumSet.of(JobState.QUEUED, JobState.IN_FLIGHT);
    }
    return isDone
        ? EnumSet.of(JobState.COMPLETED)
        : EnumSet.of(JobState.FAILED, JobState.DEAD_LETTERED);
  }

  private Report.Line states(Map<String, Set<JobState>> expected) {
    Map<String, JobState> told = new HashMap<>();
    List<String> ids = List.copyOf(expected.keySet());
    for (int from = 0; from < ids.size(); from += MOST_ASKED) {
      List<String> some = ids.subList(from, Math.min(ids.size(), from + MOST_ASKED));
      for (JobStatus status : queue.statuses(some)) {
        told.put(status.jobId(), status.state());
      }
    }
    List<String> wrong = new ArrayList<>();
    expected.forEach(
        (id, states) -> {
          JobState state = told.get(id);
          if (state == null || !states.contains(state)) {
            wrong.add("job %s: %s".formatted(id, state));
          }
        });
    return new Report.Line(
        "a job: in the state that is told of it",
        ids.size(),
        wrong.size(),
        wrong.subList(0, Math.min(3, wrong.size())));
  }
}
