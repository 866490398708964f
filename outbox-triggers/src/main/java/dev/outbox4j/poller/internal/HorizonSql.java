package dev.outbox4j.poller.internal;

import dev.outbox4j.poller.Cursor;

/** What is asked of a source's server before rows are read. */
final class HorizonSql {
  /**
   * The greatest cursor of a table. Times that are still to come do not count: a row that is dated
   * 9999, or infinity, would hide all others.
   */
  static String greatest(SourceDescription source, Cursor cursor) {
    String upTo =
        cursor.kind() == Cursor.Kind.SERVER_TIME
            ? " and %1$s <= " + ServerTimes.of(cursor, source).nowSql()
            : "";
    String ofRows = greatest(source.from(), source.cursor(), upTo);
    String tombstones = source.tombstones();
    return tombstones == null
        ? ofRows
        : "greatest(" + ofRows + ", " + greatest(tombstones, source.cursor(), upTo) + ")";
  }

  private static String greatest(String from, OrderedColumn cursor, String upTo) {
    String column = Quoting.column(cursor.name());
    return ("(select %1$s from %2$s s where %1$s is not null"
            + upTo
            + " order by %1$s desc limit 1)")
        .formatted(column, from);
  }

  /** The time and the greatest cursor come first; nothing that is read later is older. */
  static String start(SourceDescription source, Cursor cursor) {
    return "select clock_timestamp(), "
        + SourceServer.COLUMNS
        + ", pg_backend_pid(), pg_has_role('pg_read_all_stats', 'usage'), "
        + greatest(source, cursor);
  }

  /**
   * The sessions of this database, and the transactions that are open in it. Everybody sees that a
   * process has one, in pg_locks, and of pg_stat_activity the process's database and user. Times
   * are null for whoever may not see them. Processes without a user, as those of autovacuum, write
   * no rows of anybody's. What pg_stat_activity did not know yet counts.
   */
  static final String SESSIONS =
      """
      select l.virtualxid, coalesce(l.pid, a.pid), a.application_name, a.xact_start,
        case when a.backend_type = 'client backend'
          and a.state in ('active', 'fastpath function call') then a.query_start end,
        a.backend_start is null or coalesce(a.state = 'disabled', false)
      from pg_stat_activity a
        full join (
          select v.virtualxid, v.pid
          from pg_locks v
          where v.locktype = 'virtualxid' and v.granted and v.mode = 'ExclusiveLock') l
        on l.pid = a.pid
      where a.pid is null or (
        a.usesysid is not null
        and a.datid = (select d.oid from pg_database d where d.datname = current_database()))
      """;

  /** The transactions that are prepared in this database. */
  static final String PREPARED =
      """
      select p.transaction::text, p.gid, p.prepared
      from pg_prepared_xacts p
      where p.database = current_database()
      """;

  /** Which transaction ids are over, and which began last. */
  static String transactionIds(SourceDescription source, Cursor cursor) {
    return "select clock_timestamp(), "
        + SourceServer.COLUMNS
        + ", pg_snapshot_xmin(pg_current_snapshot())::text,"
        + " pg_snapshot_xmax(pg_current_snapshot())::text, "
        + greatest(source, cursor);
  }

  /** The transactions that write, the oldest first; ids have 32 bits here. */
  static final String WRITING =
      """
      select a.pid, a.application_name, a.xact_start, null::text
      from pg_stat_activity a
      where a.backend_xid is not null and a.backend_xid::text = ?
      union all
      select 0, null, p.prepared, p.gid
      from pg_prepared_xacts p
      where p.transaction::text = ?
      """;

  private HorizonSql() {}
}
