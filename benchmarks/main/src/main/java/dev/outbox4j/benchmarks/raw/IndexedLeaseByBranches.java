package dev.outbox4j.benchmarks.raw;

import dev.outbox4j.benchmarks.spi.Bench;
import java.sql.SQLException;

/**
 * The lease is in the predicates of two partial indexes, each of which a claim walks in its order:
 * what such a lease costs by itself, without a sort of the backlog.
 */
public final class IndexedLeaseByBranches extends OtherShape {
  /** Made by the service loader. */
  public IndexedLeaseByBranches() {}

  @Override
  public String name() {
    return "raw-indexed-lease-by-branches";
  }

  @Override
  public String contract() {
    return "at least once: lease within partial indexes, by time, one branch for each index";
  }

  @Override
  public void prepare(Bench bench) throws SQLException {
    bench.execute(
        IndexedLease.TABLE,
        "create index messages_free on messages (queue, due_at, id) where taken_at is null",
        "create index messages_taken on messages (queue, taken_at, id) where taken_at is not null");
  }

  @Override
  String claimSql() {
    return """
        with free as materialized (
          select id from messages
          where queue = 'bench' and taken_at is null and due_at <= now()
          order by due_at, id limit ? for update skip locked),
        expired as materialized (
          select id from messages
          where queue = 'bench' and taken_at < now() - interval '60 seconds'
          order by taken_at, id limit ? for update skip locked)
        update messages m set taken_at = now(), token = m.token + 1
        from (select id from free union all select id from expired) picked
        where m.id = any (array[picked.id])
        returning m.id, m.token, m.payload""";
  }
}
