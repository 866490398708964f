package dev.outbox4j.monitor.internal;

import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.OutboxStoreException.Fault;
import dev.outbox4j.monitor.HistoryEntry;
import dev.outbox4j.monitor.Json;
import dev.outbox4j.monitor.MonitorAlert;
import dev.outbox4j.monitor.MonitorAnswer;
import dev.outbox4j.monitor.MonitorControl;
import dev.outbox4j.monitor.MonitorFailure;
import dev.outbox4j.monitor.MonitorInstance;
import dev.outbox4j.monitor.MonitorOutcome;
import dev.outbox4j.monitor.MonitorStatus;
import dev.outbox4j.monitor.MonitorsHealth;
import dev.outbox4j.monitor.StartedMonitor;
import dev.outbox4j.postgres.OutboxPublisher;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.internal.Jdbc;
import dev.outbox4j.postgres.internal.ServerTime;
import dev.outbox4j.triggers.internal.Statements;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The record of instances, for people and for the look at what is to be mended. Whoever changes an
 * instance locks its row first. Thread-safe.
 */
public final class InstanceStore {
  private static final Logger log = LoggerFactory.getLogger(InstanceStore.class);

  /** What a page has beside an instance. */
  private static final int AFTER_COLUMNS = 23;

  private static final Set<String> NO_JSON = Set.of("22P02", "22P05", "22021", "54001");

  private final Jdbc jdbc;
  private final Statements statements;
  private final OutboxPublisher publisher;
  private final String application;
  private final String queue;
  private final String channel;

  /**
   * Creates a store; does no I/O.
   *
   * @param outbox where the instances and their messages are
   * @param application whose monitors
   * @param queue where the messages are published that wake them
   */
  public InstanceStore(PostgresOutbox outbox, String application, String queue) {
    this(outbox, application, queue, PostgresOutbox.DEFAULT_NETWORK_TIMEOUT);
  }

  InstanceStore(PostgresOutbox outbox, String application, String queue, Duration networkTimeout) {
    this.jdbc = new Jdbc(outbox.dataSource(), outbox.table(), networkTimeout);
    this.statements = new Statements(outbox.table(), application);
    this.publisher = PostgresOutbox.publisher(outbox.table()).build();
    this.application = application;
    this.queue = queue;
    this.channel = outbox.table().channel();
  }

  /** An instance whose row this transaction holds. */
  private record Held(
      String type,
      long execution,
      MonitorStatus status,
      @Nullable Long message,
      List<String> waitsFor,
      int unseen,
      @Nullable Instant due,
      boolean ended,
      boolean started,
      boolean woken,
      Instant now) {}

  private static Held held(ResultSet row) throws SQLException {
    long message = row.getLong(4);
    Long known = row.wasNull() ? null : message;
    return new Held(
        row.getString(1),
        row.getLong(2),
        InstanceReads.status(row.getString(3)),
        known,
        texts(row, 5),
        row.getInt(6),
        ServerTime.readNullable(row, 7),
        row.getBoolean(8),
        row.getBoolean(9),
        row.getBoolean(10),
        ServerTime.read(row, 11));
  }

  private static List<String> texts(ResultSet row, int column) throws SQLException {
    return List.of((String[]) row.getArray(column).getArray());
  }

  /**
   * What is to be started.
   *
   * @param type the type's name
   * @param id the instance's id
   * @param input its input, as JSON
   * @param parent what it belongs to
   * @param history how many entries of its history are kept
   * @param firstCheckIn how long until its first check
   * @param lifetime how long until it expires
   * @param expiresAt when it expires, if that is said otherwise
   */
  public record Start(
      String type,
      String id,
      String input,
      @Nullable String parent,
      int history,
      Duration firstCheckIn,
      @Nullable Duration lifetime,
      @Nullable Instant expiresAt) {}

