package dev.outbox4j.timer.internal;

import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.internal.Jdbc;
import dev.outbox4j.postgres.internal.ServerTime;
import dev.outbox4j.timer.OverlapPolicy;
import dev.outbox4j.timer.Timer;
import dev.outbox4j.timer.internal.TickWrites.Decided;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The record of an application's timers. Each method is one transaction; who holds a timer's row
 * decides on it, so any number of processes may call any of them at once. Thread-safe.
 */
public final class TimerStore {
  private static final Logger log = LoggerFactory.getLogger(TimerStore.class);

  /** The header of a message that names its run. */
  static final String RUN_HEADER = "timer-run";

  private final Jdbc jdbc;
  private final TimerStatements statements;
  private final TickWrites writes;

  /**
   * Creates a store; does no I/O.
   *
   * @param outbox where the timers and their messages are
   * @param application whose timers
   * @param queue where their messages are published
   */
  public TimerStore(PostgresOutbox outbox, String application, String queue) {
    this.jdbc =
        new Jdbc(outbox.dataSource(), outbox.table(), PostgresOutbox.DEFAULT_NETWORK_TIMEOUT);
    this.statements = new TimerStatements(outbox.table(), application);
    this.writes =
        new TickWrites(statements, PostgresOutbox.publisher(outbox.table()).build(), queue);
  }

  /**
   * What a tick did.
   *
   * @param timers how many timers it decided on
   * @param others timers that were due and are not this node's: it does not know them, or another
   *     schedule is on record
   * @param untilNext how long until a timer is due, below zero if one was already; null if none is
   */
  public record Tick(int timers, Set<String> others, @Nullable Duration untilNext) {}

  /**
   * Puts timers on record, and what of their definitions has changed.
   *
   * @param timers the definitions
   * @param deployment what this node belongs to
   */
  public void register(Collection<Timer> timers, @Nullable String deployment) {
    List<Timer> sorted = timers.stream().sorted(Comparator.comparing(Timer::name)).toList();
    jdbc.transaction(
        "registration of timers",
        connection -> {
          Instant now = begin(connection);
          insertMissing(connection, sorted, deployment, now);
          Map<String, TimerRow> onRecord =
              statements
                  .query(
                      connection,
                      TimerSql.LOCK,
                      Parameters.of(sorted).texts("names", Timer::name).values(),
                      TimerRow::read)
                  .stream()
                  .collect(Collectors.toMap(TimerRow::name, row -> row));
          List<TimerChange> changes = new ArrayList<>();
          for (Timer timer : sorted) {
            TimerRow row = onRecord.get(timer.name());
            if (row == null) {
              continue; // removed meanwhile
            }
            TimerRecord after = row.record().registered(timer, deployment, now);
            if (!after.equals(row.record())) {
              changes.add(new TimerChange(timer.name(), after, 0, after.due(timer)));
            }
          }
          statements.update(connection, TimerSql.UPDATE_TIMERS, TimerChange.values(changes));
          return now;
        });
  }

  private void insertMissing(
      Connection connection, List<Timer> timers, @Nullable String deployment, Instant now)
      throws SQLException {
    List<TimerChange> first =
        timers.stream()
            .map(
                timer -> {
                  TimerRecord record = TimerRecord.first(timer, deployment, now);
                  return new TimerChange(timer.name(), record, 0, record.due(timer));
                })
            .toList();
    statements.update(connection, TimerSql.INSERT_MISSING, TimerChange.values(first));
  }

  /**
   * Decides on timers that are due, and publishes what follows from it.
   *
   * @param timers those that this node knows, by name
   * @param others those that are not this node's, as an earlier tick found out
   * @param most how many timers at most
   * @return what it did
   */
  public Tick tick(Map<String, Timer> timers, Set<String> others, int most) {
    return jdbc.transaction("tick of timers", connection -> tick(connection, timers, others, most));
  }

  private Tick tick(Connection connection, Map<String, Timer> timers, Set<String> others, int most)
      throws SQLException {
    Instant now = begin(connection);
    String[] left = others.toArray(String[]::new);
    List<TimerRow> rows =
        statements.query(
            connection,
            TimerSql.TAKE,
            Map.of("others", left, "most", (long) most, "beside", beside(timers)),
            TimerRow::read);
    Set<String> strange = new HashSet<>(others);
    List<TimerRow> own = new ArrayList<>();
    for (TimerRow row : rows) {
      Timer timer = timers.get(row.name());
      boolean same =
          timer != null && timer.schedule().description().equals(row.record().schedule());
      if (same) {
        own.add(row);
      } else {
        strange.add(row.name());
      }
    }
    if (!own.isEmpty()) {
      writes.write(connection, decide(connection, own, timers, now), now);
    }
    return new Tick(own.size(), strange, untilNext(connection, strange));
  }

