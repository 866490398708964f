package dev.outbox4j.poller.internal;

/** What is asked of a source's server before rows are read. */
final class HorizonSql {
  /** The greatest cursor of a table. */
  static String greatest(SourceDescription source) {
    String ofRows = greatest(source.from(), source.cursor());
    String tombstones = source.tombstones();
    return tombstones == null
        ? ofRows
        : "greatest(" + ofRows + ", " + greatest(tombstones, source.cursor()) + ")";
  }

  private static String greatest(String from, OrderedColumn cursor) {
    String column = Quoting.column(cursor.name());
    return "(select %1$s from %2$s s where %1$s is not null order by %1$s desc limit 1)"
        .formatted(column, from);
  }

  /** The time and the greatest cursor come first; nothing that is read later is older. */
  static String start(SourceDescription source) {
    return "select clock_timestamp(), pg_is_in_recovery(), pg_backend_pid(), " + greatest(source);
  }

  /**
   * The transactions that are open in this database. Everybody sees them: that a process has one is
   * in pg_locks, and of pg_stat_activity the process's database and user are open to all. Processes
   * without a user, as those of autovacuum, write no rows of anybody's. What pg_stat_activity did
   * not know yet counts.
   */
  static final String OPEN =
      """
      select l.virtualxid, l.pid, a.application_name, a.xact_start
      from pg_locks l left join pg_stat_activity a on a.pid = l.pid
      where l.locktype = 'virtualxid' and l.granted and l.mode = 'ExclusiveLock'
        and (a.pid is null or (
          a.usesysid is not null
          and a.datid = (select d.oid from pg_database d where d.datname = current_database())))
      """;

  /** The transactions that are prepared in this database. */
  static final String PREPARED =
      """
      select p.transaction::text, p.gid, p.prepared
      from pg_prepared_xacts p
      where p.database = current_database()
      """;

  /** Which transaction ids are over, and which began last. */
  static String transactionIds(SourceDescription source) {
    return "select clock_timestamp(), pg_snapshot_xmin(pg_current_snapshot())::text,"
        + " pg_snapshot_xmax(pg_current_snapshot())::text, "
        + greatest(source);
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
