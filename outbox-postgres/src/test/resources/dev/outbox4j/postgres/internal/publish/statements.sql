-- cancel a timer
delete from "Sales"."out box"
where queue = $1 and timer_id = $2 and (lease_until is null or lease_until < clock_timestamp());

-- publish in the place of timers, ALWAYS
with inserted as (
  insert into "Sales"."out box" as o
  (payload, queue, type, ordering_key, timer_id, headers, available_at, expires_at)
select
  substr($1::bytea, m.first_byte, m.bytes), m.queue, m.type, m.ordering_key, m.timer_id,
  case when m.headers is null then jsonb '{}' else jsonb_object(m.headers::text[]) end,
  case
    when m.deliver_at is not null then m.deliver_at::timestamptz
    when m.delay is null then clock_timestamp()
    else clock_timestamp() + m.delay * interval '1 microsecond'
  end,
  case
    when m.expires_at is not null then m.expires_at::timestamptz
    when m.expires_in is not null then m.expires_in * interval '1 microsecond' +
      coalesce(
        m.deliver_at::timestamptz,
        clock_timestamp() + coalesce(m.delay, 0) * interval '1 microsecond')
  end
from unnest(
    $2::int[], $3::int[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
    $9::bigint[], $10::text[], $11::bigint[], $12::text[])
  with ordinality as m(
    first_byte, bytes, queue, type, ordering_key, timer_id, headers, delay, deliver_at,
    expires_in, expires_at, place)
where pg_current_xact_id() is not null
order by m.place
  on conflict (queue, timer_id) where timer_id is not null do update
set id = case when o.lease_until >= statement_timestamp() then o.id else excluded.id end,
  next_id = case when o.lease_until >= statement_timestamp() then excluded.id end,
  type = excluded.type, ordering_key = excluded.ordering_key, payload = excluded.payload,
  headers = excluded.headers, created_at = now(), expires_at = excluded.expires_at,
  available_at = case when excluded.available_at <= clock_timestamp()
    then least(o.available_at, excluded.available_at) else excluded.available_at end,
  lease_until = case when o.lease_until >= statement_timestamp() then o.lease_until end,
  leased_at = case when o.lease_until >= statement_timestamp() then o.leased_at end,
  leased_by = case when o.lease_until >= statement_timestamp() then o.leased_by end,
  lease_token = case when o.lease_until >= statement_timestamp() then o.lease_token else 0 end,
  deliveries_count = 0, attempts_count = 0, first_attempt_at = null, last_attempt_at = null,
  last_error = null
where (o.queue, o.timer_id) in (
  select r.queue, r.timer_id from unnest($13::text[], $14::text[]) as r (queue, timer_id))
  returning coalesce(next_id, id) as id, queue, timer_id,
    greatest(available_at, clock_timestamp()) as available_at
), due as (
  select i.queue, min(i.available_at) as available_at from inserted i group by i.queue
), notified as materialized (
  select pg_notify('outbox_out box', n.queue)
  from (
    select due.queue from due where due.available_at <= clock_timestamp()
    union
    select due.queue from due
    where exists (
      select from "Sales"."out box_sleepers" s where s.queue = due.queue and s.wake_at > due.available_at)
    union all
    select due.queue from due
    where current_setting('transaction_isolation') in ('repeatable read', 'serializable')
  ) n
)
select i.id, i.queue, i.timer_id, (select count(*) from notified) from inserted i;

-- publish in the place of timers, AUTO
with inserted as (
  insert into "Sales"."out box" as o
  (payload, queue, type, ordering_key, timer_id, headers, available_at, expires_at)
select
  substr($1::bytea, m.first_byte, m.bytes), m.queue, m.type, m.ordering_key, m.timer_id,
  case when m.headers is null then jsonb '{}' else jsonb_object(m.headers::text[]) end,
  case
    when m.deliver_at is not null then m.deliver_at::timestamptz
    when m.delay is null then clock_timestamp()
    else clock_timestamp() + m.delay * interval '1 microsecond'
  end,
  case
    when m.expires_at is not null then m.expires_at::timestamptz
    when m.expires_in is not null then m.expires_in * interval '1 microsecond' +
      coalesce(
        m.deliver_at::timestamptz,
        clock_timestamp() + coalesce(m.delay, 0) * interval '1 microsecond')
  end
from unnest(
    $2::int[], $3::int[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
    $9::bigint[], $10::text[], $11::bigint[], $12::text[])
  with ordinality as m(
    first_byte, bytes, queue, type, ordering_key, timer_id, headers, delay, deliver_at,
    expires_in, expires_at, place)
where pg_current_xact_id() is not null
order by m.place
  on conflict (queue, timer_id) where timer_id is not null do update
set id = case when o.lease_until >= statement_timestamp() then o.id else excluded.id end,
  next_id = case when o.lease_until >= statement_timestamp() then excluded.id end,
  type = excluded.type, ordering_key = excluded.ordering_key, payload = excluded.payload,
  headers = excluded.headers, created_at = now(), expires_at = excluded.expires_at,
  available_at = case when excluded.available_at <= clock_timestamp()
    then least(o.available_at, excluded.available_at) else excluded.available_at end,
  lease_until = case when o.lease_until >= statement_timestamp() then o.lease_until end,
  leased_at = case when o.lease_until >= statement_timestamp() then o.leased_at end,
  leased_by = case when o.lease_until >= statement_timestamp() then o.leased_by end,
  lease_token = case when o.lease_until >= statement_timestamp() then o.lease_token else 0 end,
  deliveries_count = 0, attempts_count = 0, first_attempt_at = null, last_attempt_at = null,
  last_error = null
where (o.queue, o.timer_id) in (
  select r.queue, r.timer_id from unnest($13::text[], $14::text[]) as r (queue, timer_id))
  returning coalesce(next_id, id) as id, queue, timer_id,
    greatest(available_at, clock_timestamp()) as available_at
), due as (
  select i.queue, min(i.available_at) as available_at from inserted i group by i.queue
), notified as materialized (
  select pg_notify('outbox_out box', n.queue)
  from (
    select due.queue from due
    where exists (
      select from "Sales"."out box_sleepers" s where s.queue = due.queue and s.wake_at > due.available_at)
    union all
    select due.queue from due
    where current_setting('transaction_isolation') in ('repeatable read', 'serializable')
  ) n
)
select i.id, i.queue, i.timer_id, (select count(*) from notified) from inserted i;

-- publish in the place of timers, NEVER
insert into "Sales"."out box" as o
  (payload, queue, type, ordering_key, timer_id, headers, available_at, expires_at)
select
  substr($1::bytea, m.first_byte, m.bytes), m.queue, m.type, m.ordering_key, m.timer_id,
  case when m.headers is null then jsonb '{}' else jsonb_object(m.headers::text[]) end,
  case
    when m.deliver_at is not null then m.deliver_at::timestamptz
    when m.delay is null then clock_timestamp()
    else clock_timestamp() + m.delay * interval '1 microsecond'
  end,
  case
    when m.expires_at is not null then m.expires_at::timestamptz
    when m.expires_in is not null then m.expires_in * interval '1 microsecond' +
      coalesce(
        m.deliver_at::timestamptz,
        clock_timestamp() + coalesce(m.delay, 0) * interval '1 microsecond')
  end
from unnest(
    $2::int[], $3::int[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
    $9::bigint[], $10::text[], $11::bigint[], $12::text[])
  with ordinality as m(
    first_byte, bytes, queue, type, ordering_key, timer_id, headers, delay, deliver_at,
    expires_in, expires_at, place)
where pg_current_xact_id() is not null
order by m.place
on conflict (queue, timer_id) where timer_id is not null do update
set id = case when o.lease_until >= statement_timestamp() then o.id else excluded.id end,
  next_id = case when o.lease_until >= statement_timestamp() then excluded.id end,
  type = excluded.type, ordering_key = excluded.ordering_key, payload = excluded.payload,
  headers = excluded.headers, created_at = now(), expires_at = excluded.expires_at,
  available_at = case when excluded.available_at <= clock_timestamp()
    then least(o.available_at, excluded.available_at) else excluded.available_at end,
  lease_until = case when o.lease_until >= statement_timestamp() then o.lease_until end,
  leased_at = case when o.lease_until >= statement_timestamp() then o.leased_at end,
  leased_by = case when o.lease_until >= statement_timestamp() then o.leased_by end,
  lease_token = case when o.lease_until >= statement_timestamp() then o.lease_token else 0 end,
  deliveries_count = 0, attempts_count = 0, first_attempt_at = null, last_attempt_at = null,
  last_error = null
where (o.queue, o.timer_id) in (
  select r.queue, r.timer_id from unnest($13::text[], $14::text[]) as r (queue, timer_id))
returning coalesce(next_id, id), queue, timer_id;

-- publish one message, ALWAYS
insert into "Sales"."out box" as i (payload, queue, type, ordering_key, headers, available_at)
values (
  $1, $2, $3, $4, jsonb_object($5::text[]),
  coalesce($6::timestamptz, clock_timestamp() + $7::bigint * interval '1 microsecond'))
returning i.id,
  case
    when i.available_at <= clock_timestamp()
      or current_setting('transaction_isolation') in ('repeatable read', 'serializable')
      or exists (
        select from "Sales"."out box_sleepers" s where s.queue = i.queue and s.wake_at > i.available_at)
    then pg_notify('outbox_out box', i.queue)
  end;

-- publish one message, AUTO
insert into "Sales"."out box" as i (payload, queue, type, ordering_key, headers, available_at)
values (
  $1, $2, $3, $4, jsonb_object($5::text[]),
  coalesce($6::timestamptz, clock_timestamp() + $7::bigint * interval '1 microsecond'))
returning i.id,
  case
    when current_setting('transaction_isolation') in ('repeatable read', 'serializable')
      or exists (
        select from "Sales"."out box_sleepers" s where s.queue = i.queue and s.wake_at > i.available_at)
    then pg_notify('outbox_out box', i.queue)
  end;

-- publish one message, NEVER
insert into "Sales"."out box" as i (payload, queue, type, ordering_key, headers, available_at)
values (
  $1, $2, $3, $4, jsonb_object($5::text[]),
  coalesce($6::timestamptz, clock_timestamp() + $7::bigint * interval '1 microsecond'))
returning i.id;

-- publish several messages, ALWAYS
insert into "Sales"."out box"
  (payload, queue, type, ordering_key, timer_id, headers, available_at, expires_at)
select
  substr($1::bytea, m.first_byte, m.bytes), m.queue, m.type, m.ordering_key, m.timer_id,
  case when m.headers is null then jsonb '{}' else jsonb_object(m.headers::text[]) end,
  case
    when m.deliver_at is not null then m.deliver_at::timestamptz
    when m.delay is null then clock_timestamp()
    else clock_timestamp() + m.delay * interval '1 microsecond'
  end,
  case
    when m.expires_at is not null then m.expires_at::timestamptz
    when m.expires_in is not null then m.expires_in * interval '1 microsecond' +
      coalesce(
        m.deliver_at::timestamptz,
        clock_timestamp() + coalesce(m.delay, 0) * interval '1 microsecond')
  end
from unnest(
    $2::int[], $3::int[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
    $9::bigint[], $10::text[], $11::bigint[], $12::text[])
  with ordinality as m(
    first_byte, bytes, queue, type, ordering_key, timer_id, headers, delay, deliver_at,
    expires_in, expires_at, place)
order by m.place
returning id, null::text, null::text, (
  with due as (
    select
      q.queue,
      least(
        q.deliver_at::timestamptz,
        clock_timestamp() + q.delay * interval '1 microsecond') as available_at
    from unnest($13::text[], $14::bigint[], $15::text[]) as q(queue, delay, deliver_at))
  select count(pg_notify('outbox_out box', notified.queue))
  from (
    select due.queue from due where due.available_at <= clock_timestamp()
    union
    select due.queue from due
    where exists (
      select from "Sales"."out box_sleepers" s where s.queue = due.queue and s.wake_at > due.available_at)
    union all
    select due.queue from due
    where current_setting('transaction_isolation') in ('repeatable read', 'serializable')
  ) notified);

-- publish several messages, AUTO
insert into "Sales"."out box"
  (payload, queue, type, ordering_key, timer_id, headers, available_at, expires_at)
select
  substr($1::bytea, m.first_byte, m.bytes), m.queue, m.type, m.ordering_key, m.timer_id,
  case when m.headers is null then jsonb '{}' else jsonb_object(m.headers::text[]) end,
  case
    when m.deliver_at is not null then m.deliver_at::timestamptz
    when m.delay is null then clock_timestamp()
    else clock_timestamp() + m.delay * interval '1 microsecond'
  end,
  case
    when m.expires_at is not null then m.expires_at::timestamptz
    when m.expires_in is not null then m.expires_in * interval '1 microsecond' +
      coalesce(
        m.deliver_at::timestamptz,
        clock_timestamp() + coalesce(m.delay, 0) * interval '1 microsecond')
  end
from unnest(
    $2::int[], $3::int[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
    $9::bigint[], $10::text[], $11::bigint[], $12::text[])
  with ordinality as m(
    first_byte, bytes, queue, type, ordering_key, timer_id, headers, delay, deliver_at,
    expires_in, expires_at, place)
order by m.place
returning id, null::text, null::text, (
  with due as (
    select
      q.queue,
      least(
        q.deliver_at::timestamptz,
        clock_timestamp() + q.delay * interval '1 microsecond') as available_at
    from unnest($13::text[], $14::bigint[], $15::text[]) as q(queue, delay, deliver_at))
  select count(pg_notify('outbox_out box', notified.queue))
  from (
    select due.queue from due
    where exists (
      select from "Sales"."out box_sleepers" s where s.queue = due.queue and s.wake_at > due.available_at)
    union all
    select due.queue from due
    where current_setting('transaction_isolation') in ('repeatable read', 'serializable')
  ) notified);

-- publish several messages, NEVER
insert into "Sales"."out box"
  (payload, queue, type, ordering_key, timer_id, headers, available_at, expires_at)
select
  substr($1::bytea, m.first_byte, m.bytes), m.queue, m.type, m.ordering_key, m.timer_id,
  case when m.headers is null then jsonb '{}' else jsonb_object(m.headers::text[]) end,
  case
    when m.deliver_at is not null then m.deliver_at::timestamptz
    when m.delay is null then clock_timestamp()
    else clock_timestamp() + m.delay * interval '1 microsecond'
  end,
  case
    when m.expires_at is not null then m.expires_at::timestamptz
    when m.expires_in is not null then m.expires_in * interval '1 microsecond' +
      coalesce(
        m.deliver_at::timestamptz,
        clock_timestamp() + coalesce(m.delay, 0) * interval '1 microsecond')
  end
from unnest(
    $2::int[], $3::int[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
    $9::bigint[], $10::text[], $11::bigint[], $12::text[])
  with ordinality as m(
    first_byte, bytes, queue, type, ordering_key, timer_id, headers, delay, deliver_at,
    expires_in, expires_at, place)
order by m.place
returning id, null::text, null::text;

-- publish with dedup keys, ALWAYS
with input (payload, queue, type, ordering_key, timer_id, headers, available_at, expires_at, id, dedup_key, in_flight, completed, place) as materialized (
  select
    substr($1::bytea, m.first_byte, m.bytes), m.queue, m.type, m.ordering_key, m.timer_id,
  case when m.headers is null then jsonb '{}' else jsonb_object(m.headers::text[]) end,
  case
    when m.deliver_at is not null then m.deliver_at::timestamptz
    when m.delay is null then clock_timestamp()
    else clock_timestamp() + m.delay * interval '1 microsecond'
  end,
  case
    when m.expires_at is not null then m.expires_at::timestamptz
    when m.expires_in is not null then m.expires_in * interval '1 microsecond' +
      coalesce(
        m.deliver_at::timestamptz,
        clock_timestamp() + coalesce(m.delay, 0) * interval '1 microsecond')
  end,
    nextval((select pg_get_serial_sequence('"Sales"."out box"', 'id')::regclass)),
    m.dedup_key, m.in_flight * interval '1 microsecond',
    m.completed * interval '1 microsecond', m.place
  from unnest(
      $2::int[], $3::int[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
    $9::bigint[], $10::text[], $11::bigint[], $12::text[],
      $13::text[], $14::bigint[], $15::bigint[])
    with ordinality as m(
      first_byte, bytes, queue, type, ordering_key, timer_id, headers, delay, deliver_at,
    expires_in, expires_at,
      dedup_key, in_flight, completed, place)
  where pg_current_xact_id() is not null
  order by m.place
), taken as materialized (
  select t.message_id
  from (
    select array_agg(i.queue) as queues, array_agg(i.dedup_key) as keys,
      array_agg(i.id) as ids, array_agg(i.in_flight) as in_flight,
      array_agg(i.completed) as completed
    from input i
    where i.dedup_key is not null) w
  cross join lateral "Sales"."out box_dedup_take"(w.queues, w.keys, w.ids, w.in_flight, w.completed)
    as t (message_id)
), inserted as (
  insert into "Sales"."out box" (id, payload, queue, type, ordering_key, timer_id, headers, available_at, expires_at)
  select i.id, i.payload, i.queue, i.type, i.ordering_key, i.timer_id, i.headers,
    i.available_at, i.expires_at
  from input i
  where i.dedup_key is null or i.id in (select t.message_id from taken t)
  order by i.place
  on conflict (queue, timer_id) where timer_id is not null do nothing
  returning id, queue, timer_id, available_at
), due as (
  select i.queue, min(i.available_at) as available_at from inserted i group by i.queue
), notified as materialized (
  select pg_notify('outbox_out box', n.queue)
  from (
    select due.queue from due where due.available_at <= clock_timestamp()
    union
    select due.queue from due
    where exists (
      select from "Sales"."out box_sleepers" s where s.queue = due.queue and s.wake_at > due.available_at)
    union all
    select due.queue from due
    where current_setting('transaction_isolation') in ('repeatable read', 'serializable')
  ) n
)
select n.id, n.queue, n.timer_id, i.place, (select count(*) from notified)
from inserted n join input i on i.id = n.id;

-- publish with dedup keys, AUTO
with input (payload, queue, type, ordering_key, timer_id, headers, available_at, expires_at, id, dedup_key, in_flight, completed, place) as materialized (
  select
    substr($1::bytea, m.first_byte, m.bytes), m.queue, m.type, m.ordering_key, m.timer_id,
  case when m.headers is null then jsonb '{}' else jsonb_object(m.headers::text[]) end,
  case
    when m.deliver_at is not null then m.deliver_at::timestamptz
    when m.delay is null then clock_timestamp()
    else clock_timestamp() + m.delay * interval '1 microsecond'
  end,
  case
    when m.expires_at is not null then m.expires_at::timestamptz
    when m.expires_in is not null then m.expires_in * interval '1 microsecond' +
      coalesce(
        m.deliver_at::timestamptz,
        clock_timestamp() + coalesce(m.delay, 0) * interval '1 microsecond')
  end,
    nextval((select pg_get_serial_sequence('"Sales"."out box"', 'id')::regclass)),
    m.dedup_key, m.in_flight * interval '1 microsecond',
    m.completed * interval '1 microsecond', m.place
  from unnest(
      $2::int[], $3::int[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
    $9::bigint[], $10::text[], $11::bigint[], $12::text[],
      $13::text[], $14::bigint[], $15::bigint[])
    with ordinality as m(
      first_byte, bytes, queue, type, ordering_key, timer_id, headers, delay, deliver_at,
    expires_in, expires_at,
      dedup_key, in_flight, completed, place)
  where pg_current_xact_id() is not null
  order by m.place
), taken as materialized (
  select t.message_id
  from (
    select array_agg(i.queue) as queues, array_agg(i.dedup_key) as keys,
      array_agg(i.id) as ids, array_agg(i.in_flight) as in_flight,
      array_agg(i.completed) as completed
    from input i
    where i.dedup_key is not null) w
  cross join lateral "Sales"."out box_dedup_take"(w.queues, w.keys, w.ids, w.in_flight, w.completed)
    as t (message_id)
), inserted as (
  insert into "Sales"."out box" (id, payload, queue, type, ordering_key, timer_id, headers, available_at, expires_at)
  select i.id, i.payload, i.queue, i.type, i.ordering_key, i.timer_id, i.headers,
    i.available_at, i.expires_at
  from input i
  where i.dedup_key is null or i.id in (select t.message_id from taken t)
  order by i.place
  on conflict (queue, timer_id) where timer_id is not null do nothing
  returning id, queue, timer_id, available_at
), due as (
  select i.queue, min(i.available_at) as available_at from inserted i group by i.queue
), notified as materialized (
  select pg_notify('outbox_out box', n.queue)
  from (
    select due.queue from due
    where exists (
      select from "Sales"."out box_sleepers" s where s.queue = due.queue and s.wake_at > due.available_at)
    union all
    select due.queue from due
    where current_setting('transaction_isolation') in ('repeatable read', 'serializable')
  ) n
)
select n.id, n.queue, n.timer_id, i.place, (select count(*) from notified)
from inserted n join input i on i.id = n.id;

-- publish with dedup keys, NEVER
with input (payload, queue, type, ordering_key, timer_id, headers, available_at, expires_at, id, dedup_key, in_flight, completed, place) as materialized (
  select
    substr($1::bytea, m.first_byte, m.bytes), m.queue, m.type, m.ordering_key, m.timer_id,
  case when m.headers is null then jsonb '{}' else jsonb_object(m.headers::text[]) end,
  case
    when m.deliver_at is not null then m.deliver_at::timestamptz
    when m.delay is null then clock_timestamp()
    else clock_timestamp() + m.delay * interval '1 microsecond'
  end,
  case
    when m.expires_at is not null then m.expires_at::timestamptz
    when m.expires_in is not null then m.expires_in * interval '1 microsecond' +
      coalesce(
        m.deliver_at::timestamptz,
        clock_timestamp() + coalesce(m.delay, 0) * interval '1 microsecond')
  end,
    nextval((select pg_get_serial_sequence('"Sales"."out box"', 'id')::regclass)),
    m.dedup_key, m.in_flight * interval '1 microsecond',
    m.completed * interval '1 microsecond', m.place
  from unnest(
      $2::int[], $3::int[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
    $9::bigint[], $10::text[], $11::bigint[], $12::text[],
      $13::text[], $14::bigint[], $15::bigint[])
    with ordinality as m(
      first_byte, bytes, queue, type, ordering_key, timer_id, headers, delay, deliver_at,
    expires_in, expires_at,
      dedup_key, in_flight, completed, place)
  where pg_current_xact_id() is not null
  order by m.place
), taken as materialized (
  select t.message_id
  from (
    select array_agg(i.queue) as queues, array_agg(i.dedup_key) as keys,
      array_agg(i.id) as ids, array_agg(i.in_flight) as in_flight,
      array_agg(i.completed) as completed
    from input i
    where i.dedup_key is not null) w
  cross join lateral "Sales"."out box_dedup_take"(w.queues, w.keys, w.ids, w.in_flight, w.completed)
    as t (message_id)
), inserted as (
  insert into "Sales"."out box" (id, payload, queue, type, ordering_key, timer_id, headers, available_at, expires_at)
  select i.id, i.payload, i.queue, i.type, i.ordering_key, i.timer_id, i.headers,
    i.available_at, i.expires_at
  from input i
  where i.dedup_key is null or i.id in (select t.message_id from taken t)
  order by i.place
  on conflict (queue, timer_id) where timer_id is not null do nothing
  returning id, queue, timer_id, available_at
)
select n.id, n.queue, n.timer_id, i.place
from inserted n join input i on i.id = n.id;

-- publish with timer ids, ALWAYS
with inserted as (
  insert into "Sales"."out box"
  (payload, queue, type, ordering_key, timer_id, headers, available_at, expires_at)
select
  substr($1::bytea, m.first_byte, m.bytes), m.queue, m.type, m.ordering_key, m.timer_id,
  case when m.headers is null then jsonb '{}' else jsonb_object(m.headers::text[]) end,
  case
    when m.deliver_at is not null then m.deliver_at::timestamptz
    when m.delay is null then clock_timestamp()
    else clock_timestamp() + m.delay * interval '1 microsecond'
  end,
  case
    when m.expires_at is not null then m.expires_at::timestamptz
    when m.expires_in is not null then m.expires_in * interval '1 microsecond' +
      coalesce(
        m.deliver_at::timestamptz,
        clock_timestamp() + coalesce(m.delay, 0) * interval '1 microsecond')
  end
from unnest(
    $2::int[], $3::int[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
    $9::bigint[], $10::text[], $11::bigint[], $12::text[])
  with ordinality as m(
    first_byte, bytes, queue, type, ordering_key, timer_id, headers, delay, deliver_at,
    expires_in, expires_at, place)
where pg_current_xact_id() is not null
order by m.place
  on conflict (queue, timer_id) where timer_id is not null do nothing
  returning id, queue, timer_id, available_at
), due as (
  select i.queue, min(i.available_at) as available_at from inserted i group by i.queue
), notified as materialized (
  select pg_notify('outbox_out box', n.queue)
  from (
    select due.queue from due where due.available_at <= clock_timestamp()
    union
    select due.queue from due
    where exists (
      select from "Sales"."out box_sleepers" s where s.queue = due.queue and s.wake_at > due.available_at)
    union all
    select due.queue from due
    where current_setting('transaction_isolation') in ('repeatable read', 'serializable')
  ) n
)
select i.id, i.queue, i.timer_id, (select count(*) from notified) from inserted i;

-- publish with timer ids, AUTO
with inserted as (
  insert into "Sales"."out box"
  (payload, queue, type, ordering_key, timer_id, headers, available_at, expires_at)
select
  substr($1::bytea, m.first_byte, m.bytes), m.queue, m.type, m.ordering_key, m.timer_id,
  case when m.headers is null then jsonb '{}' else jsonb_object(m.headers::text[]) end,
  case
    when m.deliver_at is not null then m.deliver_at::timestamptz
    when m.delay is null then clock_timestamp()
    else clock_timestamp() + m.delay * interval '1 microsecond'
  end,
  case
    when m.expires_at is not null then m.expires_at::timestamptz
    when m.expires_in is not null then m.expires_in * interval '1 microsecond' +
      coalesce(
        m.deliver_at::timestamptz,
        clock_timestamp() + coalesce(m.delay, 0) * interval '1 microsecond')
  end
from unnest(
    $2::int[], $3::int[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
    $9::bigint[], $10::text[], $11::bigint[], $12::text[])
  with ordinality as m(
    first_byte, bytes, queue, type, ordering_key, timer_id, headers, delay, deliver_at,
    expires_in, expires_at, place)
where pg_current_xact_id() is not null
order by m.place
  on conflict (queue, timer_id) where timer_id is not null do nothing
  returning id, queue, timer_id, available_at
), due as (
  select i.queue, min(i.available_at) as available_at from inserted i group by i.queue
), notified as materialized (
  select pg_notify('outbox_out box', n.queue)
  from (
    select due.queue from due
    where exists (
      select from "Sales"."out box_sleepers" s where s.queue = due.queue and s.wake_at > due.available_at)
    union all
    select due.queue from due
    where current_setting('transaction_isolation') in ('repeatable read', 'serializable')
  ) n
)
select i.id, i.queue, i.timer_id, (select count(*) from notified) from inserted i;

-- publish with timer ids, NEVER
insert into "Sales"."out box"
  (payload, queue, type, ordering_key, timer_id, headers, available_at, expires_at)
select
  substr($1::bytea, m.first_byte, m.bytes), m.queue, m.type, m.ordering_key, m.timer_id,
  case when m.headers is null then jsonb '{}' else jsonb_object(m.headers::text[]) end,
  case
    when m.deliver_at is not null then m.deliver_at::timestamptz
    when m.delay is null then clock_timestamp()
    else clock_timestamp() + m.delay * interval '1 microsecond'
  end,
  case
    when m.expires_at is not null then m.expires_at::timestamptz
    when m.expires_in is not null then m.expires_in * interval '1 microsecond' +
      coalesce(
        m.deliver_at::timestamptz,
        clock_timestamp() + coalesce(m.delay, 0) * interval '1 microsecond')
  end
from unnest(
    $2::int[], $3::int[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
    $9::bigint[], $10::text[], $11::bigint[], $12::text[])
  with ordinality as m(
    first_byte, bytes, queue, type, ordering_key, timer_id, headers, delay, deliver_at,
    expires_in, expires_at, place)
where pg_current_xact_id() is not null
order by m.place
on conflict (queue, timer_id) where timer_id is not null do nothing
returning id, queue, timer_id;

