package dev.outbox4j.monitor.internal;

import dev.outbox4j.monitor.MonitorQuery;
import dev.outbox4j.postgres.internal.FencedSql;
import java.util.Set;

/**
 * The texts of the statements on monitors. Whoever writes an instance has its row first and its
 * message after that; who meets a locked message passes it by.
 */
final class MonitorSql {
  /**
   * Of the transaction of a check: it waits for a locked row no longer than this, ends if its node
   * is frozen, does not plan what it has planned before, and does not walk a table that it takes
   * for small.
   */
  private static final String SETTINGS =
      """
      select set_config('lock_timeout', :lock_timeout, true),
        set_config('statement_timeout', '10s', true),
        set_config('idle_in_transaction_session_timeout', '5s', true),
        set_config('jit', 'off', true),
        set_config('plan_cache_mode', 'force_generic_plan', true),
        set_config('enable_seqscan', 'off', true);
      """;

  /** Of the transaction of whoever controls. */
  static final String BEGIN =
      """
      set transaction_isolation = 'read committed';
      select set_config('lock_timeout', '2s', true), set_config('statement_timeout', '10s', true),
        set_config('idle_in_transaction_session_timeout', '5s', true),
        set_config('jit', 'off', true), set_config('enable_seqscan', 'off', true)
      """;

  /**
   * What checks are told, by the messages that wake their instances: one probe of the primary key
   * for each, whatever the planner believes.
   */
  static final String READ =
      """
      select a.place, m.id, m.type, m.execution, m.status, m.iteration, m.attempts_count,
        m.input::text, m.state::text, cardinality(m.unseen), m.history, m.created_at,
        m.expires_at, m.first_failed_at, clock_timestamp()
      from unnest(:ids::text[], :messages::bigint[]) with ordinality as a (id, message, place)
      cross join {monitors} m
      where m.application = :application and m.id = any (array[a.id])
        and (m.message_id = a.message) is true and (m.ended_at is null) is true
      """;

  /** A row, unless somebody has it locked. */
  static final String FREE =
      """
      select 1
      from {monitors} m
      where m.application = :application and m.id = :id
      for no key update skip locked
      """;

  /** How far an instance has come, for a node that does not know its type. */
  static final String ITERATION =
      """
      select m.iteration
      from {monitors} m
      where m.application = :application and m.id = :id
      """;

  /** The first check of an instance is to be seen while it runs. */
  static final String START_RUNNING =
      """
      update {monitors} m
      set status = 'running', started_at = clock_timestamp(), updated_at = clock_timestamp()
      where m.application = :application and m.id = :id and m.execution = :execution
        and (m.status = 'pending') is true
      """;

  static final String UNSEEN =
      """
      select e.id, e.name, e.payload::text, e.created_at
      from {monitor_events} e
      where e.application = :application and e.monitor_id = :id and e.execution = :execution
        and e.unseen
      order by e.id
      limit :most
      """;

  /** A result counts for the check that it is of, and while the instance is to be checked. */
  private static final String GUARD =
      """
      where m.application = :application and m.id = :id and m.execution = :execution
          and m.iteration = :iteration and (m.status in ('running', 'suspended')) is true\
      """;

  /** Whether its time was over before the check had ended, so that nothing is to follow. */
  private static final String IS_OVER =
      "(u.status = 'running' and u.expires_at <= clock_timestamp()) is true";

  /**
   * After a check that is to be followed by another. What is asked of the row is asked once it is
   * locked; an event that is raised then waits for this.
   */
  static final String AGAIN =
      SETTINGS
          + """
          with updated as (
            update {monitors} m
            set iteration = m.iteration + 1, attempts_count = 0, first_failed_at = null,
              last_error = null,
              state = case when :keeps_state then m.state else nullif(:state, '')::json end,
              custom_status = coalesce(nullif(:custom_status, '')::json, m.custom_status),
              waits_for = :waits_for::text[], unseen = m.unseen[:seen + 1 :], woken = false,
              overtime_at = null,
              updated_at = clock_timestamp(),
              due_at = least(m.expires_at, clock_timestamp()
                + case when m.woken or m.unseen[:seen + 1 :] && :waits_for::text[]
                    then interval '0' else make_interval(secs => :delay) end)
            %s
            returning m.*),
          noted as (
            insert into {monitor_events} (application, monitor_id, execution, kind, iteration)
            select u.application, u.id, u.execution, 'checked', u.iteration
            from updated u
            where u.history > 0)
          select extract(epoch from u.due_at - clock_timestamp())::float8, {is_over}, u.iteration,
            u.attempts_count
          from updated u
          """
              .formatted(GUARD)
              .replace("{is_over}", IS_OVER);

