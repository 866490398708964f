package dev.outbox4j.dlq;

import dev.outbox4j.internal.schema.Buckets;
import dev.outbox4j.postgres.internal.Jdbc;
import dev.outbox4j.postgres.internal.Preamble;
import dev.outbox4j.postgres.internal.Results;
import dev.outbox4j.postgres.internal.Sql;
import dev.outbox4j.spi.OpenDeadLetters;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Looks for open dead letters of ordering keys. */
final class JdbcOpenDeadLetters implements OpenDeadLetters {
  /** By the order of keys: only their index gives it, whatever the planner believes. */
  private static final String OF_BUCKETS =
      """
      select open.ordering_key, open.bucket, min(open.original_id)
      from (
        select d.ordering_key, {bucket} as bucket, d.original_id
        from {dead_letters} d
        where d.queue = :queue and d.ordering_key is not null and d.resolved_at is null
          and d.outbox = ({outbox_name})
        order by d.ordering_key
        offset 0) open
      where open.bucket = any (:buckets::bigint[])
      group by open.ordering_key, open.bucket
      limit :most
      """;

  private static final String AMONG =
      """
      select k.key
      from unnest(:keys::text[]) as k (key)
      cross join lateral (
        select
        from {dead_letters} d
        where d.queue = :queue and d.ordering_key is not null and d.resolved_at is null
          and d.outbox = ({outbox_name}) and d.ordering_key >= k.key and d.ordering_key <= k.key
        order by d.ordering_key
        limit 1) open
      """;

  private final String operation;
  private final Jdbc jdbc;
  private final Sql ofBuckets;
  private final Sql among;

  /**
   * Renders the statements.
   *
   * @param name of the dead letters, for people
   * @param quoted the same, as it is written in a statement
   */
  JdbcOpenDeadLetters(Jdbc jdbc, String name, String quoted) {
    this.operation = "look at " + name;
    this.jdbc = jdbc;
    this.ofBuckets = sql(OF_BUCKETS, quoted, jdbc);
    this.among = sql(AMONG, quoted, jdbc);
  }

  private static Sql sql(String text, String quoted, Jdbc jdbc) {
    String bucket = Buckets.ofKey("d.ordering_key");
    return Preamble.before(
        text.replace("{bucket}", bucket)
            .replace("{dead_letters}", quoted)
            .replace("{outbox_name}", JdbcDeadLetterWriter.OUTBOX_NAME),
        jdbc.table());
  }

  @Override
  public List<OpenKey> ofBuckets(String queue, Set<Integer> buckets, int most) {
    long[] all = buckets.stream().mapToLong(Integer::longValue).toArray();
    return run(
        ofBuckets,
        Map.of("queue", queue, "buckets", all, "most", (long) most),
        results -> {
          List<OpenKey> keys = new ArrayList<>();
          try (ResultSet rows = results.next().rows()) {
            while (rows.next()) {
              keys.add(new OpenKey(rows.getString(1), rows.getInt(2), rows.getLong(3)));
            }
          }
          return keys;
        });
  }

  @Override
  public Set<String> among(String queue, Set<String> keys) {
    return run(
        among,
        Map.of("queue", queue, "keys", keys.toArray(String[]::new)),
        results -> {
          Set<String> open = new HashSet<>();
          try (ResultSet rows = results.next().rows()) {
            while (rows.next()) {
              open.add(rows.getString(1));
            }
          }
          return open;
        });
  }

  private interface Reader<T> {
    T read(Results results) throws SQLException;
  }

  private <T> T run(Sql sql, Map<String, Object> values, Reader<T> reader) {
    return jdbc.run(
        operation,
        connection ->
            jdbc.preamble()
                .run(connection, sql, values, null, (start, results) -> reader.read(results)));
  }
}
