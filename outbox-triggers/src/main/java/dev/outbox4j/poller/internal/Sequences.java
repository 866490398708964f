package dev.outbox4j.poller.internal;

import java.math.BigDecimal;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** The sequences that the catalog connects with a column: the column's own, and its default's. */
final class Sequences {
  private Sequences() {}

  /**
   * A sequence.
   *
   * @param name its schema and name
   * @param cache how many numbers a session takes at once
   * @param cycles whether its numbers begin anew
   * @param step by how much it steps
   * @param last the number that was given out last; null if none was, or that may not be seen
   * @param readable whether that may be seen
   */
  record Numbers(
      String name,
      long cache,
      boolean cycles,
      long step,
      @Nullable BigDecimal last,
      boolean readable) {

    /** What would be given out long before it is committed is refused. */
    void require() {
      if (cache > 1) {
        throw new SourceException(
            "sequence %s has cache %d: a session may write a number long after others have written"
                    .formatted(name, cache)
                + " greater ones; alter sequence "
                + name
                + " cache 1, or use another cursor");
      }
      if (cycles) {
        throw new SourceException(
            "sequence %s cycles: its numbers begin anew; alter sequence %s no cycle"
                .formatted(name, name));
      }
      if (step != 1) {
        throw new SourceException(
            "sequence %s steps by %d: a program may keep numbers for later, as Hibernate's pooled"
                    .formatted(name, step)
                + " optimizer does; let it step by 1 and the program take each number from it, or use"
                + " another cursor");
      }
    }
  }

  /** Asks for them. */
  static String sql(ColumnNumber column) {
    return """
        select n.nspname || '.' || c.relname, q.seqcache, q.seqcycle, q.seqincrement,
          case when r.readable then pg_sequence_last_value(q.seqrelid) end, r.readable
        from pg_sequence q join pg_class c on c.oid = q.seqrelid
          join pg_namespace n on n.oid = c.relnamespace
          cross join lateral (
            select has_sequence_privilege(q.seqrelid, 'usage, select') as readable) r
        where q.seqrelid in (
          select d.objid from pg_depend d
          where d.classid = 'pg_class'::regclass and d.refclassid = 'pg_class'::regclass
            and d.refobjid = %1$d::bigint::oid and d.refobjsubid = %2$d
            and d.deptype in ('a', 'i')
          union
          select d.refobjid from pg_depend d join pg_attrdef f on f.oid = d.objid
          where d.classid = 'pg_attrdef'::regclass and d.refclassid = 'pg_class'::regclass
            and f.adrelid = %1$d::bigint::oid and f.adnum = %2$d)
        """
        .formatted(column.table(), column.number());
  }

  /** Reads them, and refuses what must not be followed. */
  static List<Numbers> read(ResultSet rows) throws SQLException {
    List<Numbers> found = new ArrayList<>();
    while (rows.next()) {
      Numbers numbers =
          new Numbers(
              rows.getString(1),
              rows.getLong(2),
              rows.getBoolean(3),
              rows.getLong(4),
              rows.getBigDecimal(5),
              rows.getBoolean(6));
      numbers.require();
      found.add(numbers);
    }
    return found;
  }
}
