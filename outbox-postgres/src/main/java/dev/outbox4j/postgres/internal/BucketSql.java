package dev.outbox4j.postgres.internal;

import dev.outbox4j.internal.schema.Buckets;

/** The texts of the statements on ordered queues, which run behind the {@link Preamble}. */
final class BucketSql {
  private static final String COLUMNS =
      """
      o.id, o.lease_token, o.type, o.ordering_key, o.timer_id, o.payload,
            o.headers, o.created_at, o.available_at, o.deliveries_count, o.attempts_count,
            o.first_attempt_at, o.expires_at, greatest(o.available_at, o.lease_until) as ready_at\
      """;

  /** Each part of a bucket has a limit of its own, so that none takes the room of the others. */
  private static final String PORTIONS =
      """
      unnest(:buckets::bigint[], :above::bigint[], :up_to::bigint[], :limits::bigint[])
              as b (bucket, above, up_to, most)\
      """;

  /**
   * What may be read: rows that are due, or will be soon, and those that others of their key wait
   * for. Rows that fall due later are found by their due instant. By the clock, which is later than
   * the snapshot: what was published without a delay is due if it is seen, and cannot be overtaken.
   */
  private static final String WANTED =
      "(o.available_at <= clock_timestamp() + interval '2 seconds' or o.lease_token > 0)";

  /**
   * Comparisons of rows, and the order by what is fixed, leave only the one index of the queue that
   * begins so: a plain equality would let any index do that is in the order of ids. What the
   * predicate of an index says is said in so many words, as no comparison of rows implies it.
   */
  private static final String PARTS =
      """
      cross join lateral (
          select {columns}
          from {outbox} o
          where o.queue = :queue and {of_any}
            and ({bucket}, o.id) > (b.bucket, b.above) and ({bucket}, o.id) <= (b.bucket, b.up_to)
            and {wanted}
          order by {bucket}, o.id
          limit {limit}) r\
      """;

  private static String template(String text) {
    return text.replace("{columns}", COLUMNS)
        .replace("{wanted}", WANTED)
        .replace("{due_later}", Buckets.dueLater("o."))
        .replace("{of_any}", Buckets.ofAny("o."))
        .replace("{bucket}", Buckets.of("o."));
  }

  /**
   * Payloads are given up to a number of bytes, of what was asked for by key and id first. What is
   * not wanted is given without, and so is what was only to be found.
   */
  static final String READ =
      template(
          """
          with found as (
            select 0 as source, b.bucket, r.*,
              r.ready_at <= clock_timestamp() and (r.ordering_key is null
                or r.ordering_key <> all (:skipped_keys::text[])) as wanted
            from {portions}
            {parts}
            union all
            select 1, r.*, r.ready_at <= clock_timestamp()
            from unnest(:keys::text[], :keys_above::bigint[], :keys_up_to::bigint[])
              as k (key, above, up_to)
            cross join lateral (
              select {bucket} as bucket, {columns}
              from {outbox} o
              where o.queue = :queue and o.ordering_key is not null
                and (o.ordering_key, o.id) > (k.key, k.above)
                and (o.ordering_key, o.id) <= (k.key, k.up_to)
                and {wanted}
              order by o.ordering_key, o.id
              limit :key_limit) r
            union all
            select 2, r.*, r.ready_at <= clock_timestamp()
            from unnest(:ids::bigint[]) as i (id)
            cross join lateral (
              select {bucket} as bucket, {columns}
              from {outbox} o
              where o.queue = :queue and o.id = any (array[i.id])) r),
          sized as (
            select f.*, octet_length(f.payload) as size,
              sum(case when f.wanted then octet_length(f.payload) else 0 end)
                over (order by f.source = 0, f.source, case when f.source = 1 then f.ordering_key end, f.id
                  rows unbounded preceding) as total,
              sum(case when f.wanted and f.source = 0 then 1 else 0 end)
                over (order by f.source = 0, f.source, case when f.source = 1 then f.ordering_key end, f.id
                  rows unbounded preceding) as loaded
            from found f),
          fitting as (
            select s.*, s.wanted and s.loaded <= :limit
              and (s.total <= :max_bytes or s.total = s.size) as fits
            from sized s)
          select f.source, f.bucket, f.id, f.lease_token, f.type, f.ordering_key, f.timer_id,
            case when f.fits then f.payload end, case when f.fits then f.headers end, f.created_at,
            f.available_at, f.deliveries_count, f.attempts_count, f.first_attempt_at, f.fits,
            case when f.ready_at > clock_timestamp() then f.ready_at end, f.ready_at > f.available_at,
            f.expires_at
          from fitting f
          order by f.source = 0, f.source, case when f.source = 1 then f.ordering_key end, f.id
          """
              .replace("{portions}", PORTIONS)
              .replace("{parts}", PARTS.replace("{limit}", "b.most")));

