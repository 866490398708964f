-- ack
with done as (
  delete from "Sales"."out box" o using unnest(?::bigint[], ?::bigint[]) as a (id, token)
  where o.queue = ? and o.id = any (array[a.id]) and o.lease_token = a.token and o.lease_until is not null and o.next_id is null
  returning o.id)
select done.id, false from done
where (
    select cast(min('outbox4j: more rows than asked, more than one with id ' || twin.id) as int)
    from (select done.id from done group by done.id having count(*) > 1) twin) is null;

-- ack, passing locked rows by
with asked as materialized (
  select * from unnest(?::bigint[], ?::bigint[]) as a (id, token)),
unlocked as materialized (
  select o.ctid as place, a.*
  from asked a cross join "Sales"."out box" o
  where o.queue = ? and o.id = any (array[a.id]) and o.lease_token = a.token and o.lease_until is not null and o.next_id is null
  for update of o skip locked),
done as (
  delete from "Sales"."out box" o using unlocked a
  where o.queue = ? and o.ctid = a.place and (o.id = a.id) is true
  returning o.id)
select done.id, false from done
where (
    select cast(min('outbox4j: more rows than asked, more than one with id ' || twin.id) as int)
    from (select done.id from done group by done.id having count(*) > 1) twin) is null
union all
select o.id, true
from asked a cross join "Sales"."out box" o
where o.queue = ? and o.id = any (array[a.id]) and o.lease_token = a.token and o.lease_until is not null and o.next_id is null and o.id not in (select done.id from done);

-- ack, rows of one token
with done as (
  delete from "Sales"."out box" o using (select ?::bigint as token) a
  where (o.queue = ? or (o.queue < ? and ? = o.queue)) and o.id = any (?::bigint[]) and o.lease_token = a.token and o.lease_until is not null and o.next_id is null
  returning o.id)
select done.id, false from done
where (
    select cast(min('outbox4j: more rows than asked, more than one with id ' || twin.id) as int)
    from (select done.id from done group by done.id having count(*) > 1) twin) is null;

-- before every statement
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

-- claim
with picked as materialized (
  select ctid, id
  from "Sales"."out box"
  where queue = ? and available_at <= least(now(), ?)
    and (available_at, id) > (?, ?)
    and (available_at, id) <= (?, ?)
    and (lease_until is null or lease_until < now())
  order by available_at, id limit ? for update skip locked)
update "Sales"."out box" o
set id = coalesce(o.next_id, o.id), next_id = null,
  lease_until = now() + make_interval(secs => ?), leased_at = now(),
  lease_token = o.lease_token + 1, leased_by = ?,
  deliveries_count = o.deliveries_count + 1
from picked
where o.queue = ? and o.ctid = picked.ctid and (o.id = picked.id) is true
  and cast(case when current_setting('enable_seqscan') <> 'off' then 'outbox4j: enable_seqscan is ' || current_setting('enable_seqscan') end as int) is null
returning o.id, o.lease_token, o.type, o.ordering_key, o.timer_id, o.payload, o.headers,
  o.created_at, o.available_at, o.deliveries_count, o.attempts_count, o.first_attempt_at,
  o.expires_at;

-- claim by halves, see what is due
select available_at, id
from "Sales"."out box"
where queue = ? and available_at <= least(now(), ?)
  and (available_at, id) > (?, ?)
  and (available_at, id) <= (?, ?)
  and (lease_until is null or lease_until < now())
order by available_at, id limit ?;

-- claim in slots
with seen as materialized (
  select s.slot, s.message_id, s.lease_token
  from "Sales"."out box_slots" s
  where s.queue = ? and s.slot <= ? and not exists (
    select from "Sales"."out box" o
    where o.queue = ? and o.id = any (array[s.message_id])
      and o.lease_token = s.lease_token and o.lease_until >= now())),
free as materialized (
  select s.slot
  from seen cross join "Sales"."out box_slots" s
  where s.queue = ? and s.slot = any (array[seen.slot])
    and s.message_id = seen.message_id and s.lease_token = seen.lease_token
  limit ? for update of s skip locked),
picked as materialized (
  select ctid, id, octet_length(payload) as size
  from "Sales"."out box"
  where queue = ? and available_at <= least(now(), ?)
    and (available_at, id) > (?, ?)
    and (available_at, id) <= (?, ?)
    and (lease_until is null or lease_until < now())
  order by available_at, id limit (select count(*) from free) for update skip locked),
