package dev.outbox4j.dlq;

import dev.outbox4j.spi.DeadLetterEntry;
import dev.outbox4j.spi.StoreException;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Function;
import org.jooq.Name;
import org.jooq.SQLDialect;
import org.jooq.impl.DSL;
import org.jspecify.annotations.Nullable;

/** The statement that moves rows from an outbox to its dead-letter table. Immutable. */
final class MoveStatement {
  // in the error of a statement that deleted more rows than it was asked to
  private static final String TOO_MANY = "outbox4j deleted too many rows: ";
  private static final String BAD_NUMBER = "22P02";

  // The settings end with the implicit transaction that both statements share. They hold the plan
  // to one probe of the primary key per entry, whatever the statistics say; so does any (array[]),
  // since for a plain equality the planner also considers to walk the index from end to end.
  private static final String TEMPLATE =
      """
      select set_config('plan_cache_mode', 'force_custom_plan', true),
             set_config('enable_seqscan', 'off', true),
             set_config('enable_bitmapscan', 'off', true),
             set_config('enable_hashjoin', 'off', true),
             set_config('enable_mergejoin', 'off', true);
      with entry as (
        select *
        from unnest(cast(? as text[]), cast(? as bigint[]), cast(? as int[]), cast(? as text[]),
                    cast(? as int[]), cast(? as text[]))
          as e (queue, id, token, reason, attempts, exception)
      ), deleted as (
        delete from {outbox} o using entry e
        where o.queue = any (array[e.queue]) and o.id = any (array[e.id])
          and o.lease_token = e.token and o.lease_until is not null
        returning o.id, o.queue, o.type, o.ordering_key, o.payload, o.headers, o.deliveries_count,
                  o.created_at, o.timer_id, e.reason, e.attempts, e.exception
      ), inserted as (
        insert into {dead_letters} (original_id, queue, type, ordering_key, payload, headers,
                                    deliveries_count, attempts_count, created_at, timer_id,
                                    failure_reason, last_exception)
        select id, queue, type, ordering_key, payload, headers,
               deliveries_count, attempts, created_at, timer_id, reason, exception
        from deleted
      ), checked as (
        select count(*) as moved, least(count(distinct (queue, id)), ?) as expected from deleted
      )
      select d.id,
             cast(case when c.moved > c.expected
                    then '{too_many}' || c.moved || ' instead of ' || c.expected end as int)
      from deleted d cross join checked c
      """;

  private final String outbox;
  private final String deadLetters;
  private final String sql;

  MoveStatement(Name outbox, Name deadLetters) {
    this.outbox = quoted(outbox);
    this.deadLetters = quoted(deadLetters);
    sql =
        TEMPLATE
            .replace("{outbox}", this.outbox)
            .replace("{dead_letters}", this.deadLetters)
            .replace("{too_many}", TOO_MANY);
  }

  private static String quoted(Name name) {
    return DSL.using(SQLDialect.POSTGRES).render(name);
  }

  /**
   * Runs the statement.
   *
   * @param connection in autocommit mode
   * @return the ids it moved
   * @throws StoreException if it was rolled back because it deleted more rows than it was asked to
   * @throws SQLException if it failed otherwise
   */
  Set<Long> run(Connection connection, List<DeadLetterEntry> entries) throws SQLException {
    try (PreparedStatement statement = connection.prepareStatement(sql)) {
      set(statement, 1, "text", entries, entry -> entry.lease().queue());
      set(statement, 2, "int8", entries, entry -> entry.lease().id());
      set(statement, 3, "int4", entries, entry -> entry.lease().token());
      set(statement, 4, "text", entries, entry -> entry.reason().code());
      set(statement, 5, "int4", entries, DeadLetterEntry::attempts);
      set(statement, 6, "text", entries, DeadLetterEntry::exception);
      statement.setInt(7, entries.size());
      execute(statement, entries.size());
      if (!statement.getMoreResults()) {
        throw new SQLException("The driver gave no result for the second of two statements");
      }
      try (ResultSet rows = statement.getResultSet()) {
        Set<Long> moved = new HashSet<>();
        while (rows.next()) {
          moved.add(rows.getLong(1));
        }
        return moved;
      }
    }
  }

  private void execute(PreparedStatement statement, int rows) throws SQLException {
    try {
      statement.execute();
    } catch (SQLException e) {
      String message = e.getMessage();
      // by its state, too: a row that is refused may say the same words
      if (BAD_NUMBER.equals(e.getSQLState()) && message != null && message.contains(TOO_MANY)) {
        throw new StoreException(
            "Moving "
                + rows
                + " row(s) from "
                + outbox
                + " to "
                + deadLetters
                + " was rolled back, since more rows than asked were deleted: rows share an id;"
                + " see whether the outbox still has its primary key",
            StoreException.Fault.ROW,
            false,
            new SQLException(message.lines().findFirst().orElse(""), e.getSQLState()));
      }
      throw e;
    }
  }

  private static <T> void set(
      PreparedStatement statement,
      int index,
      String type,
      List<T> values,
      Function<? super T, ? extends @Nullable Object> column)
      throws SQLException {
    Object[] array = new Object[values.size()];
    for (int i = 0; i < array.length; i++) {
      array[i] = column.apply(values.get(i));
    }
    statement.setArray(index, statement.getConnection().createArrayOf(type, array));
  }
}
