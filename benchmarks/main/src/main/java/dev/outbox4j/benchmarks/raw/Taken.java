package dev.outbox4j.benchmarks.raw;

import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.Arrays;

/**
 * Rows of one claim.
 *
 * @param ids their ids
 * @param tokens their fences
 * @param payloads their payloads
 */
@SuppressWarnings("ArrayRecordComponent") // short-lived, never compared
record Taken(long[] ids, long[] tokens, byte[][] payloads) {

  /** Is told of each row while it is the current one. */
  interface Row {
    void at(ResultSet row, long id) throws SQLException;
  }

  /** Reads id and token, which come first, and the payload. */
  static Taken read(ResultSet rows, int most, int payload, Row row) throws SQLException {
    long[] ids = new long[most];
    long[] tokens = new long[most];
    byte[][] payloads = new byte[most][];
    int count = 0;
    while (rows.next()) {
      ids[count] = rows.getLong(1);
      tokens[count] = rows.getLong(2);
      payloads[count] = rows.getBytes(payload);
      row.at(rows, ids[count]);
      count++;
    }
    return new Taken(
        Arrays.copyOf(ids, count), Arrays.copyOf(tokens, count), Arrays.copyOf(payloads, count));
  }

  int size() {
    return ids.length;
  }

  /** Those rows of it. */
  Taken only(int[] which) {
    return new Taken(
        Arrays.stream(which).mapToLong(i -> ids[i]).toArray(),
        Arrays.stream(which).mapToLong(i -> tokens[i]).toArray(),
        Arrays.stream(which).mapToObj(i -> payloads[i]).toArray(byte[][]::new));
  }
}
