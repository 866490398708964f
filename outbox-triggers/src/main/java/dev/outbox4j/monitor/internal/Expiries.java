package dev.outbox4j.monitor.internal;

import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.internal.Jdbc;
import dev.outbox4j.postgres.internal.ServerTime;
import dev.outbox4j.triggers.internal.Parameters;
import dev.outbox4j.triggers.internal.Statements;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** The record of instances, as far as their time is over or nearly so. Thread-safe. */
final class Expiries {
  /** Of those that nobody was heard of, and of those in overtime. */
  static final int MOST = 1_000;

  private final Jdbc jdbc;
  private final Statements statements;
  private final String queue;

  Expiries(PostgresOutbox outbox, String application, String queue) {
    this.jdbc =
        new Jdbc(outbox.dataSource(), outbox.table(), PostgresOutbox.DEFAULT_NETWORK_TIMEOUT);
    this.statements = new Statements(outbox.table(), application);
    this.queue = queue;
  }

  /**
   * An instance that expires soon, or has expired, or was in overtime when it was heard of last.
   *
   * @param id its id
   * @param type the name of its type
   * @param execution which execution it is
   * @param in in how many seconds its time is over, by the server's clock; negative if it is
   */
  record Expiring(String id, String type, long execution, double in) {}

  /** {@return those that expire within a time, or have expired, the first of them first} */
  List<Expiring> next(Duration ahead) {
    return jdbc.run(
        "look for monitors that expire",
        connection ->
            statements.queryAlone(
                jdbc,
                connection,
                MonitorSql.EXPIRING,
                Map.of("ahead", ServerTime.seconds(ahead), "most", (long) MOST),
                row ->
                    new Expiring(
                        row.getString(1), row.getString(2), row.getLong(3), row.getDouble(4))));
  }

  /** Lets the checks go on that run, for a while. */
  void goOn(List<Expiring> instances) {
    jdbc.run(
        "overtime of monitors",
        connection -> statements.updateAlone(jdbc, connection, MonitorSql.GO_ON, keys(instances)));
  }

  /**
   * {@return the ids of those that were ended; of the others somebody has the rows, or was faster}
   */
  Set<String> end(List<Expiring> instances, Duration grace) {
    Map<String, Object> values = keys(instances);
    values.put("grace", ServerTime.seconds(grace));
    values.put("queue", queue);
    return new HashSet<>(
        jdbc.run(
            "end of monitors that have expired",
            connection ->
                statements.queryAlone(
                    jdbc, connection, MonitorSql.EXPIRE, values, row -> row.getString(1))));
  }

  private static Map<String, Object> keys(List<Expiring> instances) {
    return Parameters.of(instances)
        .texts("ids", Expiring::id)
        .numbers("executions", Expiring::execution)
        .values();
  }
}