  /**
   * The same of many that have seen no events and publish nothing, with their messages, which are
   * put off under their leases. It waits for no row: what is locked, has changed, has expired, or
   * has lost its lease is left out. To be sent by itself, behind the preamble.
   */
  static final String AGAIN_TOGETHER =
      """
      select set_config('plan_cache_mode', 'force_generic_plan', true);
      with held as materialized (
        select a.*
        from unnest(:ids::text[], :executions::bigint[], :iterations::bigint[],
          :messages::bigint[], :tokens::bigint[], :keeps_state::boolean[], :states::text[],
          :custom_statuses::text[], :waits_for::text[], :delays::float8[], :trims::boolean[])
          with ordinality as a (id, execution, iteration, message, token, keeps_state, state,
            custom_status, waits_for, delay, trims, place)
        cross join {monitors} m
        cross join {outbox} o
        where m.application = :application and m.id = any (array[a.id])
          and m.execution = a.execution and m.iteration = a.iteration
          and (m.status in ('running', 'suspended')) is true
          and (m.expires_at <= clock_timestamp()) is not true
          and o.queue = :queue and o.id = any (array[a.message]) and {as_claimed}
          and o.leased_by = :owner
        for no key update of m, o skip locked),
      updated as (
        update {monitors} m
        set iteration = m.iteration + 1, attempts_count = 0, first_failed_at = null,
          last_error = null,
          state = case when h.keeps_state then m.state else nullif(h.state, '')::json end,
          custom_status = coalesce(nullif(h.custom_status, '')::json, m.custom_status),
          waits_for = string_to_array(h.waits_for, e'\n'), woken = false, overtime_at = null,
          updated_at = clock_timestamp(),
          due_at = least(m.expires_at, clock_timestamp()
            + case when m.woken or m.unseen && string_to_array(h.waits_for, e'\n')
                then interval '0' else make_interval(secs => h.delay) end)
        from held h
        where m.application = :application and m.id = any (array[h.id])
        returning h.place, h.message, h.trims, m.application, m.id, m.execution, m.iteration,
          m.history, m.due_at),
      noted as (
        insert into {monitor_events} (application, monitor_id, execution, kind, iteration)
        select u.application, u.id, u.execution, 'checked', u.iteration
        from updated u
        where u.history > 0),
      trimmed as (
        delete from {monitor_events} e
        where e.id = any (array(
          select t.id
          from {monitor_events} t
          where t.id = any (array(
            select old.id
            from updated u
            cross join lateral (
              select h.id
              from {monitor_events} h
              where h.application = u.application and h.monitor_id = u.id and not h.unseen
              order by h.id desc
              offset u.history
              limit 5000) old
            where u.trims))
          for update skip locked))),
      done as (
        update {outbox} o
        set available_at = greatest(u.due_at, clock_timestamp()), {made_new}
        from updated u
        where o.queue = :queue and o.id = any (array[u.message])
        returning u.place, o.available_at)
      select done.place
      from done
      where true
      """
              .replace("{as_claimed}", FencedSql.AS_CLAIMED)
              .replace("{made_new}", FencedSql.MADE_NEW)
          + FencedSql.NOTIFY;

