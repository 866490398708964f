package dev.outbox4j.timer.internal;

/**
 * The texts of the statements on timers. Instants go to the server as text with an offset, which no
 * setting of a session changes.
 */
final class TimerSql {
  /**
   * Of the transaction: whoever holds a row does so for a moment, and the tick comes again. The
   * last settings keep the planner from planning what it has planned before, and from walking a
   * table that it takes for small.
   */
  static final String BEGIN =
      """
      set transaction_isolation = 'read committed';
      select now(), set_config('lock_timeout', '2s', true),
        set_config('statement_timeout', '10s', true),
        set_config('idle_in_transaction_session_timeout', '60s', true),
        set_config('jit', 'off', true),
        set_config('plan_cache_mode', 'force_generic_plan', true),
        set_config('enable_seqscan', 'off', true);
      """;

  private static final String COLUMNS =
      """
      t.name, t.schedule, t.decided_up_to, t.missed_first, t.missed_latest, t.missed_count,
        t.paused_at is not null, t.runs_limit, t.runs_left, t.deployment, t.startup_at,
        t.due_at\
      """;

  static final String INSERT_MISSING =
      """
      insert into {timers} (application, name, schedule, decided_up_to, runs_limit, runs_left,
        deployment, startup_at, due_at)
      select :application, a.name, a.schedule, a.decided_up_to, nullif(a.runs_limit, 0), a.runs_left,
        a.deployment, a.startup_at, a.due_at
      from unnest(:names::text[], :schedules::text[], :decided_up_to::text[]::timestamptz[],
        :runs_limits::bigint[], :runs_left::bigint[], :deployments::text[],
        :startup_at::text[]::timestamptz[], :due_at::text[]::timestamptz[])
        as a (name, schedule, decided_up_to, runs_limit, runs_left, deployment, startup_at, due_at)
      order by a.name
      on conflict do nothing
      """;

  /** Of timers that a node knows, whether or not they are due; but none that another holds. */
  static final String LOCK =
      "select "
          + COLUMNS
          + """

          from {timers} t
          where t.application = :application and t.name = any (:names::text[])
          order by t.name
          for no key update of t skip locked
          """;

  static final String ON_RECORD =
      """
      select t.name
      from {timers} t
      where t.application = :application and t.name = any (:names::text[])
      """;

  /**
   * Those that are due, and those of which a run waits, unless the end of what it waits for will be
   * told; others have the locked ones.
   *
   * <p>What is asked of each row, here and below, is a subquery that the planner cannot make a join
   * of. It is one probe of an index, whatever the statistics say; a join of tables that were empty
   * when they were analyzed walks through all rows for each. It is asked once for all runs of a
   * timer and a cause: a backfill may have thousands.
   */
  static final String TAKE =
      "select "
          + COLUMNS
          + """

          from unnest(array(
            select u.name
            from (
              (select d.name
                from {timers} d
                where d.application = :application and d.due_at <= now()
                  and d.name <> all (:others::text[])
                order by d.due_at
                limit :most)
              union
              (select distinct w.name
                from (
                  select distinct r.name, r.cause
                  from {timer_runs} r
                  where r.application = :application and r.status = 'waiting'
                    and r.name <> all (:others::text[])
                  offset 0) w
                where (
                    select p.paused_at is null or w.cause = 'manual'
                    from {timers} p
                    where p.application = :application and p.name = w.name)
                  and (
                    select true
                    from {timer_runs} b
                    where b.application = :application and b.name = w.name
                      and b.ended_at is null and b.status <> 'waiting'
                      and (b.awaited_by = 'all' or b.awaited_by = 'cause' and b.cause = w.cause)
                      and (select true from {outbox} o where o.id = b.message_id)
                    limit 1) is null
                limit :most)) u
            order by u.name)) as n (name)
          cross join lateral (
            select *
            from {timers} l
            where l.application = :application and l.name = n.name
            for no key update skip locked) t
          """;

  /** Somebody deleted the message, or emptied the outbox: nothing else would end the run. */
  static final String END_WITHOUT_MESSAGE =
      """
      update {timer_runs} r
      set status = 'failed', ended_at = now(), last_error = 'its message is gone'
      where r.id = any (array(
        select e.id
        from {timer_runs} e
        where e.application = :application and e.name = any (:names::text[])
          and e.ended_at is null and e.status = 'begun'
          and (select true from {outbox} o where o.id = e.message_id) is null
        for update skip locked))
      """;

  static final String OPEN_RUNS =
      """
      select r.name, r.id, r.instant, r.cause, r.request, r.status <> 'waiting',
        r.status <> 'waiting'
          and (select true from {outbox} o where o.id = r.message_id) is null
      from unnest(:names::text[]) as n (name)
      cross join lateral (
        select *
        from {timer_runs} o
        where o.application = :application and o.name = n.name and o.ended_at is null
        offset 0) r
      order by r.name, r.instant, r.id
      """;

