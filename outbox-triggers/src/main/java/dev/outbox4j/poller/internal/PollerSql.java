package dev.outbox4j.poller.internal;

/**
 * The statements on the record of pollers. The server's clock alone decides whether a lease is
 * over. What a node writes is guarded by its token and its name; what moves the position also by
 * the position before, so that it never moves back.
 */
final class PollerSql {
  static final String READ_COMMITTED = "set transaction_isolation = 'read committed'";

  /** What is read of a poller; {@link StateRow} has the places. */
  private static final String STATE =
      """
      p.version, p.fingerprint::text, p.begun, p.position_side, p.position_type,
        p.position_cursor, p.position_key, p.end_type, p.end_cursor, p.finished_at is not null,
        p.owner, p.token, p.paused_at is not null, p.failing_since, p.failure, p.last_error,
        p.failures_count, p.attempts_count, p.retry_at > clock_timestamp(),
        coalesce(p.lease_until > clock_timestamp(), false),
        extract(epoch from clock_timestamp() - p.complete_at)::float8, p.first_cursor,
        extract(epoch from clock_timestamp() - p.last_success_at)::float8
      """;

  /**
   * Puts a poller on record. A row that is there stays as it is. That it was is in the history in
   * the same statement.
   */
  static final String REGISTER =
      """
      with made as (
        insert into {pollers} as p (application, name, position_side, position_type,
          position_cursor, paused_at, paused_by, pause_reason)
        select :application, :name, :side, :type, :cursor,
          case when :paused then now() end, case when :paused then :node end,
          case when :paused then 'its definition says so' end
        on conflict do nothing
        returning p.position_side, p.position_type, p.position_cursor)
      insert into {poller_history} (application, name, verb, changed_by, reason, version_before,
        version_after, position_before, position_after)
      select :application, :name, 'CREATE', :node, 'a node that has it was started', 0, 1,
        jsonb_build_object('side', 'BEGINNING', 'type', '', 'cursor', '', 'key', '[]'::jsonb),
        jsonb_build_object('side', m.position_side, 'type', m.position_type, 'cursor',
          m.position_cursor, 'key', '[]'::jsonb)
      from made m
      """;

  /**
   * Takes the lease if it is free, or over, or this node's own, and gives the state as it is then.
   * Else gives the state without it. A row that somebody is writing is passed over. Who had it
   * before and did not release it is told, since it may have handled rows.
   */
  static final String ACQUIRE =
      """
      with free as (
        select f.owner
        from {pollers} f
        where f.application = :application and f.name = :name
          and f.paused_at is null and f.finished_at is null
          and (f.owner is null or f.owner = :owner or f.lease_until <= clock_timestamp())
          and (f.retry_at is null or f.retry_at <= clock_timestamp())
        for update skip locked),
      taken as (
        update {pollers} p
        set owner = :owner, token = p.token + 1,
          lease_until = clock_timestamp() + make_interval(secs => :seconds)
        from free
        where p.application = :application and p.name = :name
        returning %1$s, free.owner as before)
      select true, t.*, exists (
          select from {poller_quarantine} q
          where q.application = :application and q.name = :name and q.redrive_at is not null),
        array(select k.key from jsonb_each_text(t.fingerprint::jsonb) k),
        array(select k.value from jsonb_each_text(t.fingerprint::jsonb) k)
      from taken t
      union all
      select false, %1$s, p.owner, false, array(select k.key from jsonb_each_text(p.fingerprint) k),
        array(select k.value from jsonb_each_text(p.fingerprint) k)
      from {pollers} p
      where p.application = :application and p.name = :name and not exists (select from taken)
      """
          .formatted(STATE);

  /** Gives the state, for a dry tick and for whoever must know what became of a write. */
  static final String STATE_OF =
      """
      select false, %s, p.owner, false, array(select k.key from jsonb_each_text(p.fingerprint) k),
        array(select k.value from jsonb_each_text(p.fingerprint) k)
      from {pollers} p
      where p.application = :application and p.name = :name
      """
          .formatted(STATE);

  /** Nothing, if another has it, or it is gone. One that is over is renewed if nobody took it. */
  static final String RENEW =
      """
      update {pollers} p
      set lease_until = clock_timestamp() + make_interval(secs => :seconds)
      where p.application = :application and p.name = :name
        and p.owner = :owner and p.token = :token
      """;

  /** Who has it now. */
  static final String HOLDER =
      """
      select p.owner, p.token, p.version
      from {pollers} p
      where p.application = :application and p.name = :name
      """;

