package dev.outbox4j.poller.internal;

import dev.outbox4j.poller.Audit;
import dev.outbox4j.poller.PollerChange;
import dev.outbox4j.poller.PollerStatus;
import dev.outbox4j.poller.PollerVerb;
import dev.outbox4j.poller.Position;
import dev.outbox4j.poller.QuarantinedRow;
import dev.outbox4j.poller.RowOperation;
import dev.outbox4j.poller.StaleVersionException;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.internal.Jdbc;
import dev.outbox4j.postgres.internal.ServerTime;
import dev.outbox4j.triggers.internal.Statements;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Instant;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import org.jspecify.annotations.Nullable;

/** The record of pollers, for people. Thread-safe. */
public final class ControlStore {
  private static final long KEPT_CHANGES = 1_000;

  private final Jdbc jdbc;
  private final Statements statements;

  /**
   * Creates a store; does no I/O.
   *
   * @param outbox where the pollers are
   * @param application whose pollers
   */
  public ControlStore(PostgresOutbox outbox, String application) {
    this.jdbc =
        new Jdbc(outbox.dataSource(), outbox.table(), PostgresOutbox.DEFAULT_NETWORK_TIMEOUT);
    this.statements = new Statements(outbox.table(), application);
  }

  /** {@return the pollers on record, by their names} */
  public List<PollerStatus> pollers() {
    return query("list pollers", PollerSql.STATUS, Map.of("name", ""), ControlStore::status);
  }

  /** {@return one poller} */
  public Optional<PollerStatus> status(String poller) {
    return query("read a poller", PollerSql.STATUS, Map.of("name", poller), ControlStore::status)
        .stream()
        .filter(found -> found.name().equals(poller)) // no name is all
        .findFirst();
  }

  /** {@return whether it was paused by this} */
  public boolean pause(String poller, Audit audit) {
    Map<String, Object> values = Map.of("by", audit.by(), "reason", audit.reason());
    return change(
            poller, PollerVerb.PAUSE, audit, row -> row.paused() ? null : PollerSql.PAUSE, values)
        > 0;
  }

  /** {@return whether it was resumed by this} */
  public boolean resume(String poller, Audit audit) {
    return change(
            poller,
            PollerVerb.RESUME,
            audit,
            row -> row.paused() ? PollerSql.RESUME : null,
            Map.of())
        > 0;
  }

  /** {@return the new version} */
  public long set(String poller, Position position, Audit audit) {
    return change(
        poller, PollerVerb.SET, audit, row -> PollerSql.SET, PollerStore.position("", position));
  }

  /** {@return the new version} */
  public long reset(String poller, Audit audit) {
    return change(poller, PollerVerb.RESET, audit, row -> PollerSql.RESET, Map.of());
  }

  /** {@return the new version} */
  public long adopt(String poller, Audit audit) {
    return change(poller, PollerVerb.ADOPT, audit, row -> PollerSql.ADOPT, Map.of());
  }

  /** {@return the new version} */
  public long skip(String poller, Audit audit) {
    return jdbc.transaction(
        "skip a batch",
        connection -> {
          Locked row = lock(connection, poller, audit);
          if (row.failingSide().isEmpty()) {
            throw new IllegalStateException(
                "no batch of poller '%s' fails; there is nothing to skip".formatted(poller));
          }
          Map<String, Object> values = new HashMap<>();
          values.put("side", row.failingSide());
          values.put("type", row.failingType());
          values.put("cursor", row.failingCursor());
          values.put("key", Json.array(row.failingKey()));
          return write(connection, poller, PollerVerb.SKIP, audit, row, PollerSql.SET, values);
        });
  }

  /** {@return whether an attempt was waited for} */
  public boolean retry(String poller, Audit audit) {
    return change(
            poller,
            PollerVerb.RETRY,
            audit,
            row -> row.waiting() ? PollerSql.RETRY : null,
            Map.of())
        > 0;
  }

