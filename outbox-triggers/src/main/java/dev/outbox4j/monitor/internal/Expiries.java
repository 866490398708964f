package dev.outbox4j.monitor.internal;

import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.internal.Jdbc;
import dev.outbox4j.postgres.internal.ServerTime;
import dev.outbox4j.triggers.internal.Parameters;
import dev.outbox4j.triggers.internal.Statements;
import java.time.Duration;
import java.util.List;
import java.util.Map;

/** The record of instances, as far as their time is over or nearly so. Thread-safe. */
final class Expiries {
  private static final long MOST = 1_000;

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
                Map.of("ahead", ServerTime.seconds(ahead), "most", MOST),
                row ->
                    new Expiring(
                        row.getString(1), row.getString(2), row.getLong(3), row.getDouble(4))));
  }

  /** Lets the checks go on that run, for a while. */
  void goOn(List<Expiring> instances) {
    Map<String, Object> values =
        Parameters.of(instances)
            .texts("ids", Expiring::id)
            .numbers("executions", Expiring::execution)
            .values();
    jdbc.run(
        "overtime of monitors",
        connection -> statements.updateAlone(jdbc, connection, MonitorSql.GO_ON, values));
  }

  /** {@return whether it was ended; else somebody has its row, or was faster} */
  boolean end(Expiring instance, Duration grace) {
    return jdbc.run(
                "end of a monitor that has expired",
                connection ->
                    statements.queryAlone(
                        jdbc,
                        connection,
                        MonitorSql.EXPIRE,
                        Map.of(
                            "id",
                            instance.id(),
                            "execution",
                            instance.execution(),
                            "grace",
                            ServerTime.seconds(grace),
                            "queue",
                            queue),
                        row -> row.getLong(1)))
            .get(0)
        > 0;
  }
}
