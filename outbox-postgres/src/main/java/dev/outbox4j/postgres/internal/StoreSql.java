package dev.outbox4j.postgres.internal;

/**
 * The texts of the store's statements, but for the writes under a lease, which are in {@link
 * FencedSql}. Each runs behind the {@link Preamble}. Queue and owner are parameters in every
 * reference to a table, so that a planner sees at once which partition or shard is meant.
 */
final class StoreSql {

  /**
   * Locks rows in their order and leases them.
   *
   * <p>A row is found again by its place, which cannot change under its lock: no index is walked a
   * second time. If the lock was got on a version that is newer than the statement's snapshot, the
   * row is not found there and left for the next claim. Queue and id tell apart equal places in two
   * partitions.
   *
   * <p>A message that was published in the place of one whose owner is gone has its own id from now
   * on. Where there is none, nothing of an index is written.
   *
   * <p>The end is said twice: beside another upper bound, a comparison of rows does not end the
   * scan, which would pass all entries above.
   */
  static final String CLAIM =
      """
      with picked as materialized (
        select ctid, id
        from {outbox}
        where queue = :queue and available_at <= least(now(), :up_to_at)
          and (available_at, id) > (:above_at, :above_id)
          and (available_at, id) <= (:up_to_at, :up_to_id)
          and (lease_until is null or lease_until < now())
        order by available_at, id limit :limit for update skip locked)
      update {outbox} o
      set id = coalesce(o.next_id, o.id), next_id = null,
        lease_until = now() + make_interval(secs => :lease), leased_at = now(),
        lease_token = o.lease_token + 1, leased_by = :owner,
        deliveries_count = o.deliveries_count + 1
      from picked
      where o.queue = :queue and o.ctid = picked.ctid and (o.id = picked.id) is true
        and {one_transaction}
      returning o.id, o.lease_token, o.type, o.ordering_key, o.timer_id, o.payload, o.headers,
        o.created_at, o.available_at, o.deliveries_count, o.attempts_count, o.first_attempt_at,
        o.expires_at
      """
          .replace("{one_transaction}", Refusal.ONE_TRANSACTION);

  /** As {@link #CLAIM}, of rows whose payloads fit, and how many were picked. */
  static final String CLAIM_MEASURED =
      """
      with picked as materialized (
        select ctid, id, octet_length(payload) as size
        from {outbox}
        where queue = :queue and available_at <= least(now(), :up_to_at)
          and (available_at, id) > (:above_at, :above_id)
          and (available_at, id) <= (:up_to_at, :up_to_id)
          and (lease_until is null or lease_until < now())
        order by available_at, id limit :limit for update skip locked),
      fitting as (
        select ctid, id, size, sum(size) over (rows unbounded preceding) as total from picked)
      update {outbox} o
      set id = coalesce(o.next_id, o.id), next_id = null,
        lease_until = now() + make_interval(secs => :lease), leased_at = now(),
        lease_token = o.lease_token + 1, leased_by = :owner,
        deliveries_count = o.deliveries_count + 1
      from fitting f
      where o.queue = :queue and o.ctid = f.ctid and (o.id = f.id) is true
        and (f.total <= :max_bytes or f.total = f.size)
        and {one_transaction}
      returning o.id, o.lease_token, o.type, o.ordering_key, o.timer_id, o.payload, o.headers,
        o.created_at, o.available_at, o.deliveries_count, o.attempts_count, o.first_attempt_at,
        o.expires_at, (select count(*) from picked)
      """
          .replace("{one_transaction}", Refusal.ONE_TRANSACTION);

