package dev.outbox4j.poller.internal;

import dev.outbox4j.poller.PollerFailure;
import dev.outbox4j.poller.Position;
import dev.outbox4j.poller.RowChange;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.internal.Jdbc;
import dev.outbox4j.postgres.internal.SqlFaults;
import dev.outbox4j.triggers.internal.Statements;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** The record of one poller, for a node; each method is one statement. Thread-safe. */
final class PollerStore {
  private static final int TIMEOUTS_IN_A_LEASE = 4;

  private final PostgresOutbox outbox;
  private final Jdbc jdbc;
  private final Statements statements;
  private final String name;
  private final String owner;
  private final Duration lease;
  private final HandlerSessions sessions;

  PollerStore(
      PostgresOutbox outbox, String application, String name, String owner, Duration lease) {
    this.outbox = outbox;
    Duration share = lease.dividedBy(TIMEOUTS_IN_A_LEASE);
    this.jdbc =
        new Jdbc(
            outbox.dataSource(),
            outbox.table(),
            share.compareTo(PostgresOutbox.DEFAULT_NETWORK_TIMEOUT) < 0
                ? share
                : PostgresOutbox.DEFAULT_NETWORK_TIMEOUT);
    this.statements = new Statements(outbox.table(), application);
    this.name = name;
    this.owner = owner;
    this.lease = lease;
    this.sessions = new HandlerSessions(outbox.table(), application, name);
  }

  /** Whether a name on record is this node's. */
  boolean isOwn(String node) {
    return owner.equals(node);
  }

  PostgresOutbox outbox() {
    return outbox;
  }

  Duration networkTimeout() {
    return jdbc.networkTimeout();
  }

  /** What ends a tick, or does not yet. */
  record Ending(boolean release, @Nullable Duration lag, String heldBack) {
    static Ending none(@Nullable Duration lag, String heldBack) {
      return new Ending(false, lag, heldBack);
    }
  }

  /** A move of the position by a batch. */
  record Move(long token, Position before, Position after, int rows, String firstCursor) {}

  /** Puts the poller on record, unless it is. */
  void register(Position start, boolean paused) {
    Map<String, Object> values = new HashMap<>(position("", start));
    values.put("name", name);
    values.put("paused", paused);
    values.put("node", owner);
    update("put a poller on record", PollerSql.REGISTER, values);
  }

  /** Tries to take the lease; empty if the poller is not on record. */
  Optional<StateRow> acquire() {
    return query("acquire a poller", PollerSql.ACQUIRE, values(), StateRow::read).stream()
        .findFirst();
  }

  /** Reads the state; empty if the poller is not on record. */
  Optional<StateRow> state() {
    return query("read a poller", PollerSql.STATE_OF, values(), StateRow::read).stream()
        .findFirst();
  }

  private Map<String, Object> values() {
    Map<String, Object> values = new HashMap<>();
    values.put("name", name);
    values.put("owner", owner);
    values.put("seconds", lease.toMillis() / 1e3);
    return values;
  }

  /** Returns whether the lease is still this node's. */
  boolean renew(long token) {
    return update("renew a poller", PollerSql.RENEW, with(values(), "token", token)) > 0;
  }

  /** Why a lease was lost, in words. */
  String whyLost(long token) {
    List<String> found =
        query(
            "read a poller",
            PollerSql.HOLDER,
            values(),
            row -> {
              String holder = row.getString(1);
              if (row.getLong(2) == token && owner.equals(holder)) {
                return "its position is not the one that was read";
              }
              return holder == null
                  ? "somebody took it, or it ended and was released by another node"
                  : "node " + holder + " took it, since it was over";
            });
    return found.isEmpty() ? "the poller is not on record any more" : found.get(0);
  }

  /** Returns whether it was noted. */
  boolean begin(long token, String fingerprint, Position start, @Nullable Position end) {
    Map<String, Object> values = with(values(), "token", token);
    values.putAll(position("", start));
    values.put("fingerprint", fingerprint);
    values.put("end_type", end == null ? "" : end.type().orElse(""));
    values.put("end_cursor", end == null ? "" : end.cursor().orElse(""));
    return update("begin a poller", PollerSql.BEGIN, values) > 0;
  }

  /** Returns whether the poller is paused; empty if nothing was moved. */
  Optional<Boolean> commit(Move move, Ending ending) {
    return jdbc
        .run(
            "move a poller",
            connection ->
                statements.queryAlone(
                    jdbc, connection, PollerSql.COMMIT, values(move, ending), PollerStore::paused))
        .stream()
        .findFirst();
  }

  /** As the other, as the last statement of a transaction. */
  Optional<Boolean> commit(Connection transaction, Move move, Ending ending) {
    try {
      return statements
          .query(transaction, PollerSql.COMMIT, values(move, ending), PollerStore::paused)
          .stream()
          .findFirst();
    } catch (SQLException e) {
      throw SqlFaults.explainRolledBack("move a poller", outbox.table(), e);
    }
  }

  private static Boolean paused(ResultSet row) throws SQLException {
    return row.getBoolean(1);
  }

  /** Moves the position behind a row and keeps that; empty if nothing was moved. */
  Optional<Boolean> quarantine(Move move, RowChange row, String error) {
    Map<String, Object> values = values(move);
    values.put("event_id", row.eventId());
    values.put("operation", row.operation().name());
    values.put("source", row.source());
    values.put("cursor_type", move.after().type().orElseThrow());
    values.put("cursor_text", move.after().cursor().orElseThrow());
    values.put("row_key", Json.object(row.key()));
    values.put("row_after", Json.object(row.after()));
    values.put("row_types", Json.object(QuarantineEntry.types(row)));
    values.put("error", error);
    return query("quarantine a row", PollerSql.QUARANTINE, values, PollerStore::paused).stream()
        .findFirst();
  }