fitting as (
  select ctid, id, size, sum(size) over (rows unbounded preceding) as total from picked),
leased as (
  update "Sales"."out box" o
  set id = coalesce(o.next_id, o.id), next_id = null,
    lease_until = now() + make_interval(secs => ?), leased_at = now(),
    lease_token = o.lease_token + 1, leased_by = ?,
    deliveries_count = o.deliveries_count + 1
  from fitting f
  where o.queue = ? and o.ctid = f.ctid and (o.id = f.id) is true
    and (f.total <= ? or f.total = f.size)
    and cast(case when current_setting('enable_seqscan') <> 'off' then 'outbox4j: enable_seqscan is ' || current_setting('enable_seqscan') end as int) is null
  returning o.id, o.lease_token, o.type, o.ordering_key, o.timer_id, o.payload, o.headers,
    o.created_at, o.available_at, o.deliveries_count, o.attempts_count, o.first_attempt_at,
    o.expires_at),
taken as (
  update "Sales"."out box_slots" s set message_id = l.id, lease_token = l.lease_token
  from (select id, lease_token, row_number() over () as place from leased) l
  where s.queue = ?
    and s.slot = any (array[(select array_agg(free.slot) from free)[l.place]]))
select leased.*, (select count(*) from picked), (select count(*) from free)
from (select) once left join leased on true;

-- claim, measured
with picked as materialized (
  select ctid, id, octet_length(payload) as size
  from "Sales"."out box"
  where queue = ? and available_at <= least(now(), ?)
    and (available_at, id) > (?, ?)
    and (available_at, id) <= (?, ?)
    and (lease_until is null or lease_until < now())
  order by available_at, id limit ? for update skip locked),
fitting as (
  select ctid, id, size, sum(size) over (rows unbounded preceding) as total from picked)
update "Sales"."out box" o
set id = coalesce(o.next_id, o.id), next_id = null,
  lease_until = now() + make_interval(secs => ?), leased_at = now(),
  lease_token = o.lease_token + 1, leased_by = ?,
  deliveries_count = o.deliveries_count + 1
from fitting f
where o.queue = ? and o.ctid = f.ctid and (o.id = f.id) is true
  and (f.total <= ? or f.total = f.size)
  and cast(case when current_setting('enable_seqscan') <> 'off' then 'outbox4j: enable_seqscan is ' || current_setting('enable_seqscan') end as int) is null
returning o.id, o.lease_token, o.type, o.ordering_key, o.timer_id, o.payload, o.headers,
  o.created_at, o.available_at, o.deliveries_count, o.attempts_count, o.first_attempt_at,
  o.expires_at, (select count(*) from picked);

-- claim, then awake
update "Sales"."out box_sleepers" me
set wake_at = now(),
  on_watch = me.on_watch and me.until > clock_timestamp() and not exists (
    select from "Sales"."out box_sleepers" s
    where s.queue = ? and s.subscriber < ? and s.on_watch
      and s.until > clock_timestamp()),
  until = clock_timestamp() + make_interval(secs => ?)
where me.queue = ? and me.subscriber = ?;

-- claim, then look ahead
select clock_timestamp(),
  (select max(case when s.subscriber = ? then 2 else 1 end) from "Sales"."out box_sleepers" s
    where s.queue = ? and s.on_watch and s.until > now()),
  case when ? then pg_current_xact_id()::text::bigint else 0 end,
  (select t.available_at from "Sales"."out box" t
    where t.queue = ? and t.available_at > now()
    order by t.available_at, t.id limit 1);

-- claim, then look ahead, whole queue
select clock_timestamp(),
  (select max(case when s.subscriber = ? then 2 else 1 end) from "Sales"."out box_sleepers" s
    where s.queue = ? and s.on_watch and s.until > now()),
  case when ? then pg_current_xact_id()::text::bigint else 0 end,
  least(
    (select t.available_at from "Sales"."out box" t
      where t.queue = ? and t.available_at > now()
      order by t.available_at, t.id limit 1),
    (select min(held.lease_until) from (
      select t.lease_until from "Sales"."out box" t
      where t.queue = ? and t.available_at <= now()
      order by t.available_at, t.id limit 1000) held
      where held.lease_until > now()));

-- claim, then sleep
insert into "Sales"."out box_sleepers" (queue, subscriber, wake_at, on_watch, until)
select ?, ?, case when me.on_watch then me.until else '-infinity' end,
  me.on_watch, me.until
