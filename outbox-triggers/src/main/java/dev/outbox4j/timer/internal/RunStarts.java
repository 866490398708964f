package dev.outbox4j.timer.internal;

import dev.outbox4j.Delivery;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.internal.Jdbc;
import dev.outbox4j.postgres.internal.ServerTime;
import dev.outbox4j.timer.PastRun;
import dev.outbox4j.timer.RunStatus;
import dev.outbox4j.timer.Timer;
import dev.outbox4j.triggers.internal.Statements;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Instant;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** Notes that an attempt at a run begins, and reads what its handler is told. Thread-safe. */
final class RunStarts {
  /**
   * Of the run's message, or of a dead letter that was put back. An attempt that another began
   * later has a greater token: then this one does not begin.
   */
  private static final String START =
      """
      with started as (
        update {timer_runs} r
        set status = 'begun', message_id = :message, lease_token = :token,
          attempts_count = r.attempts_count
            + case when r.message_id = :message and r.lease_token = :token then 0 else 1 end,
          started_at = case when r.status = 'failed' then clock_timestamp()
            else coalesce(r.started_at, clock_timestamp()) end,
          ended_at = null
        where r.id = :run
          and (r.message_id = :message and r.ended_at is null and r.lease_token <= :token
            or r.status = 'failed'
              and (r.message_id <> :message or r.lease_token < :token)
              and exists (select from {outbox} o where o.id = :message))
        returning r.*)
      select s.instant, s.cause, s.missed_first, s.missed_count, s.cancelled_at is not null,
        clock_timestamp(), s.attempts_count, l.instant, l.status, l.started_at, l.ended_at
      from started s
      left join lateral (
        select e.instant, e.status, e.started_at, e.ended_at
        from {timer_runs} e
        where e.application = s.application and e.name = s.name and e.id <> s.id
          and e.ended_at is not null and e.started_at is not null
          and e.status in ('succeeded', 'failed') and (e.instant, e.id) < (s.instant, s.id)
        order by e.instant desc, e.id desc
        limit 1) l on true
      """;

  private static final String KNOWN = "select 1 from {timer_runs} r where r.id = :run";

  private final Jdbc jdbc;
  private final Statements statements;

  RunStarts(PostgresOutbox outbox, String application) {
    this.jdbc =
        new Jdbc(outbox.dataSource(), outbox.table(), PostgresOutbox.DEFAULT_NETWORK_TIMEOUT);
    this.statements = new Statements(outbox.table(), application);
  }

  /**
   * Begins an attempt.
   *
   * @return null if it is not to begin: the run was terminated, or has another attempt
   * @throws IllegalStateException if the run is not on record any more
   */
  @Nullable StartedRun start(Timer timer, long run, Delivery delivery) {
    List<StartedRun> started =
        jdbc.run(
            "start of a run",
            connection ->
                statements.queryAlone(
                    jdbc,
                    connection,
                    START,
                    Map.of("run", run, "message", delivery.id(), "token", delivery.leaseToken()),
                    row -> read(row, timer, run, delivery)));
    if (started.isEmpty()) {
      requireOnRecord(run);
      return null;
    }
    return started.get(0);
  }

  private void requireOnRecord(long run) {
    boolean known =
        jdbc.run(
            "look for a run",
            connection ->
                !statements
                    .queryAlone(jdbc, connection, KNOWN, Map.of("run", run), row -> true)
                    .isEmpty());
    if (!known) {
      throw new IllegalStateException(
          "run "
              + run
              + " was purged or its timer removed; discard its message, or its dead letter");
    }
  }

  private static StartedRun read(ResultSet row, Timer timer, long run, Delivery delivery)
      throws SQLException {
    Instant instant = ServerTime.read(row, 1);
    Instant firstMissed = ServerTime.readNullable(row, 3);
    return new StartedRun(
        timer,
        run,
        instant,
        TimerRow.cause(row.getString(2)),
        firstMissed == null ? instant : firstMissed,
        row.getLong(4),
        ServerTime.read(row, 6),
        row.getInt(7),
        Optional.ofNullable(previous(row)),
        delivery,
        row.getBoolean(5));
  }

  private static @Nullable PastRun previous(ResultSet row) throws SQLException {
    Instant instant = ServerTime.readNullable(row, 8);
    return instant == null
        ? null
        : new PastRun(
            instant,
            RunStatus.valueOf(row.getString(9).toUpperCase(Locale.ROOT)),
            ServerTime.read(row, 10),
            ServerTime.read(row, 11));
  }
}
