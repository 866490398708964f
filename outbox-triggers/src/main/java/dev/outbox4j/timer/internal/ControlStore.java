package dev.outbox4j.timer.internal;

import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.internal.Jdbc;
import dev.outbox4j.postgres.internal.ServerTime;
import dev.outbox4j.timer.RecordedRun;
import dev.outbox4j.timer.RunStatus;
import dev.outbox4j.timer.Timer;
import dev.outbox4j.timer.TimerAlert;
import dev.outbox4j.timer.TimerStatus;
import dev.outbox4j.triggers.internal.Parameters;
import dev.outbox4j.triggers.internal.Statements;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** The record of timers, for people. Thread-safe. */
public final class ControlStore {
  private static final String LOCK_NOT_AVAILABLE = "55P03";

  /** Each try waits for a lock for 100 ms. */
  private static final Duration PATIENCE = Duration.ofSeconds(5);

  private final Jdbc jdbc;
  private final Statements statements;

  /**
   * Creates a store; does no I/O.
   *
   * @param outbox where the timers are
   * @param application whose timers
   */
  public ControlStore(PostgresOutbox outbox, String application) {
    this.jdbc =
        new Jdbc(outbox.dataSource(), outbox.table(), PostgresOutbox.DEFAULT_NETWORK_TIMEOUT);
    this.statements = new Statements(outbox.table(), application);
  }

  /** {@return the timers on record, by their names} */
  public List<TimerStatus> timers() {
    return query("list timers", TimerSql.STATUS, Map.of(), ControlStore::status);
  }

  /** {@return what somebody is to look at} */
  public List<TimerAlert> alerts(Collection<Timer> timers) {
    return alerts(timers, timers());
  }

  /** {@return what somebody is to look at, by what was read} */
  List<TimerAlert> alerts(Collection<Timer> timers, List<TimerStatus> onRecord) {
    Instant now = onRecord.isEmpty() ? now() : onRecord.get(0).asOf();
    return Alerts.of(timers, onRecord, now);
  }

  /** {@return the next instants by the server's clock} */
  public List<Instant> next(Timer timer, int most) {
    return Instants.next(timer, now(), most);
  }

  private Instant now() {
    return query("read the clock", TimerSql.NOW, Map.of(), row -> ServerTime.read(row, 1)).get(0);
  }

  /** {@return the latest runs of a timer} */
  public List<RecordedRun> history(String timer, int most) {
    return query(
        "list runs",
        TimerSql.HISTORY,
        Map.of("name", timer, "most", (long) most),
        ControlStore::run);
  }

  /** {@return whether it was paused by this} */
  public boolean pause(String timer, String by, String reason) {
    Map<String, Object> values = Map.of("names", new String[] {timer}, "by", by, "reason", reason);
    return patiently(() -> update("pause a timer", TimerSql.PAUSE, values)) > 0;
  }

  /** {@return whether it was resumed by this} */
  public boolean resume(String timer) {
    Map<String, Object> values = Map.of("name", timer);
    return !patiently(() -> query("resume a timer", TimerSql.RESUME, values, row -> true))
        .isEmpty();
  }

  /** A tick may have the timer's row; whoever asks does not know, and waits. */
  private static <T> T patiently(Supplier<T> work) {
    long until = System.nanoTime() + PATIENCE.toNanos();
    while (true) {
      try {
        return work.get();
      } catch (OutboxStoreException e) {
        boolean isLocked = e.sqlState().filter(LOCK_NOT_AVAILABLE::equals).isPresent();
        if (!isLocked || System.nanoTime() - until > 0) {
          throw e;
        }
      }
    }
  }

  /** {@return whether a run was made} */
  public boolean trigger(String timer, String request) {
    requireOnRecord(timer);
    return !query(
            "trigger a timer",
            TimerSql.TRIGGER,
            Map.of("name", timer, "request", request),
            row -> true)
        .isEmpty();
  }

