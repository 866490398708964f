package dev.outbox4j.benchmarks.raw;

import dev.outbox4j.benchmarks.spi.Sink;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;

/** Deletes rows as it takes them: what is in memory when the process dies is lost. */
public final class BareDelete extends OutboxRows {
  private static final String TAKE =
      BY_INDEX
          + """
          with picked as materialized (
            select ctid, queue, id from outbox where queue = ? and available_at <= now()
            order by available_at, id limit ? for update skip locked)
          delete from outbox o using picked
          where o.ctid = picked.ctid and o.queue = any (array[picked.queue])
            and (o.id = picked.id) is true
          returning o.id, o.lease_token, o.payload""";

  /** Made by the service loader. */
  public BareDelete() {}

  @Override
  public String name() {
    return "raw-bare-delete";
  }

  @Override
  public String contract() {
    return "AT MOST once: deleted as it is taken; no library";
  }

  @Override
  Taken claim(Connection connection) throws SQLException {
    try (PreparedStatement statement = connection.prepareStatement(TAKE)) {
      statement.setString(1, QUEUE);
      statement.setInt(2, CLAIM);
      statement.execute();
      statement.getMoreResults();
      try (ResultSet rows = statement.getResultSet()) {
        return Taken.read(rows, CLAIM, 3, (row, id) -> {});
      }
    }
  }

  @Override
  void handle(Connection connection, Taken taken, Sink sink) {
    for (byte[] payload : taken.payloads()) {
      sink.handle(payload);
    }
    sink.acked(taken.size());
  }
}
