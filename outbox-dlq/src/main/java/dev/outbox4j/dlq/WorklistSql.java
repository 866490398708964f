package dev.outbox4j.dlq;

import dev.outbox4j.postgres.internal.Refusal;

/**
 * The texts of the statements on the worklist. Each runs behind the preamble of the store, which
 * leaves only walks of an index; so each text leaves only one index.
 */
final class WorklistSql {
  /** How many letters a statement looks at, at most. */
  static final int WINDOW = 2_000;

  private static final String COLUMNS =
      """
      d.id, d.original_id, d.queue, d.type, d.ordering_key, octet_length(d.payload) as payload_bytes,
          d.deliveries_count, d.attempts_count, d.failed_at, d.failure_reason,
          left(d.last_exception, 200) as exception, d.redrives_count, d.resolved_at, d.resolved_by,
          d.resolution\
      """;

  /** The latest first. The last row is where the look ended, and says how many it saw. */
  static final String PAGE =
      """
      with scanned as materialized (
        select {columns}, ({matches}) is true as hit
        from {letters}
        where d.outbox = ({outbox_name}) and {walked} and {after}
        order by {latest_first}
        limit {window}),
      hits as materialized (
        select * from scanned where hit order by failed_at desc, id desc limit :size)
      select hits.*, 0 as seen from hits
      union all
      (select scanned.*, (select count(*)::int from scanned) as seen
      from scanned order by failed_at, id limit 1)
      """
          .replace("{columns}", COLUMNS)
          .replace("{window}", String.valueOf(WINDOW));

  /** Unresolved letters, which the indexes have queue by queue. */
  private static final String OPEN =
      """
      {dead_letters} d where d.outbox = ({outbox_name}) and d.resolved_at is null\
      """;

  /**
   * The latest unresolved letter before a place: from one queue to the next, and in each the latest
   * one, however many resolved ones are between. The place is the only upper bound, since of two
   * the server may begin at the wider one, and go through all that is newer than the place.
   */
  static final String LATEST_OPEN =
      """
      with recursive queues (queue) as (
        (select d.queue from {open} order by d.queue limit 1)
        union all
        select (select d.queue from {open} and d.queue > q.queue order by d.queue limit 1)
        from queues q
        where q.queue is not null)
      select latest.failed_at, latest.id
      from queues q
      cross join lateral (
        select d.failed_at, d.id
        from {open} and d.queue >= q.queue
          and (d.queue, d.failed_at, d.id) < (q.queue, :at::timestamptz, :id::bigint)
        order by d.queue desc, d.failed_at desc, d.id desc
        limit 1) latest
      order by latest.failed_at desc, latest.id desc
      limit 1
      """
          .replace("{open}", OPEN);

  /** An order, so that only the index has it that serves a page. */
  static final String COUNT =
      """
      select count(*) from (
        select from {letters}
        where d.outbox = ({outbox_name}) and {walked} and ({matches}) is true
        order by {latest_first}
        limit :most) counted
      """;

  /** Whether an index names more letters than a statement looks at. */
  static final String ARE_MANY =
      """
      select count(*) > {window} from (select from {letters} limit {window} + 1) counted
      """
          .replace("{window}", String.valueOf(WINDOW));

  /**
   * In the order of the messages' ids, which is that of a key. A plain letter costs the memory that
   * its bytes say; headers are compressed, and what they are is not known before they are read.
   */
  static final String CANDIDATES =
      """
      with scanned as materialized (
        select d.id, d.original_id, d.queue, d.ordering_key, d.timer_id, d.failed_at,
          octet_length(d.payload)::bigint + coalesce(octet_length(d.last_exception), 0)
            + case when pg_column_size(d.headers) < 1000 then 1000
              else pg_column_size(d.headers) * 256::bigint end as bytes,
          ({matches} and d.failed_at <= :begun::timestamptz) is true as hit
        from {letters}
        where d.outbox = ({outbox_name}) and {walked}
        order by {oldest_first}
        limit {window})
      select id, original_id, queue, ordering_key, timer_id, failed_at, bytes, hit from scanned
      where hit or id = (select id from scanned order by {last_first} limit 1)
      order by {in_order}
      """
          .replace("{window}", String.valueOf(WINDOW));

