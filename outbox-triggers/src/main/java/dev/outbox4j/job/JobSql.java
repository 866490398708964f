package dev.outbox4j.job;

/** The statements on jobs. The server's clock alone decides what is over. */
final class JobSql {
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
   * How a queue does; each part is a range of an index, or its first row. It goes by the
   * transaction's time, whose value the planner knows, so it sees how few ends are meant.
   */
  static final String SAMPLE =
      """
      select now(), ended.recently, ended.recently_badly, ended.before, ended.badly_before,
        extract(epoch from now() - oldest.available_at)::float8, latest.ended_at,
        least(first.known_at, failed.known_at)
      from (
        select
          coalesce(sum(c.recently) filter (where s.status = 'completed'), 0)::bigint as recently,
          coalesce(sum(c.recently) filter (where s.status <> 'completed'), 0)::bigint
            as recently_badly,
          coalesce(sum(c.before) filter (where s.status = 'completed'), 0)::bigint as before,
          coalesce(sum(c.before) filter (where s.status <> 'completed'), 0)::bigint as badly_before
        from unnest(array['completed', 'failed', 'dead_lettered']) as s (status)
        cross join lateral (
          select count(*) filter (where e.ended_at > now() - interval '15 minutes') as recently,
            count(*) filter (where e.ended_at <= now() - interval '15 minutes') as before
          from {job_ends} e
          where e.queue = :queue and e.status = s.status
            and e.ended_at > now() - interval '24 hours 15 minutes') c) ended
      left join lateral (
        select o.available_at from {outbox} o
        where o.queue = :queue and o.available_at is not null and o.available_at <= now()
        order by o.available_at, o.id limit 1) oldest on true
      left join lateral (
        select e.ended_at from {job_ends} e
        where e.queue = :queue and e.status = 'completed'
        order by e.ended_at desc limit 1) latest on true
      left join lateral (
        select j.enqueued_at as known_at from {jobs} j
        where j.queue = :queue
        order by j.enqueued_at limit 1) first on true
      cross join lateral (
        select min(f.ended_at) as known_at
        from unnest(array['failed', 'dead_lettered']) as s (status)
        cross join lateral (
          select e.ended_at from {job_ends} e
          where e.queue = :queue and e.status = s.status
          order by e.ended_at limit 1) f) failed
      """;

  /**
   * Deletes what ended long ago, those that ended first first, and what nobody will hear of again.
   * One whose message was put back stays. Never waits for a row: who enqueues a job anew may hold
   * it. What nobody will hear of is looked for among all jobs that are old, so only once there are
   * few of those.
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
          order by e.ended_at
          limit :most
          for update skip locked) e),
      gone as materialized (
        select j.message_id
        from {jobs} j
        where j.queue = :queue
          and j.enqueued_at <= clock_timestamp() - make_interval(secs => :seconds)
          and not exists (
            select from {outbox} o where o.queue = j.queue and o.id = any (array[j.message_id]))
          and not exists (select from {job_ends} e where e.message_id = any (array[j.message_id]))
          and (select count(*) from over) < :most
        order by j.enqueued_at
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
