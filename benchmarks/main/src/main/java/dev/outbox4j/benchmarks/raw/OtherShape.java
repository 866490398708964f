package dev.outbox4j.benchmarks.raw;

import dev.outbox4j.benchmarks.spi.Bench;
import dev.outbox4j.benchmarks.spi.Sink;
import java.io.IOException;
import java.sql.Array;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;

/** A lease queue on a table of another shape, deleted by id and fence on ack. */
abstract class OtherShape extends TwoThreads {
  private static final int CLAIM = 1000;

  /** Claims as many rows as its first parameter says; returns id, fence and payload. */
  abstract String claimSql();

  @Override
  public void load(Bench bench, long first, long rows, int bytes) throws SQLException, IOException {
    CopyLoad.into(bench, "messages (queue, payload)", QUEUE, first, rows, bytes);
  }

  @Override
  public String countLeft() {
    return "select count(*) from messages";
  }

  @Override
  Taken claim(Connection connection) throws SQLException {
    List<Long> ids = new ArrayList<>(CLAIM);
    List<Long> tokens = new ArrayList<>(CLAIM);
    List<byte[]> payloads = new ArrayList<>(CLAIM);
    try (PreparedStatement statement = connection.prepareStatement(claimSql())) {
      statement.setInt(1, CLAIM);
      try (ResultSet rows = statement.executeQuery()) {
        while (rows.next()) {
          ids.add(rows.getLong(1));
          tokens.add(rows.getLong(2));
          payloads.add(rows.getBytes(3));
        }
      }
    }
    return new Taken(
        ids.toArray(new Long[0]), tokens.toArray(new Long[0]), payloads.toArray(new byte[0][]));
  }

  @Override
  void handle(Connection connection, Taken taken, Sink sink) throws SQLException {
    for (byte[] payload : taken.payloads()) {
      sink.handle(payload);
    }
    Array ids = connection.createArrayOf("bigint", taken.ids());
    Array tokens = connection.createArrayOf("bigint", taken.tokens());
    try (PreparedStatement statement =
        connection.prepareStatement(
            "delete from messages m using unnest(?::bigint[], ?::bigint[]) as d(id, token)"
                + " where m.id = d.id and m.token = d.token")) {
      statement.setArray(1, ids);
      statement.setArray(2, tokens);
      statement.executeUpdate();
    }
    sink.acked(taken.payloads().length);
  }
}
