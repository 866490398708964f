package dev.outbox4j.job;

import dev.outbox4j.internal.state.Settlement;

/** The statements on jobs. The server's clock alone decides what is over. */
final class JobSql {
  /** How many ends of the last 15 minutes are looked at. */
  private static final int MOST_RECENT = 10_000;

  /** How many of each hour before. */
  private static final int MOST_OF_AN_HOUR = 400;

  /** How many of the latest ends are looked through for their types. */
  private static final int MOST_OF_OTHERS = 500;

  private JobSql() {}

  /** Publishes a message for a job, or tells why not. */
  static final String ENQUEUE =
      """
      select e.decision, e.message_id, e.free_at
      from {job_enqueue}(
        :queue, :job_id, :type, :payload, jsonb_object(:headers::text[]),
        :delay_micros * interval '1 microsecond', :in_flight_micros * interval '1 microsecond',
        :completed_micros * interval '1 microsecond') e
      """;

  /**
   * The same in a transaction of its own. It may have to wait for who enqueues the same job, for as
   * long as the limit of the statement says.
   */
  static final String ENQUEUE_ALONE = "select set_config('lock_timeout', '0', true);\n" + ENQUEUE;

  /**
   * What is known of jobs, by one look: so a message is in the outbox, or has ended. One that was
   * put back is in the outbox again, whatever its end says.
   */
  static final String STATUS =
      """
      select j.job_id, j.type, j.message_id, j.enqueued_at, j.due_at, o.id is not null,
        coalesce(o.lease_until > clock_timestamp(), false), o.available_at,
        coalesce(o.attempts_count, e.attempts_count, 0),
        coalesce(o.deliveries_count, e.deliveries_count, 0), e.status, e.reason, e.ended_at
      from unnest(:ids::text[]) as w (job_id)
      cross join {jobs} j
      left join lateral (
        select o.id, o.lease_until, o.available_at, o.attempts_count, o.deliveries_count
        from {outbox} o
        where o.queue = j.queue and o.id = any (array[j.message_id])) o on true
      left join lateral (
        select e.status, e.reason, e.ended_at, e.attempts_count, e.deliveries_count
        from {job_ends} e
        where e.queue = j.queue and e.message_id = any (array[j.message_id])) e on true
      where j.queue = :queue and j.job_id = any (array[w.job_id])
      """;

  /**
   * Puts a job on record anew of which only a dead letter is left, since its message is about to be
   * put back. It is due now, which keeps purges from it, and so is one that is on record with that
   * message and so old that a purge may take it: a day is less than any is kept. Nothing if it is
   * on record with a later one.
   */
  static final String RECORD =
      """
      with recorded as (
        insert into {jobs} as j (queue, job_id, type, message_id, enqueued_at, due_at)
        select :queue, :job_id, :type, :message_id::bigint, :enqueued_at::timestamptz,
          clock_timestamp()
        where not exists (
          select from {jobs} j
          where j.message_id = any (array[:message_id::bigint])
            and (j.queue <> :queue or j.job_id <> :job_id
              or j.due_at > clock_timestamp() - interval '1 day'))
        on conflict (queue, job_id) do update
        set type = excluded.type, message_id = excluded.message_id,
          enqueued_at = excluded.enqueued_at, due_at = excluded.due_at
        where j.message_id <= excluded.message_id
        returning j.queue, j.job_id, j.message_id)
      insert into {job_ends} as e (message_id, queue, job_id, status, reason, attempts_count,
        deliveries_count, ended_at)
      select r.message_id, r.queue, r.job_id,
        case :reason when 'rejected' then 'failed' else 'dead_lettered' end, :reason,
        :attempts::int, :deliveries::int, :ended_at::timestamptz
      from recorded r
      on conflict (message_id) do nothing
      """;

  /**
   * For how long a message has only been left by who had it: whoever else has it writes another
   * last error, or none, or dies of it, which is one more delivery.
   */
  static final String LEFT_FOR =
      """
      select extract(epoch from clock_timestamp()
        - substr(o.last_error, length('{since}') + 1, length('2000-01-01T00:00:00Z'))::timestamptz)::float8
      from {outbox} o
      where o.queue = :queue and o.id = any (array[:message_id::bigint])
        and starts_with(o.last_error, '{since}')
        and right(o.last_error, length(:left_at)) = :left_at
      """
          .replace("{since}", Settlement.Leave.SINCE);

  /**
   * The types of jobs whose handlers have decided a short time ago how they ended: all of them, so
   * that it is asked once for however many types. It goes by the transaction's time, as a sample
   * does.
   */
  static final String HANDLED_LATELY =
      """
      select distinct j.type
      from unnest(array['completed', 'failed']) as s (status)
      cross join lateral (
        select e.message_id from {job_ends} e
        where e.queue = :queue and e.status = s.status
          and e.ended_at > now() - interval '1 minute'
        order by e.ended_at desc limit {most}) e
      cross join {jobs} j
      where j.queue = :queue and j.message_id = any (array[e.message_id])
      """
          .replace("{most}", String.valueOf(MOST_OF_OTHERS));