  /** Notes what was found at the first look, or of a definition that was adopted. */
  static final String BEGIN =
      """
      update {pollers} p
      set begun = true, fingerprint = cast(:fingerprint as jsonb), position_side = :side,
        position_type = :type, position_cursor = :cursor,
        position_key = array(select json_array_elements_text(cast(:key as json))),
        end_type = :end_type, end_cursor = :end_cursor
      where p.application = :application and p.name = :name
        and p.owner = :owner and p.token = :token
      """;

  private static final String GUARDED =
      """
      p.application = :application and p.name = :name and p.owner = :owner and p.token = :token
        and p.position_side = :before_side and p.position_type = :before_type
        and p.position_cursor = :before_cursor
        and p.position_key = array(select json_array_elements_text(cast(:before_key as json)))
      """;

  private static final String MOVES =
      """
      position_side = :side, position_type = :type, position_cursor = :cursor,
        position_key = array(select json_array_elements_text(cast(:key as json))),
        positioned_at = clock_timestamp(), rows_count = p.rows_count + :rows,
        batches_count = p.batches_count + 1, attempts_count = 0, retry_at = null,
        first_cursor = case when p.first_cursor = '' then :first else p.first_cursor end,
        failing_side = '', failing_type = '', failing_cursor = '', failing_key = '{}'
      """;

  private static final String SUCCEEDS =
      """
      failing_since = null, failure = null, last_error = null, failures_count = 0,
        last_tick_at = clock_timestamp(), last_success_at = clock_timestamp(),
        complete_at = case when :lag < 0 then p.complete_at
          else greatest(p.complete_at, clock_timestamp() - make_interval(secs => :lag)) end,
        held_back = nullif(:held_back, ''),
        owner = case when :release then null else p.owner end,
        lease_until = case when :release then null else p.lease_until end
      """;

  /** Moves the position behind a batch, and releases the lease if the tick is over. */
  static final String COMMIT =
      """
      update {pollers} p
      set %s, %s
      where %s
      returning p.paused_at is not null
      """
          .formatted(MOVES, SUCCEEDS, GUARDED);

  /** Moves the position behind a row that goes to quarantine. */
  static final String QUARANTINE =
      """
      with moved as (
        update {pollers} p
        set %s
        where %s
        returning p.paused_at is not null as paused),
      put as (
        insert into {poller_quarantine} as q (application, name, event_id, operation, source,
          cursor_type, cursor_text, row_key, row_after, row_types, last_error)
        select :application, :name, :event_id, :operation, :source, :cursor_type, :cursor_text,
          cast(:row_key as json), cast(:row_after as json), cast(:row_types as json), :error
        from moved
        on conflict (application, name, event_id) do update
        set last_error = excluded.last_error, last_failed_at = now(), redrive_at = null,
          attempts_count = q.attempts_count + 1
        returning q.id)
      select m.paused from moved m, put
      """
          .formatted(MOVES, GUARDED);

  /** How many rows are in quarantine, counted up to a bound. */
  static final String QUARANTINED =
      """
      select count(*)
      from (
        select from {poller_quarantine} q
        where q.application = :application and q.name = :name
        limit :most) s
      """;

  /** Ends a look that found nothing more, and releases the lease. */
  static final String RELEASE =
      """
      update {pollers} p
      set %s
      where p.application = :application and p.name = :name
        and p.owner = :owner and p.token = :token
      """
          .formatted(SUCCEEDS);

  /** Releases the lease; what was looked for is not known. */
  static final String HAND_BACK =
      """
      update {pollers} p
      set attempts_count = p.attempts_count + :attempts, last_tick_at = clock_timestamp(),
        owner = null, lease_until = null
      where p.application = :application and p.name = :name
        and p.owner = :owner and p.token = :token
      """;

  /**
   * Ends the sessions whose handler has a transaction open by an earlier token: it cannot be
   * committed any more, but whatever it has locked waits for it, and so do rows of this database.
   */
  static final String END_SESSIONS =
      """
      with theirs as materialized (
        select a.pid
        from pg_stat_activity a
        where a.datid = (select d.oid from pg_database d where d.datname = current_database())
          and case when a.application_name ~ :sessions
            then split_part(a.application_name, ' ', 3)::bigint < :token else false end)
      select t.pid
      from theirs t
      where pg_terminate_backend(t.pid)
      """;

  /** Ends a look that failed, and releases the lease. A wait is only set after a handler. */
  static final String FAIL =
      """
      update {pollers} p
      set failing_since = coalesce(p.failing_since, clock_timestamp()), failure = :failure,
        last_error = :error, failures_count = p.failures_count + 1,
        attempts_count = p.attempts_count + :attempts,
        retry_at = case when :wait > 0 then clock_timestamp() + make_interval(secs => :wait) end,
        failing_side = :side, failing_type = :type, failing_cursor = :cursor,
        failing_key = array(select json_array_elements_text(cast(:key as json))),
        last_tick_at = clock_timestamp(), held_back = nullif(:held_back, ''),
        owner = null, lease_until = null
      where p.application = :application and p.name = :name
        and p.owner = :owner and p.token = :token
      """;

