package dev.outbox4j.benchmarks.raw;

import dev.outbox4j.benchmarks.spi.Bench;
import dev.outbox4j.benchmarks.spi.Sink;
import java.io.IOException;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;

/** A lease queue on a table of another shape, deleted by id and fence on ack. */
abstract class OtherShape extends TwoThreads {
  private static final int CLAIM = 1000;

  /** Claims as many rows as each question mark says; returns id, fence and payload. */
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
    // not as a parameter: a plan must know that they are few
    String sql = claimSql().replace("?", Integer.toString(CLAIM));
    try (PreparedStatement statement = connection.prepareStatement(sql)) {
      try (ResultSet rows = statement.executeQuery()) {
        return Taken.read(rows, 2 * CLAIM, 3, (row, id) -> {});
      }
    }
  }

  @Override
  void handle(Connection connection, Taken taken, Sink sink) throws SQLException {
    for (byte[] payload : taken.payloads()) {
      sink.handle(payload);
    }
    try (PreparedStatement statement =
        connection.prepareStatement(
            "delete from messages m using unnest(?::bigint[], ?::bigint[]) as d(id, token)"
                + " where m.id = d.id and m.token = d.token")) {
      statement.setObject(1, taken.ids());
      statement.setObject(2, taken.tokens());
      statement.executeUpdate();
    }
    sink.acked(taken.size());
  }
}