from (
  select clock_timestamp() + make_interval(secs => ?) as until,
    not exists (
      select from "Sales"."out box_sleepers" s
      where s.queue = ? and s.subscriber <> ? and s.on_watch and s.until > now()
        and (s.subscriber < ? or not exists (
          select from "Sales"."out box_sleepers" m
          where m.queue = ? and m.subscriber = ? and m.on_watch
            and m.until > now()))) as on_watch
  ) me
on conflict (queue, subscriber) do update
set wake_at = excluded.wake_at, on_watch = excluded.on_watch, until = excluded.until;

-- count all queues, give the lease back
update "Sales"."out box_sleepers" set until = clock_timestamp()
where queue = '' and subscriber = 'depths' and until = ?;

-- count all queues, take the lease
with taken as (
  insert into "Sales"."out box_sleepers" as s (queue, subscriber, wake_at, until)
  select '', 'depths', timestamptz '-infinity',
    clock_timestamp() + make_interval(secs => ?)
  where not exists (
    select from "Sales"."out box_sleepers" h
    where h.queue = '' and h.subscriber = 'depths' and h.until <> ?
      and h.until > clock_timestamp()
      and h.until <= clock_timestamp() + make_interval(secs => ?))
  on conflict (queue, subscriber) do update set until = excluded.until
  where s.until = ? or s.until <= clock_timestamp()
    or s.until > clock_timestamp() + make_interval(secs => ?)
  returning s.until)
select t.until, true, 0::float8 from taken t
union all
select h.until, false, extract(epoch from h.until - clock_timestamp())::float8
from "Sales"."out box_sleepers" h
where h.queue = '' and h.subscriber = 'depths' and not exists (select from taken);

-- forget
with gone as (
  delete from "Sales"."out box_sleepers" s
  using (
    select f.queue, f.subscriber from "Sales"."out box_sleepers" f
    where f.queue >= '' and (f.subscriber = ? or f.until < now() - interval '1 hour')
    for update skip locked) found
  where s.queue = found.queue and s.subscriber = found.subscriber
  returning s.queue, s.subscriber, s.on_watch)
select count(pg_notify(?, chr(1) || reserve.subscriber))
from gone
cross join lateral (
  select s.subscriber from "Sales"."out box_sleepers" s
  where s.queue = gone.queue and s.subscriber <> ? and not s.on_watch and s.until = (
    select max(t.until) from "Sales"."out box_sleepers" t
    where t.queue = gone.queue and t.subscriber <> ? and not t.on_watch
      and t.until > now())
  limit 1) reserve
where gone.subscriber = ? and gone.on_watch;

-- hand over
with done as (
  update "Sales"."out box" o
  set id = o.next_id, next_id = null,
    available_at = greatest(o.available_at, clock_timestamp()), lease_until = null,
    leased_at = null, leased_by = null
  from unnest(?::bigint[], ?::bigint[]) as a (id, token)
  where o.queue = ? and o.id = any (array[a.id]) and o.lease_token = a.token and o.lease_until is not null and o.next_id is not null
  returning a.id, o.available_at)
select done.id, false from done
where (
    select cast(min('outbox4j: more rows than asked, more than one with id ' || twin.id) as int)
    from (select done.id from done group by done.id having count(*) > 1) twin) is null
  and (
    select count(pg_notify(?, ?))
    where exists (
      select from "Sales"."out box_sleepers" s
      where s.queue = ? and s.wake_at > (
        select greatest(min(done.available_at), now()) from done having count(*) > 0))) >= 0;

-- hand over, passing locked rows by
with asked as materialized (
  select * from unnest(?::bigint[], ?::bigint[]) as a (id, token)),
unlocked as materialized (
  select o.ctid as place, a.*
  from asked a cross join "Sales"."out box" o
  where o.queue = ? and o.id = any (array[a.id]) and o.lease_token = a.token and o.lease_until is not null and o.next_id is not null
  for update of o skip locked),
done as (
  update "Sales"."out box" o
  set id = o.next_id, next_id = null,
    available_at = greatest(o.available_at, clock_timestamp()), lease_until = null,
    leased_at = null, leased_by = null
  from unlocked a
  where o.queue = ? and o.ctid = a.place and (o.id = a.id) is true
  returning a.id, o.available_at)
