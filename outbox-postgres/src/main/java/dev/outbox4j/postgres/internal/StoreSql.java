package dev.outbox4j.postgres.internal;

import dev.outbox4j.postgres.OutboxTable;
import org.jooq.DSLContext;
import org.jooq.SQLDialect;
import org.jooq.impl.DSL;

/**
 * The texts of the store's statements, rendered once. Each is one JDBC execution and so one
 * implicit transaction: what a preamble sets is gone with it, also behind a transaction pooler.
 */
final class StoreSql {
  /**
   * Makes the planner walk the indexes whatever it believes about the table: a plan made while the
   * table was empty, or before its next analyze, would scan it. The instant is the one that the
   * statement after it calls now(); the transaction id is read before the claim looks, so that what
   * is older was seen by it.
   */
  static final String PREAMBLE =
      """
      select set_config('plan_cache_mode', 'force_custom_plan', true),
        set_config('enable_seqscan', 'off', true),
        set_config('enable_bitmapscan', 'off', true),
        set_config('enable_sort', 'off', true),
        set_config('enable_hashjoin', 'off', true),
        set_config('enable_mergejoin', 'off', true),
        now() as now,
        pg_snapshot_xmin(pg_current_snapshot())::text::bigint as oldest;
      """;

  /**
   * The row is found again by its place, which cannot change under its lock: no index is walked a
   * second time. If the lock was got on a version that is newer than the statement's snapshot, the
   * row is not found there and left for the next claim. Queue and id tell apart equal places in two
   * partitions; they are written so that the planner walks no index for them.
   */
  private static final String LEASE =
      """
      update {outbox} o
      set lease_until = now() + make_interval(secs => ?), lease_token = o.lease_token + 1,
        leased_by = ?, deliveries_count = o.deliveries_count + 1
      from picked
      where o.ctid = picked.ctid and o.queue = any (array[picked.queue])
        and (o.id = picked.id) is true
      returning o.id, o.lease_token, o.queue, o.type, o.ordering_key, o.timer_id, o.payload,
        o.headers, o.created_at, o.available_at, o.deliveries_count, o.attempts_count,
        o.first_attempt_at
      """;

  /** Parameters: queue, limit, lease in seconds, owner. */
  static final String CLAIM_SWEEP =
      """
      with picked as materialized (
        select ctid, queue, id from {outbox}
        where queue = ? and available_at <= now() and (lease_until is null or lease_until < now())
        order by available_at, id limit ? for update skip locked)
      """
          + LEASE;

  /** Parameters: queue, instant and id of the bound, limit, lease in seconds, owner. */
  static final String CLAIM_ABOVE =
      """
      with picked as materialized (
        select ctid, queue, id from {outbox}
        where queue = ? and available_at <= now() and (available_at, id) > (?, ?)
          and (lease_until is null or lease_until < now())
        order by available_at, id limit ? for update skip locked)
      """
          + LEASE;

  /**
   * Parameters: queues, instants and ids of their bounds, limit, limit, lease in seconds, owner.
   * The inner limit alone would take so many rows of each queue.
   */
  static final String CLAIM_QUEUES =
      """
      with picked as materialized (
        select due.ctid, due.queue, due.id
        from unnest(?::text[], ?::timestamptz[], ?::bigint[])
          with ordinality as scan (queue, above_at, above_id, place)
        cross join lateral (
          select t.ctid, t.queue, t.id from {outbox} t
          where t.queue = scan.queue and t.available_at <= now()
            and (t.available_at, t.id) > (scan.above_at, scan.above_id)
            and (t.lease_until is null or t.lease_until < now())
          order by t.available_at, t.id limit ? for update skip locked) due
        order by scan.place limit ?)
      """
          + LEASE;

  /** Parameter: owner. The row is kept: to move its time is a HOT update, to delete it is not. */
  static final String AWAKE =
      """
      update {sleepers} set wake_at = now() where subscriber = ? and wake_at > now()
      """;

  /**
   * Parameters: owner, seconds, queues. In one order, so that owners of one name cannot deadlock.
   */
  static final String SLEEP =
      """
      insert into {sleepers} (queue, subscriber, wake_at)
      select q.queue, ?, clock_timestamp() + make_interval(secs => ?)
      from unnest(?::text[]) as q (queue) order by q.queue
      on conflict (queue, subscriber) do update set wake_at = excluded.wake_at
      """;

  /**
   * Parameter: queues. The transaction id is the statement's own: a snapshot's xmax would be only
   * one past the last that is over, and younger ones may be open.
   */
  static final String LOOK_AHEAD =
      """
      select min(due.available_at), clock_timestamp(),
        pg_current_xact_id()::text::bigint
      from unnest(?::text[]) as q (queue)
      cross join lateral (
        select t.available_at from {outbox} t
        where t.queue = q.queue and t.available_at > now()
        order by t.available_at, t.id limit 1) due
      """;

  /**
   * As {@link #LOOK_AHEAD}, and when a lease runs out: a row whose owner died is then claimed at
   * once and not at the next poll. Parameter: queues. The limit bounds the walk where much is due;
   * where a claim found nothing, all that is due is held by somebody.
   */
  static final String LOOK_AHEAD_SWEEP =
      """
      select least(min(next.due), min(next.free)), clock_timestamp(),
        pg_current_xact_id()::text::bigint
      from unnest(?::text[]) as q (queue)
      cross join lateral (
        select
          (select t.available_at from {outbox} t
            where t.queue = q.queue and t.available_at > now()
            order by t.available_at, t.id limit 1) as due,
          (select min(held.lease_until) from (
            select t.lease_until from {outbox} t
            where t.queue = q.queue and t.available_at <= now()
            order by t.available_at, t.id limit 1000) held
            where held.lease_until > now()) as free) next
      """;