  /** {@return rows in quarantine} */
  public List<QuarantinedRow> quarantine(String poller, int most) {
    return query(
        "list a quarantine",
        PollerSql.LIST_QUARANTINE,
        Map.of("name", poller, "most", (long) most),
        row ->
            new QuarantinedRow(
                row.getLong(1),
                row.getString(2),
                RowOperation.valueOf(row.getString(3)),
                row.getString(4),
                row.getString(5),
                row.getString(6),
                row.getString(7),
                row.getInt(8),
                ServerTime.read(row, 9),
                ServerTime.read(row, 10),
                row.getBoolean(11)));
  }

  /** {@return whether it is to be handled again by this} */
  public boolean redrive(String poller, long id, Audit audit) {
    return ofRow(poller, id, PollerVerb.REDRIVE, PollerSql.REDRIVE, audit);
  }

  /** {@return whether it was deleted by this} */
  public boolean discard(String poller, long id, Audit audit) {
    return ofRow(poller, id, PollerVerb.DISCARD, PollerSql.DISCARD, audit);
  }

  private boolean ofRow(String poller, long id, PollerVerb verb, String sql, Audit audit) {
    return jdbc.transaction(
        "change a quarantine",
        connection -> {
          Locked row = lock(connection, poller, audit);
          if (statements.update(connection, sql, Map.of("name", poller, "id", id)) == 0) {
            return false;
          }
          return write(connection, poller, verb, audit, row, PollerSql.TOUCH, Map.of()) > 0;
        });
  }

  /** {@return what was done to it, the latest first} */
  public List<PollerChange> history(String poller, int most) {
    return query(
        "read the history of a poller",
        PollerSql.HISTORY,
        Map.of("name", poller, "most", (long) most),
        row ->
            new PollerChange(
                ServerTime.read(row, 1),
                PollerVerb.valueOf(row.getString(2)),
                row.getString(3),
                row.getString(4),
                row.getLong(5),
                row.getLong(6),
                StateRow.Stored.read(row, 7).positionOrBeginning(),
                StateRow.Stored.read(row, 11).positionOrBeginning()));
  }

  /** {@return whether it was there} */
  public boolean remove(String poller) {
    Map<String, Object> name = Map.of("name", poller);
    return jdbc.transaction(
        "remove a poller",
        connection -> {
          statements.update(connection, PollerSql.READ_COMMITTED, Map.of());
          boolean found = statements.update(connection, PollerSql.REMOVE, name) > 0;
          statements.update(connection, PollerSql.REMOVE_QUARANTINE, name);
          statements.update(connection, PollerSql.REMOVE_HISTORY, name);
          return found;
        });
  }

  /** What a verb sees of a poller. */
  private record Locked(
      long version,
      StateRow.Stored position,
      boolean paused,
      boolean waiting,
      String failingSide,
      String failingType,
      String failingCursor,
      List<String> failingKey) {}

  private interface Choice {
    /** Returns the statement that changes the poller; null for none. */
    @Nullable String of(Locked row);
  }

  /** Returns the new version; 0 if there was nothing to change. */
  private long change(
      String poller, PollerVerb verb, Audit audit, Choice choice, Map<String, Object> values) {
    return jdbc.transaction(
        "change a poller",
        connection -> {
          Locked row = lock(connection, poller, audit);
          String sql = choice.of(row);
          return sql == null ? 0L : write(connection, poller, verb, audit, row, sql, values);
        });
  }

  /** Keeps the poller's row from here on; a node that writes it waits for that. */
  private Locked lock(Connection connection, String poller, Audit audit) throws SQLException {
    statements.update(connection, PollerSql.READ_COMMITTED, Map.of());
    List<Locked> rows =
        statements.query(
            connection,
            PollerSql.LOCK,
            Map.of("name", poller),
            row ->
                new Locked(
                    row.getLong(1),
                    StateRow.Stored.read(row, 2),
                    row.getBoolean(6),
                    row.getBoolean(7),
                    row.getString(8),
                    row.getString(11),
                    row.getString(9),
                    StateRow.texts(row.getArray(10))));
    if (rows.isEmpty()) {
      throw new IllegalArgumentException(
          "there is no poller '%s' on record; start a node that has it, or correct the name"
              .formatted(poller));
    }
    Locked row = rows.get(0);
    if (audit.expectedVersion().isPresent()
        && audit.expectedVersion().getAsLong() != row.version()) {
      throw new StaleVersionException(poller, audit.expectedVersion().getAsLong(), row.version());
    }
    return row;
  }

