package dev.outbox4j.spring;

import dev.outbox4j.OutboxException;
import dev.outbox4j.internal.schema.Names;
import dev.outbox4j.migrations.DeadLetterMigrations;
import dev.outbox4j.postgres.PostgresStore;
import dev.outbox4j.spring.OutboxEndpoint.DeadLetters;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Timestamp;
import java.time.Instant;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.springframework.core.NestedExceptionUtils;
import org.springframework.dao.DataAccessException;
import org.springframework.jdbc.core.JdbcTemplate;

/** Counts the unresolved dead letters of one outbox, in a table that others may share. */
final class DeadLetterCounts {
  private static final int TIMEOUT_SECONDS = 5;
  private static final String QUERY_CANCELED = "57014";

  /**
   * From queue to queue along the index of the outbox's unresolved letters, which name it as the
   * server resolves it. One letter of a queue more than are counted is looked at, and the latest.
   */
  private static final String COUNT =
      """
      with recursive origin as (
        select n.nspname || '.' || c.relname as outbox
        from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
        where c.oid = cast(? as regclass)),
      queues as (
        (select d.queue from {dead_letters} d
        where d.outbox = (select o.outbox from origin o) and d.resolved_at is null
        order by d.queue limit 1)
        union all
        select (
          select d.queue from {dead_letters} d
          where d.outbox = (select o.outbox from origin o) and d.resolved_at is null
            and d.queue > q.queue
          order by d.queue limit 1)
        from queues q where q.queue is not null)
      select q.queue, counted.letters, counted.oldest, (
          select l.failed_at from (
            select d.failed_at from {dead_letters} d
            where d.outbox = (select o.outbox from origin o) and d.resolved_at is null
              and d.queue = q.queue
            order by d.failed_at desc limit 1) l) as newest
      from queues q
      cross join lateral (
        select count(*) as letters, min(l.failed_at) as oldest
        from (
          select d.failed_at from {dead_letters} d
          where d.outbox = (select o.outbox from origin o) and d.resolved_at is null
            and d.queue = q.queue
          order by d.failed_at limit {most}) l) counted
      where counted.letters > 0
      order by q.queue
      """;

  private final JdbcTemplate jdbc;
  private final String outbox;
  private final String sql;
  private final int limit;

  /**
   * Renders the statement; does no I/O.
   *
   * @param limit where the count of each queue stops
   */
  DeadLetterCounts(PostgresStore store, DeadLetterMigrations place, int limit) {
    this.jdbc = new JdbcTemplate(store.dataSource());
    this.jdbc.setQueryTimeout(TIMEOUT_SECONDS);
    this.outbox = store.table().qualifiedName();
    this.limit = limit;
    this.sql =
        COUNT
            .replace("{dead_letters}", Names.qualified(place.schema(), place.table()))
            .replace("{most}", String.valueOf(limit + 1));
  }

  /**
   * Counts, in one statement.
   *
   * @return the queues that have any, in the order of their names
   * @throws OutboxException if they cannot be read
   */
  List<DeadLetters> read() {
    try {
      return jdbc.query(sql, (row, number) -> letters(row), outbox);
    } catch (DataAccessException e) {
      throw new OutboxException("The dead letters cannot be read" + reason(e), e);
    }
  }

  private DeadLetters letters(ResultSet row) throws SQLException {
    long count = row.getLong(2);
    return new DeadLetters(
        row.getString(1),
        Math.min(limit, count),
        count > limit,
        instant(row.getTimestamp(3)),
        instant(row.getTimestamp(4)));
  }

  private static @Nullable Instant instant(@Nullable Timestamp timestamp) {
    return timestamp == null ? null : timestamp.toInstant();
  }

  /** What the driver says may quote values, its state does not. */
  private static String reason(DataAccessException e) {
    String state =
        NestedExceptionUtils.getMostSpecificCause(e) instanceof SQLException cause
            ? cause.getSQLState()
            : null;
    if (QUERY_CANCELED.equals(state)) {
      return " within " + TIMEOUT_SECONDS + " s; count them by SQL";
    }
    return state == null ? ": " + e.getClass().getSimpleName() : " (SQLState " + state + ")";
  }
}
