-- The slots of queues whose concurrency is limited. A slot is taken while the row that it names is leased as it
-- was when it took the slot; nothing is written when it becomes free.
-- Placeholders: outbox_schema, outbox_table (without quotes; the helper checks and quotes them).

create table "${outbox_schema}"."${outbox_table}_slots" (
  queue       text collate "C" not null,
  slot        int    not null,
  message_id  bigint not null default 0,
  lease_token bigint not null default 0,
  constraint "${outbox_table}_slots_pkey" primary key (queue, slot)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
comment on table "${outbox_schema}"."${outbox_table}_slots" is 'outbox4j schema 1';
