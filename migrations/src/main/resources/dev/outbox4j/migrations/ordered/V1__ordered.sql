-- The buckets of ordered queues, and who owns them.
-- Placeholders: outbox_schema, outbox_table (without quotes; the helper checks and quotes them).

create table "${outbox_schema}"."${outbox_table}_buckets" (
  queue         text collate "C" not null,
  bucket        bigint not null,
  owner         text collate "C",
  epoch         bigint not null default 0,
  counted_up_to bigint not null default 0,
  seen_up_to    bigint not null default 0,
  constraint "${outbox_table}_buckets_pkey" primary key (queue, bucket)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
comment on table "${outbox_schema}"."${outbox_table}_buckets" is 'outbox4j schema 1';

create table "${outbox_schema}"."${outbox_table}_bucket_owners" (
  queue       text collate "C" not null,
  owner       text collate "C" not null,
  lease_until timestamptz not null,
  read_up_to  bigint not null default 0,
  seen_up_to  bigint not null default 0,
  constraint "${outbox_table}_bucket_owners_pkey" primary key (queue, owner)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
comment on table "${outbox_schema}"."${outbox_table}_bucket_owners" is 'outbox4j schema 1';