  /**
   * As {@link #CLAIM_MEASURED}, of as many rows as there are free slots, and how many those are;
   * also if there are none. Each row takes a slot. A slot is free unless the row that it names is
   * still leased as it was then, so nothing is written to free one. A slot that another claim has
   * taken since this one began to look is locked, or no longer names what was seen.
   */
  static final String CLAIM_IN_SLOTS =
      """
      with seen as materialized (
        select s.slot, s.message_id, s.lease_token
        from {slots} s
        where s.queue = :queue and s.slot <= :slots and not exists (
          select from {outbox} o
          where o.queue = :queue and o.id = any (array[s.message_id])
            and o.lease_token = s.lease_token and o.lease_until >= now())),
      free as materialized (
        select s.slot
        from seen cross join {slots} s
        where s.queue = :queue and s.slot = any (array[seen.slot])
          and s.message_id = seen.message_id and s.lease_token = seen.lease_token
        limit :limit for update of s skip locked),
      picked as materialized (
        select ctid, id, octet_length(payload) as size
        from {outbox}
        where queue = :queue and available_at <= least(now(), :up_to_at)
          and (available_at, id) > (:above_at, :above_id)
          and (available_at, id) <= (:up_to_at, :up_to_id)
          and (lease_until is null or lease_until < now())
        order by available_at, id limit (select count(*) from free) for update skip locked),
      fitting as (
        select ctid, id, size, sum(size) over (rows unbounded preceding) as total from picked),
      leased as (
        update {outbox} o
        set id = coalesce(o.next_id, o.id), next_id = null,
          lease_until = now() + make_interval(secs => :lease), leased_at = now(),
          lease_token = o.lease_token + 1, leased_by = :owner,
          deliveries_count = o.deliveries_count + 1
        from fitting f
        where o.queue = :queue and o.ctid = f.ctid and (o.id = f.id) is true
          and (f.total <= :max_bytes or f.total = f.size)
          and {one_transaction}
        returning o.id, o.lease_token, o.type, o.ordering_key, o.timer_id, o.payload, o.headers,
          o.created_at, o.available_at, o.deliveries_count, o.attempts_count, o.first_attempt_at,
          o.expires_at),
      taken as (
        update {slots} s set message_id = l.id, lease_token = l.lease_token
        from (select id, lease_token, row_number() over () as place from leased) l
        where s.queue = :queue
          and s.slot = any (array[(select array_agg(free.slot) from free)[l.place]]))
      select leased.*, (select count(*) from picked), (select count(*) from free)
      from (select) once left join leased on true
      """
          .replace("{one_transaction}", Refusal.ONE_TRANSACTION);

  static final String OPEN_SLOTS =
      """
      insert into {slots} (queue, slot)
      select :queue, n from generate_series(1, :slots) n
      on conflict (queue, slot) do nothing
      """;

  /** The places of rows that a claim would lease. */
  static final String PEEK =
      """
      select available_at, id
      from {outbox}
      where queue = :queue and available_at <= least(now(), :up_to_at)
        and (available_at, id) > (:above_at, :above_id)
        and (available_at, id) <= (:up_to_at, :up_to_id)
        and (lease_until is null or lease_until < now())
      order by available_at, id limit :limit
      """;

  /**
   * Whoever has lost the watch does not get it back by this, however long the claim before it took;
   * of two that have it, the first by name keeps it. To move times is a HOT update.
   */
  static final String AWAKE =
      """
      update {sleepers} me
      set wake_at = now(),
        on_watch = me.on_watch and me.until > clock_timestamp() and not exists (
          select from {sleepers} s
          where s.queue = :queue and s.subscriber < :owner and s.on_watch
            and s.until > clock_timestamp()),
        until = clock_timestamp() + make_interval(secs => :wake_in)
      where me.queue = :queue and me.subscriber = :owner
      """;

  /**
   * Takes or keeps the watch, unless another subscriber has it. Two can get it at once; then the
   * first by name keeps it.
   */
  static final String SLEEP =
      """
      insert into {sleepers} (queue, subscriber, wake_at, on_watch, until)
      select :queue, :owner, case when me.on_watch then me.until else '-infinity' end,
        me.on_watch, me.until
      from (
        select clock_timestamp() + make_interval(secs => :wake_in) as until,
          not exists (
            select from {sleepers} s
            where s.queue = :queue and s.subscriber <> :owner and s.on_watch and s.until > now()
              and (s.subscriber < :owner or not exists (
                select from {sleepers} m
                where m.queue = :queue and m.subscriber = :owner and m.on_watch
                  and m.until > now()))) as on_watch
        ) me
      on conflict (queue, subscriber) do update
      set wake_at = excluded.wake_at, on_watch = excluded.on_watch, until = excluded.until
      """;

