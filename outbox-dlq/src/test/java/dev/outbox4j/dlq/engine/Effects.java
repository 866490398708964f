package dev.outbox4j.dlq.engine;

import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.util.List;

/** What handlers of one queue write in their transactions: rows of the table {@code effect}. */
record Effects(TestDatabase database, String queue) {
  Effects {
    database.update("create table if not exists effect (queue text, what text)");
  }

  void write(Connection connection, String what) throws SQLException {
    try (PreparedStatement insert =
        connection.prepareStatement("insert into public.effect (queue, what) values (?, ?)")) {
      insert.setString(1, queue);
      insert.setString(2, what);
      insert.executeUpdate();
    }
  }

  /** Returns those that are committed, sorted. */
  List<String> all() {
    return database.list(
        String.class, "select what from effect where queue = ? order by what", queue);
  }
}
