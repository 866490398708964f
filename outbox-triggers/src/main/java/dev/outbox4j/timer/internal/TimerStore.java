package dev.outbox4j.timer.internal;

import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.internal.Jdbc;
import dev.outbox4j.postgres.internal.Results;
import dev.outbox4j.postgres.internal.ServerTime;
import dev.outbox4j.timer.OverlapPolicy;
import dev.outbox4j.timer.Timer;
import dev.outbox4j.timer.internal.TickWrites.Decided;
import dev.outbox4j.timer.internal.TickWrites.Written;
import dev.outbox4j.triggers.internal.Parameters;
import dev.outbox4j.triggers.internal.Statements;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
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
import java.util.function.IntPredicate;
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

  /** How long a timer of another schedule must be overdue for its nodes to be gone. */
  private static final Duration ABANDONED = Duration.ofMinutes(2);

  /** Until a schedule that failed is asked again. */
  private static final Duration FAILED_SCHEDULE = Duration.ofMinutes(1);

  /** The rows are locked meanwhile, and the server allows no longer pause. */
  private static final Duration LONGEST_PLANNING = Duration.ofSeconds(5);

  /** Of each timer, however many are due at once. */
  private static final int LEAST_INSTANTS = 100;

  private final Jdbc jdbc;
  private final Statements statements;
  private final TickWrites writes;
  private final InstantSource clock;
  private volatile Duration clockOffset = Duration.ZERO;

  /**
   * Creates a store; does no I/O.
   *
   * @param outbox where the timers and their messages are
   * @param application whose timers
   * @param queue where their messages are published
   * @param clock this process's clock, on which nothing depends; it is compared with the server's
   */
  public TimerStore(PostgresOutbox outbox, String application, String queue, InstantSource clock) {
    this.clock = clock;
    this.jdbc =
        new Jdbc(outbox.dataSource(), outbox.table(), PostgresOutbox.DEFAULT_NETWORK_TIMEOUT);
    this.statements = new Statements(outbox.table(), application);
    this.writes =
        new TickWrites(
            statements, PostgresOutbox.publisher(outbox.table()).build(), application, queue);
  }

  /**
   * What a tick did.
   *
   * @param timers how many timers it decided on
   * @param others timers that were due and are not this node's: it does not know them, or another
   *     schedule is on record
   * @param abandoned those of them that this node knows by another schedule, and that nobody takes
   *     care of
   * @param held timers that it left for the next one, as others hold rows of theirs
   * @param ended the runs that it has ended
   * @param again whether to look once more at once: what a run waits for may have ended meanwhile
   * @param untilNext how long until a timer is due, below zero if one was already; null if none is;
   *     zero if it could not decide on all it had taken
   */
  public record Tick(
      int timers,
      Set<String> others,
      Set<String> abandoned,
      Set<String> held,
      List<EndedRun> ended,
      boolean again,
      @Nullable Duration untilNext) {}

  /**
   * Puts timers on record, and what of their definitions has changed.
   *
   * @param timers the definitions
   * @param deployment what this node belongs to
   * @return the names of those that are held by others, and are to be tried again
   */
  public Set<String> register(Collection<Timer> timers, @Nullable String deployment) {
    List<Timer> sorted = timers.stream().sorted(Comparator.comparing(Timer::name)).toList();
    return jdbc.transaction(
        "registration of timers",
        connection -> {
          Instant now = begin(connection);
          insertMissing(connection, sorted, deployment, now);
          Map<String, Object> names = Parameters.of(sorted).texts("names", Timer::name).values();
          Map<String, TimerRow> onRecord =
              statements.query(connection, TimerSql.LOCK, names, TimerRow::read).stream()
                  .collect(Collectors.toMap(TimerRow::name, row -> row));
          List<TimerChange> changes = new ArrayList<>();
          for (Timer timer : sorted) {
            TimerRow row = onRecord.get(timer.name());
            if (row == null) {
              continue; // held by others, or removed meanwhile
            }
            TimerRecord after = row.record().registered(timer, deployment, now);
            Optional<Instant> due = due(timer, after, now);
            if (!after.equals(row.record()) || !due.equals(row.due())) {
              changes.add(new TimerChange(timer.name(), after, 0, due));
            }
          }
          statements.update(connection, TimerSql.UPDATE_TIMERS, TimerChange.values(changes));
          statements.update(connection, TimerSql.AWAIT_ANEW, described(sorted));
          return onRecord.size() == sorted.size() ? Set.of() : held(connection, sorted, onRecord);
        });
  }

  /**
   * Looks once more at what runs are noted as waiting for: nodes with an earlier definition may
   * have noted it, where by this one they begin at once.
   *
   * @param timers the definitions
   */
  public void awaitAnew(Collection<Timer> timers) {
    List<Timer> beside =
        timers.stream().filter(timer -> timer.overlap() == OverlapPolicy.ALLOW_ALL).toList();
    if (!beside.isEmpty()) {
      Map<String, Object> values = described(beside);
      jdbc.run(
          "look at runs that are awaited",
          connection -> statements.updateAlone(jdbc, connection, TimerSql.AWAIT_ANEW, values));
    }
  }

  private static Map<String, Object> described(List<Timer> timers) {
    return Parameters.of(timers)
        .texts("names", Timer::name)
        .texts("schedules", Instants::description)
        .values();
  }

  private Set<String> held(Connection connection, List<Timer> timers, Map<String, TimerRow> locked)
      throws SQLException {
    List<Timer> others =
        timers.stream().filter(timer -> !locked.containsKey(timer.name())).toList();
    return Set.copyOf(
        statements.query(
            connection,
            TimerSql.ON_RECORD,
            Parameters.of(others).texts("names", Timer::name).values(),
            row -> row.getString(1)));
  }

  private static Optional<Instant> due(Timer timer, TimerRecord record, Instant now) {
    try {
      return record.due(timer);
    } catch (RuntimeException e) {
      log.error("timer {}: its schedule fails, and it stands still; trying again", timer.name(), e);
      return Optional.of(now.plus(FAILED_SCHEDULE));
    }
  }

  private void insertMissing(
      Connection connection, List<Timer> timers, @Nullable String deployment, Instant now)
      throws SQLException {
    List<TimerChange> first = new ArrayList<>();
    for (Timer timer : timers) {
      TimerRecord record = TimerRecord.first(timer, deployment, now);
      first.add(new TimerChange(timer.name(), record, 0, due(timer, record, now)));
    }
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
    Instant before = clock.instant();
    Taken taken =
        statements.execute(
            connection,
            TimerSql.BEGIN_AND_TAKE,
            Map.of("others", others.toArray(String[]::new), "most", (long) most),
            results -> {
              Instant now = readNow(results, before);
              return new Taken(now, Statements.read(results.next().rows(), TimerRow::read));
            });
    Set<String> strange = new HashSet<>(others);
    Set<String> abandoned = new HashSet<>();
    List<TimerRow> own = new ArrayList<>();
    for (TimerRow row : taken.rows()) {
      Timer timer = timers.get(row.name());
      boolean same = timer != null && Instants.description(timer).equals(row.record().schedule());
      if (same) {
        own.add(row);
        continue;
      }
      strange.add(row.name());
      if (timer != null && row.isOverdue(taken.now().minus(ABANDONED))) {
        abandoned.add(row.name());
      }
    }
    if (own.isEmpty()) {
      Duration untilNext = untilNext(connection, strange);
      return new Tick(0, strange, abandoned, Set.of(), List.of(), false, untilNext);
    }
    List<Decided> planned = decide(connection, own, timers, taken.now());
    List<Decided> decided = writes.lock(connection, planned);
    Written written = writes.write(connection, decided, taken.now(), strange);
    boolean again = decided.stream().anyMatch(Decided::leavesWaiting);
    Duration untilNext = decided.size() < own.size() ? Duration.ZERO : written.untilNext();
    Set<String> held = names(planned);
    held.removeAll(names(decided));
    return new Tick(decided.size(), strange, abandoned, held, written.ended(), again, untilNext);
  }

  private static Set<String> names(List<Decided> decided) {
    return decided.stream()
        .map(each -> each.timer().name())
        .collect(Collectors.toCollection(HashSet::new));
  }

  private record Taken(Instant now, List<TimerRow> rows) {}

  private List<Decided> decide(
      Connection connection, List<TimerRow> rows, Map<String, Timer> timers, Instant now)
      throws SQLException {
    Map<String, Object> names = Parameters.of(rows).texts("names", TimerRow::name).values();
    Map<String, List<OpenRun>> open = openRuns(connection, names);
    Set<String> failing = pauseFailing(connection, rows, timers);
    int most = Math.max(LEAST_INSTANTS, TickPlanner.MOST_INSTANTS / rows.size());
    List<Decided> due = new ArrayList<>();
    long until = System.nanoTime() + LONGEST_PLANNING.toNanos();
    Instant waiting = now.minus(LONGEST_PLANNING.multipliedBy(2)); // before what the last tick left
    List<TimerRow> byDue =
        rows.stream().sorted(Comparator.comparing(row -> row.dueBy(now).orElse(waiting))).toList();
    for (TimerRow row : byDue) {
      if (System.nanoTime() - until > 0) {
        break; // schedules that are slow: the others come first next time
      }
      Timer timer = Objects.requireNonNull(timers.get(row.name()), "known");
      TimerRecord record =
          row.with(open.getOrDefault(row.name(), List.of()), failing.contains(row.name()));
      IntPredicate mayGoOn = // one at least, however slow its schedule is
          gone -> gone == 0 || (gone < most && System.nanoTime() - until < 0);
      due.add(new Decided(timer, record, plan(timer, record, now, mayGoOn)));
    }
    return due;
  }

  /** Ends those whose messages somebody has deleted, and returns the others by their timers. */
  private Map<String, List<OpenRun>> openRuns(Connection connection, Map<String, Object> names)
      throws SQLException {
    Map<String, List<OpenRun>> open = new HashMap<>();
    if (!readOpenRuns(connection, names, open)) {
      return open;
    }
    int ended = statements.update(connection, TimerSql.END_WITHOUT_MESSAGE, names);
    if (ended > 0) {
      log.error("{} runs of timers have ended as failed, since their messages are gone", ended);
    }
    open.clear();
    readOpenRuns(connection, names, open); // one that is locked is open until the next tick
    return open;
  }

  /** Returns whether the message of one is gone. */
  private boolean readOpenRuns(
      Connection connection, Map<String, Object> names, Map<String, List<OpenRun>> open)
      throws SQLException {
    return statements
        .query(
            connection,
            TimerSql.OPEN_RUNS,
            names,
            row -> {
              open.computeIfAbsent(row.getString(1), name -> new ArrayList<>())
                  .add(TimerRow.readRun(row));
              return row.getBoolean(7);
            })
        .contains(true);
  }

  /** One timer whose schedule fails is not to keep the others from being looked at. */
  private static TickPlan plan(Timer timer, TimerRecord record, Instant now, IntPredicate mayGoOn) {
    try {
      return TickPlanner.plan(timer, record, now, mayGoOn);
    } catch (RuntimeException e) {
      log.error("timer {}: its schedule fails, and it stands still; trying again", timer.name(), e);
      return TickPlanner.planWithoutInstants(timer, record, now, now.plus(FAILED_SCHEDULE));
    }
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
   * Deletes what timers that keep no state need not keep.
   *
   * @param timers the definitions
   * @param most how many runs at most
   * @return how many there were
   */
  public int forgetEnded(Collection<Timer> timers, int most) {
    List<Timer> withoutState = timers.stream().filter(timer -> !timer.keepsState()).toList();
    if (withoutState.isEmpty()) {
      return 0;
    }
    Map<String, Object> values = Parameters.of(withoutState).texts("names", Timer::name).values();
    values.put("most", (long) most);
    return jdbc.run(
        "forgetting of runs",
        connection -> statements.updateAlone(jdbc, connection, TimerSql.FORGET_ENDED, values));
  }

  /**
   * Returns which of some runs are to stop: they were asked to, or have ended.
   *
   * @param running the keys of the runs
   * @return some of them, and whether they have ended
   */
  public Map<Long, Boolean> cancelled(Set<Long> running) {
    if (running.isEmpty()) {
      return Map.of();
    }
    return jdbc
        .run(
            "look for cancelled runs",
            connection ->
                statements.query(
                    connection,
                    TimerSql.CANCELLED,
                    Map.of("ids", running.stream().mapToLong(Long::longValue).toArray()),
                    row -> Map.entry(row.getLong(1), row.getBoolean(2))))
        .stream()
        .collect(Collectors.toMap(Map.Entry::getKey, Map.Entry::getValue));
  }

  private Instant begin(Connection connection) throws SQLException {
    Instant before = clock.instant();
    return statements.execute(
        connection, TimerSql.BEGIN, Map.of(), results -> readNow(results, before));
  }

  /** Returns the server's clock, and compares ours with it. */
  private Instant readNow(Results results, Instant before) throws SQLException {
    Instant now;
    try (ResultSet row = results.next().rows()) {
      row.next();
      now = ServerTime.read(row, 1);
    }
    Duration answer = Duration.between(before, clock.instant());
    clockOffset = Duration.between(now, before.plus(answer.dividedBy(2)));
    return now;
  }

  /** {@return by how much this process's clock was ahead of the server's at the last look} */
  public Duration clockOffset() {
    return clockOffset;
  }

  private @Nullable Duration untilNext(Connection connection, Set<String> others)
      throws SQLException {
    return statements
        .query(
            connection,
            TimerSql.UNTIL_NEXT,
            Map.of("others", others.toArray(String[]::new)),
            row -> Optional.ofNullable(TimerRow.untilNext(row)))
        .get(0)
        .orElse(null);
  }
}