  /** {@return what became of a start, in a transaction of its own} */
  public StartedMonitor start(Start start) {
    return refusingNoJson(
        "the input",
        () -> transaction("start of a monitor", connection -> started(connection, start)));
  }

  /** {@return what became of a start, in the caller's transaction} */
  public StartedMonitor start(Connection connection, Start start) throws SQLException {
    return started(connection, start);
  }

  private StartedMonitor started(Connection connection, Start start) throws SQLException {
    Held held = lock(connection, start.id());
    if (held != null && !held.ended()) {
      return new StartedMonitor(MonitorAnswer.ALIVE, start.id(), held.execution());
    }
    Instant now = held == null ? now(connection) : held.now();
    Instant expires = start.lifetime() == null ? start.expiresAt() : now.plus(start.lifetime());
    Instant due = now.plus(start.firstCheckIn());
    if (expires != null && due.isAfter(expires)) {
      due = expires;
    }
    long message = publish(connection, start.type(), start.id(), due.isAfter(now) ? due : null);
    Map<String, Object> values = new HashMap<>();
    values.put("id", start.id());
    values.put("type", start.type());
    values.put("input", start.input());
    values.put("parent", start.parent() == null ? "" : start.parent());
    values.put("history", start.history());
    values.put("message", message);
    values.put("now", now.toString());
    values.put("expires_at", expires == null ? "" : expires.toString());
    values.put("due_at", due.toString());
    Long execution =
        first(statements.query(connection, MonitorSql.START, values, row -> row.getLong(1)));
    if (execution == null) { // another transaction has started it meanwhile
      deleteMessage(connection, start.id(), message);
      Held other = lock(connection, start.id());
      return new StartedMonitor(
          MonitorAnswer.ALIVE, start.id(), other == null ? 0 : other.execution());
    }
    statements.update(connection, MonitorSql.STARTED, Map.of("id", start.id()));
    return new StartedMonitor(MonitorAnswer.DONE, start.id(), execution);
  }

  private Instant now(Connection connection) throws SQLException {
    return statements
        .query(connection, MonitorSql.NOW, Map.of(), row -> ServerTime.read(row, 1))
        .get(0);
  }

  private long publish(Connection connection, String type, String id, @Nullable Instant due) {
    return publisher
        .publish(connection, Wake.of(queue, application, type, id, due))
        .rowId()
        .orElseThrow();
  }

  private void deleteMessage(Connection connection, String id, long message) throws SQLException {
    statements.update(connection, MonitorSql.DELETE_MESSAGE, ofMessage(id, message));
  }

  private Map<String, Object> ofMessage(String id, long message) {
    return Map.of("id", id, "message", message, "queue", queue, "channel", channel);
  }

  /** {@return what became of it} */
  public MonitorAnswer terminate(String id, String reason) {
    return change(
        "terminate a monitor",
        id,
        (connection, held) -> {
          if (held.ended()) {
            return MonitorAnswer.FINISHED;
          }
          statements.update(connection, MonitorSql.TERMINATE, Map.of("id", id, "reason", reason));
          note(connection, id, HistoryEntry.Kind.TERMINATED, reason);
          if (held.message() != null) {
            deleteMessage(connection, id, held.message());
          }
          return MonitorAnswer.DONE;
        });
  }

  /** {@return what became of it} */
  public MonitorAnswer suspend(String id, String reason) {
    return change(
        "suspend a monitor",
        id,
        (connection, held) -> {
          if (held.ended()) {
            return MonitorAnswer.FINISHED;
          }
          if (held.status() == MonitorStatus.SUSPENDED) {
            return MonitorAnswer.UNCHANGED;
          }
          setStatus(connection, id, MonitorStatus.SUSPENDED);
          note(connection, id, HistoryEntry.Kind.SUSPENDED, reason);
          return MonitorAnswer.DONE;
        });
  }

