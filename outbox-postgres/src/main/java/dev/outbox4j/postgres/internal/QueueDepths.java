package dev.outbox4j.postgres.internal;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.QueueDepth;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.TreeMap;
import javax.sql.DataSource;

/** Counts what queues hold, by walking the claim index no further than a limit. Thread-safe. */
public final class QueueDepths {
  /** Where counting stops, unless told. */
  public static final int DEFAULT_COUNT_LIMIT = 10_000;

  static final int MAX_COUNT_LIMIT = 10_000_000;

  private static final Duration TIMEOUT = Duration.ofSeconds(10);

  static final String COUNT =
      """
      select q.queue, due.ready, due.leased, later.rows, due.rows,
        extract(epoch from now()
          - case when due.oldest = '-infinity' then timestamptz 'epoch' else due.oldest end),
        extract(epoch from now()
          - case when due.first = '-infinity' then timestamptz 'epoch' else due.first end)
      from {queues} q
      cross join lateral (
        select count(*) filter (where d.free) as ready, count(*) filter (where not d.free) as leased,
          count(*) as rows, min(d.available_at) filter (where d.free) as oldest,
          min(d.available_at) as first
        from (
          select o.available_at, (o.lease_until is null or o.lease_until < now()) as free
          from {outbox} o
          where o.queue = q.queue and o.available_at <= now()
          order by o.available_at, o.id
          limit :limit) d) due
      cross join lateral (
        select count(*) as rows
        from (
          select o.id
          from {outbox} o
          where o.queue = q.queue and o.available_at > now()
          order by o.available_at, o.id
          limit :limit) l) later
      """;

  private static final String NAMED = "unnest(:queues::text[])";

  /** From name to name along the claim index, however many rows each has. */
  private static final String ALL =
      """
      (
        with recursive names as (
          (select o.queue from {outbox} o where o.available_at <= 'infinity'
            order by o.queue, o.available_at, o.id limit 1)
          union all
          select (
              select o.queue from {outbox} o
              where o.queue > names.queue and o.available_at <= 'infinity'
              order by o.queue, o.available_at, o.id limit 1)
          from names where names.queue is not null)
        select names.queue from names where names.queue is not null)\
      """;

  private final OutboxTable table;
  private final Sql named;
  private final Sql all;

  /** Renders the statements; does no I/O. */
  public QueueDepths(OutboxTable table) {
    this.table = table;
    this.named = Preamble.before(COUNT.replace("{queues} q", NAMED + " as q (queue)"), table);
    this.all = Preamble.before(COUNT.replace("{queues}", ALL), table);
  }

  String statement() {
    return named.text();
  }

  String statementOfAll() {
    return all.text();
  }

  /** {@return the names, by the rules that publishing has} */
  public static List<String> checked(Collection<String> queues) {
    List<String> names = List.copyOf(queues);
    names.forEach(OutboxMessage::to);
    return names;
  }

  /** Counts, in one statement. */
  public List<QueueDepth> read(DataSource dataSource, Collection<String> queues, int limit) {
    if (limit < 1 || limit > MAX_COUNT_LIMIT) {
      throw new IllegalArgumentException(
          "count limit is %d; it must be from 1 to %d".formatted(limit, MAX_COUNT_LIMIT));
    }
    List<String> names = checked(queues);
    if (names.isEmpty()) {
      return List.of();
    }
    Map<String, QueueDepth> depths =
        count(
            dataSource,
            named,
            Map.of("queues", names.toArray(String[]::new), "limit", limit + 1L),
            limit);
    return names.stream().map(depths::get).filter(Objects::nonNull).toList();
  }

  /** Counts every queue that has rows, in one statement. */
  public List<QueueDepth> readAll(DataSource dataSource, int limit) {
    return inOrder(count(dataSource, all, Map.of("limit", limit + 1L), limit));
  }

  /** Counts every queue that has rows, in one statement on a connection that is lent. */
  List<QueueDepth> readAll(Connection connection, Preamble preamble, int limit)
      throws SQLException {
    return inOrder(count(connection, preamble, all, Map.of("limit", limit + 1L), limit));
  }

  private static List<QueueDepth> inOrder(Map<String, QueueDepth> depths) {
    return List.copyOf(new TreeMap<>(depths).values());
  }

  private Map<String, QueueDepth> count(
      DataSource dataSource, Sql sql, Map<String, Object> values, int limit) {
    Jdbc jdbc = new Jdbc(dataSource, table, TIMEOUT);
    return jdbc.run(
        "counting queues", connection -> count(connection, jdbc.preamble(), sql, values, limit));
  }

  private static Map<String, QueueDepth> count(
      Connection connection, Preamble preamble, Sql sql, Map<String, Object> values, int limit)
      throws SQLException {
    return preamble.run(
        connection, sql, values, null, (start, results) -> read(results.next().rows(), limit));
  }

  private static Map<String, QueueDepth> read(ResultSet rows, int limit) throws SQLException {
    Map<String, QueueDepth> depths = new HashMap<>();
    try (rows) {
      while (rows.next()) {
        QueueDepth depth = depth(rows, limit);
        depths.put(depth.queue(), depth);
      }
    }
    return depths;
  }

  private static QueueDepth depth(ResultSet rows, int limit) throws SQLException {
    long later = rows.getLong(4);
    boolean dueCapped = rows.getLong(5) > limit;
    return new QueueDepth(
        rows.getString(1),
        Math.min(limit, rows.getLong(2)),
        Math.min(limit, rows.getLong(3)),
        Math.min(limit, later),
        dueCapped || later > limit,
        age(rows, 6),
        age(rows, 7));
  }

  private static Optional<Duration> age(ResultSet rows, int column) throws SQLException {
    double seconds = rows.getDouble(column);
    return rows.wasNull()
        ? Optional.empty()
        : Optional.of(Duration.ofNanos(Math.max(0, Math.round(seconds * 1e9))));
  }
}