  /** Which of some ids no letter of the outbox has. */
  static final String UNKNOWN =
      """
      select a.id
      from unnest(:ids::bigint[]) as a (id)
      where not exists (
        select from {dead_letters} d
        where d.id = any (array[a.id]) and (d.outbox = ({outbox_name})) is true)
      limit 1
      """;

  static final String LETTERS =
      """
      select {columns}, false as hit, 0 as seen, d.payload, d.headers::text, d.timer_id, d.created_at,
        d.available_at, d.first_attempt_at, d.last_attempt_at, d.last_exception
      from {dead_letters} d
      where d.id = any (:ids::bigint[]) and (d.outbox = ({outbox_name})) is true
      """
          .replace("{columns}", COLUMNS);

  /** Unresolved letters of a queue that have keys, by whose order only their index goes. */
  private static final String OF_KEYS =
      """
      {dead_letters} d
          where d.queue = :queue and d.ordering_key is not null and d.resolved_at is null
            and d.outbox = ({outbox_name})\
      """;

  /** From one key to the next, however many letters each has; then what the found ones have. */
  static final String KEYS =
      """
      with recursive keys (ordering_key, place) as (
        (select d.ordering_key, 1::bigint
          from {of_keys} and d.ordering_key > :after
          order by d.ordering_key limit 1)
        union all
        select (
          select d.ordering_key
          from {of_keys} and d.ordering_key > k.ordering_key
          order by d.ordering_key limit 1), k.place + 1
        from keys k
        where k.ordering_key is not null and k.place < :size)
      select k.ordering_key, found.letters, found.since, found.first
      from keys k
      cross join lateral (
        select count(*) as letters, min(ordered.failed_at) as since, min(ordered.original_id) as first
        from (
          select d.failed_at, d.original_id
          from {of_keys} and d.ordering_key >= k.ordering_key and d.ordering_key <= k.ordering_key
          order by d.ordering_key
          offset 0) ordered) found
      where k.ordering_key is not null and found.letters > 0
      order by k.place
      """
          .replace("{of_keys}", OF_KEYS);

  static final String BEGIN =
      """
      insert into {audit} (outbox, action, acted_by, note, filter)
      select ({outbox_name}), :action, :by, nullif(:note, ''), :filter
      where {one_transaction}
      returning id, clock_timestamp()
      """
          .replace("{one_transaction}", Refusal.ONE_TRANSACTION);

  /** How an entry says that it is of a retention, one of which runs at a time. */
  static final String RETENTION = "retention";

  /**
   * Begins what one process at a time does, of all outboxes that share the table, and what need not
   * be done so soon again. The entry is the lease: it lasts as long as it gives signs of life. The
   * lock is the transaction's, and orders those who begin. Only the index on what retentions did
   * serves either look, however many entries there are of other actions; it begins with the status,
   * which is a range of one value, so that only it has the order. Of those that have ended it looks
   * at the latest. Times far ahead are of a server whose clock was ahead, such as one that another
   * has taken over from.
   */
  static final String BEGIN_RETENTION =
      """
      select set_config('outbox4j.turn',
        pg_try_advisory_xact_lock(hashtextextended('outbox4j retention '
          || cast('{dead_letters}' as regclass)::oid, 0))::text, true);
      insert into {audit} (outbox, action, acted_by, filter)
      select ({outbox_name}), '{retention}', :by, :filter
      where {one_transaction} and current_setting('outbox4j.turn') = 'true'
        and not exists (
          select from {audit} a
          where a.action = '{retention}' and a.status = 'running'
            and a.seen_at > clock_timestamp() - interval '5 minutes'
            and a.seen_at < clock_timestamp() + interval '35 minutes')
        and (:pause::float8 = 0 or not exists (
          select from (
            select a.outbox, a.ended_at from {audit} a
            where a.action = '{retention}' and a.status >= 'completed' and a.status <= 'completed'
            order by a.status desc, a.id desc limit 10000) a
          where a.outbox = ({outbox_name})
            and a.ended_at > clock_timestamp() - make_interval(secs => :pause::float8)
            and a.ended_at < clock_timestamp() + interval '5 minutes'))
      returning id, clock_timestamp()
      """
          .replace("{one_transaction}", Refusal.ONE_TRANSACTION)
          .replace("{retention}", RETENTION);