  /**
   * Those that begin have their messages already. An instant that was run in its time is not caught
   * up, nor the other way round, although a backup has put the cursor back.
   */
  private static final String INSERT_RUNS =
      """
      insert into {timer_runs} (application, name, instant, cause, request, missed_first, missed_count,
        status, message_id, ended_at)
      select :application, a.name, a.instant, a.cause, a.request, a.missed_first, a.missed_count,
        a.status, nullif(a.message_id, 0), case when a.status = 'skipped' then now() end
      from unnest(:run_names::text[], :instants::text[]::timestamptz[], :causes::text[],
        :requests::text[], :run_missed_firsts::text[]::timestamptz[],
        :run_missed_counts::bigint[], :statuses::text[], :message_ids::bigint[])
        as a (name, instant, cause, request, missed_first, missed_count, status, message_id)
      where a.cause not in ('scheduled', 'catch_up') or (
        select true
        from {timer_runs} e
        where e.application = :application and e.name = a.name and e.instant = a.instant
          and e.cause in ('scheduled', 'catch_up')
        limit 1) is null
      on conflict do nothing
      returning coalesce(message_id, 0), name, status;
      """;

  /** Before they begin, are told, or are skipped. */
  static final String LOCK_RUNS =
      """
      select r.id
      from {timer_runs} r
      where r.id = any (:ids::bigint[]) and r.ended_at is null
      for update skip locked
      """;

  /** Before they are terminated. */
  static final String LOCK_WITH_MESSAGES =
      """
      select n.id
      from unnest(:ids::bigint[]) as n (id)
      cross join lateral (
        select r.message_id
        from {timer_runs} r
        where r.id = n.id and r.ended_at is null
        for update skip locked) r
      cross join lateral (
        select true
        from {outbox} o
        where o.id = r.message_id
        for update skip locked) o
      """;

  /** Of runs that are on record already, with messages of their own. */
  static final String DELETE_MESSAGES =
      """
      delete from {outbox} o where o.id = any (:ids::bigint[])
      """;

  /** Of runs that waited, once their messages are published. */
  static final String BEGIN_RUNS =
      """
      update {timer_runs} r
      set status = 'begun', message_id = a.message_id
      from unnest(:ids::bigint[], :message_ids::bigint[]) as a (id, message_id)
      where r.id = a.id
      """;

  /**
   * Runs whose ends are told, as others wait for them: all others, or those of their cause. One
   * whose row is locked holds up no other timer: the next tick looks again.
   */
  static final String AWAIT_RUNS =
      """
      update {timer_runs} r
      set awaited_by = case when r.name = any (:beside::text[]) then 'cause' else 'all' end
      where r.id = any (array(
        select o.id
        from {timer_runs} o
        where o.application = :application and o.name = any (:names::text[])
          and o.ended_at is null and o.status = 'begun'
          and (o.cause <> 'manual' or o.name <> all (:beside::text[]))
          and o.awaited_by is distinct from
            case when o.name = any (:beside::text[]) then 'cause' else 'all' end
        for update skip locked))
      """;

  /**
   * The policies of the timers may be others now; the next tick notes it anew. Not of timers whose
   * schedule is another one: nodes that have it take care of them.
   */
  static final String AWAIT_ANEW =
      """
      update {timer_runs} r
      set awaited_by = null
      where r.id = any (array(
        select o.id
        from unnest(:names::text[], :schedules::text[]) as n (name, schedule)
        cross join lateral (
          select e.id
          from {timer_runs} e
          where e.application = :application and e.name = n.name
            and e.ended_at is null and e.awaited_by is not null
            and n.schedule = (
              select t.schedule
              from {timers} t
              where t.application = :application and t.name = n.name)
          for update skip locked) o))
      """;

  static final String TELL =
      """
      select pg_notify({timers_channel}, :application)::text
      """;

  static final String SKIP_RUNS =
      """
      update {timer_runs} r
      set status = 'skipped', ended_at = now()
      where r.id = any (:ids::bigint[]) and r.ended_at is null
      returning r.name
      """;

  static final String CANCEL_RUNS =
      """
      update {timer_runs} r
      set cancelled_at = coalesce(r.cancelled_at, now())
      where r.id = any (:ids::bigint[]) and r.ended_at is null
      """;