  /** Ends a poller that has come to its end, and releases the lease. */
  static final String FINISH =
      """
      with ended as (
        update {pollers} p
        set finished_at = clock_timestamp(), owner = null, lease_until = null,
          version = p.version + 1, last_tick_at = clock_timestamp(),
          last_success_at = clock_timestamp(), held_back = null, complete_at = null,
          failing_since = null,
          failure = null, last_error = null, failures_count = 0
        where p.application = :application and p.name = :name
          and p.owner = :owner and p.token = :token and p.finished_at is null
        returning p.version, p.position_side, p.position_type, p.position_cursor, p.position_key)
      insert into {poller_history} (application, name, verb, changed_by, reason, version_before,
        version_after, position_before, position_after)
      select :application, :name, 'FINISH', :owner, 'no row up to its end is left',
        e.version - 1, e.version,
        jsonb_build_object('side', e.position_side, 'type', e.position_type, 'cursor',
          e.position_cursor, 'key', to_jsonb(e.position_key)),
        jsonb_build_object('side', e.position_side, 'type', e.position_type, 'cursor',
          e.position_cursor, 'key', to_jsonb(e.position_key))
      from ended e
      """;

  /** A row that is to be handled again. */
  static final String REDRIVEN =
      """
      select q.id, q.event_id, q.operation, q.source, q.cursor_type, q.cursor_text,
        array(select k.key from json_each_text(q.row_key) k),
        array(select k.value from json_each_text(q.row_key) k),
        array(select a.key from json_each_text(q.row_after) a),
        array(select a.value from json_each_text(q.row_after) a),
        array(select t.key from json_each_text(q.row_types) t),
        array(select t.value from json_each_text(q.row_types) t), q.attempts_count
      from {poller_quarantine} q
      where q.application = :application and q.name = :name and q.redrive_at is not null
      order by q.redrive_at, q.id
      limit 1
      """;

  /** Lets go of a row that was handled, if the lease is still this node's. */
  static final String REDRIVE_DONE =
      """
      with own as (
        select p.name
        from {pollers} p
        where p.application = :application and p.name = :name
          and p.owner = :owner and p.token = :token
        for update)
      delete from {poller_quarantine} q
      using own
      where q.application = :application and q.name = :name and q.id = :id
        and q.redrive_at is not null
      """;

  /** Puts a row back into quarantine. */
  static final String REDRIVE_FAILED =
      """
      update {poller_quarantine} q
      set redrive_at = null, last_error = :error, last_failed_at = now(),
        attempts_count = q.attempts_count + 1
      where q.application = :application and q.name = :name and q.id = :id
      """;

  /** For people. */
  static final String STATUS =
      """
      select p.name, p.version, p.fingerprint::text, p.position_side, p.position_type,
        p.position_cursor, p.position_key, p.positioned_at,
        case when p.lease_until > clock_timestamp() then p.owner end, p.lease_until, p.token,
        p.paused_at, p.paused_by, p.pause_reason, p.failing_since, p.failure, p.last_error,
        p.failures_count, case when p.retry_at > clock_timestamp() then p.retry_at end,
        p.failing_side, p.failing_cursor, p.failing_key, p.last_tick_at, p.last_success_at,
        extract(epoch from clock_timestamp() - p.complete_at)::float8, p.held_back,
        p.rows_count, p.batches_count, (
          select count(*)
          from {poller_quarantine} q
          where q.application = p.application and q.name = p.name),
        p.end_type, p.end_cursor, p.finished_at, p.first_cursor, p.created_at,
        array(select k.key from jsonb_each_text(p.fingerprint) k),
        array(select k.value from jsonb_each_text(p.fingerprint) k), p.failing_type
      from {pollers} p
      where p.application = :application and (:name = '' or p.name = :name)
      order by p.name
      """;

  /** What a verb sees of a poller, whose row it keeps until its transaction's end. */
  static final String LOCK =
      """
      select p.version, p.position_side, p.position_type, p.position_cursor, p.position_key,
        p.paused_at is not null, p.retry_at is not null, p.failing_side, p.failing_cursor,
        p.failing_key, p.failing_type
      from {pollers} p
      where p.application = :application and p.name = :name
      for update
      """;