  /** {@return what became of it} */
  public MonitorAnswer resume(String id, String reason) {
    return change(
        "resume a monitor",
        id,
        (connection, held) -> {
          if (held.ended()) {
            return MonitorAnswer.FINISHED;
          }
          if (held.status() != MonitorStatus.SUSPENDED) {
            return MonitorAnswer.UNCHANGED;
          }
          setStatus(connection, id, held.started() ? MonitorStatus.RUNNING : MonitorStatus.PENDING);
          note(connection, id, HistoryEntry.Kind.RESUMED, reason);
          if (!hasMessage(connection, id, held)) {
            replaceMessage(connection, id, held, held.due());
          }
          return MonitorAnswer.DONE;
        });
  }

  /** {@return what became of it} */
  public MonitorAnswer restart(String id, String reason) {
    return change(
        "restart a monitor",
        id,
        (connection, held) -> {
          if (!held.ended()) {
            return MonitorAnswer.ALIVE;
          }
          long message = publish(connection, held.type(), id, null);
          statements.update(connection, MonitorSql.DROP_UNSEEN, Map.of("id", id));
          statements.update(
              connection,
              MonitorSql.RESTART,
              Map.of("id", id, "message", message, "now", held.now().toString()));
          note(connection, id, HistoryEntry.Kind.RESTARTED, reason);
          return MonitorAnswer.DONE;
        });
  }

  /** {@return what became of it} */
  public MonitorAnswer raiseEvent(String id, String name, String payload) {
    return refusingNoJson(
        "the payload",
        () ->
            change(
                "raise an event",
                id,
                (connection, held) -> {
                  if (held.ended()) {
                    return MonitorAnswer.FINISHED;
                  }
                  if (held.unseen() >= MonitorControl.MAX_UNSEEN_EVENTS) {
                    return MonitorAnswer.FULL;
                  }
                  statements.update(
                      connection,
                      MonitorSql.RAISE,
                      Map.of("id", id, "name", name, "payload", payload));
                  statements.update(
                      connection, MonitorSql.ADD_UNSEEN, Map.of("id", id, "name", name));
                  if (held.waitsFor().contains(name)) {
                    wakeNow(connection, id, held, false);
                  }
                  return MonitorAnswer.DONE;
                }));
  }

  /** {@return what became of it} */
  public MonitorAnswer wake(String id) {
    return change(
        "wake a monitor",
        id,
        (connection, held) -> {
          if (held.ended()) {
            return MonitorAnswer.FINISHED;
          }
          if (held.status() == MonitorStatus.SUSPENDED) {
            return MonitorAnswer.UNCHANGED;
          }
          wakeNow(connection, id, held, true);
          note(connection, id, HistoryEntry.Kind.WOKEN, "");
          return MonitorAnswer.DONE;
        });
  }

  /**
   * Makes the next check due. If one runs, its commit sees what was raised; whoever asks for a wake
   * has another check follow it.
   */
  private void wakeNow(Connection connection, String id, Held held, boolean afterCheck)
      throws SQLException {
    if (held.message() == null) {
      if (held.status() == MonitorStatus.SUSPENDED) {
        statements.update(connection, MonitorSql.SET_DUE, Map.of("id", id));
      } else {
        replaceMessage(connection, id, held, null);
      }
      return;
    }
    Brought brought = bringForward(connection, id, held.message());
    if (brought.done()) {
      statements.update(connection, MonitorSql.SET_DUE, Map.of("id", id));
    } else if (!brought.there()) {
      replaceMessage(connection, id, held, null);
    } else if (afterCheck || !brought.leased()) { // else a stranger has the message for a moment
      statements.update(connection, MonitorSql.SET_WOKEN, Map.of("id", id));
    }
  }

  private void replaceMessage(Connection connection, String id, Held held, @Nullable Instant due)
      throws SQLException {
    Instant later = due != null && due.isAfter(held.now()) ? due : null;
    long message = publish(connection, held.type(), id, later);
    statements.update(connection, MonitorSql.SET_MESSAGE, Map.of("id", id, "message", message));
    if (due == null) {
      statements.update(connection, MonitorSql.SET_DUE, Map.of("id", id));
    }
  }