  private long write(
      Connection connection,
      String poller,
      PollerVerb verb,
      Audit audit,
      Locked row,
      String sql,
      Map<String, Object> values)
      throws SQLException {
    Map<String, Object> all = new HashMap<>(values);
    all.put("name", poller);
    statements.update(connection, sql, all);
    Map<String, Object> note = new HashMap<>();
    note.put("name", poller);
    note.put("verb", verb.name());
    note.put("by", audit.by());
    note.put("reason", audit.reason());
    note.put("before_side", row.position().side());
    note.put("before_type", row.position().type());
    note.put("before_cursor", row.position().cursor());
    note.put("before_key", Json.array(row.position().key()));
    statements.update(connection, PollerSql.NOTE, note);
    statements.update(
        connection, PollerSql.FORGET_OLD, Map.of("name", poller, "kept", KEPT_CHANGES));
    return row.version() + 1;
  }

  private <T> List<T> query(
      String operation,
      String template,
      Map<String, Object> values,
      Statements.RowReader<T> reader) {
    return jdbc.run(
        operation, connection -> statements.queryAlone(jdbc, connection, template, values, reader));
  }

  private static PollerStatus status(ResultSet row) throws SQLException {
    StateRow.Stored stored = StateRow.Stored.read(row, 4);
    Position position = stored.positionOrBeginning();
    String failingSide = row.getString(20);
    String endType = row.getString(30);
    String endCursor = row.getString(31);
    Optional<Position> end =
        endType.isEmpty()
            ? Optional.empty()
            : Optional.of(Position.of(Position.Side.AFTER, endType, endCursor, List.of()));
    Optional<Instant> finished = instant(row, 32);
    return new PollerStatus(
        row.getString(1),
        row.getLong(2),
        StateRow.parts(row, 35),
        position,
        instant(row, 8),
        Optional.ofNullable(row.getString(9)),
        row.getString(9) == null ? Optional.empty() : instant(row, 10),
        row.getLong(11),
        pause(row),
        instant(row, 15),
        StateRow.failure(row.getString(16)),
        Optional.ofNullable(row.getString(17)),
        row.getInt(18),
        instant(row, 19),
        failingSide.isEmpty()
            ? Optional.empty()
            : Optional.of(
                new StateRow.Stored(
                        failingSide,
                        row.getString(37),
                        row.getString(21),
                        StateRow.texts(row.getArray(22)))
                    .positionOrBeginning()),
        instant(row, 23),
        instant(row, 24),
        StateRow.age(row, 25),
        Optional.ofNullable(row.getString(26)),
        row.getLong(27),
        row.getLong(28),
        row.getLong(29),
        end,
        finished,
        finished.isPresent()
            ? OptionalDouble.of(1)
            : progress(row.getString(33), stored, endType, endCursor),
        ServerTime.read(row, 34));
  }

  private static OptionalDouble progress(
      String first, StateRow.Stored at, String endType, String endCursor) {
    if (endType.isEmpty() || first.isEmpty() || at.type().isEmpty()) {
      return OptionalDouble.empty();
    }
    Double share = CursorType.named(endType).progress(first, at.cursor(), endCursor);
    return share == null ? OptionalDouble.empty() : OptionalDouble.of(share);
  }

  private static Optional<PollerStatus.Pause> pause(ResultSet row) throws SQLException {
    Instant at = ServerTime.readNullable(row, 12);
    return at == null
        ? Optional.empty()
        : Optional.of(new PollerStatus.Pause(at, row.getString(13), row.getString(14)));
  }

  private static Optional<Instant> instant(ResultSet row, int column) throws SQLException {
    return Optional.ofNullable(ServerTime.readNullable(row, column));
  }
}
