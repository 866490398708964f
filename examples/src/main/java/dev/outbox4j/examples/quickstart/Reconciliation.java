package dev.outbox4j.examples.quickstart;

import dev.outbox4j.examples.run.Report;
import java.sql.Array;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import javax.sql.DataSource;

/** Compares the driver's ledger, and the clock, with the database, in one snapshot of it. */
final class Reconciliation {
  private final DataSource dataSource;

  Reconciliation(DataSource dataSource) {
    this.dataSource = dataSource;
  }

  /**
   * Compares.
   *
   * @param entries the orders of this run, as answered
   * @param period of which the heartbeats are counted
   * @return a line for each rule
   */
  Report compare(List<Ledger.Entry> entries, Period period) throws SQLException {
    try (Connection connection = dataSource.getConnection()) {
      connection.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
      connection.setAutoCommit(false);
      try {
        load(connection, entries);
        List<Report.Line> lines = new ArrayList<>();
        for (Check check : Check.all()) {
          lines.add(Report.Line.of(connection, check.what(), check.sql()));
        }
        lines.add(Report.Line.of(connection, "outbox: no order left", ORDERS_LEFT));
        HeartbeatCheck.count(connection, period);
        for (HeartbeatCheck check : HeartbeatCheck.values()) {
          lines.add(Report.Line.of(connection, check.what(), check.sql()));
        }
        return new Report(lines, notes(connection));
      } finally {
        connection.rollback(); // takes the ledger with it
      }
    }
  }

  private static final String ORDERS_LEFT =
      """
      select count(*), count(*), (array_agg(coalesce(headers ->> 'correlation-id', 'row ' || id)))[1:3]
      from outbox where queue = 'orders'
      """;

  private static final String NOTES =
      """
      select s.shipped_by || ' shipped ' || count(*)
             || coalesce(', of which ' || nullif(sum(s.deliveries - 1), 0) || ' more than once', '')
      from shipments s join ledger l using (order_id) group by s.shipped_by order by s.shipped_by
      """;

  private static void load(Connection connection, List<Ledger.Entry> entries) throws SQLException {
    try (Statement statement = connection.createStatement()) {
      statement.execute(
          "create temporary table ledger (order_id uuid, kind text, committed boolean, poison boolean)"
              + " on commit drop");
    }
    try (PreparedStatement insert =
        connection.prepareStatement(
            "insert into ledger select * from unnest(?::uuid[], ?::text[], ?::bool[], ?::bool[])")) {
      insert.setArray(1, array(connection, "uuid", entries.stream().map(Ledger.Entry::orderId)));
      insert.setArray(2, array(connection, "text", entries.stream().map(e -> e.kind().name())));
      insert.setArray(3, array(connection, "bool", entries.stream().map(Ledger.Entry::committed)));
      insert.setArray(4, array(connection, "bool", entries.stream().map(e -> e.kind().poison())));
      insert.executeUpdate();
    }
    try (Statement statement = connection.createStatement()) {
      statement.execute("analyze ledger");
    }
  }

  private static Array array(Connection connection, String type, Stream<?> values)
      throws SQLException {
    return connection.createArrayOf(type, values.toArray());
  }

  private static List<String> notes(Connection connection) throws SQLException {
    List<String> notes = new ArrayList<>();
    try (Statement statement = connection.createStatement();
        ResultSet rows = statement.executeQuery(NOTES)) {
      while (rows.next()) {
        notes.add(rows.getString(1));
      }
    }
    return notes;
  }
}