  static final String SEEN =
      """
      update {audit} set seen_at = clock_timestamp() + make_interval(secs => :ahead::float8)
        where id = :run::bigint
      """;

  static final String END =
      """
      update {audit}
        set status = :status, ended_at = clock_timestamp(), error = nullif(:error, ''),
          refused_count = :refused::bigint, passed_by_count = :passed_by::bigint
        where id = :run::bigint
        returning done_count
      """;

  /** What is against putting a letter {@code p} back. */
  private static final String OBSTACLES_OF_ONE =
      """
      when exists (select from {outbox} o where o.id = any (array[p.original_id]))
            then '{live_id}'
          when exists (
            select from {outbox} o
            where o.queue = p.queue and o.timer_id = any (array[p.timer_id])
              and o.timer_id is not null)
            then '{live_timer}'
          end\
      """
          .replace("{live_id}", Obstacle.LIVE_ID)
          .replace("{live_timer}", Obstacle.LIVE_TIMER);

  static final String OBSTACLES =
      """
      select looked.id, looked.obstacle
      from (
        select p.id, case {obstacles} as obstacle
        from {dead_letters} p
        where p.id = any (:ids::bigint[])) looked
      where looked.obstacle is not null
      """
          .replace("{obstacles}", OBSTACLES_OF_ONE);

  /**
   * Asks for the turn to put letters with ordering keys back, until the transaction ends. It is a
   * statement before the one that does it, which so sees what was done in the turn before.
   */
  private static final String TURN =
      """
      select set_config('outbox4j.turn',
        case when :keyed::boolean
          then pg_try_advisory_xact_lock(hashtextextended('outbox4j redrive '
            || cast('{dead_letters}' as regclass)::oid || ' ' || cast('{outbox}' as regclass)::oid,
            0))::text
          else 'true' end, true);
      """;

  /**
   * A letter goes as it was when it was looked at, or not at all. One that somebody has in hand, or
   * that has an obstacle, holds back the younger ones of its key.
   */
  private static final String PICKED =
      """
      with asked as materialized (
        select a.place, d.id, d.failed_at, d.original_id, d.queue, d.ordering_key, d.timer_id
        from unnest(:ids::bigint[], :failed::text[]::timestamptz[])
          with ordinality as a (id, failed_at, place)
        cross join {dead_letters} d
        where current_setting('outbox4j.turn') = 'true'
          and d.id = any (array[a.id]) and d.failed_at = a.failed_at
          and (d.outbox = ({outbox_name})) is true and (d.resolved_at is null) is true),
      picked as materialized (
        select d.id
        from asked a cross join {dead_letters} d
        where d.id = any (array[a.id]) and d.failed_at = a.failed_at
          and (d.resolved_at is null) is true
        for no key update of d skip locked),
      looked as materialized (
        select p.*, case when not exists (select from picked l where l.id = p.id) then '{locked}'
          {obstacles} as obstacle
        from asked p),
      free as materialized (
        select p.* from looked p
        where p.obstacle is null and not exists (
          select from looked o
          where o.obstacle is not null and o.place < p.place and o.queue = p.queue
            and o.ordering_key = p.ordering_key)),
      redriven as (
        update {dead_letters} d
          set resolved_at = now(), resolved_by = :by, resolution = :what,
            redrives_count = d.redrives_count + 1
          from free p
          where d.id = any (array[p.id]) and d.failed_at = p.failed_at
          returning d.*),
      """
          .replace("{locked}", Obstacle.LOCKED)
          .replace("{obstacles}", OBSTACLES_OF_ONE);

