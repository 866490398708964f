-- What the service's timers write.

-- One row for each week.
create table digests (
  week_end    timestamptz primary key,
  placed      bigint      not null,
  shipped     bigint      not null
);

-- One row for each run of the heartbeat. There is no key: the timer alone sees to it that no run
-- writes two, so that they can be counted.
create table heartbeats (
  instant     timestamptz not null,
  written_at  timestamptz not null default clock_timestamp()
);
create index heartbeats_instant_idx on heartbeats (instant);