  /** Counts rows in quarantine, up to a bound. */
  long quarantined(long most) {
    return query(
            "count a quarantine",
            PollerSql.QUARANTINED,
            with(values(), "most", most),
            row -> row.getLong(1))
        .get(0);
  }

  /** Returns whether the lease was still this node's. */
  boolean release(long token, @Nullable Duration lag, String heldBack) {
    Map<String, Object> values = with(values(), "token", token);
    values.putAll(ending(new Ending(true, lag, heldBack)));
    return update("release a poller", PollerSql.RELEASE, values) > 0;
  }

  /** Releases the lease, and says no more than how many attempts were made and not ended. */
  void handBack(long token, int attempts) {
    Map<String, Object> values = with(values(), "token", token);
    values.put("attempts", attempts);
    update("hand a poller back", PollerSql.HAND_BACK, values);
  }

  /** Ends what sessions of handlers have open by tokens before one; returns their processes. */
  List<Integer> endSessions(long before) {
    Map<String, Object> values = with(values(), "token", before);
    values.put("sessions", sessions.pattern());
    return query("end sessions of handlers", PollerSql.END_SESSIONS, values, row -> row.getInt(1));
  }

  /** What the session of a handler is called while it has the transaction. */
  String session(long token) {
    return sessions.name(token);
  }

  /** Returns whether the lease was still this node's. */
  boolean fail(
      long token,
      PollerFailure step,
      String error,
      boolean attempt,
      Duration wait,
      @Nullable Position failing,
      String heldBack) {
    Map<String, Object> values = with(values(), "token", token);
    values.put("failure", step.name());
    values.put("error", error);
    values.put("attempts", attempt ? 1 : 0);
    values.put("wait", seconds(wait));
    values.put("side", failing == null ? "" : failing.side().name());
    values.put("type", failing == null ? "" : failing.type().orElse(""));
    values.put("cursor", failing == null ? "" : failing.cursor().orElse(""));
    values.put("key", Json.array(failing == null ? List.of() : failing.key()));
    values.put("held_back", heldBack);
    return update("note a failure", PollerSql.FAIL, values) > 0;
  }

  /** Ends the poller for good. */
  void finish(long token) {
    update("finish a poller", PollerSql.FINISH, with(values(), "token", token));
  }

  /** A row that is to be handled again. */
  Optional<QuarantineEntry> redriven() {
    return query("read a quarantine", PollerSql.REDRIVEN, values(), QuarantineEntry::read).stream()
        .findFirst();
  }

  /** Returns whether the row left quarantine. */
  boolean redriveDone(long token, long id) {
    return update("end a quarantine", PollerSql.REDRIVE_DONE, redrive(token, id)) > 0;
  }

  /** As the other, as the last statement of a transaction. */
  boolean redriveDone(Connection transaction, long token, long id) {
    try {
      return statements.update(transaction, PollerSql.REDRIVE_DONE, redrive(token, id)) > 0;
    } catch (SQLException e) {
      throw SqlFaults.explainRolledBack("end a quarantine", outbox.table(), e);
    }
  }

  private Map<String, Object> redrive(long token, long id) {
    Map<String, Object> values = with(values(), "token", token);
    values.put("id", id);
    return values;
  }

  /** Puts a row back. */
  void redriveFailed(long id, String error) {
    Map<String, Object> values = with(values(), "id", id);
    values.put("error", error);
    update("keep a quarantine", PollerSql.REDRIVE_FAILED, values);
  }

  private Map<String, Object> values(Move move, Ending ending) {
    Map<String, Object> values = values(move);
    values.putAll(ending(ending));
    return values;
  }

  private Map<String, Object> values(Move move) {
    Map<String, Object> values = with(values(), "token", move.token());
    values.putAll(position("before_", move.before()));
    values.putAll(position("", move.after()));
    values.put("rows", (long) move.rows());
    values.put("first", move.firstCursor());
    return values;
  }

  private static Map<String, Object> ending(Ending ending) {
    Duration lag = ending.lag();
    return Map.of(
        "release",
        ending.release(),
        "lag",
        lag == null ? -1.0 : seconds(lag),
        "held_back",
        ending.heldBack());
  }

  /** The parts of a position, as parameters. */
  static Map<String, Object> position(String prefix, Position position) {
    return Map.of(
        prefix + "side",
        position.side().name(),
        prefix + "type",
        position.type().orElse(""),
        prefix + "cursor",
        position.cursor().orElse(""),
        prefix + "key",
        Json.array(position.key()));
  }

  /** A row may be older than nanoseconds in a long can tell. */
  private static double seconds(Duration duration) {
    return duration.getSeconds() + duration.getNano() / 1e9;
  }

  private static Map<String, Object> with(Map<String, Object> values, String key, Object value) {
    values.put(key, value);
    return values;
  }

  private <T> List<T> query(
      String operation,
      String template,
      Map<String, Object> values,
      Statements.RowReader<T> reader) {
    return jdbc.run(
        operation, connection -> statements.queryAlone(jdbc, connection, template, values, reader));
  }

  private int update(String operation, String template, Map<String, Object> values) {
    return jdbc.run(
        operation, connection -> statements.updateAlone(jdbc, connection, template, values));
  }
}
