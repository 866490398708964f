package dev.outbox4j.examples.poller;

import dev.outbox4j.examples.run.Report;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import javax.sql.DataSource;

/** Compares what the writers committed with what the directory received, in one snapshot. */
final class Reconciliation {
  /**
   * Each committed version of each row, and what became of it. A poller sees a row as it is when it
   * looks, so of versions that follow one another quickly only the last one is received.
   */
  private static final String FATES =
      """
      create temporary table fate on commit drop as
      select v.id, v.revision, v.back_dated,
        exists (select from received r where r.id = v.id and r.revision = v.revision) as received,
        exists (select from received r where r.id = v.id and r.revision > v.revision) as superseded,
        exists (
          select from legacy.customer_versions b
          where b.id = v.id and b.revision >= v.revision and b.back_dated) as behind
      from legacy.customer_versions v
      """;

  private static final String LOST =
      """
      select (select count(*) from legacy.customer_versions), count(*),
        (array_agg(f.id || ' revision ' || f.revision order by f.id, f.revision))[1:3]
      from fate f
      where not f.received and not f.superseded and not (%s)
      """;

  private static final String TWICE =
      """
      select (select count(*) from received), count(*),
        (array_agg(t.id || ' revision ' || t.revision order by t.id, t.revision))[1:3]
      from (select id, revision from received group by id, revision having count(*) > 1) t
      """;

  private static final String NEVER_COMMITTED =
      """
      select (select count(*) from received), count(*),
        (array_agg(r.id || ' revision ' || r.revision order by r.number))[1:3]
      from received r left join legacy.customer_versions v using (id, revision)
      where v.id is null
      """;

  private static final String OUT_OF_ORDER =
      """
      select (select count(*) from received), count(*),
        (array_agg(o.id || ' revision ' || o.revision order by o.number))[1:3]
      from (
        select r.*, max(r.revision) over (partition by r.id order by r.number) as greatest
        from received r) o
      where o.revision < o.greatest
      """;

  private static final String DIFFERENT =
      """
      select (select count(*) from legacy.customers), count(*),
        (array_agg('customer ' || coalesce(c.id, d.id) order by coalesce(c.id, d.id)))[1:3]
      from (select * from legacy.customers where deleted_at is null) c
        full join directory d using (id)
      where (c.name, c.city, c.revision) is distinct from (d.name, d.city, d.revision)
        and not (%s)
      """;

  /** Rows whose present version is dated back. */
  private static final String DATED_BACK =
      """
      exists (
        select from fate f
        where f.id = coalesce(c.id, d.id) and f.back_dated and not f.received and not f.superseded)
      """;

  private static final String COUNTS =
      """
      select count(*) || ' versions were committed: ' || count(*) filter (where received)
        || ' were received, ' || count(*) filter (where not received and superseded)
        || ' were followed by another one that was, '
        || count(*) filter (where not received and not superseded and behind)
        || ' are dated back, or before one that is'
      from fate
      """;

  private final DataSource dataSource;

  Reconciliation(DataSource dataSource) {
    this.dataSource = dataSource;
  }

  /** Compares what the follower has published: all but what was dated back, and that once. */
  Report beforeBackfill() throws SQLException {
    return compare(
        List.of(
            new Check("committed, not dated back: received, or a later one", LOST, "f.behind"),
            new Check("the directory is the table, but for rows dated back", DIFFERENT, DATED_BACK),
            new Check("received: once", TWICE, ""),
            new Check("received: committed", NEVER_COMMITTED, ""),
            new Check("received: never an older one after a newer one", OUT_OF_ORDER, "")));
  }

  /** Compares what the backfill has published, too: all. */
  Report afterBackfill() throws SQLException {
    return compare(
        List.of(
            new Check("committed: received, or a later one", LOST, "false"),
            new Check("the directory is the table", DIFFERENT, "false"),
            new Check("received: committed", NEVER_COMMITTED, ""),
            new Check("received: never an older one after a newer one", OUT_OF_ORDER, "")));
  }

  private record Check(String what, String sql, String excepted) {}

  private Report compare(List<Check> checks) throws SQLException {
    try (Connection connection = dataSource.getConnection()) {
      connection.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
      connection.setAutoCommit(false);
      try (Statement statement = connection.createStatement()) {
        statement.execute(FATES);
        List<Report.Line> lines = new ArrayList<>();
        for (Check check : checks) {
          lines.add(line(connection, check));
        }
        try (ResultSet row = statement.executeQuery(COUNTS)) {
          row.next();
          return new Report(lines, List.of(row.getString(1)));
        }
      } finally {
        connection.rollback();
      }
    }
  }

  private static Report.Line line(Connection connection, Check check) throws SQLException {
    String sql = check.excepted().isEmpty() ? check.sql() : check.sql().formatted(check.excepted());
    return Report.Line.of(connection, check.what(), sql);
  }
}
