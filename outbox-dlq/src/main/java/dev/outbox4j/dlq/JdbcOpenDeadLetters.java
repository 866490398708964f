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
  private static final String OPEN =
      """
      from {dead_letters} d
      where d.queue = :queue and d.ordering_key is not null and d.resolved_at is null
        and d.outbox = ({outbox_name})
      """
          .replace("{outbox_name}", JdbcDeadLetterWriter.OUTBOX_NAME);

  private static final String OF_BUCKETS =
      """
      select d.ordering_key, {bucket}, min(d.original_id)
      """
          + OPEN
          + """
            and {bucket} = any (:buckets::bigint[])
          group by d.ordering_key
          limit :most\
          """;

  private static final String AMONG =
      """
      select distinct d.ordering_key
      """
          + OPEN
          + """
            and d.ordering_key = any (:keys::text[])\
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
        text.replace("{bucket}", bucket).replace("{dead_letters}", quoted), jdbc.table());
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
