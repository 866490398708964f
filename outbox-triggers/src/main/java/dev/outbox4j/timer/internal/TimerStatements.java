package dev.outbox4j.timer.internal;

import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.internal.Sql;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Runs the statements on the timers of an application, each by its text. Thread-safe. */
final class TimerStatements {
  private final OutboxTable table;
  private final String application;
  private final Map<String, Sql> rendered = new ConcurrentHashMap<>();

  TimerStatements(OutboxTable table, String application) {
    this.table = table;
    this.application = application;
  }

  /** Reads a row. */
  @FunctionalInterface
  interface RowReader<T> {
    T read(ResultSet row) throws SQLException;
  }

  /** Runs what gives rows. */
  <T> List<T> query(
      Connection connection, String template, Map<String, Object> values, RowReader<T> reader)
      throws SQLException {
    try (PreparedStatement statement = prepare(connection, template, values);
        ResultSet rows = statement.executeQuery()) {
      List<T> found = new ArrayList<>();
      while (rows.next()) {
        found.add(reader.read(rows));
      }
      return found;
    }
  }

  /** Runs what gives none, and returns how many rows it wrote. */
  int update(Connection connection, String template, Map<String, Object> values)
      throws SQLException {
    try (PreparedStatement statement = prepare(connection, template, values)) {
      return statement.executeUpdate();
    }
  }

  private PreparedStatement prepare(
      Connection connection, String template, Map<String, Object> values) throws SQLException {
    Sql sql = rendered.computeIfAbsent(template, text -> Sql.of(text, table));
    Map<String, Object> all = new HashMap<>(values);
    all.put("application", application);
    PreparedStatement statement = connection.prepareStatement(sql.text());
    try {
      sql.bind(statement, all);
      return statement;
    } catch (SQLException | RuntimeException e) {
      statement.close();
      throw e;
    }
  }
}