  /**
   * After an attempt that failed and is to be followed by another one: at once, if somebody has
   * asked for that while it ran.
   */
  static final String ATTEMPT_FAILED =
      SETTINGS
          + """
          with updated as (
            update {monitors} m
            set attempts_count = :attempts, last_error = :error,
              first_failed_at = coalesce(m.first_failed_at, clock_timestamp()),
              woken = false, overtime_at = null, updated_at = clock_timestamp(),
              due_at = least(m.expires_at, clock_timestamp()
                + case when m.woken or m.unseen[:seen + 1 :] && m.waits_for
                    then interval '0' else make_interval(secs => :delay) end)
            %s
            returning m.*),
          noted as (
            insert into {monitor_events} (application, monitor_id, execution, kind, iteration,
              detail)
            select u.application, u.id, u.execution, 'attempt_failed', u.iteration, u.last_error
            from updated u
            where u.history > 0)
          select extract(epoch from u.due_at - clock_timestamp())::float8, {is_over}, u.iteration,
            u.attempts_count
          from updated u
          """
              .formatted(GUARD)
              .replace("{is_over}", IS_OVER);

  /** What ends an instance, by a check or without one. */
  static final String END =
      SETTINGS
          + """
          with updated as (
            update {monitors} m
            set status = :status, outcome = nullif(:outcome, ''),
              iteration = m.iteration + :checks, attempts_count = :attempts,
              last_error = nullif(:error, ''), error_type = nullif(:error_type, ''),
              error_stack = nullif(:error_stack, ''),
              state = case when :keeps_state then m.state else nullif(:state, '')::json end,
              custom_status = coalesce(nullif(:custom_status, '')::json, m.custom_status),
              output = case when :reason = '' then nullif(:output, '')::json
                else to_json(:reason::text) end,
              waits_for = '{}', unseen = '{}', woken = false, updated_at = clock_timestamp(),
              ended_at = clock_timestamp(), due_at = null
            %s
            returning m.*),
          noted as (
            insert into {monitor_events} (application, monitor_id, execution, kind, iteration,
              detail)
            select u.application, u.id, u.execution, u.status, u.iteration,
              coalesce(u.outcome, nullif(:reason, ''), u.last_error)
            from updated u
            where u.history > 0)
          select 0::float8, false, u.iteration, u.attempts_count from updated u
          """
              .formatted(GUARD.replace("('running'", "('pending', 'running'"));

  /** A wake that meets an instance that is suspended: it has none any more. */
  static final String LOSE_MESSAGE =
      SETTINGS
          + """
          with updated as (
            update {monitors} m
            set message_id = null, updated_at = clock_timestamp()
            where m.application = :application and m.id = :id and m.execution = :execution
              and (m.status = 'suspended' and m.message_id = :message) is true
            returning m.*)
          select 0::float8, false, u.iteration, u.attempts_count from updated u
          """;

  /** Those that a check was given. */
  static final String SEEN =
      """
      update {monitor_events} e
      set unseen = false, iteration = :iteration + 1
      where e.application = :application and e.monitor_id = :id and e.execution = :execution
        and e.unseen and e.id <= :last
      """;

  /** The history of an instance beyond what is kept. What was not seen is no history yet. */
  static final String TRIM =
      """
      delete from {monitor_events} e
      where e.id = any (array(
        select h.id
        from {monitor_events} h
        where h.application = :application and h.monitor_id = :id and not h.unseen
        order by h.id desc
        offset (
          select m.history
          from {monitors} m
          where m.application = :application and m.id = :id)
        limit 5000))
      """;

  /** Holds the instance for a verb. */
  static final String LOCK =
      """
      select m.type, m.execution, m.status, m.message_id, m.waits_for, cardinality(m.unseen),
        m.due_at, m.ended_at is not null, m.started_at is not null, m.woken, clock_timestamp()
      from {monitors} m
      where m.application = :application and m.id = :id
      for no key update
      """;

  /** The same, unless somebody has it. */
  static final String LOCK_IF_FREE =
      LOCK.replace("for no key update", "for no key update skip locked");

  /** An id alone may be another message's: the table may have been emptied, or restored. */
  private static final String OF_INSTANCE =
      "o.queue = :queue and o.id = :message and o.headers ->> 'monitor-id' = :id";

  static final String HAS_MESSAGE =
      """
      select o.id from {outbox} o where %s
      """
          .formatted(OF_INSTANCE);

  static final String NOW =
      """
      select clock_timestamp()
      """;