  /**
   * What became of a message that was to be due.
   *
   * @param done whether it is due now
   * @param there whether it is there at all
   * @param leased whether somebody has it
   */
  private record Brought(boolean done, boolean there, boolean leased) {}

  private Brought bringForward(Connection connection, String id, long message) throws SQLException {
    return statements
        .query(
            connection,
            MonitorSql.BRING_FORWARD,
            ofMessage(id, message),
            row -> new Brought(row.getInt(1) > 0, row.getInt(2) > 0, row.getInt(3) > 0))
        .get(0);
  }

  private boolean hasMessage(Connection connection, String id, Held held) throws SQLException {
    return held.message() != null
        && !statements
            .query(connection, MonitorSql.HAS_MESSAGE, ofMessage(id, held.message()), row -> true)
            .isEmpty();
  }

  /** {@return what became of it} */
  public MonitorAnswer purge(String id) {
    return change(
        "purge a monitor",
        id,
        (connection, held) -> {
          if (!held.ended()) {
            return MonitorAnswer.ALIVE;
          }
          statements.update(connection, MonitorSql.PURGE, Map.of("id", id));
          return MonitorAnswer.DONE;
        });
  }

  /**
   * Deletes in parts if all at once take the server too long: each may have a history of thousands.
   *
   * @param query which ones
   * @return how many were deleted
   */
  public int purge(InstanceQuery query) {
    int deleted = 0;
    int most = query.limit();
    while (deleted < query.limit()) {
      int asked = Math.min(most, query.limit() - deleted);
      try {
        int found = purge(query, asked);
        deleted += found;
        if (found < asked) {
          break;
        }
      } catch (OutboxStoreException e) {
        if (e.fault() != Fault.TIMEOUT || asked == 1) {
          throw e;
        }
        most = asked / 2;
        log.info(
            "monitors of {}: a purge of {} takes too long, trying {}", application, asked, most);
      }
    }
    return deleted;
  }

  private int purge(InstanceQuery query, int most) {
    return query("purge monitors", query.purge(), query.valuesOfPurge(most), row -> row.getInt(1))
        .get(0);
  }

  private void setStatus(Connection connection, String id, MonitorStatus status)
      throws SQLException {
    statements.update(
        connection, MonitorSql.SET_STATUS, Map.of("id", id, "status", CheckWrites.stored(status)));
  }

  private void note(Connection connection, String id, HistoryEntry.Kind kind, String detail)
      throws SQLException {
    statements.update(
        connection,
        MonitorSql.NOTE,
        Map.of("id", id, "kind", CheckWrites.stored(kind), "detail", detail));
    statements.update(connection, MonitorSql.TRIM, Map.of("id", id));
  }

  /** What is done to an instance whose row is held. */
  private interface Change {
    MonitorAnswer of(Connection connection, Held held) throws SQLException;
  }

  private MonitorAnswer change(String operation, String id, Change change) {
    return transaction(
        operation,
        connection -> {
          Held held = lock(connection, id);
          return held == null ? MonitorAnswer.UNKNOWN : change.of(connection, held);
        });
  }

  private <T> T transaction(String operation, Jdbc.Work<T> work) {
    return jdbc.transaction(
        operation,
        connection -> {
          statements.execute(connection, MonitorSql.BEGIN, Map.of(), results -> true);
          return work.on(connection);
        });
  }

  private @Nullable Held lock(Connection connection, String id) throws SQLException {
    return first(
        statements.query(connection, MonitorSql.LOCK, Map.of("id", id), InstanceStore::held));
  }

  private static <T> @Nullable T first(List<T> found) {
    return found.isEmpty() ? null : found.get(0);
  }

  private interface Work<T> {
    T run();
  }

