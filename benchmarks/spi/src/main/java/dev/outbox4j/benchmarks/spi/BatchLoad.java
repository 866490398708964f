package dev.outbox4j.benchmarks.spi;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.util.Base64;

/** Fills tables whose rows only their library knows how to write. */
public final class BatchLoad {
  /** A payload that stands for others in a row that a library wrote. */
  public static final byte[] MARKER = Payloads.of(-1, 24);

  private static final int CHUNK = 1000;

  private BatchLoad() {}

  /**
   * Runs an {@code insert ... select ... from unnest(?, ?)} of sequence numbers and payloads.
   *
   * @param bench the run
   * @param sql the statement; its parameters are a {@code bigint[]} and a {@code bytea[]}
   * @param first the first sequence number
   * @param rows how many
   * @param bytes the size of a payload
   * @throws SQLException if it fails
   */
  public static void binary(Bench bench, String sql, long first, long rows, int bytes)
      throws SQLException {
    run(bench, sql, first, rows, bytes, false);
  }

  /**
   * Takes the rows of a table away and keeps them as a template; each holds {@link #MARKER} in
   * Base64.
   *
   * @param bench the run
   * @param table the table, with rows that its library has written
   * @throws SQLException if it fails
   */
  public static void keepTemplate(Bench bench, String table) throws SQLException {
    bench.execute("create table bench_template as select * from " + table, "delete from " + table);
  }

  /**
   * Writes copies of the template.
   *
   * @param bench the run
   * @param table the table
   * @param changes an expression that makes the changed columns a {@code jsonb}; it may use {@code
   *     t}, the template's row, {@code m.sequence}, and {@code m.payload}, which is in Base64
   * @param first the first sequence number
   * @param rows how many
   * @param bytes the size of a payload
   * @throws SQLException if it fails
   */
  public static void copies(
      Bench bench, String table, String changes, long first, long rows, int bytes)
      throws SQLException {
    run(
        bench,
        "insert into "
            + table
            + " select r.* from bench_template t"
            + " cross join unnest(?::bigint[], ?::text[]) as m(sequence, payload)"
            // not (...).* above, which would make the record anew for each column
            + " cross join lateral jsonb_populate_record(null::"
            + table
            + ", to_jsonb(t) || "
            + changes
            + ") as r",
        first,
        rows,
        bytes,
        true);
  }

  /** {@return the SQL literal of the marker in Base64} */
  public static String marker() {
    return "'" + Base64.getEncoder().encodeToString(MARKER) + "'";
  }

  private static void run(Bench bench, String sql, long first, long rows, int bytes, boolean text)
      throws SQLException {
    try (Connection connection = bench.dataSource().getConnection();
        PreparedStatement statement = connection.prepareStatement(sql)) {
      connection.setAutoCommit(false);
      for (long from = first; from < first + rows; from += CHUNK) {
        int size = (int) Math.min(CHUNK, first + rows - from);
        Long[] sequences = new Long[size];
        byte[][] payloads = new byte[size][];
        String[] texts = new String[size];
        for (int i = 0; i < size; i++) {
          sequences[i] = from + i;
          payloads[i] = Payloads.of(from + i, bytes);
          if (text) {
            texts[i] = Base64.getEncoder().encodeToString(payloads[i]);
          }
        }
        statement.setArray(1, connection.createArrayOf("bigint", sequences));
        statement.setArray(
            2,
            text
                ? connection.createArrayOf("text", texts)
                : connection.createArrayOf("bytea", payloads));
        statement.executeUpdate();
      }
      connection.commit();
    }
  }
}