select done.id, false from done
where (
    select cast(min('outbox4j: more rows than asked, more than one with id ' || twin.id) as int)
    from (select done.id from done group by done.id having count(*) > 1) twin) is null
  and (
    select count(pg_notify(?, ?))
    where exists (
      select from "Sales"."out box_sleepers" s
      where s.queue = ? and s.wake_at > (
        select greatest(min(done.available_at), now()) from done having count(*) > 0))) >= 0
union all
select o.id, true
from asked a cross join "Sales"."out box" o
where o.queue = ? and o.id = any (array[a.id]) and o.lease_token = a.token and o.lease_until is not null and o.next_id is not null and o.id not in (select done.id from done);

-- open slots
insert into "Sales"."out box_slots" (queue, slot)
select ?, n from generate_series(1, ?) n
on conflict (queue, slot) do nothing;

-- pass
with passed as (
  update "Sales"."out box_sleepers" set on_watch = false, wake_at = '-infinity', until = now()
  where queue = ? and subscriber = ?)
select count(pg_notify(?, chr(1) || reserve.subscriber))
from (
  select s.subscriber from "Sales"."out box_sleepers" s
  where s.queue = ? and s.subscriber <> ? and not s.on_watch and s.until = (
    select max(t.until) from "Sales"."out box_sleepers" t
    where t.queue = ? and t.subscriber <> ? and not t.on_watch and t.until > now())
  limit 1) reserve;

-- release
with done as (
  update "Sales"."out box" o
  set lease_until = null, leased_at = null, leased_by = null,
    deliveries_count = greatest(o.deliveries_count - 1, 0)
  from unnest(?::bigint[], ?::bigint[]) as a (id, token)
  where o.queue = ? and o.id = any (array[a.id]) and o.lease_token = a.token and o.lease_until is not null and o.next_id is null
  returning o.id, o.available_at)
select done.id, false from done
where (
    select cast(min('outbox4j: more rows than asked, more than one with id ' || twin.id) as int)
    from (select done.id from done group by done.id having count(*) > 1) twin) is null
  and (
    select count(pg_notify(?, ?))
    where exists (
      select from "Sales"."out box_sleepers" s
      where s.queue = ? and s.wake_at > (
        select greatest(min(done.available_at), now()) from done having count(*) > 0))) >= 0;

-- release, passing locked rows by
with asked as materialized (
  select * from unnest(?::bigint[], ?::bigint[]) as a (id, token)),
unlocked as materialized (
  select o.ctid as place, a.*
  from asked a cross join "Sales"."out box" o
  where o.queue = ? and o.id = any (array[a.id]) and o.lease_token = a.token and o.lease_until is not null and o.next_id is null
  for no key update of o skip locked),
done as (
  update "Sales"."out box" o
  set lease_until = null, leased_at = null, leased_by = null,
    deliveries_count = greatest(o.deliveries_count - 1, 0)
  from unlocked a
  where o.queue = ? and o.ctid = a.place and (o.id = a.id) is true
  returning o.id, o.available_at)
select done.id, false from done
where (
    select cast(min('outbox4j: more rows than asked, more than one with id ' || twin.id) as int)
    from (select done.id from done group by done.id having count(*) > 1) twin) is null
  and (
    select count(pg_notify(?, ?))
    where exists (
      select from "Sales"."out box_sleepers" s
      where s.queue = ? and s.wake_at > (
        select greatest(min(done.available_at), now()) from done having count(*) > 0))) >= 0
union all
select o.id, true
from asked a cross join "Sales"."out box" o
where o.queue = ? and o.id = any (array[a.id]) and o.lease_token = a.token and o.lease_until is not null and o.next_id is null and o.id not in (select done.id from done);

-- release, rows of one token
with done as (
  update "Sales"."out box" o
  set lease_until = null, leased_at = null, leased_by = null,
    deliveries_count = greatest(o.deliveries_count - 1, 0)
  from (select ?::bigint as token) a
  where (o.queue = ? or (o.queue < ? and ? = o.queue)) and o.id = any (?::bigint[]) and o.lease_token = a.token and o.lease_until is not null and o.next_id is null
  returning o.id, o.available_at)
select done.id, false from done
where (
    select cast(min('outbox4j: more rows than asked, more than one with id ' || twin.id) as int)
    from (select done.id from done group by done.id having count(*) > 1) twin) is null
  and (
    select count(pg_notify(?, ?))
    where exists (
      select from "Sales"."out box_sleepers" s
      where s.queue = ? and s.wake_at > (
        select greatest(min(done.available_at), now()) from done having count(*) > 0))) >= 0;