  /**
   * The same of ranges alone, where each row may have its payload unless it is a large one. Nothing
   * is added up or sorted, and the clock is read once: it costs the server half as much.
   */
  static final String READ_RANGES =
      template(
          """
          select 0, b.bucket, r.id, r.lease_token, r.type, r.ordering_key, r.timer_id, r.payload,
            r.headers, r.created_at, r.available_at, r.deliveries_count, r.attempts_count,
            r.first_attempt_at, r.payload is not null,
            case when r.available_at > c.at or r.lease_until > c.at
              then greatest(r.available_at, r.lease_until) end,
            r.lease_until > r.available_at, r.expires_at
          from (
            select clock_timestamp() as at, clock_timestamp() + interval '2 seconds' as soon offset 0) c
          cross join {portions}
          cross join lateral (
            select o.id, o.lease_token, o.type, o.ordering_key, o.timer_id,
              case when o.available_at <= c.at and (o.lease_until is null or o.lease_until <= c.at)
                and octet_length(o.payload) <= :row_bytes
                and (o.ordering_key is null or o.ordering_key <> all (:skipped_keys::text[]))
                then o.payload end as payload,
              o.headers, o.created_at, o.available_at, o.deliveries_count, o.attempts_count,
              o.first_attempt_at, o.lease_until, o.expires_at
            from {outbox} o
            where o.queue = :queue and {of_any}
              and ({bucket}, o.id) > (b.bucket, b.above) and ({bucket}, o.id) <= (b.bucket, b.up_to)
              and (o.available_at <= c.soon or o.lease_token > 0)
            order by {bucket}, o.id
            limit b.most) r
          """
              .replace("{portions}", PORTIONS));

  /** Which rows there are in parts of buckets; without what they hold. */
  static final String SWEEP =
      template(
          """
          select 3, b.bucket, r.id, r.lease_token, r.type, r.ordering_key, r.timer_id,
            null::bytea, null::jsonb, r.created_at,
            r.available_at, r.deliveries_count, r.attempts_count, r.first_attempt_at, false,
            case when r.ready_at > clock_timestamp() then r.ready_at end, r.ready_at > r.available_at,
            r.expires_at
          from unnest(:sweep_buckets::bigint[], :sweep_above::bigint[], :sweep_up_to::bigint[])
            as b (bucket, above, up_to)
          {parts}
          order by b.bucket, r.id
          """
              .replace("{parts}", PARTS.replace("{limit}", ":find_limit")));

  /**
   * Which rows have fallen due that were published with a delay, or are retried. What lies above
   * the place of its bucket is read in its turn; a bulk that took long to publish looks delayed.
   */
  static final String DUE =
      template(
          """
          select 4, b.bucket, r.id, r.lease_token, r.type, r.ordering_key, r.timer_id,
            null::bytea, null::jsonb, r.created_at,
            r.available_at, r.deliveries_count, r.attempts_count, r.first_attempt_at, false,
            case when r.ready_at > clock_timestamp() then r.ready_at end, r.ready_at > r.available_at,
            r.expires_at
          from unnest(:due_buckets::bigint[], :due_at::timestamptz[], :due_id::bigint[],
              :due_up_to_id::bigint[])
            as b (bucket, at, id, up_to_id)
          cross join lateral (
            select {columns}
            from {outbox} o
            where o.queue = :queue and {due_later}
              and ({bucket}, o.available_at, o.id) > (b.bucket, b.at, b.id)
              and ({bucket}, o.available_at, o.id) <= (b.bucket, now(), 9223372036854775807)
              and o.id <= b.up_to_id
            order by {bucket}, o.available_at, o.id
            limit :find_limit) r
          order by b.bucket, r.available_at, r.id
          """);

  /** Who reads is on watch for itself, whoever else is: each bucket has one reader. */
  static final String SLEEP =
      """
      insert into {sleepers} (queue, subscriber, wake_at, on_watch, until)
      select :queue, :owner, me.until, false, me.until
      from (select clock_timestamp() + make_interval(secs => :wake_in) as until) me
      on conflict (queue, subscriber) do update
      set wake_at = excluded.wake_at, on_watch = excluded.on_watch, until = excluded.until
      """;

  static final String AWAKE =
      """
      update {sleepers} me
      set wake_at = now(), until = clock_timestamp() + make_interval(secs => :wake_in)
      where me.queue = :queue and me.subscriber = :owner
      """;

  static final String LOOK_AHEAD =
      template(
          """
          select clock_timestamp(),
            case when :new_mark then pg_current_xact_id()::text::bigint else 0 end,
            (select t.available_at from {outbox} t
              where t.queue = :queue and t.available_at > now()
              order by t.available_at, t.id limit 1),
            (select o.id from {outbox} o
              where o.queue = :queue and {of_any}
                and ({bucket}, o.id) > (:newest_of, 0)
                and ({bucket}, o.id) <= (:newest_of, 9223372036854775807)
              order by {bucket} desc, o.id desc limit 1)
          """);

  private static final String UPSERT_OWNER =
      """
      insert into {owners} as o (queue, owner, lease_until, seen_up_to)
      values (:queue, :owner, now() + make_interval(secs => :lease), :seen_up_to)
      on conflict (queue, owner) do update
      set lease_until = excluded.lease_until,
        seen_up_to = greatest(o.seen_up_to, excluded.seen_up_to)
      """;