  /** What was done is read from what arrived in the outbox; all of it did, or nothing is done. */
  private static final String COUNTED =
      """
      told as materialized (
        select count(pg_notify(:channel, queues.queue))
        from (select distinct back.queue from back) queues),
      audited as (
        update {audit} a
          set done_count = a.done_count + (select count(*) from back),
            refused_count = :refused::bigint, passed_by_count = :passed_by::bigint,
            seen_at = clock_timestamp()
          where a.id = :run::bigint and current_setting('outbox4j.turn') = 'true')
      select p.id, b.id is not null, p.obstacle
      from looked p left join back b on b.id = p.original_id and p.obstacle is null
      cross join told
      where (
        select cast(case when free.count <> back.count
          then '{not_put_back}' || back.count || ' instead of ' || free.count end as int)
        from (select count(*) from free) free, (select count(*) from back) back) is null
      """
          .replace("{not_put_back}", Refusal.NOT_PUT_BACK.words());

  static final String REDRIVE =
      TURN
          + PICKED
          + """
      trip as (
        insert into {trips} (dead_letter, number, redriven_by, note, failed_at, failure_reason,
          last_exception, deliveries_count, attempts_count, created_at)
        select id, redrives_count, :by, nullif(:note, ''), failed_at, failure_reason,
          last_exception, deliveries_count, attempts_count, created_at
        from redriven),
      back as (
        insert into {outbox} (id, lease_token, queue, type, ordering_key, payload, headers, timer_id)
        select original_id, lease_token, queue, type, ordering_key, payload, headers, timer_id
        from redriven
        returning id, queue),
      """
          + COUNTED;

  /** Headers that are not changed stay as they are, also those that are no texts. */
  static final String EDIT =
      TURN
          + PICKED
          + """
      trip as (
        insert into {trips} (dead_letter, number, redriven_by, note, failed_at, failure_reason,
          last_exception, deliveries_count, attempts_count, edited, type, payload, headers,
          created_at)
        select id, redrives_count, :by, nullif(:note, ''), failed_at, failure_reason,
          last_exception, deliveries_count, attempts_count, true, type, payload, headers, created_at
        from redriven),
      back as (
        insert into {outbox} (id, lease_token, queue, type, ordering_key, payload, headers, timer_id)
        select original_id, lease_token, queue, (:types::text[])[1], ordering_key, :payload::bytea,
          (headers - :removed::text[]) || jsonb_object(:names::text[], :values::text[]), timer_id
        from redriven
        returning id, queue),
      """
          + COUNTED;

  /** Why a letter was not put back, beside it; the texts begin with {@link Words#NOT_REDRIVEN}. */
  static final String NOTE =
      """
      with picked as materialized (
        select d.id, d.failed_at, a.note
        from unnest(:ids::bigint[], :failed::text[]::timestamptz[], :notes::text[])
          as a (id, failed_at, note)
        cross join {dead_letters} d
        where d.id = any (array[a.id]) and d.failed_at = a.failed_at
          and (d.outbox = ({outbox_name})) is true and (d.resolved_at is null) is true
        for no key update of d skip locked)
      update {dead_letters} d
        set resolution = p.note, resolved_by = :by
        from picked p
        where d.id = any (array[p.id]) and d.failed_at = p.failed_at
      """;

