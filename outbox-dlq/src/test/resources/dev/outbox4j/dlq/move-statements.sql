-- move
select now(),
  pg_snapshot_xmin(pg_current_snapshot())::text::bigint,
  current_setting('transaction_isolation'),
  set_config('statement_timeout', ?, true),
  set_config('lock_timeout', ?, true),
  set_config('jit', 'off', true),
  set_config('plan_cache_mode', 'force_custom_plan', true),
  set_config('enable_seqscan', 'off', true),
  set_config('enable_bitmapscan', 'off', true),
  set_config('enable_sort', 'off', true),
  set_config('enable_hashjoin', 'off', true),
  set_config('enable_mergejoin', 'off', true);
with done as (
  delete from "Sales"."out box" o using unnest(?::bigint[], ?::bigint[], ?::text[], ?::int[], ?::text[]) as a (id, token, reason, attempts, exception)
  where o.queue = ? and o.id = any (array[a.id]) and o.lease_token = a.token and o.lease_until is not null and o.next_id is null
  returning o.id, o.lease_token as lease_token, o.queue, o.type, o.ordering_key, o.payload, o.headers,
    o.deliveries_count as deliveries_count, o.created_at, o.available_at, o.timer_id,
    case when a.attempts > o.attempts_count then coalesce(o.first_attempt_at, now())
      else o.first_attempt_at end as first_attempt_at,
    case when a.attempts > o.attempts_count then now()
      else o.last_attempt_at end as last_attempt_at,
    a.reason, a.attempts, a.exception),
again as (
  update "Archive"."dead letters" d
    set lease_token = done.lease_token, type = done.type, payload = done.payload,
      headers = done.headers, deliveries_count = done.deliveries_count,
      attempts_count = done.attempts, first_attempt_at = done.first_attempt_at,
      last_attempt_at = done.last_attempt_at, failed_at = now(),
      failure_reason = done.reason, last_exception = done.exception, resolved_at = null
    from done
    where (d.outbox = (select n.nspname || '.' || c.relname
from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where c.oid = cast('"Sales"."out box"' as regclass))) is true and d.original_id = any (array[done.id])
      and (d.resolved_at = done.created_at) is true
      and d.id = (
        select max(e.id + 0) from "Archive"."dead letters" e
        where (e.outbox = (select n.nspname || '.' || c.relname
from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where c.oid = cast('"Sales"."out box"' as regclass))) is true and e.original_id = any (array[done.id])
          and e.redrives_count > 0 and (e.resolved_at = done.created_at) is true
          and (e.queue = done.queue) is true
          and e.ordering_key is not distinct from done.ordering_key)
    returning d.original_id),
inserted as (
  insert into "Archive"."dead letters" (outbox, original_id, lease_token, queue, type, ordering_key,
    payload, headers, deliveries_count, attempts_count, created_at, available_at,
    first_attempt_at, last_attempt_at, timer_id, failure_reason, last_exception)
  select (select n.nspname || '.' || c.relname
from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where c.oid = cast('"Sales"."out box"' as regclass)),
    id, lease_token, queue, type, ordering_key, payload, headers, deliveries_count, attempts,
    created_at, available_at, first_attempt_at, last_attempt_at, timer_id, reason, exception
  from done
  where not exists (select from again where again.original_id = done.id)
  returning 1)
select done.id, false from done
where (
    select cast(min('outbox4j: more rows than asked, more than one with id ' || twin.id) as int)
    from (select done.id from done group by done.id having count(*) > 1) twin) is null
  and (
    select cast(case when done.count <> inserted.count
      then 'outbox4j: dead letters that arrived, ' || inserted.count || ' instead of ' || done.count end as int)
    from (select count(*) from done) done,
      (select (select count(*) from inserted) + (select count(*) from again) as count)
        inserted) is null;

