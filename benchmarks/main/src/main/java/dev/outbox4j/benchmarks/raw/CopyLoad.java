package dev.outbox4j.benchmarks.raw;

import dev.outbox4j.benchmarks.spi.Bench;
import dev.outbox4j.benchmarks.spi.Payloads;
import java.io.BufferedOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.SQLException;
import org.postgresql.PGConnection;
import org.postgresql.copy.PGCopyOutputStream;

/** Loads a backlog by a binary COPY of a queue's name and a payload. */
public final class CopyLoad {
  private static final byte[] SIGNATURE = {
    'P', 'G', 'C', 'O', 'P', 'Y', '\n', (byte) 0xff, '\r', '\n', 0
  };

  private CopyLoad() {}

  /**
   * Loads rows.
   *
   * @param bench the run
   * @param target the table and its two columns, as in SQL
   * @param queue the queue
   * @param first the first sequence number
   * @param rows how many
   * @param bytes the size of a payload
   * @throws SQLException if the server refuses
   * @throws IOException if the connection breaks
   */
  public static void into(
      Bench bench, String target, String queue, long first, long rows, int bytes)
      throws SQLException, IOException {
    into(bench, target, queue, first, rows, bytes, 0);
  }

  /**
   * Loads rows with keys by turns.
   *
   * @param bench the run
   * @param target the table and its columns, as in SQL: queue, payload, and key if there are any
   * @param queue the queue
   * @param first the first sequence number
   * @param rows how many
   * @param bytes the size of a payload
   * @param keys how many keys; 0 for rows without one
   * @throws SQLException if the server refuses
   * @throws IOException if the connection breaks
   */
  public static void into(
      Bench bench, String target, String queue, long first, long rows, int bytes, int keys)
      throws SQLException, IOException {
    byte[] name = queue.getBytes(StandardCharsets.UTF_8);
    try (Connection connection = bench.dataSource().getConnection();
        DataOutputStream out =
            new DataOutputStream(
                new BufferedOutputStream(
                    new PGCopyOutputStream(
                        connection.unwrap(PGConnection.class),
                        "copy " + target + " from stdin (format binary)"),
                    1 << 16))) {
      out.write(SIGNATURE);
      out.writeInt(0);
      out.writeInt(0);
      for (long row = first; row < first + rows; row++) {
        out.writeShort(keys == 0 ? 2 : 3);
        out.writeInt(name.length);
        out.write(name);
        out.writeInt(bytes);
        out.write(Payloads.of(row, bytes));
        if (keys > 0) {
          byte[] key = ("key-" + row % keys).getBytes(StandardCharsets.UTF_8);
          out.writeInt(key.length);
          out.write(key);
        }
      }
      out.writeShort(-1);
    }
  }
}