  /** Takes the place of one that has ended, and of no other. */
  static final String START =
      """
      insert into {monitors} as m (application, id, type, input, parent, history, message_id,
        created_at, updated_at, expires_at, due_at)
      values (:application, :id, :type, :input::json, nullif(:parent, ''), :history, :message,
        :now::timestamptz, :now::timestamptz, nullif(:expires_at, '')::timestamptz,
        :due_at::timestamptz)
      on conflict (application, id) do update
      set type = excluded.type, execution = excluded.execution, status = 'pending',
        outcome = null, iteration = 0, attempts_count = 0, first_failed_at = null,
        last_error = null, error_type = null, error_stack = null, input = excluded.input,
        state = null, custom_status = null, output = null, parent = excluded.parent,
        history = excluded.history, waits_for = '{}', unseen = '{}', woken = false,
        overtime_at = null, message_id = excluded.message_id, created_at = excluded.created_at,
        updated_at = excluded.updated_at, started_at = null, ended_at = null,
        expires_at = excluded.expires_at, due_at = excluded.due_at
      where m.ended_at is not null
      returning m.execution
      """;

  /** What was of an instance whose place it takes is forgotten. */
  static final String STARTED =
      """
      with gone as (
        delete from {monitor_events} e where e.application = :application and e.monitor_id = :id)
      insert into {monitor_events} (application, monitor_id, execution, kind)
      select m.application, m.id, m.execution, 'started'
      from {monitors} m
      where m.application = :application and m.id = :id and m.history > 0
      """;

  static final String RESTART =
      """
      update {monitors} m
      set execution = default, status = 'pending', outcome = null, iteration = 0,
        attempts_count = 0, first_failed_at = null, last_error = null, error_type = null,
        error_stack = null, state = null, custom_status = null, output = null, waits_for = '{}',
        unseen = '{}', woken = false, overtime_at = null, message_id = :message, created_at = :now::timestamptz,
        updated_at = :now::timestamptz, started_at = null, ended_at = null,
        expires_at = :now::timestamptz
          + make_interval(secs => extract(epoch from m.expires_at - m.created_at)::float8), due_at = :now::timestamptz
      where m.application = :application and m.id = :id
      """;

  static final String DROP_UNSEEN =
      """
      update {monitor_events} e
      set unseen = false
      where e.application = :application and e.monitor_id = :id and e.unseen
      """;

  /** What people do is a part of the history. */
  static final String NOTE =
      """
      insert into {monitor_events} (application, monitor_id, execution, kind, iteration, detail)
      select m.application, m.id, m.execution, :kind, m.iteration, nullif(:detail, '')
      from {monitors} m
      where m.application = :application and m.id = :id and m.history > 0
      """;

  static final String TERMINATE =
      """
      update {monitors} m
      set status = 'terminated', output = to_json(:reason::text), waits_for = '{}', unseen = '{}',
        woken = false, updated_at = clock_timestamp(), ended_at = clock_timestamp(), due_at = null
      where m.application = :application and m.id = :id
      """;

  static final String SET_STATUS =
      """
      update {monitors} m
      set status = :status, updated_at = clock_timestamp()
      where m.application = :application and m.id = :id
      """;

  /** Its message is to be the one that was published for it. */
  static final String SET_MESSAGE =
      """
      update {monitors} m
      set message_id = :message, updated_at = clock_timestamp()
      where m.application = :application and m.id = :id
      """;

  static final String SET_DUE =
      """
      update {monitors} m
      set due_at = least(m.due_at, clock_timestamp()), woken = false,
        updated_at = clock_timestamp()
      where m.application = :application and m.id = :id
      """;

  /** The check that runs is followed by another at once. */
  static final String SET_WOKEN =
      """
      update {monitors} m
      set woken = true, updated_at = clock_timestamp()
      where m.application = :application and m.id = :id
      """;

  static final String RAISE =
      """
      insert into {monitor_events} (application, monitor_id, execution, kind, iteration, name,
        payload, unseen)
      select m.application, m.id, m.execution, 'event', m.iteration, :name, :payload::json, true
      from {monitors} m
      where m.application = :application and m.id = :id
      """;

  static final String ADD_UNSEEN =
      """
      update {monitors} m
      set unseen = m.unseen || :name::text, updated_at = clock_timestamp()
      where m.application = :application and m.id = :id
      """;