  /** Whatever its handler does then, the message that it would settle is gone. */
  static final String TERMINATE_RUNS =
      """
      with gone as (
        delete from {outbox} o
        using {timer_runs} r
        where r.id = any (:ids::bigint[]) and r.ended_at is null
          and o.id = r.message_id
        returning o.id)
      update {timer_runs} r
      set status = 'terminated', ended_at = now()
      from gone
      where r.id = any (:ids::bigint[]) and r.ended_at is null and r.message_id = gone.id
      returning r.name
      """;

  /** Of rows that are locked, so each stays in its place. No cursor moves back. */
  static final String UPDATE_TIMERS =
      """
      update {timers} t
      set counts_from = case when t.schedule = a.schedule
          and coalesce(t.runs_limit, 0) = a.runs_limit then t.counts_from else now() end,
        schedule = a.schedule, decided_up_to = greatest(t.decided_up_to, a.decided_up_to),
        missed_first = a.missed_first, missed_latest = a.missed_latest,
        missed_count = a.missed_count, not_run_count = t.not_run_count + a.not_run,
        runs_limit = nullif(a.runs_limit, 0), runs_left = a.runs_left, deployment = a.deployment,
        startup_at = a.startup_at, due_at = a.due_at
      from (
        select u.*, (
            select l.ctid
            from {timers} l
            where l.application = :application and l.name = u.name) as place
        from unnest(:names::text[], :schedules::text[], :decided_up_to::text[]::timestamptz[],
          :missed_firsts::text[]::timestamptz[], :missed_latests::text[]::timestamptz[],
          :missed_counts::bigint[], :not_run::bigint[], :runs_limits::bigint[],
          :runs_left::bigint[], :deployments::text[], :startup_at::text[]::timestamptz[],
          :due_at::text[]::timestamptz[])
          as u (name, schedule, decided_up_to, missed_first, missed_latest, missed_count, not_run,
            runs_limit, runs_left, deployment, startup_at, due_at)
        offset 0) a
      where t.ctid = a.place
      """;

  /** How many seconds until the next timer is due; below zero if one was already. */
  static final String UNTIL_NEXT =
      """
      select extract(epoch from min(t.due_at) - clock_timestamp())::float8
      from {timers} t
      where t.application = :application and t.due_at is not null and t.name <> all (:others::text[])
      """;

  /** What a tick begins with, in one execution. */
  static final String BEGIN_AND_TAKE = BEGIN + TAKE;

  /** What a tick ends with, in one execution: its runs, its timers, and when to look next. */
  static final String INSERT_AND_UPDATE = INSERT_RUNS + UPDATE_TIMERS + ";\n" + UNTIL_NEXT;

  /** Of timers that are to be paused after so many failures in a row, those that are. */
  static final String FAILING =
      """
      select a.name
      from unnest(:names::text[], :failures::bigint[]) as a (name, failures)
      where a.failures = (
        select count(*)
        from (
          select r.status, r.ended_at
          from {timer_runs} r
          where r.application = :application and r.name = a.name
            and r.status in ('succeeded', 'failed')
          order by r.instant desc
          limit a.failures) l
        where l.status = 'failed' and l.ended_at > (
          select t.counts_from
          from {timers} t
          where t.application = :application and t.name = a.name))
      """;

  static final String PAUSE =
      """
      update {timers} t
      set paused_at = now(), paused_by = :by, pause_reason = :reason, due_at = null
      where t.application = :application and t.name = any (:names::text[]) and t.paused_at is null
      """;

  /** Nothing counts as missed: the time of the pause is decided. */
  static final String RESUME =
      """
      with resumed as (
        update {timers} t
        set paused_at = null, paused_by = null, pause_reason = null, counts_from = now(),
          decided_up_to = greatest(t.decided_up_to, now()), missed_first = null,
          missed_latest = null, missed_count = 0, startup_at = null, due_at = now()
        where t.application = :application and t.name = :name and t.paused_at is not null
        returning t.application)
      select pg_notify({timers_channel}, r.application)::text from resumed r
      """;

  static final String TRIGGER =
      """
      with asked as (
        insert into {timer_runs} (application, name, instant, cause, request, status)
        select t.application, t.name, now(), 'manual', :request, 'waiting'
        from {timers} t
        where t.application = :application and t.name = :name
        for key share of t
        on conflict do nothing
        returning application)
      select pg_notify({timers_channel}, a.application)::text from asked a
      """;

  static final String BACKFILL =
      """
      with asked as (
        insert into {timer_runs} (application, name, instant, cause, request, status)
        select t.application, t.name, a.instant, 'backfill', :request, 'waiting'
        from {timers} t cross join unnest(:instants::text[]::timestamptz[]) as a (instant)
        where t.application = :application and t.name = :name
        order by a.instant
        for key share of t
        on conflict do nothing
        returning application)
      select pg_notify({timers_channel}, a.application)::text from asked a
      """;

  static final String NOW =
      """
      select clock_timestamp()
      """;