  private static <T> T refusingNoJson(String what, Work<T> work) {
    try {
      return work.run();
    } catch (OutboxStoreException e) {
      if (e.sqlState().filter(NO_JSON::contains).isPresent()) {
        throw new IllegalArgumentException(what + " is no JSON; write it as JSON", e);
      }
      throw e;
    }
  }

  /** {@return the instance; empty if there is none} */
  public Optional<MonitorInstance> get(String id) {
    return query("look at a monitor", MonitorSql.GET, Map.of("id", id), InstanceStore::instance)
        .stream()
        .findFirst();
  }

  /**
   * Instances of a query.
   *
   * @param instances those that there was room for
   * @param more whether there are others
   */
  public record Found(List<MonitorInstance> instances, boolean more) {}

  /** {@return the instances of a page} */
  public Found query(InstanceQuery query) {
    long[] found = new long[1];
    List<MonitorInstance> instances =
        query(
            "query monitors",
            query.select(),
            query.values(),
            row -> {
              found[0] = row.getLong(AFTER_COLUMNS);
              return instance(row);
            });
    int size = Math.min(instances.size(), query.limit());
    return new Found(List.copyOf(instances.subList(0, size)), found[0] > size);
  }

  /** {@return the latest entries before one, the latest first, as far as there is room} */
  public List<HistoryEntry> history(String id, int most, long before) {
    return query(
        "history of a monitor",
        MonitorSql.HISTORY,
        Map.of("id", id, "most", (long) most, "before", before, "bytes", InstanceQuery.MOST_BYTES),
        row ->
            new HistoryEntry(
                row.getLong(1),
                row.getLong(2),
                HistoryEntry.Kind.valueOf(row.getString(3).toUpperCase(Locale.ROOT)),
                row.getLong(4),
                Optional.ofNullable(row.getString(5)),
                Optional.ofNullable(row.getString(6)),
                ServerTime.read(row, 7)));
  }

  /** {@return how many there are of each status, counted up to a number} */
  public Map<MonitorStatus, Long> counts() {
    Map<MonitorStatus, Long> counts = new EnumMap<>(MonitorStatus.class);
    String[] statuses =
        Arrays.stream(MonitorStatus.values()).map(CheckWrites::stored).toArray(String[]::new);
    query(
        "count monitors",
        MonitorSql.COUNTS,
        Map.of("statuses", statuses, "most", (long) MonitorsHealth.MOST_COUNTED),
        row -> {
          counts.put(InstanceReads.status(row.getString(1)), row.getLong(2));
          return true;
        });
    return counts;
  }

  /** {@return what somebody is to look at: of each rule the longest lasting first} */
  public List<MonitorAlert> alerts() {
    List<MonitorAlert> all =
        new ArrayList<>(
            query(
                "look for overdue monitors",
                MonitorSql.OVERDUE,
                Map.of("most", (long) MonitorsHealth.MOST_ALERTS),
                row -> alert(MonitorAlert.Rule.OVERDUE, row, 1)));
    all.addAll(failed());
    return all;
  }

  /** {@return alerts of instances that have failed lately} */
  List<MonitorAlert> failed() {
    return query(
        "look for failed monitors",
        MonitorSql.FAILED,
        Map.of("most", (long) MonitorsHealth.MOST_ALERTS),
        row -> alert(MonitorAlert.Rule.FAILED, row, 1));
  }

  static List<MonitorAlert> longest(List<MonitorAlert> all) {
    return all.stream()
        .sorted(Comparator.comparing(MonitorAlert::since))
        .limit(MonitorsHealth.MOST_ALERTS)
        .toList();
  }

  private static MonitorAlert alert(MonitorAlert.Rule rule, ResultSet row, int first)
      throws SQLException {
    Instant since = ServerTime.read(row, first + 2);
    return new MonitorAlert(
        rule,
        row.getString(first),
        row.getString(first + 1),
        since,
        Duration.between(since, ServerTime.read(row, first + 3)));
  }

