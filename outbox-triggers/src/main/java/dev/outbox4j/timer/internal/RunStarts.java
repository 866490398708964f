package dev.outbox4j.timer.internal;

import dev.outbox4j.Delivery;
import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.internal.Jdbc;
import dev.outbox4j.postgres.internal.ServerTime;
import dev.outbox4j.timer.PastRun;
import dev.outbox4j.timer.RunStatus;
import dev.outbox4j.timer.Timer;
import dev.outbox4j.triggers.internal.GroupedCalls;
import dev.outbox4j.triggers.internal.Parameters;
import dev.outbox4j.triggers.internal.Statements;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Notes that attempts at runs begin, and reads what their handlers are told. Those of many workers
 * go in one statement. Thread-safe.
 */
final class RunStarts {
  /** What a handler is told of a run that has begun. */
  private static final String TOLD =
      """
      select s.place, s.id, s.instant, s.cause, s.missed_first, s.missed_count,
        s.cancelled_at is not null, clock_timestamp(), s.attempts_count, l.instant, l.status,
        l.started_at, l.ended_at, {commit}
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

  /**
   * By the messages. An attempt that another began later has a greater token: then this one does
   * not begin. The application and the name are compared so that the planner cannot search by them.
   *
   * <p>Nobody waits for the disk here. If the server crashes, what it forgets is that an attempt
   * had begun; its message comes again all the same, and the end of a run waits for the disk.
   */
  private static final String START =
      """
      with started as (
        update {timer_runs} r
        set lease_token = a.token, attempts_count = r.attempts_count
            + case when r.lease_token = a.token then 0 else 1 end,
          started_at = coalesce(r.started_at, clock_timestamp())
        from unnest(:names::text[], :messages::bigint[], :tokens::bigint[]) with ordinality
          as a (name, message, token, place)
        where r.message_id = a.message and r.ended_at is null and r.lease_token <= a.token
          and (r.application = :application and r.name = a.name) is true
        returning a.place, r.*)
      """
          + TOLD.replace("{commit}", "set_config('synchronous_commit', 'off', true)");

  /**
   * Of a dead letter that was put back: its message is another one. This waits for the disk, as the
   * end of the run is found by that message.
   */
  private static final String START_AGAIN =
      """
      with started as (
        update {timer_runs} r
        set status = 'begun', message_id = :message, lease_token = :token,
          attempts_count = r.attempts_count + 1, started_at = clock_timestamp(), ended_at = null
        where r.application = :application and r.name = :name and r.instant = :instant::timestamptz
          and r.cause = :cause and r.request = :request and r.status = 'failed'
          and (r.message_id <> :message or r.lease_token < :token)
          and exists (select from {outbox} o where o.id = :message)
        returning 1 as place, r.*)
      """
          + TOLD.replace("{commit}", "''");

  private static final String KNOWN =
      """
      select 1
      from {timer_runs} r
      where r.application = :application and r.name = :name and r.instant = :instant::timestamptz
        and r.cause = :cause and r.request = :request
      """;

  private final Jdbc jdbc;
  private final Statements statements;
  private final GroupedCalls<Asked, StartedRun> groups =
      new GroupedCalls<>(this::start, RunStarts::isOutage);

  RunStarts(PostgresOutbox outbox, String application) {
    this.jdbc =
        new Jdbc(outbox.dataSource(), outbox.table(), PostgresOutbox.DEFAULT_NETWORK_TIMEOUT);
    this.statements = new Statements(outbox.table(), application);
  }

  private record Asked(Timer timer, RunKey run, Delivery delivery) {
    long message() {
      return delivery.id();
    }

    Map<String, Object> key() {
      return Map.of(
          "name",
          timer.name(),
          "instant",
          run.instant().toString(),
          "cause",
          TimerRow.stored(run.cause()),
          "request",
          run.request());
    }
  }

  /**
   * Begins an attempt.
   *
   * @return null if it is not to begin: the run was terminated, or has another attempt
   * @throws IllegalStateException if the run is not on record any more
   */
  @Nullable StartedRun start(Timer timer, RunKey run, Delivery delivery) {
    Asked asked = new Asked(timer, run, delivery);
    StartedRun started = groups.call(asked);
    if (started == null) {
      started = startAgain(asked);
    }
    if (started == null) {
      requireOnRecord(asked);
    }
    return started;
  }

  /** {@return how many attempts wait for the statement that is on its way} */
  int waiting() {
    return groups.waiting();
  }

  /** Each that waits for an answer alone would wait as long once more. */
  private static boolean isOutage(RuntimeException failure) {
    return failure instanceof OutboxStoreException ofStore && ofStore.outcomeUnknown();
  }

  private List<@Nullable StartedRun> start(List<Asked> all) {
    Map<Asked, StartedRun> started = new HashMap<>();
    List<Asked> left = all;
    while (!left.isEmpty()) { // a row is written once in a statement
      Set<Long> messages = new HashSet<>();
      List<Asked> now = new ArrayList<>();
      List<Asked> later = new ArrayList<>();
      left.forEach(each -> (messages.add(each.message()) ? now : later).add(each));
      Map<String, Object> values =
          Parameters.of(now)
              .texts("names", each -> each.timer().name())
              .numbers("messages", Asked::message)
              .numbers("tokens", each -> each.delivery().leaseToken())
              .values();
      run("start of runs", START, values, now).forEach(run -> started.put(run.asked(), run.run()));
      left = later;
    }
    List<@Nullable StartedRun> answers = new ArrayList<>();
    all.forEach(asked -> answers.add(started.get(asked)));
    return answers;
  }

  private @Nullable StartedRun startAgain(Asked asked) {
    Map<String, Object> values = new HashMap<>(asked.key());
    values.put("message", asked.message());
    values.put("token", asked.delivery().leaseToken());
    return run("start of a run anew", START_AGAIN, values, List.of(asked)).stream()
        .map(Answer::run)
        .findFirst()
        .orElse(null);
  }

  private record Answer(Asked asked, StartedRun run) {}

  private List<Answer> run(
      String operation, String template, Map<String, Object> values, List<Asked> asked) {
    return query(
        operation,
        template,
        values,
        row -> {
          Asked of = asked.get(row.getInt(1) - 1);
          return new Answer(of, read(row, of));
        });
  }

  private void requireOnRecord(Asked asked) {
    if (query("look for a run", KNOWN, asked.key(), row -> true).isEmpty()) {
      throw new IllegalStateException(
          "run '"
              + asked.run()
              + "' was purged or its timer removed; discard its message, or its dead letter");
    }
  }

  private <T> List<T> query(
      String operation,
      String template,
      Map<String, Object> values,
      Statements.RowReader<T> reader) {
    return jdbc.run(
        operation, connection -> statements.queryAlone(jdbc, connection, template, values, reader));
  }

  private static StartedRun read(ResultSet row, Asked asked) throws SQLException {
    Instant instant = ServerTime.read(row, 3);
    Instant firstMissed = ServerTime.readNullable(row, 5);
    return new StartedRun(
        asked.timer(),
        row.getLong(2),
        instant,
        TimerRow.cause(row.getString(4)),
        firstMissed == null ? instant : firstMissed,
        row.getLong(6),
        ServerTime.read(row, 8),
        row.getInt(9),
        Optional.ofNullable(previous(row)),
        asked.delivery(),
        row.getBoolean(7));
  }

  private static @Nullable PastRun previous(ResultSet row) throws SQLException {
    Instant instant = ServerTime.readNullable(row, 10);
    return instant == null
        ? null
        : new PastRun(
            instant,
            RunStatus.valueOf(row.getString(11).toUpperCase(Locale.ROOT)),
            ServerTime.read(row, 12),
            ServerTime.read(row, 13));
  }
}