  /**
   * Makes a message due that nobody has. The first number tells whether it was done, the second
   * whether the message is there, the third whether somebody has it.
   */
  static final String BRING_FORWARD =
      """
      with found as materialized (
        select o.id
        from {outbox} o
        where {of_instance}
          and (o.lease_until is null or o.lease_until < clock_timestamp())
        for no key update skip locked),
      brought as (
        update {outbox} o
        set available_at = least(o.available_at, clock_timestamp())
        from found f
        where o.queue = :queue and o.id = f.id
        returning o.id)
      select (select count(*) from brought),
        (select count(*) from {outbox} o where {of_instance}),
        (select count(*)
          from {outbox} o
          where {of_instance} and o.lease_until >= clock_timestamp()),
        (select count(pg_notify(:channel, :queue))
          from brought
          where exists (
            select from {sleepers} s
            where s.queue = :queue and s.wake_at > clock_timestamp()))
      """
          .replace("{of_instance}", OF_INSTANCE);

  /** Only if nobody has it: else it finds nothing to do. */
  static final String DELETE_MESSAGE =
      """
      delete from {outbox} d
      where d.queue = :queue and d.id = any (array(
        select o.id
        from {outbox} o
        where {of_instance}
          and (o.lease_until is null or o.lease_until < clock_timestamp())
        for update skip locked))
      """
          .replace("{of_instance}", OF_INSTANCE);

  static final String PURGE =
      """
      with events as (
        delete from {monitor_events} e where e.application = :application and e.monitor_id = :id)
      delete from {monitors} m where m.application = :application and m.id = :id
      """;

  /** The latest entries before one, as far as there is room for what they say. */
  static final String HISTORY =
      """
      select e.id, e.execution, e.kind, e.iteration, e.name,
        coalesce(e.payload::text, e.detail), e.created_at
      from (
        select l.*,
          sum(coalesce(octet_length(l.payload::text), octet_length(l.detail), 0))
            over (order by l.id desc rows between unbounded preceding and 1 preceding)
            as bytes_before
        from (
          select h.*
          from {monitor_events} h
          where h.application = :application and h.monitor_id = :id and h.id < :before
          order by h.id desc
          limit :most) l) e
      where (e.bytes_before < :bytes) is not false
      order by e.id desc
      """;

  static final String COLUMNS =
      """
      m.id, m.type, m.execution, m.status, m.outcome, m.iteration, m.attempts_count,
        m.input::text, m.state::text, m.custom_status::text, m.output::text, m.error_type,
        m.last_error, m.error_stack, m.parent, m.waits_for, m.created_at, m.updated_at,
        m.started_at, m.ended_at, m.expires_at, m.due_at\
      """;

  /** The same, with null for large values that are not asked for. */
  static String columns(Set<MonitorQuery.Value> values) {
    String columns = COLUMNS;
    for (MonitorQuery.Value value : MonitorQuery.Value.values()) {
      if (!values.contains(value)) {
        columns = columns.replace("m." + CheckWrites.stored(value) + "::text", "null::text");
      }
    }
    return columns;
  }

  static final String GET =
      "select "
          + COLUMNS
          + """

          from {monitors} m
          where m.application = :application and m.id = :id
          """;

  /** By an index, each up to a number. */
  static final String COUNTS =
      """
      select s.status, (
          select count(*)
          from (
            select 1
            from {monitors} m
            where m.application = :application and m.status = s.status
            limit :most) c)
      from unnest(:statuses::text[]) as s (status)
      """;

  static final String OVERDUE =
      """
      select m.type, m.id, m.due_at, clock_timestamp()
      from {monitors} m
      where m.application = :application and m.ended_at is null and m.status <> 'suspended'
        and m.due_at < clock_timestamp() - interval '60 s'
      order by m.due_at
      limit :most
      """;

  /** The latest ones. */
  static final String FAILED =
      """
      select f.type, f.id, f.ended_at, clock_timestamp()
      from (
        select m.type, m.id, m.ended_at
        from {monitors} m
        where m.application = :application and m.status = 'failed'
          and m.ended_at > now() - interval '1 day'
        order by m.ended_at desc
        limit :most) f
      order by f.ended_at
      """;