  /**
   * How a queue does; each part is a range of an index, or its first row, and no part grows with
   * the queue: of the ends of a time that has very many, the latest stand for all of them. It goes
   * by the transaction's time, whose value the planner knows, so it sees how few ends are meant.
   */
  static final String SAMPLE =
      """
      select now(), recently.well, recently.badly, usually.well, usually.badly,
        extract(epoch from now() - oldest.available_at)::float8, latest.ended_at,
        least(first.known_at, failed.known_at)
      from ({recently}) recently
      cross join (
        select coalesce(sum(hourly.well), 0)::bigint as well,
          coalesce(sum(hourly.badly), 0)::bigint as badly
        from generate_series(0, 23) as t (hour)
        cross join lateral ({hourly}) hourly) usually
      left join lateral (
        select o.available_at from {outbox} o
        where o.queue = :queue and o.available_at is not null and o.available_at <= now()
        order by o.available_at, o.id limit 1) oldest on true
      left join lateral (
        select e.ended_at from {job_ends} e
        where e.queue = :queue and e.status = 'completed'
        order by e.ended_at desc limit 1) latest on true
      left join lateral (
        select j.due_at as known_at from {jobs} j
        where j.queue = :queue and j.due_at <= now()
        order by j.due_at limit 1) first on true
      cross join lateral (
        select min(f.ended_at) as known_at
        from unnest(array['failed', 'dead_lettered']) as s (status)
        cross join lateral (
          select e.ended_at from {job_ends} e
          where e.queue = :queue and e.status = s.status
          order by e.ended_at limit 1) f) failed
      """
          .replace(
              "{recently}", latestEnds("now() - interval '15 minutes'", "'infinity'", MOST_RECENT))
          .replace(
              "{hourly}",
              latestEnds(
                  "now() - interval '15 minutes' - (t.hour + 1) * interval '1 hour'",
                  "now() - interval '15 minutes' - t.hour * interval '1 hour'",
                  MOST_OF_AN_HOUR));

  /** How the latest ends of a time were, as many as that at most. */
  private static String latestEnds(String after, String until, int most) {
    return """
      select count(*) filter (where e.status = 'completed') as well,
        count(*) filter (where e.status <> 'completed') as badly
      from (
        select e.status
        from unnest(array['completed', 'failed', 'dead_lettered']) as s (status)
        cross join lateral (
          select e.status, e.ended_at from {job_ends} e
          where e.queue = :queue and e.status = s.status
            and e.ended_at > {after} and e.ended_at <= {until}
          order by e.ended_at desc limit {most}) e
        order by e.ended_at desc limit {most}) e\
      """
        .replace("{after}", after)
        .replace("{until}", until)
        .replace("{most}", String.valueOf(most));
  }

  /**
   * Deletes what ended long ago, those that ended first first, and what nobody will hear of again.
   * One whose message was put back stays, and so does one that is about to be. Never waits for a
   * row: who enqueues a job anew may hold it. What nobody will hear of is looked for among all jobs
   * that are old, so only once there are few of those.
   */
  static final String PURGE =
      """
      with over as materialized (
        select e.message_id
        from unnest(array['completed', 'failed', 'dead_lettered']) as s (status)
        cross join lateral (
          select e.message_id from {job_ends} e
          where e.queue = :queue and e.status = s.status
            and e.ended_at <= clock_timestamp() - make_interval(secs => :seconds)
            and not exists (
              select from {outbox} o where o.queue = e.queue and o.id = any (array[e.message_id]))
            and not exists (
              select from {jobs} j
              where j.message_id = any (array[e.message_id])
                and j.due_at > clock_timestamp() - make_interval(secs => :seconds))
          order by e.ended_at
          limit :most
          for update skip locked) e),
      gone as materialized (
        select j.message_id
        from {jobs} j
        where j.queue = :queue
          and j.due_at <= clock_timestamp() - make_interval(secs => :seconds)
          and not exists (
            select from {outbox} o where o.queue = j.queue and o.id = any (array[j.message_id]))
          and not exists (select from {job_ends} e where e.message_id = any (array[j.message_id]))
          and (select count(*) from over) < :most
        order by j.due_at
        limit :most),
      held as materialized (
        select j.ctid as place, j.job_id, j.message_id
        from (select message_id from over union all select message_id from gone) p
        cross join {jobs} j
        where j.queue = :queue and j.message_id = any (array[p.message_id])
        for update of j skip locked),
      forgotten as (
        delete from {jobs} j using held h
        where j.queue = :queue and j.ctid = h.place and j.job_id = h.job_id
          and j.message_id = h.message_id
        returning 1),
      ended as (
        delete from {job_ends} e using over
        where e.message_id = any (array[over.message_id])
        returning 1)
      select greatest((select count(*) from ended), (select count(*) from forgotten))
      """;
}
