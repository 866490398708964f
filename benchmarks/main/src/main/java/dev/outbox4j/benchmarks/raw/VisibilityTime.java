package dev.outbox4j.benchmarks.raw;

import dev.outbox4j.benchmarks.spi.Bench;
import java.sql.SQLException;

/** Each claim moves an indexed instant until which a row is hidden. */
public final class VisibilityTime extends OtherShape {
  /** Made by the service loader. */
  public VisibilityTime() {}

  @Override
  public String name() {
    return "raw-visibility-time";
  }

  @Override
  public String contract() {
    return "at least once: an indexed visibility time is rewritten (as pgmq)";
  }

  @Override
  public void prepare(Bench bench) throws SQLException {
    bench.execute(
        """
        create table messages (
          id bigint generated always as identity primary key,
          queue text not null,
          payload bytea not null,
          created_at timestamptz not null default now(),
          hidden_until timestamptz not null default clock_timestamp(),
          token bigint not null default 0)""",
        "create index messages_hidden on messages (hidden_until)");
  }

  @Override
  String claimSql() {
    return """
        with picked as materialized (
          select id from messages where hidden_until <= clock_timestamp()
          order by id limit ? for update skip locked)
        update messages m set hidden_until = clock_timestamp() + interval '60 seconds', token = m.token + 1
        from picked where m.id = picked.id
        returning m.id, m.token, m.payload""";
  }
}
