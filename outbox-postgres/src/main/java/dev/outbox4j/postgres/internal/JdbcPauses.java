package dev.outbox4j.postgres.internal;

import dev.outbox4j.internal.schema.Names;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.QueuePause;
import dev.outbox4j.spi.PauseStore;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** The pauses of an outbox over JDBC. Thread-safe; renders its statements when it is made. */
public final class JdbcPauses implements PauseStore {
  private final Jdbc jdbc;
  private final Sql openOf;
  private final Sql open;
  private final Sql history;
  private final Sql pause;
  private final Sql resume;

  /** Creates what does no I/O yet. */
  public JdbcPauses(Jdbc jdbc) {
    OutboxTable table = jdbc.table();
    this.jdbc = jdbc;
    this.openOf = Preamble.before(PauseSql.OPEN_OF, table);
    this.open = Preamble.before(PauseSql.OPEN, table);
    this.history = Preamble.before(PauseSql.HISTORY, table);
    this.pause = Preamble.before(PauseSql.PAUSE, table);
    this.resume = Preamble.before(PauseSql.RESUME, table);
  }

  /** {@return the name of the table} */
  public String table() {
    return Names.pauses(jdbc.table().name());
  }

  @Override
  public List<OpenPause> open(Collection<String> queues) {
    return run(
        "look for pauses",
        openOf,
        Map.of("queues", queues.toArray(String[]::new)),
        (start, results) ->
            rows(
                results,
                row ->
                    new OpenPause(
                        row.getString(1),
                        ServerTime.read(row, 2),
                        row.getString(3),
                        row.getString(4))));
  }

  /** Returns the pauses of any queue that last. */
  public List<QueuePause> open() {
    return run("list pauses", open, Map.of(), (start, results) -> rows(results, JdbcPauses::pause));
  }

  /** Returns the latest pauses of a queue. */
  public List<QueuePause> history(String queue, int limit) {
    return run(
        "list pauses",
        history,
        Map.of("queue", queue, "limit", (long) limit),
        (start, results) -> rows(results, JdbcPauses::pause));
  }

  /** Pauses a queue; false if it is paused. */
  public boolean pause(String queue, String by, String reason) {
    return run(
        "pause",
        pause,
        Map.of("queue", queue, "by", by, "reason", reason),
        (start, results) -> results.next().updated() > 0);
  }

  /** Resumes a queue; false if it is not paused. */
  public boolean resume(String queue, String by) {
    return run(
        "resume",
        resume,
        Map.of("queue", queue, "by", by, "channel", jdbc.table().channel()),
        (start, results) -> {
          try (ResultSet resumed = results.next().rows()) {
            return resumed.next();
          }
        });
  }

  private <T> T run(
      String operation, Sql sql, Map<String, Object> values, Preamble.Reader<T> reader) {
    return jdbc.run(
        operation, connection -> jdbc.preamble().run(connection, sql, values, null, reader));
  }

  private interface RowReader<T> {
    T read(ResultSet row) throws SQLException;
  }

  private static <T> List<T> rows(Results results, RowReader<T> reader) throws SQLException {
    List<T> found = new ArrayList<>();
    try (ResultSet rows = results.next().rows()) {
      while (rows.next()) {
        found.add(reader.read(rows));
      }
    }
    return found;
  }

  private static QueuePause pause(ResultSet row) throws SQLException {
    return new QueuePause(
        row.getString(1),
        ServerTime.read(row, 2),
        row.getString(3),
        Optional.ofNullable(row.getString(4)),
        Optional.ofNullable(ServerTime.readNullable(row, 5)),
        Optional.ofNullable(row.getString(6)));
  }
}