  static final String PAUSE =
      """
      update {pollers} p
      set paused_at = now(), paused_by = :by, pause_reason = :reason, version = p.version + 1
      where p.application = :application and p.name = :name
      """;

  static final String RESUME =
      """
      update {pollers} p
      set paused_at = null, paused_by = null, pause_reason = null, version = p.version + 1
      where p.application = :application and p.name = :name
      """;

  static final String RETRY =
      """
      update {pollers} p
      set retry_at = null, version = p.version + 1
      where p.application = :application and p.name = :name
      """;

  /** Nothing else of the poller has changed. */
  static final String TOUCH =
      """
      update {pollers} p
      set version = p.version + 1
      where p.application = :application and p.name = :name
      """;

  /** Takes the lease from whoever has it: its token is of the past. */
  private static final String FORGETS =
      """
      version = p.version + 1, token = p.token + 1, owner = null, lease_until = null,
        failing_since = null, failure = null, last_error = null, failures_count = 0,
        attempts_count = 0, retry_at = null, failing_side = '', failing_type = '',
        failing_cursor = '', failing_key = '{}', held_back = null
      """;

  static final String SET =
      """
      update {pollers} p
      set %s, begun = true, finished_at = null, position_side = :side, position_type = :type,
        position_cursor = :cursor,
        position_key = array(select json_array_elements_text(cast(:key as json))),
        positioned_at = now(), complete_at = null
      where p.application = :application and p.name = :name
      """
          .formatted(FORGETS);

  static final String ADOPT =
      """
      update {pollers} p
      set %s, fingerprint = '{}'
      where p.application = :application and p.name = :name
      """
          .formatted(FORGETS);

  static final String RESET =
      """
      update {pollers} p
      set %s, begun = false, fingerprint = '{}', finished_at = null, position_side = 'BEGINNING',
        position_type = '', position_cursor = '', position_key = '{}', positioned_at = null,
        first_cursor = '', end_type = '', end_cursor = '', complete_at = null, rows_count = 0,
        batches_count = 0
      where p.application = :application and p.name = :name
      """
          .formatted(FORGETS);

  static final String REDRIVE =
      """
      update {poller_quarantine} q
      set redrive_at = now()
      where q.application = :application and q.name = :name and q.id = :id
        and q.redrive_at is null
      """;

  static final String DISCARD =
      """
      delete from {poller_quarantine} q
      where q.application = :application and q.name = :name and q.id = :id
      """;

  static final String NOTE =
      """
      insert into {poller_history} (application, name, verb, changed_by, reason, version_before,
        version_after, position_before, position_after)
      select :application, :name, :verb, :by, :reason, p.version - 1, p.version,
        jsonb_build_object('side', :before_side, 'type', :before_type, 'cursor', :before_cursor,
          'key', cast(:before_key as jsonb)),
        jsonb_build_object('side', p.position_side, 'type', p.position_type, 'cursor',
          p.position_cursor, 'key', to_jsonb(p.position_key))
      from {pollers} p
      where p.application = :application and p.name = :name
      """;

  /** Keeps the latest changes only. */
  static final String FORGET_OLD =
      """
      delete from {poller_history} h
      where h.application = :application and h.name = :name and h.id <= (
        select o.id
        from {poller_history} o
        where o.application = :application and o.name = :name
        order by o.id desc
        offset :kept limit 1)
      """;

  static final String HISTORY =
      """
      select h.changed_at, h.verb, h.changed_by, h.reason, h.version_before, h.version_after,
        h.position_before ->> 'side', h.position_before ->> 'type',
        h.position_before ->> 'cursor',
        array(select jsonb_array_elements_text(h.position_before -> 'key')),
        h.position_after ->> 'side', h.position_after ->> 'type', h.position_after ->> 'cursor',
        array(select jsonb_array_elements_text(h.position_after -> 'key'))
      from {poller_history} h
      where h.application = :application and h.name = :name
      order by h.id desc
      limit :most
      """;

  static final String LIST_QUARANTINE =
      """
      select q.id, q.event_id, q.operation, q.cursor_text, q.row_key::text, q.row_after::text,
        q.last_error, q.attempts_count, q.first_failed_at, q.last_failed_at,
        q.redrive_at is not null
      from {poller_quarantine} q
      where q.application = :application and q.name = :name
      order by q.id
      limit :most
      """;

  static final String REMOVE_QUARANTINE =
      """
      delete from {poller_quarantine} q where q.application = :application and q.name = :name
      """;

  static final String REMOVE_HISTORY =
      """
      delete from {poller_history} h where h.application = :application and h.name = :name
      """;

  static final String REMOVE =
      """
      delete from {pollers} p where p.application = :application and p.name = :name
      """;

  private PollerSql() {}
}
