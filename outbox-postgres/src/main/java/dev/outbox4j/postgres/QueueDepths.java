package dev.outbox4j.postgres;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.postgres.internal.Redaction;
import dev.outbox4j.postgres.internal.SqlFaults;
import dev.outbox4j.spi.StoreException;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import javax.sql.DataSource;
import org.jooq.SQLDialect;
import org.jooq.impl.DSL;

/** Counts what queues hold, by walking the claim index no further than a limit. Thread-safe. */
final class QueueDepths {
  static final int DEFAULT_COUNT_LIMIT = 10_000;
  static final int MAX_COUNT_LIMIT = 10_000_000;

  private static final int TIMEOUT_SECONDS = 10;

  /** As for a claim: a plan made while the table was empty must not become a sequential scan. */
  static final String PLANNER =
      """
      select set_config('plan_cache_mode', 'force_custom_plan', true), set_config('enable_seqscan', 'off', true), \
      set_config('enable_bitmapscan', 'off', true), set_config('enable_sort', 'off', true)""";

  private final String statement;

  QueueDepths(OutboxTable table) {
    statement =
        DSL.using(SQLDialect.POSTGRES)
            .render(
                DSL.sql(
                    """
                    select q.queue, due.ready, due.leased, later.rows, due.rows, extract(epoch from now() - due.oldest)
                    from unnest(cast({1} as text[])) with ordinality as q(queue, nth)
                    cross join lateral (
                      select count(*) filter (where d.free) as ready, count(*) filter (where not d.free) as leased,
                             count(*) as rows, min(d.available_at) filter (where d.free) as oldest
                      from (
                        select o.available_at, (o.lease_until is null or o.lease_until < now()) as free
                        from {0} o
                        where o.queue = q.queue and o.available_at <= now()
                        order by o.available_at, o.id
                        limit {1}) d) due
                    cross join lateral (
                      select count(*) as rows
                      from (
                        select o.id
                        from {0} o
                        where o.queue = q.queue and o.available_at > now()
                        order by o.available_at, o.id
                        limit {1}) l) later
                    order by q.nth
                    """,
                    table.qualifiedName(), DSL.sql("?")));
  }

  String statement() {
    return statement;
  }

  /** {@return the names, by the rules that publishing has} */
  static List<String> checked(Collection<String> queues) {
    List<String> names = List.copyOf(queues);
    names.forEach(OutboxMessage::to);
    return names;
  }

  List<QueueDepth> read(DataSource dataSource, Collection<String> queues, int limit) {
    if (limit < 1 || limit > MAX_COUNT_LIMIT) {
      throw new IllegalArgumentException(
          "count limit is %d; it must be from 1 to %d".formatted(limit, MAX_COUNT_LIMIT));
    }
    List<String> names = checked(queues);
    if (names.isEmpty()) {
      return List.of();
    }
    try (Connection connection = dataSource.getConnection()) {
      try {
        return read(connection, names, limit);
      } finally {
        if (!connection.getAutoCommit()) {
          connection.rollback();
        }
      }
    } catch (SQLException e) {
      throw failure(e);
    } catch (RuntimeException e) {
      throw failure(new SQLException(e)); // a pool may throw what it likes for want of a server
    }
  }

  private List<QueueDepth> read(Connection connection, List<String> queues, int limit)
      throws SQLException {
    try (PreparedStatement query = connection.prepareStatement(PLANNER + ";" + statement)) {
      query.setQueryTimeout(TIMEOUT_SECONDS);
      query.setArray(1, connection.createArrayOf("text", queues.toArray()));
      query.setInt(2, limit + 1);
      query.setInt(3, limit + 1);
      query.execute();
      if (!query.getMoreResults()) {
        throw new SQLException("no second result");
      }
      List<QueueDepth> depths = new ArrayList<>();
      try (ResultSet rows = query.getResultSet()) {
        while (rows.next()) {
          depths.add(depth(rows, limit));
        }
      }
      return depths;
    }
  }

  private static QueueDepth depth(ResultSet rows, int limit) throws SQLException {
    long later = rows.getLong(4);
    boolean dueCapped = rows.getLong(5) > limit;
    double seconds = rows.getDouble(6);
    Duration oldest =
        rows.wasNull() ? null : Duration.ofNanos(Math.max(0, Math.round(seconds * 1e9)));
    return new QueueDepth(
        rows.getString(1),
        Math.min(limit, rows.getLong(2)),
        Math.min(limit, rows.getLong(3)),
        Math.min(limit, later),
        dueCapped || later > limit,
        oldest);
  }

  private static StoreException failure(SQLException e) {
    String state = String.valueOf(SqlFaults.state(e));
    boolean setUp = state.startsWith("42") || state.startsWith("3F");
    return new StoreException(
        "The queues could not be counted (SQLSTATE %s); %s"
            .formatted(
                state,
                setUp
                    ? "check the table and its grants with validateSchema()"
                    : "the database or the pool did not answer in time"),
        setUp ? StoreException.Fault.SETUP : StoreException.Fault.TRANSIENT,
        false,
        Redaction.redact(e));
  }
}