  /**
   * When the next row is due, who is on watch (2 the owner, 1 another, null nobody), and a mark if
   * asked for. A mark is the statement's own transaction: a snapshot's xmax would be only one past
   * the last that is over, and younger ones may be open.
   */
  static final String LOOK_AHEAD =
      """
      select clock_timestamp(),
        (select max(case when s.subscriber = :owner then 2 else 1 end) from {sleepers} s
          where s.queue = :queue and s.on_watch and s.until > now()),
        case when :new_mark then pg_current_xact_id()::text::bigint else 0 end,
        (select t.available_at from {outbox} t
          where t.queue = :queue and t.available_at > now()
          order by t.available_at, t.id limit 1)
      """;

  /**
   * As {@link #LOOK_AHEAD}, and when a lease runs out: a row whose owner died is then claimed at
   * once and not at the next poll. The limit bounds the walk where much is due; where a claim found
   * nothing, all that is due is held by somebody.
   */
  static final String LOOK_AHEAD_WHOLE_QUEUE =
      """
      select clock_timestamp(),
        (select max(case when s.subscriber = :owner then 2 else 1 end) from {sleepers} s
          where s.queue = :queue and s.on_watch and s.until > now()),
        case when :new_mark then pg_current_xact_id()::text::bigint else 0 end,
        least(
          (select t.available_at from {outbox} t
            where t.queue = :queue and t.available_at > now()
            order by t.available_at, t.id limit 1),
          (select min(held.lease_until) from (
            select t.lease_until from {outbox} t
            where t.queue = :queue and t.available_at <= now()
            order by t.available_at, t.id limit 1000) held
            where held.lease_until > now()))
      """;

  /** Takes the owner out, and wakes the one in reserve who has said last that it is there. */
  static final String PASS =
      """
      with passed as (
        update {sleepers} set on_watch = false, wake_at = '-infinity', until = now()
        where queue = :queue and subscriber = :owner)
      select count(pg_notify(:channel, chr(1) || reserve.subscriber))
      from (
        select s.subscriber from {sleepers} s
        where s.queue = :queue and s.subscriber <> :owner and not s.on_watch and s.until = (
          select max(t.until) from {sleepers} t
          where t.queue = :queue and t.subscriber <> :owner and not t.on_watch and t.until > now())
        limit 1) reserve
      """;

  /**
   * Deletes also what is long past, of owners that were killed. Never waits for a row. Every queue
   * is {@code >= ''}: the preamble leaves only walks of an index.
   */
  static final String FORGET =
      """
      with gone as (
        delete from {sleepers} s
        using (
          select f.queue, f.subscriber from {sleepers} f
          where f.queue >= '' and (f.subscriber = :owner or f.until < now() - interval '1 hour')
          for update skip locked) found
        where s.queue = found.queue and s.subscriber = found.subscriber
        returning s.queue, s.subscriber, s.on_watch)
      select count(pg_notify(:channel, chr(1) || reserve.subscriber))
      from gone
      cross join lateral (
        select s.subscriber from {sleepers} s
        where s.queue = gone.queue and s.subscriber <> :owner and not s.on_watch and s.until = (
          select max(t.until) from {sleepers} t
          where t.queue = gone.queue and t.subscriber <> :owner and not t.on_watch
            and t.until > now())
        limit 1) reserve
      where gone.subscriber = :owner and gone.on_watch
      """;

  static final String SEND = "select pg_notify(:channel, :payload)";

  private StoreSql() {}
}
