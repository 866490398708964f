package dev.outbox4j.benchmarks.raw;

import dev.outbox4j.benchmarks.spi.Bench;
import java.sql.SQLException;

/** The lease is in the predicates of two partial indexes, and rows are taken in order of time. */
public final class IndexedLease extends OtherShape {
  static final String TABLE =
      """
      create table messages (
        id bigint generated always as identity primary key,
        queue text not null,
        payload bytea not null,
        created_at timestamptz not null default now(),
        due_at timestamptz not null default clock_timestamp(),
        taken_at timestamptz,
        token bigint not null default 0)""";

  /** Made by the service loader. */
  public IndexedLease() {}

  @Override
  public String name() {
    return "raw-indexed-lease";
  }

  @Override
  public String contract() {
    return "at least once: lease within partial indexes, by time (as faststream-outbox)";
  }

  @Override
  public void prepare(Bench bench) throws SQLException {
    bench.execute(
        TABLE,
        "create index messages_free on messages (queue, due_at) where taken_at is null",
        "create index messages_taken on messages (queue, taken_at) where taken_at is not null");
  }

  @Override
  String claimSql() {
    return """
        with picked as materialized (
          select id from messages
          where queue = 'bench' and (taken_at is null and due_at <= now()
            or taken_at < now() - interval '60 seconds')
          order by due_at, id limit ? for update skip locked)
        update messages m set taken_at = now(), token = m.token + 1
        from picked where m.id = picked.id
        returning m.id, m.token, m.payload""";
  }
}