  /** {@return how many runs were made} */
  public int backfill(Timer timer, Instant from, Instant to, String request, int most) {
    Instant now = requireOnRecord(timer.name());
    if (to.isBefore(from) || to.isAfter(now)) {
      throw new IllegalArgumentException(
          "the time from %s to %s ends before it begins, or is not over; name a time that is over"
              .formatted(from, to));
    }
    List<Instant> instants = new ArrayList<>();
    Optional<Instant> next = Instants.next(timer, from.minusNanos(1));
    while (next.isPresent() && !next.get().isAfter(to)) {
      instants.add(next.get());
      if (instants.size() > most) {
        throw new IllegalArgumentException(
            "the time from %s to %s has more than %d instants; ask for parts of it"
                .formatted(from, to, most));
      }
      next = Instants.next(timer, next.get());
    }
    Map<String, Object> values =
        Parameters.of(instants).instants("instants", instant -> instant).values();
    values.put("name", timer.name());
    values.put("request", request);
    return query("backfill a timer", TimerSql.BACKFILL, values, row -> true).size();
  }

  private Instant requireOnRecord(String timer) {
    return query(
            "look for a timer",
            TimerSql.EXISTS,
            Map.of("name", timer),
            row -> ServerTime.read(row, 1))
        .stream()
        .findFirst()
        .orElseThrow(
            () ->
                new IllegalArgumentException(
                    "there is no timer '%s' on record; start a node that has it, or correct the name"
                        .formatted(timer)));
  }

  /** {@return whether it was there} */
  public boolean remove(String timer) {
    Map<String, Object> name = Map.of("name", timer);
    return jdbc.transaction("remove a timer", connection -> remove(connection, name));
  }

  private boolean remove(Connection connection, Map<String, Object> name) throws SQLException {
    statements.update(connection, TimerSql.READ_COMMITTED, Map.of());
    statements.query(connection, TimerSql.LOCK_TO_REMOVE, name, row -> true);
    statements.update(connection, TimerSql.REMOVE_MESSAGES, name);
    statements.update(connection, TimerSql.REMOVE_RUNS, name);
    return statements.update(connection, TimerSql.REMOVE_TIMER, name) > 0;
  }

  /** {@return how many runs were deleted} */
  public int purge(Instant before, int most) {
    return update(
        "purge runs", TimerSql.PURGE, Map.of("before", before.toString(), "most", (long) most));
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

  private static RecordedRun run(ResultSet row) throws SQLException {
    String request = row.getString(4);
    return new RecordedRun(
        row.getLong(1),
        ServerTime.read(row, 2),
        TimerRow.cause(row.getString(3)),
        request.isEmpty() ? Optional.empty() : Optional.of(request),
        RunStatus.valueOf(row.getString(5).toUpperCase(Locale.ROOT)),
        instant(row, 6),
        row.getLong(7),
        row.getInt(8),
        row.getLong(13),
        ServerTime.read(row, 9),
        instant(row, 10),
        instant(row, 14),
        instant(row, 11),
        Optional.ofNullable(row.getString(12)));
  }

  private static TimerStatus status(ResultSet row) throws SQLException {
    Instant registered = ServerTime.read(row, 3);
    Optional<Instant> due = instant(row, 4);
    Optional<Instant> lastSuccess = instant(row, 11);
    Instant now = ServerTime.read(row, 12);
    return new TimerStatus(
        row.getString(1),
        row.getString(2),
        registered,
        due,
        due.map(instant -> since(instant, now)).orElse(Duration.ZERO),
        Optional.ofNullable(pause(row)),
        row.getLong(8),
        row.getLong(9),
        row.getLong(10),
        Optional.ofNullable(started(row)),
        lastSuccess,
        since(lastSuccess.orElse(registered), now),
        instant(row, 13),
        ServerTime.read(row, 14),
        row.getLong(15) == 0 ? OptionalLong.empty() : OptionalLong.of(row.getLong(16)),
        now);
  }

  private static TimerStatus.@Nullable Started started(ResultSet row) throws SQLException {
    Instant at = ServerTime.readNullable(row, 19);
    return at == null
        ? null
        : new TimerStatus.Started(row.getLong(17), ServerTime.read(row, 18), at);
  }

  private static TimerStatus.@Nullable Pause pause(ResultSet row) throws SQLException {
    Instant since = ServerTime.readNullable(row, 5);
    return since == null ? null : new TimerStatus.Pause(since, row.getString(6), row.getString(7));
  }

  private static Duration since(Instant then, Instant now) {
    return then.isAfter(now) ? Duration.ZERO : Duration.between(then, now);
  }

  private static Optional<Instant> instant(ResultSet row, int column) throws SQLException {
    return Optional.ofNullable(ServerTime.readNullable(row, column));
  }
}