-- renew
with done as (
  update "Sales"."out box" o
  set lease_until = now() + make_interval(secs => ?)
  from unnest(?::bigint[], ?::bigint[]) as a (id, token)
  where o.queue = ? and o.id = any (array[a.id]) and o.lease_token = a.token and o.lease_until is not null
  returning o.id)
select done.id, false from done
where (
    select cast(min('outbox4j: more rows than asked, more than one with id ' || twin.id) as int)
    from (select done.id from done group by done.id having count(*) > 1) twin) is null;

-- renew, passing locked rows by
with asked as materialized (
  select * from unnest(?::bigint[], ?::bigint[]) as a (id, token)),
unlocked as materialized (
  select o.ctid as place, a.*
  from asked a cross join "Sales"."out box" o
  where o.queue = ? and o.id = any (array[a.id]) and o.lease_token = a.token and o.lease_until is not null
  for no key update of o skip locked),
done as (
  update "Sales"."out box" o
  set lease_until = now() + make_interval(secs => ?)
  from unlocked a
  where o.queue = ? and o.ctid = a.place and (o.id = a.id) is true
  returning o.id)
select done.id, false from done
where (
    select cast(min('outbox4j: more rows than asked, more than one with id ' || twin.id) as int)
    from (select done.id from done group by done.id having count(*) > 1) twin) is null
union all
select o.id, true
from asked a cross join "Sales"."out box" o
where o.queue = ? and o.id = any (array[a.id]) and o.lease_token = a.token and o.lease_until is not null and o.id not in (select done.id from done);

-- renew, rows of one token
with done as (
  update "Sales"."out box" o
  set lease_until = now() + make_interval(secs => ?)
  from (select ?::bigint as token) a
  where (o.queue = ? or (o.queue < ? and ? = o.queue)) and o.id = any (?::bigint[]) and o.lease_token = a.token and o.lease_until is not null
  returning o.id)
select done.id, false from done
where (
    select cast(min('outbox4j: more rows than asked, more than one with id ' || twin.id) as int)
    from (select done.id from done group by done.id having count(*) > 1) twin) is null;

-- reschedule
with done as (
  update "Sales"."out box" o
  set available_at = now() + make_interval(secs => a.delay), lease_until = null, leased_at = null, leased_by = null, deliveries_count = 0,
    attempts_count = 0, first_attempt_at = null, last_attempt_at = null, last_error = null
  from unnest(?::bigint[], ?::bigint[], ?::float8[]) as a (id, token, delay)
  where o.queue = ? and o.id = any (array[a.id]) and o.lease_token = a.token and o.lease_until is not null and o.next_id is null
  returning o.id, o.available_at)
select done.id, false from done
where (
    select cast(min('outbox4j: more rows than asked, more than one with id ' || twin.id) as int)
    from (select done.id from done group by done.id having count(*) > 1) twin) is null
  and (
    select count(pg_notify(?, ?))
    where exists (
      select from "Sales"."out box_sleepers" s
      where s.queue = ? and s.wake_at > (
        select greatest(min(done.available_at), now()) from done having count(*) > 0))) >= 0;

-- reschedule, passing locked rows by
with asked as materialized (
  select * from unnest(?::bigint[], ?::bigint[], ?::float8[]) as a (id, token, delay)),
unlocked as materialized (
  select o.ctid as place, a.*
  from asked a cross join "Sales"."out box" o
  where o.queue = ? and o.id = any (array[a.id]) and o.lease_token = a.token and o.lease_until is not null and o.next_id is null
  for no key update of o skip locked),
done as (
  update "Sales"."out box" o
  set available_at = now() + make_interval(secs => a.delay), lease_until = null, leased_at = null, leased_by = null, deliveries_count = 0,
    attempts_count = 0, first_attempt_at = null, last_attempt_at = null, last_error = null
  from unlocked a
  where o.queue = ? and o.ctid = a.place and (o.id = a.id) is true
  returning o.id, o.available_at)
select done.id, false from done
where (
    select cast(min('outbox4j: more rows than asked, more than one with id ' || twin.id) as int)
    from (select done.id from done group by done.id having count(*) > 1) twin) is null
  and (
    select count(pg_notify(?, ?))
    where exists (
      select from "Sales"."out box_sleepers" s
      where s.queue = ? and s.wake_at > (
        select greatest(min(done.available_at), now()) from done having count(*) > 0))) >= 0
