-- Jobs: the message that each had last, how those messages ended, and the function that enqueues.
-- Placeholders: outbox_schema, outbox_table (without quotes; the helper checks and quotes them).

create table "${outbox_schema}"."${outbox_table}_job" (
  queue        text collate "C" not null,
  job_id       text collate "C" not null,
  type         text collate "C" not null,
  -- 0 only between two statements of the transaction that enqueues
  message_id   bigint      not null default 0,
  enqueued_at  timestamptz not null,
  due_at       timestamptz not null,
  constraint "${outbox_table}_job_pkey" primary key (queue, job_id)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
comment on table "${outbox_schema}"."${outbox_table}_job" is 'outbox4j schema 1';

-- for the end of a message
create index "${outbox_table}_job_message_idx" on "${outbox_schema}"."${outbox_table}_job" (message_id);

-- for samples, and for purges of those whose message somebody has deleted
create index "${outbox_table}_job_due_idx" on "${outbox_schema}"."${outbox_table}_job" (queue, due_at);

-- A table of its own: whoever enqueues a job anew locks its row above, and no ack waits for that.
create table "${outbox_schema}"."${outbox_table}_job_end" (
  message_id        bigint      not null,
  queue             text collate "C" not null,
  job_id            text collate "C" not null,
  status            text collate "C" not null,
  reason            text,
  attempts_count    int         not null default 0,
  deliveries_count  int         not null default 0,
  ended_at          timestamptz not null,
  constraint "${outbox_table}_job_end_pkey" primary key (message_id)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
comment on table "${outbox_schema}"."${outbox_table}_job_end" is 'outbox4j schema 1';

-- for samples, and for purges
create index "${outbox_table}_job_end_status_idx" on "${outbox_schema}"."${outbox_table}_job_end" (queue, status, ended_at);

-- Publishes a message for a job, in the caller's transaction and with the caller's rights, or tells why not. One
-- of several transactions that do so at once has the job's row, and the others wait for its end. Each look is a
-- statement of its own, so that it sees what was committed meanwhile: a job is refused as in flight only if its
-- message is there, committed. The window in flight counts from when the message was due first, or was put back
-- from the dead letters: created_at is then the time of that. A row whose window is over is deleted and inserted anew, and not updated: an
-- update would lock it also for a job that is refused, and whoever came next would wait for its transaction.
create function "${outbox_schema}"."${outbox_table}_job_enqueue"(
  of_queue     text,
  of_job       text,
  of_type      text,
  of_payload   bytea,
  of_headers   jsonb,
  deliver_in   interval,
  in_flight    interval,
  completed    interval
) returns table (decision text, message_id bigint, free_at timestamptz)
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off -- whatever the planner believes of a table that has grown
as $enqueue$
#variable_conflict use_column
-- outbox4j schema 1
declare
  due       timestamptz;
  published bigint;
  known     record;
begin
  loop
    due := clock_timestamp() + deliver_in;
    insert into "${outbox_schema}"."${outbox_table}_job" as j (queue, job_id, type, enqueued_at, due_at)
    values (of_queue, of_job, of_type, clock_timestamp(), due)
    on conflict do nothing;
    if found then
      due := clock_timestamp() + deliver_in; -- it may have waited for another transaction
      published := "${outbox_schema}"."${outbox_table}_publish"(
        queue => of_queue, payload => of_payload, type => of_type, headers => of_headers,
        deliver_in => deliver_in);
      -- ids that began anew, as after a restore: of two jobs with one message the end of neither could be written
      delete from "${outbox_schema}"."${outbox_table}_job" j where j.message_id = published;
      delete from "${outbox_schema}"."${outbox_table}_job_end" e where e.message_id = published;
      update "${outbox_schema}"."${outbox_table}_job" j
      set message_id = published, enqueued_at = clock_timestamp(), due_at = due
      where j.queue = of_queue and j.job_id = of_job;
      return query select 'enqueued', published, due + in_flight;
      return;
    end if;
    select j.message_id, greatest(j.due_at, o.created_at) as guarded_from, e.status, e.ended_at,
      o.created_at is not null as live
    into known
    from "${outbox_schema}"."${outbox_table}_job" j
    left join lateral (
      select o.created_at from "${outbox_schema}"."${outbox_table}" o
      where o.queue = j.queue and o.id = any (array[j.message_id])) o on true
    left join "${outbox_schema}"."${outbox_table}_job_end" e on e.message_id = any (array[j.message_id])
    where j.queue = of_queue and j.job_id = of_job;
    continue when not found; -- it was purged, or another transaction has it anew
    if known.live and known.guarded_from + in_flight > clock_timestamp() then
      return query select 'in_flight', known.message_id, known.guarded_from + in_flight;
      return;
    end if;
    if not known.live and known.status = 'completed' and known.ended_at + completed > clock_timestamp() then
      return query select 'completed', known.message_id, known.ended_at + completed;
      return;
    end if;
    delete from "${outbox_schema}"."${outbox_table}_job" j
    where j.queue = of_queue and j.job_id = of_job and j.message_id = known.message_id;
  end loop;
end
$enqueue$;
