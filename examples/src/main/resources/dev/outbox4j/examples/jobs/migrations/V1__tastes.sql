create table liked_items (
  user_id   text not null,
  item      text not null,
  liked_at  timestamptz not null default now(),
  primary key (user_id, item)
);

create table taste_profiles (
  user_id       text primary key,
  content_hash  text not null,
  taste         text not null,
  analysed_at   timestamptz not null default now()
);

-- Who asked for an analysis, and what was answered; in the transaction that asked.
create table taste_requests (
  number        bigint generated always as identity primary key,
  user_id       text not null,
  content_hash  text not null,
  job_id        text not null,
  decision      text not null,
  message_id    bigint not null
);

-- What was done; in the transaction that ended the job.
-- No key keeps a message from being there twice: the reconciliation would see it.
create table taste_analyses (
  message_id  bigint not null,
  user_id     text not null,
  superseded  boolean not null,
  done_at     timestamptz not null default now()
);