-- move, passing locked rows by
select now(),
  pg_snapshot_xmin(pg_current_snapshot())::text::bigint,
  current_setting('transaction_isolation'),
  set_config('statement_timeout', ?, true),
  set_config('lock_timeout', ?, true),
  set_config('jit', 'off', true),
  set_config('plan_cache_mode', 'force_custom_plan', true),
  set_config('enable_seqscan', 'off', true),
  set_config('enable_bitmapscan', 'off', true),
  set_config('enable_sort', 'off', true),
  set_config('enable_hashjoin', 'off', true),
  set_config('enable_mergejoin', 'off', true);
with asked as materialized (
  select * from unnest(?::bigint[], ?::bigint[], ?::text[], ?::int[], ?::text[]) as a (id, token, reason, attempts, exception)),
unlocked as materialized (
  select o.ctid as place, a.*
  from asked a cross join "Sales"."out box" o
  where o.queue = ? and o.id = any (array[a.id]) and o.lease_token = a.token and o.lease_until is not null and o.next_id is null
  for update of o skip locked),
done as (
  delete from "Sales"."out box" o using unlocked a
  where o.queue = ? and o.ctid = a.place and (o.id = a.id) is true
  returning o.id, o.lease_token as lease_token, o.queue, o.type, o.ordering_key, o.payload, o.headers,
    o.deliveries_count as deliveries_count, o.created_at, o.available_at, o.timer_id,
    case when a.attempts > o.attempts_count then coalesce(o.first_attempt_at, now())
      else o.first_attempt_at end as first_attempt_at,
    case when a.attempts > o.attempts_count then now()
      else o.last_attempt_at end as last_attempt_at,
    a.reason, a.attempts, a.exception),
again as (
  update "Archive"."dead letters" d
    set lease_token = done.lease_token, type = done.type, payload = done.payload,
      headers = done.headers, deliveries_count = done.deliveries_count,
      attempts_count = done.attempts, first_attempt_at = done.first_attempt_at,
      last_attempt_at = done.last_attempt_at, failed_at = now(),
      failure_reason = done.reason, last_exception = done.exception, resolved_at = null
    from done
    where (d.outbox = (select n.nspname || '.' || c.relname
from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where c.oid = cast('"Sales"."out box"' as regclass))) is true and d.original_id = any (array[done.id])
      and (d.resolved_at = done.created_at) is true
      and d.id = (
        select max(e.id + 0) from "Archive"."dead letters" e
        where (e.outbox = (select n.nspname || '.' || c.relname
from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where c.oid = cast('"Sales"."out box"' as regclass))) is true and e.original_id = any (array[done.id])
          and e.redrives_count > 0 and (e.resolved_at = done.created_at) is true
          and (e.queue = done.queue) is true
          and e.ordering_key is not distinct from done.ordering_key)
    returning d.original_id),
inserted as (
  insert into "Archive"."dead letters" (outbox, original_id, lease_token, queue, type, ordering_key,
    payload, headers, deliveries_count, attempts_count, created_at, available_at,
    first_attempt_at, last_attempt_at, timer_id, failure_reason, last_exception)
  select (select n.nspname || '.' || c.relname
from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where c.oid = cast('"Sales"."out box"' as regclass)),
    id, lease_token, queue, type, ordering_key, payload, headers, deliveries_count, attempts,
    created_at, available_at, first_attempt_at, last_attempt_at, timer_id, reason, exception
  from done
  where not exists (select from again where again.original_id = done.id)
  returning 1)
select done.id, false from done
where (
    select cast(min('outbox4j: more rows than asked, more than one with id ' || twin.id) as int)
    from (select done.id from done group by done.id having count(*) > 1) twin) is null
  and (
    select cast(case when done.count <> inserted.count
      then 'outbox4j: dead letters that arrived, ' || inserted.count || ' instead of ' || done.count end as int)
    from (select count(*) from done) done,
      (select (select count(*) from inserted) + (select count(*) from again) as count)
        inserted) is null
union all
select o.id, true
from asked a cross join "Sales"."out box" o
where o.queue = ? and o.id = any (array[a.id]) and o.lease_token = a.token and o.lease_until is not null and o.next_id is null and o.id not in (select done.id from done);

