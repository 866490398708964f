-- No key keeps an alert from being there twice: the reconciliation would see it.
create table issue_alerts (
  monitor      text not null,
  execution    bigint not null,
  repository   text not null,
  open_issues  integer not null,
  told_at      timestamptz not null default now()
);