  static final String DISCARD =
      """
      with picked as materialized (
        select d.id, d.failed_at
        from unnest(:ids::bigint[], :failed::text[]::timestamptz[]) as a (id, failed_at)
        cross join {dead_letters} d
        where d.id = any (array[a.id]) and d.failed_at = a.failed_at
          and (d.outbox = ({outbox_name})) is true and (d.resolved_at is null) is true
        for no key update of d skip locked),
      discarded as (
        update {dead_letters} d
          set resolved_at = now(), resolved_by = :by, resolution = :what
          from picked p
          where d.id = any (array[p.id]) and d.failed_at = p.failed_at
          returning d.id),
      audited as (
        update {audit} a
          set done_count = a.done_count + (select count(*) from discarded),
            seen_at = clock_timestamp()
          where a.id = :run::bigint)
      select id, true, null from discarded
      """;

  /** One whose message is in the outbox stays, so that it has a history if it fails again. */
  static final String PURGE =
      """
      with asked as materialized (
        select d.id, d.failed_at, not :forced::boolean and exists (
            select from {outbox} o where o.id = any (array[d.original_id])) as waits
        from unnest(:ids::bigint[], :failed::text[]::timestamptz[]) as a (id, failed_at)
        cross join {dead_letters} d
        where d.id = any (array[a.id]) and d.failed_at = a.failed_at
          and (d.outbox = ({outbox_name})) is true
          and (:forced::boolean or d.resolved_at is not null) is true),
      picked as materialized (
        select d.id, d.failed_at
        from asked a cross join {dead_letters} d
        where not a.waits and d.id = any (array[a.id]) and d.failed_at = a.failed_at
          and (:forced::boolean or d.resolved_at is not null) is true
        for update of d skip locked),
      purged as (
        delete from {dead_letters} d
          using picked p
          where d.id = any (array[p.id]) and d.failed_at = p.failed_at
          returning d.id),
      trips_purged as (
        delete from {trips} t using purged where t.dead_letter = any (array[purged.id])),
      audited as (
        update {audit} a
          set done_count = a.done_count + (select count(*) from purged),
            seen_at = clock_timestamp()
          where a.id = :run::bigint)
      select a.id, p.id is not null, case when a.waits then '{live_id}' end
      from asked a left join purged p on p.id = a.id
      """
          .replace("{live_id}", Obstacle.LIVE_ID);

  static final String TRIPS =
      """
      select t.number, t.redriven_at, t.redriven_by, t.note, t.failed_at, t.failure_reason,
        t.last_exception, t.deliveries_count, t.attempts_count, t.edited, t.type, t.payload,
        t.headers::text,
        case
          when t.number < d.redrives_count or d.resolved_at is null or d.failed_at <> t.failed_at
            then 'FAILED_AGAIN'
          when exists (select from {outbox} o where o.id = any (array[d.original_id]))
            then 'WAITING'
          else 'GONE' end
      from {dead_letters} d cross join {trips} t
      where d.id = any (array[:id::bigint]) and (d.outbox = ({outbox_name})) is true
        and t.dead_letter = any (array[d.id]) and (t.created_at = d.created_at) is true
      order by t.dead_letter, t.redriven_at
      """;

  /**
   * A partition that was dropped is as alive as the run that deletes the histories of its letters:
   * that may have much to do before, and what one leaves the next one does.
   */
  static final String AUDIT =
      """
      select id, action, acted_by, note, filter, began_at, ended_at,
        case when status = 'running' and seen_at < clock_timestamp() - interval '5 minutes'
            and not (action = '{drop}' and exists (
              select from {audit} r
              where r.action = '{retention}' and r.status = 'running'
                and r.seen_at > clock_timestamp() - interval '5 minutes'))
          then 'died' else status end,
        done_count, refused_count, passed_by_count, error
      from {audit}
      where outbox = ({outbox_name})
      order by id desc
      limit :limit
      """
          .replace("{drop}", PartitionSql.DROPPED)
          .replace("{retention}", RETENTION);

  private WorklistSql() {}
}
