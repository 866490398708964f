package dev.outbox4j.monitor.internal;

import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.monitor.Json;
import dev.outbox4j.monitor.MonitorControl;
import dev.outbox4j.monitor.MonitorStatus;
import dev.outbox4j.monitor.RaisedEvent;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.internal.Jdbc;
import dev.outbox4j.postgres.internal.ServerTime;
import dev.outbox4j.triggers.internal.GroupedCalls;
import dev.outbox4j.triggers.internal.Parameters;
import dev.outbox4j.triggers.internal.Statements;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Reads what checks are told. Those of many workers go in one statement. No transaction is open
 * when a read has returned. Thread-safe.
 */
final class InstanceReads {
  /** An input and a state may have 256 KiB each. */
  private static final int MOST = 32;

  private final Jdbc jdbc;
  private final Statements statements;
  private final GroupedCalls<Asked, Instance> groups =
      new GroupedCalls<>(this::read, InstanceReads::isOutage, MOST);

  InstanceReads(PostgresOutbox outbox, String application) {
    this.jdbc =
        new Jdbc(outbox.dataSource(), outbox.table(), PostgresOutbox.DEFAULT_NETWORK_TIMEOUT);
    this.statements = new Statements(outbox.table(), application);
  }

  private record Asked(String id, long message) {}

  /** {@return the instance that a message wakes; null if it is not its message any more} */
  @Nullable Instance read(String id, long message) {
    return groups.call(new Asked(id, message));
  }

  /** Each that waits for an answer alone would wait as long once more. */
  private static boolean isOutage(RuntimeException failure) {
    return failure instanceof OutboxStoreException ofStore && ofStore.outcomeUnknown();
  }

  private List<@Nullable Instance> read(List<Asked> asked) {
    Map<Integer, Instance> found = new HashMap<>();
    Map<String, Object> values =
        Parameters.of(asked).texts("ids", Asked::id).numbers("messages", Asked::message).values();
    jdbc.run(
        "read of monitors",
        connection ->
            statements.queryAlone(
                jdbc,
                connection,
                MonitorSql.READ,
                values,
                row -> {
                  int place = row.getInt(1);
                  found.put(place, instance(row, asked.get(place - 1)));
                  return true;
                }));
    List<@Nullable Instance> answers = new ArrayList<>();
    for (int place = 1; place <= asked.size(); place++) {
      answers.add(found.get(place));
    }
    return answers;
  }

  private static Instance instance(ResultSet row, Asked asked) throws SQLException {
    return new Instance(
        row.getString(2),
        row.getString(3),
        row.getLong(4),
        status(row.getString(5)),
        row.getLong(6),
        row.getInt(7),
        row.getString(8),
        row.getString(9),
        row.getInt(10),
        row.getInt(11),
        ServerTime.read(row, 12),
        ServerTime.readNullable(row, 13),
        ServerTime.readNullable(row, 14),
        ServerTime.read(row, 15),
        System.nanoTime(),
        asked.message());
  }

  /** {@return whether nobody has locked its row} */
  boolean isFree(Instance instance) {
    return !jdbc.run(
            "look at a monitor that was locked",
            connection ->
                statements.queryAlone(
                    jdbc, connection, MonitorSql.FREE, Map.of("id", instance.id()), row -> true))
        .isEmpty();
  }

  /** {@return how many checks of an instance were committed; 0 if there is none} */
  long iteration(String id) {
    return jdbc
        .run(
            "look at a monitor of another node",
            connection ->
                statements.queryAlone(
                    jdbc,
                    connection,
                    MonitorSql.ITERATION,
                    Map.of("id", id),
                    row -> row.getLong(1)))
        .stream()
        .findFirst()
        .orElse(0L);
  }

  static MonitorStatus status(String stored) {
    return MonitorStatus.valueOf(stored.toUpperCase(Locale.ROOT));
  }

  /** {@return whether its first check begins by this; not if somebody was faster} */
  boolean startRunning(Instance instance) {
    return jdbc.run(
            "start of a monitor",
            connection ->
                statements.updateAlone(
                    jdbc,
                    connection,
                    MonitorSql.START_RUNNING,
                    Map.of("id", instance.id(), "execution", instance.execution())))
        > 0;
  }

  /** {@return the events that no check has seen, the earliest first} */
  List<RaisedEvent> events(Instance instance) {
    if (instance.unseen() == 0) {
      return List.of();
    }
    return jdbc.run(
        "read of events",
        connection ->
            statements.queryAlone(
                jdbc,
                connection,
                MonitorSql.UNSEEN,
                Map.of(
                    "id",
                    instance.id(),
                    "execution",
                    instance.execution(),
                    "most",
                    (long) MonitorControl.MAX_UNSEEN_EVENTS),
                row ->
                    new RaisedEvent(
                        row.getLong(1),
                        row.getString(2),
                        Json.of(row.getString(3)),
                        ServerTime.read(row, 4))));
  }
}
