package dev.outbox4j.postgres.internal;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import org.postgresql.PGConnection;
import org.postgresql.PGNotification;

/** Hears what is notified on the outbox's channel. */
final class Ears implements AutoCloseable {
  private final TestDatabase database;
  private final Connection connection;

  Ears(TestDatabase database) throws SQLException {
    this.database = database;
    this.connection = database.plain().getConnection();
    try (Statement statement = connection.createStatement()) {
      statement.execute("listen " + database.table().channel());
      statement.execute("listen stop");
    }
  }

  /** Returns the payloads since the last call, of all that was committed before this one. */
  List<String> heard() throws SQLException {
    database.update("notify stop");
    List<String> heard = new ArrayList<>();
    while (true) {
      PGNotification[] some = connection.unwrap(PGConnection.class).getNotifications(10_000);
      assertThat(some).as("notifications").isNotEmpty();
      for (PGNotification one : some) {
        if (one.getName().equals("stop")) {
          return heard;
        }
        heard.add(one.getParameter());
      }
    }
  }

  @Override
  public void close() throws SQLException {
    connection.close();
  }
}