union all
select o.id, true
from asked a cross join "Sales"."out box" o
where o.queue = ? and o.id = any (array[a.id]) and o.lease_token = a.token and o.lease_until is not null and o.next_id is null and o.id not in (select done.id from done);

-- retry
with done as (
  update "Sales"."out box" o
  set available_at = now() + make_interval(secs => a.delay), lease_until = null,
    leased_at = null, leased_by = null, attempts_count = o.attempts_count + a.runs,
    deliveries_count = greatest(o.deliveries_count - a.given_back, 0),
    first_attempt_at = case when a.runs = 0 then o.first_attempt_at
      else coalesce(o.first_attempt_at, now()) end,
    last_attempt_at = case when a.runs = 0 then o.last_attempt_at else now() end,
    last_error = case when a.error is distinct from 'left to other subscribers' then a.error
      when starts_with(o.last_error, 'left to other subscribers since ') and o.last_error
        = left(o.last_error, length('left to other subscribers since 2000-01-01T00:00:00Z'))
          || ' at delivery ' || greatest(o.deliveries_count - a.given_back, 0)
        then o.last_error
      else 'left to other subscribers since ' || to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
        || ' at delivery ' || greatest(o.deliveries_count - a.given_back, 0) end
  from unnest(?::bigint[], ?::bigint[], ?::float8[], ?::text[], ?::int[], ?::int[]) as a (id, token, delay, error, runs, given_back)
  where o.queue = ? and o.id = any (array[a.id]) and o.lease_token = a.token and o.lease_until is not null and o.next_id is null
  returning o.id, o.available_at)
select done.id, false from done
where (
    select cast(min('outbox4j: more rows than asked, more than one with id ' || twin.id) as int)
    from (select done.id from done group by done.id having count(*) > 1) twin) is null
  and (
    select count(pg_notify(?, ?))
    where exists (
      select from "Sales"."out box_sleepers" s
      where s.queue = ? and s.wake_at > (
        select greatest(min(done.available_at), now()) from done having count(*) > 0))) >= 0;

-- retry, passing locked rows by
with asked as materialized (
  select * from unnest(?::bigint[], ?::bigint[], ?::float8[], ?::text[], ?::int[], ?::int[]) as a (id, token, delay, error, runs, given_back)),
unlocked as materialized (
  select o.ctid as place, a.*
  from asked a cross join "Sales"."out box" o
  where o.queue = ? and o.id = any (array[a.id]) and o.lease_token = a.token and o.lease_until is not null and o.next_id is null
  for no key update of o skip locked),
done as (
  update "Sales"."out box" o
  set available_at = now() + make_interval(secs => a.delay), lease_until = null,
    leased_at = null, leased_by = null, attempts_count = o.attempts_count + a.runs,
    deliveries_count = greatest(o.deliveries_count - a.given_back, 0),
    first_attempt_at = case when a.runs = 0 then o.first_attempt_at
      else coalesce(o.first_attempt_at, now()) end,
    last_attempt_at = case when a.runs = 0 then o.last_attempt_at else now() end,
    last_error = case when a.error is distinct from 'left to other subscribers' then a.error
      when starts_with(o.last_error, 'left to other subscribers since ') and o.last_error
        = left(o.last_error, length('left to other subscribers since 2000-01-01T00:00:00Z'))
          || ' at delivery ' || greatest(o.deliveries_count - a.given_back, 0)
        then o.last_error
      else 'left to other subscribers since ' || to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
        || ' at delivery ' || greatest(o.deliveries_count - a.given_back, 0) end
  from unlocked a
  where o.queue = ? and o.ctid = a.place and (o.id = a.id) is true
  returning o.id, o.available_at)
select done.id, false from done
where (
    select cast(min('outbox4j: more rows than asked, more than one with id ' || twin.id) as int)
    from (select done.id from done group by done.id having count(*) > 1) twin) is null
  and (
    select count(pg_notify(?, ?))
    where exists (
      select from "Sales"."out box_sleepers" s
      where s.queue = ? and s.wake_at > (
        select greatest(min(done.available_at), now()) from done having count(*) > 0))) >= 0
union all
select o.id, true
from asked a cross join "Sales"."out box" o
where o.queue = ? and o.id = any (array[a.id]) and o.lease_token = a.token and o.lease_until is not null and o.next_id is null and o.id not in (select done.id from done);