  private static String[] beside(Map<String, Timer> timers) {
    return timers.values().stream()
        .filter(timer -> timer.overlap() == OverlapPolicy.ALLOW_ALL)
        .map(Timer::name)
        .toArray(String[]::new);
  }

  private List<Decided> decide(
      Connection connection, List<TimerRow> rows, Map<String, Timer> timers, Instant now)
      throws SQLException {
    Map<String, List<OpenRun>> open = new HashMap<>();
    Map<String, Object> names = Parameters.of(rows).texts("names", TimerRow::name).values();
    int lost = statements.update(connection, TimerSql.END_WITHOUT_MESSAGE, names);
    if (lost > 0) {
      log.error("{} runs of timers have ended as failed, since their messages are gone", lost);
    }
    statements.query(
        connection,
        TimerSql.OPEN_RUNS,
        names,
        row ->
            open.computeIfAbsent(row.getString(1), name -> new ArrayList<>())
                .add(TimerRow.readRun(row)));
    Set<String> failing = pauseFailing(connection, rows, timers);
    List<Decided> due = new ArrayList<>();
    for (TimerRow row : rows) {
      Timer timer = Objects.requireNonNull(timers.get(row.name()), "known");
      TimerRecord record =
          row.with(open.getOrDefault(row.name(), List.of()), failing.contains(row.name()));
      due.add(new Decided(timer, record, TickPlanner.plan(timer, record, now)));
    }
    return due;
  }

  /** Pauses timers whose latest runs have all failed, if they want that. */
  private Set<String> pauseFailing(
      Connection connection, List<TimerRow> rows, Map<String, Timer> timers) throws SQLException {
    List<Timer> asked =
        rows.stream()
            .filter(row -> !row.record().paused())
            .map(row -> Objects.requireNonNull(timers.get(row.name()), "known"))
            .filter(timer -> timer.pauseAfterFailures().isPresent())
            .toList();
    if (asked.isEmpty()) {
      return Set.of();
    }
    Set<String> failing =
        new HashSet<>(
            statements.query(
                connection,
                TimerSql.FAILING,
                Parameters.of(asked)
                    .texts("names", Timer::name)
                    .numbers("failures", timer -> timer.pauseAfterFailures().orElseThrow())
                    .values(),
                row -> row.getString(1)));
    if (!failing.isEmpty()) {
      log.error("timers {}: paused, since their latest runs have all failed", failing);
      statements.update(
          connection,
          TimerSql.PAUSE,
          Map.of(
              "names",
              failing.toArray(String[]::new),
              "by",
              "outbox4j",
              "reason",
              "its latest runs have all failed"));
    }
    return failing;
  }

  /**
   * Returns which of some runs are to stop: they were asked to, or have ended.
   *
   * @param running the keys of the runs
   * @return some of them
   */
  public List<Long> cancelled(Set<Long> running) {
    if (running.isEmpty()) {
      return List.of();
    }
    return jdbc.run(
        "look for cancelled runs",
        connection ->
            statements.query(
                connection,
                TimerSql.CANCELLED,
                Map.of("ids", running.stream().mapToLong(Long::longValue).toArray()),
                row -> row.getLong(1)));
  }

  /** Returns the server's clock. */
  private Instant begin(Connection connection) throws SQLException {
    return statements
        .query(connection, TimerSql.BEGIN, Map.of(), row -> ServerTime.read(row, 1))
        .get(0);
  }

  private @Nullable Duration untilNext(Connection connection, Set<String> others)
      throws SQLException {
    return statements
        .query(
            connection,
            TimerSql.UNTIL_NEXT,
            Map.of("others", others.toArray(String[]::new)),
            TimerStore::seconds)
        .get(0)
        .orElse(null);
  }

  private static Optional<Duration> seconds(ResultSet row) throws SQLException {
    double seconds = row.getDouble(1);
    return row.wasNull() ? Optional.empty() : Optional.of(Duration.ofNanos((long) (seconds * 1e9)));
  }
}
