package dev.outbox4j.triggers.internal;

import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.internal.Jdbc;
import dev.outbox4j.postgres.internal.Preamble;
import dev.outbox4j.postgres.internal.Results;
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

/** Runs the statements on what an application has, each by its text. Thread-safe. */
public final class Statements {
  private final OutboxTable table;
  private final String application;
  private final Map<String, Sql> rendered = new ConcurrentHashMap<>();
  private final Map<String, Sql> renderedAlone = new ConcurrentHashMap<>();

  /**
   * Creates them; does no I/O.
   *
   * @param table the outbox whose tables the statements name
   * @param application the value of the parameter {@code application} of each
   */
  public Statements(OutboxTable table, String application) {
    this.table = table;
    this.application = application;
  }

  /**
   * Reads a row.
   *
   * @param <T> what it is read as
   */
  @FunctionalInterface
  public interface RowReader<T> {
    /** Reads the row at which the result is. */
    T read(ResultSet row) throws SQLException;
  }

  /** Runs what gives rows. */
  public <T> List<T> query(
      Connection connection, String template, Map<String, Object> values, RowReader<T> reader)
      throws SQLException {
    try (PreparedStatement statement = prepare(connection, template, values);
        ResultSet rows = statement.executeQuery()) {
      return read(rows, reader);
    }
  }

  /**
   * Reads the results of several statements.
   *
   * @param <T> what they are read as
   */
  @FunctionalInterface
  public interface ResultsReader<T> {
    /** Reads the results. */
    T read(Results results) throws SQLException;
  }

  /** Runs several statements in one execution. */
  public <T> T execute(
      Connection connection, String template, Map<String, Object> values, ResultsReader<T> reader)
      throws SQLException {
    try (PreparedStatement statement = prepare(connection, template, values)) {
      return reader.read(Results.of(statement));
    }
  }

  /** Runs what gives none, and returns how many rows it wrote. */
  public int update(Connection connection, String template, Map<String, Object> values)
      throws SQLException {
    try (PreparedStatement statement = prepare(connection, template, values)) {
      return statement.executeUpdate();
    }
  }

  /**
   * Runs what gives rows by itself: at read committed, whatever the database's default is, and with
   * time limits on the server, so that it does not go on when the client has given up.
   */
  public <T> List<T> queryAlone(
      Jdbc jdbc,
      Connection connection,
      String template,
      Map<String, Object> values,
      RowReader<T> reader)
      throws SQLException {
    return executeAlone(
        jdbc,
        connection,
        template,
        values,
        results -> {
          try (ResultSet rows = results.next().rows()) {
            return read(rows, reader);
          }
        });
  }

  /**
   * Runs several statements in one execution by themselves, as {@link #queryAlone} does; the
   * current result is the one before theirs.
   */
  public <T> T executeAlone(
      Jdbc jdbc,
      Connection connection,
      String template,
      Map<String, Object> values,
      ResultsReader<T> reader)
      throws SQLException {
    return jdbc.preamble()
        .run(
            connection,
            alone(template),
            with(values),
            null,
            (start, results) -> reader.read(results));
  }

  /** Runs what gives none by itself, as {@link #queryAlone} does. */
  public int updateAlone(
      Jdbc jdbc, Connection connection, String template, Map<String, Object> values)
      throws SQLException {
    return executeAlone(jdbc, connection, template, values, results -> results.next().updated());
  }

  private Sql alone(String template) {
    return renderedAlone.computeIfAbsent(template, text -> Preamble.before(text, table));
  }

  private Map<String, Object> with(Map<String, Object> values) {
    Map<String, Object> all = new HashMap<>(values);
    all.put("application", application);
    return all;
  }

  /** Reads all rows. */
  public static <T> List<T> read(ResultSet rows, RowReader<T> reader) throws SQLException {
    List<T> found = new ArrayList<>();
    while (rows.next()) {
      found.add(reader.read(rows));
    }
    return found;
  }

  private PreparedStatement prepare(
      Connection connection, String template, Map<String, Object> values) throws SQLException {
    Sql sql = rendered.computeIfAbsent(template, text -> Sql.of(text, table));
    PreparedStatement statement = connection.prepareStatement(sql.text());
    try {
      sql.bind(statement, with(values));
      return statement;
    } catch (SQLException | RuntimeException e) {
      statement.close();
      throw e;
    }
  }
}