  /** The sleepers are looked up once a queue, by the row that is due first. Parameter: channel. */
  private static final String WHO_SLEEPS_PAST_DUE_IS_TOLD =
      """
      and (
        select count(pg_notify(?, awaited.queue))
        from (
          select soonest.queue
          from (
            select done.queue, min(done.available_at) as due from done group by done.queue
          ) soonest
          where exists (
            select from {sleepers} s where s.queue = soonest.queue and s.wake_at > soonest.due)
        ) awaited) >= 0
      """;

  /** Parameters: queues, ids, tokens, how many. */
  static final String ACK =
      """
      with done as (
        delete from {outbox} o using unnest(?::text[], ?::bigint[], ?::int[]) as a (queue, id, token)
        where {fence}
        returning o.id)
      """
          + guarded("");

  /**
   * Parameters: queues, ids, tokens, delays in seconds, errors, failed runs, how many, channel. Who
   * retries is awake, but may be busy or gone when the rows are due, so sleepers are told.
   */
  static final String RETRY =
      """
      with done as (
        update {outbox} o
        set available_at = now() + make_interval(secs => a.delay), lease_until = null,
          leased_by = null, attempts_count = o.attempts_count + a.runs,
          first_attempt_at = case when a.runs = 0 then o.first_attempt_at
            else coalesce(o.first_attempt_at, now()) end,
          last_attempt_at = case when a.runs = 0 then o.last_attempt_at else now() end,
          last_error = a.error
        from unnest(?::text[], ?::bigint[], ?::int[], ?::float8[], ?::text[], ?::int[])
          as a (queue, id, token, delay, error, runs)
        where {fence}
        returning o.id, o.queue, o.available_at)
      """
          + guarded(WHO_SLEEPS_PAST_DUE_IS_TOLD);

  /** Parameters: queues, ids, tokens, delays in seconds, how many, channel. */
  static final String RESCHEDULE =
      """
      with done as (
        update {outbox} o
        set available_at = now() + make_interval(secs => a.delay), lease_until = null,
          leased_by = null, deliveries_count = 0, attempts_count = 0, first_attempt_at = null,
          last_attempt_at = null, last_error = null
        from unnest(?::text[], ?::bigint[], ?::int[], ?::float8[]) as a (queue, id, token, delay)
        where {fence}
        returning o.id, o.queue, o.available_at)
      """
          + guarded(WHO_SLEEPS_PAST_DUE_IS_TOLD);

  /** Parameters: lease in seconds, queues, ids, tokens, how many. */
  static final String RENEW =
      """
      with done as (
        update {outbox} o set lease_until = now() + make_interval(secs => ?)
        from unnest(?::text[], ?::bigint[], ?::int[]) as a (queue, id, token)
        where {fence}
        returning o.id)
      """
          + guarded("");

  /** Parameters: queues, ids, tokens, how many, channel. */
  static final String RELEASE =
      """
      with done as (
        update {outbox} o
        set lease_until = null, leased_by = null,
          deliveries_count = greatest(o.deliveries_count - 1, 0)
        from unnest(?::text[], ?::bigint[], ?::int[]) as a (queue, id, token)
        where {fence}
        returning o.id, o.queue)
      """
          + guarded(
              """
              and (
                select count(pg_notify(?, awaited.queue))
                from (
                  select distinct done.queue from done
                  where exists (
                    select from {sleepers} s where s.queue = done.queue and s.wake_at > now())
                ) awaited) >= 0
              """);

  /**
   * Parameter: owner. Takes along what owners left behind that were killed in their sleep; never
   * waits for a row.
   */
  static final String FORGET =
      """
      delete from {sleepers} s using (
        select f.queue, f.subscriber from {sleepers} f
        where f.subscriber = ? or f.wake_at < now() - interval '1 hour'
        for update skip locked) gone
      where s.queue = gone.queue and s.subscriber = gone.subscriber
      """;

  /**
   * One probe of the primary key a row, whatever the planner believes. Of a table that it takes for
   * empty it would rather walk a whole index, and compare each row with all that are to be written;
   * it considers that only for a join by plain equality. The claim index is out of reach, by its
   * predicate. The queue comes with each row, for tables that are partitioned by it.
   */
  private static final String FENCE =
      "o.queue = any (array[a.queue]) and o.id = any (array[a.id])"
          + " and o.lease_token = a.token and o.lease_until is not null";

  private final String outbox;
  private final String sleepers;

  StoreSql(OutboxTable table) {
    DSLContext jooq = DSL.using(SQLDialect.POSTGRES);
    this.outbox = jooq.render(table.qualifiedName());
    this.sleepers = jooq.render(table.qualifiedSleepers());
  }

  /** A text on this store's tables. */
  String render(String template) {
    return template
        .replace("{fence}", FENCE)
        .replace("{outbox}", outbox)
        .replace("{sleepers}", sleepers);
  }

  /**
   * Fails the statement, by a division by zero, if it changed more rows than it was asked to. A
   * sub-select without a reference outwards is run once.
   */
  private static String guarded(String more) {
    return """
        select done.id from done
        where (select 1 / case when count(*) > ? then 0 else 1 end from done) = 1
        """
        + more;
  }
}
