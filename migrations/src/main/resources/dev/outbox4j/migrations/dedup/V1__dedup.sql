-- The dedup keys that were published, each with the message that has it.
-- Placeholders: outbox_schema, outbox_table (without quotes; the helper checks and quotes them).

create table "${outbox_schema}"."${outbox_table}_dedup" (
  queue        text collate "C" not null,
  dedup_key    text collate "C" not null,
  message_id   bigint      not null,
  published_at timestamptz not null,
  kept_until   timestamptz not null,
  constraint "${outbox_table}_dedup_pkey" primary key (queue, dedup_key)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
comment on table "${outbox_schema}"."${outbox_table}_dedup" is 'outbox4j schema 1';

-- for purges: keys whose windows are over
create index "${outbox_table}_dedup_kept_idx" on "${outbox_schema}"."${outbox_table}_dedup" (kept_until);

-- Takes the dedup keys of messages that are about to be inserted, in the caller's transaction and with the
-- caller's rights, and returns the ids of those that have got theirs. One key after the other, in their order:
-- so of two transactions that take the same keys one waits for the other, and never both. A key whose window
-- is over is deleted and inserted anew, and not updated: an update would lock the key for a message that is not
-- published, and whoever came next would wait for its transaction. Of one key the first message that gets it has it for
-- the whole call: it is not in the outbox yet, so its window cannot be asked.
create function "${outbox_schema}"."${outbox_table}_dedup_take"(
  queues      text[],
  keys        text[],
  message_ids bigint[],
  in_flight   interval[],
  completed   interval[]
) returns setof bigint
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off -- whatever the planner believes of a table that has grown
as $take$
-- outbox4j schema 1
declare
  wanted record;
  taken_queue text;
  taken_key   text;
begin
  for wanted in
    select w.queue, w.dedup_key, w.message_id, w.while_in_flight, w.when_completed
    from unnest(queues, keys, message_ids, in_flight, completed)
      with ordinality as w (queue, dedup_key, message_id, while_in_flight, when_completed, place)
    order by w.queue collate "C", w.dedup_key collate "C", w.place
  loop
    continue when wanted.queue = taken_queue and wanted.dedup_key = taken_key;
    loop
      insert into "${outbox_schema}"."${outbox_table}_dedup"
        (queue, dedup_key, message_id, published_at, kept_until)
      values (
        wanted.queue, wanted.dedup_key, wanted.message_id, clock_timestamp(),
        clock_timestamp() + greatest(wanted.while_in_flight, wanted.when_completed))
      on conflict do nothing;
      if found then
        return next wanted.message_id;
        taken_queue := wanted.queue;
        taken_key := wanted.dedup_key;
        exit;
      end if;
      delete from "${outbox_schema}"."${outbox_table}_dedup" d
      where d.queue = wanted.queue and d.dedup_key = wanted.dedup_key
        and d.published_at + case
            when exists (
              select from "${outbox_schema}"."${outbox_table}" o
              where o.queue = d.queue and o.id = any (array[d.message_id]))
            then wanted.while_in_flight
            else wanted.when_completed
          end <= clock_timestamp();
      -- else it is free now, unless another transaction comes first; or it was purged
      exit when not found and exists (
        select from "${outbox_schema}"."${outbox_table}_dedup" d
        where d.queue = wanted.queue and d.dedup_key = wanted.dedup_key);
    end loop;
  end loop;
end
$take$;
