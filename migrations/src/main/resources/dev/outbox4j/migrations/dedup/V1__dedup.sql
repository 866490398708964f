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