  /**
   * A page of the instances that have not ended: its last id and its size, and those of it that are
   * overdue or to be mended. Nobody wakes those whose message is gone, and those that were to be
   * woken while a stranger had their message.
   */
  static final String LOOK =
      """
      with page as materialized (
        select m.id, m.type, m.status, m.due_at, m.message_id, m.woken
        from {monitors} m
        where m.application = :application and m.ended_at is null and m.id > :after
        order by m.id
        limit :most)
      select p.id, p.type, p.due_at, p.due_at < clock_timestamp() - interval '60 s',
        p.message_id is null or p.woken or not exists (
          select from {outbox} o
          where o.queue = :queue and o.id = p.message_id and o.headers ->> 'monitor-id' = p.id),
        clock_timestamp(), 0
      from page p
      where p.status <> 'suspended'
        and (p.due_at < clock_timestamp() - interval '5 s' or p.message_id is null or p.woken)
      union all
      select max(p.id), null, null, null, null, null, count(*) from page p
      """;

  private static final String MAY_EXPIRE =
      """
      m.application = :application and m.ended_at is null and m.expires_at is not null
            and m.expires_at > now() - interval '10 minutes' and m.status <> 'suspended'\
      """;

  /**
   * Instances that expire soon, or have expired lately and were not ended: in how many seconds, or
   * since when nothing was heard of the node on which a check of theirs goes on.
   */
  static final String EXPIRING =
      """
      select e.id, e.type, e.execution, extract(epoch from e.over_at - clock_timestamp())::float8
      from (
        (select m.id, m.type, m.execution, m.expires_at as over_at
          from {monitors} m
          where {may_expire} and m.overtime_at is null
            and m.expires_at < now() + make_interval(secs => :ahead)
          order by m.expires_at
          limit :most)
        union all
        (select m.id, m.type, m.execution, m.overtime_at
          from {monitors} m
          where {may_expire} and m.overtime_at is not null and m.expires_at < now()
          order by m.overtime_at
          limit :most)) e
      order by e.over_at
      """
          .replace("{may_expire}", MAY_EXPIRE);

  /**
   * Checks of theirs run, on a node that is there; they may go on. A row that somebody has locked
   * is passed by: nobody ends it meanwhile.
   */
  static final String GO_ON =
      """
      with free as materialized (
        select m.id
        from unnest(:ids::text[], :executions::bigint[]) as a (id, execution)
        cross join {monitors} m
        where m.application = :application and m.id = any (array[a.id])
          and m.execution = a.execution and (m.ended_at is null) is true
        for no key update of m skip locked)
      update {monitors} m
      set overtime_at = clock_timestamp()
      from free f
      where m.application = :application and m.id = any (array[f.id])
      """;

  /**
   * Ends those whose time is over and of which no check goes on, whoever has their messages: they
   * find nothing to do. Rows that somebody has locked are passed by.
   */
  static final String EXPIRE =
      """
      with free as materialized (
        select m.id
        from unnest(:ids::text[], :executions::bigint[]) as a (id, execution)
        cross join {monitors} m
        where m.application = :application and m.id = any (array[a.id])
          and m.execution = a.execution and (m.status in ('pending', 'running')) is true
          and greatest(m.expires_at, m.overtime_at)
            < clock_timestamp() - make_interval(secs => :grace)
        for no key update of m skip locked),
      ended as (
        update {monitors} m
        set status = 'completed', outcome = 'expired', last_error = null, waits_for = '{}',
          unseen = '{}', woken = false, updated_at = clock_timestamp(),
          ended_at = clock_timestamp(), due_at = null
        from free f
        where m.application = :application and m.id = any (array[f.id])
        returning m.*),
      noted as (
        insert into {monitor_events} (application, monitor_id, execution, kind, iteration, detail)
        select e.application, e.id, e.execution, 'completed', e.iteration, e.outcome
        from ended e
        where e.history > 0),
      gone as (
        delete from {outbox} d
        where d.queue = :queue and d.id = any (array(
          select o.id
          from ended e
          cross join {outbox} o
          where o.queue = :queue and o.id = any (array[e.message_id])
            and o.headers ->> 'monitor-id' = e.id
            and (o.lease_until is null or o.lease_until < clock_timestamp())
          for update of o skip locked)))
      select e.id from ended e
      """;

  private MonitorSql() {}
}
