-- The service's own tables. The outbox comes with its own migrations, see OutboxMigrations.

create table orders (
  id          uuid        primary key,
  customer    text        not null,
  item        text        not null,
  quantity    int         not null check (quantity > 0),
  placed_at   timestamptz not null default now(),
  not_before  timestamptz not null -- the earliest moment it may be shipped
);

-- One row for each order that was shipped. The primary key makes the handler idempotent, and what
-- comes again is counted.
create table shipments (
  order_id    uuid        primary key,
  shipped_by  text        not null,
  attempt     int         not null,
  shipped_at  timestamptz not null default clock_timestamp(),
  deliveries  int         not null default 1
);