  /**
   * A page of the instances that have not ended.
   *
   * @param last the last id of it; null if there are no more
   * @param overdue those of it that are overdue
   * @param toMend the ids of those that nothing would wake
   */
  record Page(@Nullable String last, List<MonitorAlert> overdue, List<String> toMend) {}

  /** {@return the page that follows an id} */
  Page look(String after, int most) {
    List<MonitorAlert> overdue = new ArrayList<>();
    List<String> toMend = new ArrayList<>();
    @Nullable String[] last = new String[1];
    query(
        "look at monitors",
        MonitorSql.LOOK,
        Map.of("after", after, "most", (long) most, "queue", queue),
        row -> {
          if (row.getString(2) == null) {
            last[0] = row.getLong(7) < most ? null : row.getString(1);
            return true;
          }
          if (row.getBoolean(4)) {
            Instant since = ServerTime.read(row, 3);
            overdue.add(
                new MonitorAlert(
                    MonitorAlert.Rule.OVERDUE,
                    row.getString(2),
                    row.getString(1),
                    since,
                    Duration.between(since, ServerTime.read(row, 6))));
          }
          if (row.getBoolean(5)) {
            toMend.add(row.getString(1));
          }
          return true;
        });
    return new Page(last[0], overdue, toMend);
  }

  /** {@return whether the instance has got a message that wakes it, which it had not} */
  boolean mend(String id) {
    return transaction(
        "wake of a monitor without a message",
        connection -> {
          Held held =
              first(
                  statements.query(
                      connection, MonitorSql.LOCK_IF_FREE, Map.of("id", id), InstanceStore::held));
          if (held == null || held.ended() || held.status() == MonitorStatus.SUSPENDED) {
            return false;
          }
          if (held.message() != null && hasMessage(connection, id, held)) {
            if (held.woken() && bringForward(connection, id, held.message()).done()) {
              statements.update(connection, MonitorSql.SET_DUE, Map.of("id", id));
            }
            return false;
          }
          replaceMessage(connection, id, held, held.due());
          return true;
        });
  }

  private <T> List<T> query(
      String operation,
      String template,
      Map<String, Object> values,
      Statements.RowReader<T> reader) {
    return jdbc.run(
        operation, connection -> statements.queryAlone(jdbc, connection, template, values, reader));
  }

  private static MonitorInstance instance(ResultSet row) throws SQLException {
    MonitorStatus status = InstanceReads.status(row.getString(4));
    String error = row.getString(13);
    int attempts = row.getInt(7);
    boolean failed = status == MonitorStatus.FAILED;
    return new MonitorInstance(
        row.getString(1),
        row.getString(2),
        row.getLong(3),
        status,
        Optional.ofNullable(row.getString(5))
            .map(outcome -> MonitorOutcome.valueOf(outcome.toUpperCase(Locale.ROOT))),
        row.getLong(6),
        attempts,
        json(row, 8),
        json(row, 9),
        json(row, 10),
        json(row, 11),
        failed
            ? Optional.of(
                new MonitorFailure(
                    Optional.ofNullable(row.getString(12)),
                    error == null ? "" : error,
                    Optional.ofNullable(row.getString(14)),
                    attempts))
            : Optional.empty(),
        failed ? Optional.empty() : Optional.ofNullable(error),
        Optional.ofNullable(row.getString(15)),
        texts(row, 16),
        ServerTime.read(row, 17),
        ServerTime.read(row, 18),
        instant(row, 19),
        instant(row, 20),
        instant(row, 21),
        instant(row, 22));
  }

  private static Optional<Json> json(ResultSet row, int column) throws SQLException {
    return Optional.ofNullable(row.getString(column)).map(Json::of);
  }

  private static Optional<Instant> instant(ResultSet row, int column) throws SQLException {
    return Optional.ofNullable(ServerTime.readNullable(row, column));
  }
}