  /**
   * The epoch tells a statement that runs late that its owner has the bucket anew. What is locked
   * is given up another time: the renewal does not wait for it.
   */
  private static final String GIVE =
      """
      with given as materialized (
        select b.bucket
        from unnest(:given::bigint[], :given_epochs::bigint[]) as g (bucket, epoch)
        cross join {buckets} b
        where b.queue = :queue and b.owner = :owner and b.bucket = any (array[g.bucket])
          and b.epoch = g.epoch
        for no key update of b skip locked)
      update {buckets} b
      set owner = null, seen_up_to = greatest(b.seen_up_to, :seen_up_to)
      from given
      where b.queue = :queue and b.bucket = given.bucket
      """;

  /**
   * Takes buckets that nobody has, or whose owner's lease is over, up to a fair share. From an
   * owner that did not give them up it takes over up to where rows may have been handled. What
   * another has just taken may be locked in its new version, whose owner is not yet seen to be
   * alive: the epoch tells. A lease that looks over may be renewed by a transaction that has not
   * ended, which knows already what it owns: the lock tells, as one of the two waits or passes by.
   */
  private static final String TAKE =
      """
      with alive as materialized (
        select o.owner from {owners} o where o.queue = :queue and o.lease_until > now()),
      ended as materialized (
        select o.owner from {owners} o
        where o.queue = :queue and o.lease_until <= now() and exists (
          select from {buckets} b where b.queue = :queue and b.owner = o.owner)
        for share of o skip locked),
      seen as materialized (
        select b.bucket, b.epoch from {buckets} b where b.queue = :queue),
      free as materialized (
        select b.bucket, b.owner
        from seen cross join {buckets} b
        where b.queue = :queue and b.bucket = any (array[seen.bucket]) and b.epoch = seen.epoch
          and (b.owner is null or b.owner in (select ended.owner from ended)
            or b.owner not in (select o.owner from {owners} o where o.queue = :queue))
          and not exists (
            select from {sleepers} s
            where s.queue = :queue and s.until > now() and s.subscriber not in (
              select o.owner from {owners} o where o.queue = :queue))
        order by b.bucket
        limit greatest(0, cast(
          ceil((select count(*) from {buckets} c where c.queue = :queue)
            / (select count(*) from alive)::numeric) as bigint)
          - (select count(*) from {buckets} m where m.queue = :queue and m.owner = :owner))
        for update of b skip locked)
      update {buckets} b
      set owner = :owner, epoch = b.epoch + 1,
        counted_up_to = greatest(b.counted_up_to, (
          select d.read_up_to from {owners} d where d.queue = :queue and d.owner = free.owner)),
        seen_up_to = greatest(b.seen_up_to, (
          select d.seen_up_to from {owners} d where d.queue = :queue and d.owner = free.owner))
      from free
      where b.queue = :queue and b.bucket = free.bucket
      """;

  /** Names of owners that were killed, and of which no bucket is left; who locks one keeps it. */
  private static final String PURGE =
      """
      with old as materialized (
        select o.owner from {owners} o
        where o.queue = :queue and o.lease_until < now() - interval '1 hour' and not exists (
          select from {buckets} b where b.queue = :queue and b.owner = o.owner)
        for update of o skip locked)
      delete from {owners} o using old where o.queue = :queue and o.owner = any (array[old.owner])
      """;

  private static final String OWNED =
      """
      select m.alive, m.total, m.row_by_row, b.bucket, b.epoch, b.counted_up_to, b.seen_up_to
      from (
        select
          (select count(*) from {owners} o where o.queue = :queue and o.lease_until > now()) as alive,
          (select count(*) from {buckets} b where b.queue = :queue) as total,
          (select min(s.subscriber) from {sleepers} s
            where s.queue = :queue and s.until > now() and s.subscriber not in (
              select o.owner from {owners} o where o.queue = :queue)) as row_by_row) m
      left join {buckets} b on b.queue = :queue and b.owner = :owner
      """;

  static final String JOIN =
      UPSERT_OWNER + ";\n" + GIVE + ";\n" + TAKE + ";\n" + PURGE + ";\n" + OWNED;

  static final String RESERVE =
      """
      update {owners} o
      set read_up_to = greatest(o.read_up_to, :read_up_to)
      where o.queue = :queue and o.owner = :owner
      """;

  /** The name stays, until it is purged: a sleeper without one stands for row by row. */
  static final String LEAVE =
      """
      update {buckets} b
      set owner = null, seen_up_to = greatest(b.seen_up_to, :seen_up_to)
      where b.queue = :queue and b.owner = :owner and b.bucket <> all (:kept::bigint[]);
      update {owners} o
      set lease_until = now()
      where o.queue = :queue and o.owner = :owner and not exists (
        select from {buckets} b where b.queue = :queue and b.owner = :owner)
      """;

  static final String GREATEST_ID = "select max(o.id) from {outbox} o";

  private BucketSql() {}
}
