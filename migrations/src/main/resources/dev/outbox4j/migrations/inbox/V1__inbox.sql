-- An inbox: which messages were handled, written in the transaction of what their handlers did.
-- Placeholders: inbox_schema, inbox_table (without quotes; the helper checks and quotes them).

create table "${inbox_schema}"."${inbox_table}" (
  queue        text collate "C" not null,
  message_key  text collate "C" not null,
  processed_at timestamptz not null default now(),
  expires_at   timestamptz not null,
  constraint "${inbox_table}_pkey" primary key (queue, message_key)
) with (
  autovacuum_vacuum_scale_factor = 0,
  autovacuum_vacuum_threshold = 10000
);
comment on table "${inbox_schema}"."${inbox_table}" is 'outbox4j schema 1';

-- for the purge, which takes what expired first
create index "${inbox_table}_expires_idx" on "${inbox_schema}"."${inbox_table}" (expires_at);