  static final String EXISTS =
      """
      select clock_timestamp() from {timers} t where t.application = :application and t.name = :name
      """;

  static final String READ_COMMITTED = "set transaction_isolation = 'read committed'";

  /** Who triggers it holds its key meanwhile. */
  static final String LOCK_TO_REMOVE =
      """
      select t.name from {timers} t where t.application = :application and t.name = :name for update
      """;

  static final String REMOVE_MESSAGES =
      """
      delete from {outbox} o
      using {timer_runs} r
      where r.application = :application and r.name = :name and r.ended_at is null
        and o.id = r.message_id
      """;

  static final String REMOVE_RUNS =
      """
      delete from {timer_runs} r where r.application = :application and r.name = :name
      """;

  static final String REMOVE_TIMER =
      """
      delete from {timers} t where t.application = :application and t.name = :name
      """;

  static final String PURGE =
      """
      delete from {timer_runs} r
      where r.id in (
        select p.id
        from {timer_runs} p
        where p.application = :application and p.ended_at is not null
          and p.instant < :before::timestamptz
          and (p.cause not in ('scheduled', 'catch_up') or exists (
            select from {timer_runs} later
            where later.application = :application and later.name = p.name
              and later.cause in ('scheduled', 'catch_up') and later.instant > p.instant))
          and (p.status <> 'succeeded' or exists (
            select from {timer_runs} later
            where later.application = :application and later.name = p.name
              and later.status = 'succeeded' and later.ended_at > p.ended_at))
        order by p.name, p.instant
        limit :most
        for update skip locked)
      """;

  /**
   * Of timers that keep no state: what nobody asked for and has not failed, an hour after its end;
   * but neither the latest run by the schedule nor the latest success.
   */
  static final String FORGET_ENDED =
      """
      delete from {timer_runs} r
      where r.ctid = any (array(
        select f.place
        from unnest(:names::text[]) as n (name)
        cross join lateral (
          select e.ctid as place
          from {timer_runs} e
          where e.application = :application and e.name = n.name
            and e.cause not in ('manual', 'backfill') and e.status <> 'failed'
            and e.ended_at < now() - interval '1 hour' and e.instant < now() - interval '1 hour'
            and e.instant < (
              select l.instant
              from {timer_runs} l
              where l.application = :application and l.name = n.name
                and l.cause in ('scheduled', 'catch_up')
              order by l.instant desc
              limit 1)
            and (e.status <> 'succeeded' or e.ended_at < (
              select s.ended_at
              from {timer_runs} s
              where s.application = :application and s.name = n.name and s.status = 'succeeded'
              order by s.ended_at desc
              limit 1))
          order by e.instant
          limit :most
          for update skip locked) f
        limit :most))
      """;

  static final String HISTORY =
      """
      select r.id, r.instant, r.cause, r.request, r.status, r.missed_first, r.missed_count,
        r.attempts_count, r.created_at, r.started_at, r.ended_at, r.last_error, r.lease_token,
        r.cancelled_at
      from {timer_runs} r
      where r.application = :application and r.name = :name
      order by r.instant desc, r.id desc
      limit :most
      """;

  static final String STATUS =
      """
      select t.name, t.schedule, t.registered_at, t.due_at, t.paused_at, t.paused_by,
        t.pause_reason, t.not_run_count, o.waiting, o.begun, s.ended_at, clock_timestamp(),
        l.instant, t.counts_from, t.runs_limit, t.runs_left, h.id, h.instant, h.started_at
      from {timers} t
      left join lateral (
        select count(*) filter (where r.status = 'waiting') as waiting,
          count(*) filter (where r.status <> 'waiting') as begun
        from {timer_runs} r
        where r.application = t.application and r.name = t.name and r.ended_at is null) o on true
      left join lateral (
        select r.id, r.instant, r.started_at
        from {timer_runs} r
        where r.application = t.application and r.name = t.name and r.ended_at is null
          and r.started_at is not null
        order by r.started_at, r.id
        limit 1) h on true
      left join lateral (
        select r.ended_at
        from {timer_runs} r
        where r.application = t.application and r.name = t.name and r.status = 'succeeded'
        order by r.ended_at desc
        limit 1) s on true
      left join lateral (
        select r.instant
        from {timer_runs} r
        where r.application = t.application and r.name = t.name
          and r.cause in ('scheduled', 'catch_up')
        order by r.instant desc
        limit 1) l on true
      where t.application = :application
      order by t.name
      """;

  static final String CANCELLED =
      """
      select r.id, r.ended_at is not null
      from {timer_runs} r
      where r.id = any (:ids::bigint[]) and (r.cancelled_at is not null or r.ended_at is not null)
      """;

  private TimerSql() {}
}
