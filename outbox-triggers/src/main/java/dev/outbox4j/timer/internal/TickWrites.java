package dev.outbox4j.timer.internal;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.postgres.OutboxPublisher;
import dev.outbox4j.postgres.internal.Results;
import dev.outbox4j.timer.Cause;
import dev.outbox4j.timer.OverlapPolicy;
import dev.outbox4j.timer.RunStatus;
import dev.outbox4j.timer.Timer;
import dev.outbox4j.timer.internal.PlannedRun.Fate;
import dev.outbox4j.triggers.internal.Parameters;
import dev.outbox4j.triggers.internal.Statements;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Function;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Writes what a tick has decided, in its transaction. Rows of the outbox come first: who acks a
 * message locks it before its run.
 */
final class TickWrites {
  private static final Logger log = LoggerFactory.getLogger(TickWrites.class);

  /** No message. */
  private static final long NONE = 0;

  private final Statements statements;
  private final OutboxPublisher publisher;
  private final String application;
  private final String queue;

  TickWrites(Statements statements, OutboxPublisher publisher, String application, String queue) {
    this.statements = statements;
    this.publisher = publisher;
    this.application = application;
    this.queue = queue;
  }

  /**
   * A timer that was decided on.
   *
   * @param timer its definition
   * @param record what was on record
   * @param plan what is to be done
   */
  record Decided(Timer timer, TimerRecord record, TickPlan plan) {
    boolean leavesWaiting() {
      long before = record.open().stream().filter(run -> !run.begun()).count();
      return before > plan.runs().begun().size() + plan.runs().skipped().size() || addsWaiting();
    }

    boolean addsWaiting() {
      return plan.runs().added().stream().anyMatch(run -> run.fate() == Fate.WAITS);
    }

    TimerChange change() {
      return TimerChange.by(timer.name(), record, plan);
    }

    private Stream<Long> changed() {
      TickPlan.Runs runs = plan.runs();
      return Stream.of(runs.begun(), runs.skipped(), runs.cancelled(), runs.terminated())
          .flatMap(List::stream);
    }
  }

  private record Added(Timer timer, PlannedRun run, @Nullable String deployment) {
    RunKey key() {
      return new RunKey(run.instant(), run.cause(), request());
    }

    /** A deployment has one run, whatever nodes of others start in between. */
    private String request() {
      return run.cause() == Cause.STARTUP && deployment != null ? deployment : "";
    }

    boolean begins() {
      return run.fate() == Fate.BEGINS;
    }
  }

  private record Waited(Timer timer, OpenRun run) {}

  /**
   * What was written.
   *
   * @param ended the runs that have ended by it
   * @param untilNext how long until the next timer is due, below zero if one was already; null if
   *     none is
   */
  record Written(List<EndedRun> ended, @Nullable Duration untilNext) {}

  /**
   * Locks the runs that are to begin, to be told or to end, and leaves out the timers of which
   * another session holds one: the next tick looks at these anew.
   */
  List<Decided> lock(Connection connection, List<Decided> decided) throws SQLException {
    Set<Long> locked = new HashSet<>();
    long[] terminated = ids(decided, TickPlan.Runs::terminated);
    long[] others =
        ids(
            decided,
            runs ->
                Stream.of(runs.begun(), runs.skipped(), runs.cancelled())
                    .flatMap(List::stream)
                    .toList());
    locked.addAll(lock(connection, TimerSql.LOCK_WITH_MESSAGES, terminated));
    locked.addAll(lock(connection, TimerSql.LOCK_RUNS, others));
    return decided.stream().filter(each -> each.changed().allMatch(locked::contains)).toList();
  }

  private List<Long> lock(Connection connection, String template, long[] ids) throws SQLException {
    return ids.length == 0
        ? List.of()
        : statements.query(connection, template, Map.of("ids", ids), row -> row.getLong(1));
  }

  /** Writes it. */
  Written write(Connection connection, List<Decided> decided, Instant now, Set<String> others)
      throws SQLException {
    List<EndedRun> ended = new ArrayList<>();
    ended.addAll(terminate(connection, ids(decided, TickPlan.Runs::terminated)));
    ended.addAll(skip(connection, ids(decided, TickPlan.Runs::skipped)));
    cancel(connection, ids(decided, TickPlan.Runs::cancelled));
    Written last = begin(connection, decided, now, others);
    ended.addAll(last.ended());
    await(connection, decided);
    tell(connection, decided);
    return new Written(ended, last.untilNext());
  }

  /** The end of a run for which others wait is told; who ends one meanwhile waits for this. */
  private void await(Connection connection, List<Decided> decided) throws SQLException {
    List<Timer> waiting =
        decided.stream().filter(Decided::leavesWaiting).map(Decided::timer).toList();
    if (!waiting.isEmpty()) {
      Map<String, Object> values = Parameters.of(waiting).texts("names", Timer::name).values();
      values.put(
          "beside",
          waiting.stream()
              .filter(timer -> timer.overlap() == OverlapPolicy.ALLOW_ALL)
              .map(Timer::name)
              .toArray(String[]::new));
      statements.update(connection, TimerSql.AWAIT_RUNS, values);
    }
  }

  /** Nodes that handle runs which are to stop look for them. */
  private void tell(Connection connection, List<Decided> decided) throws SQLException {
    if (ids(decided, TickPlan.Runs::cancelled).length > 0
        || ids(decided, TickPlan.Runs::terminated).length > 0) {
      statements.query(connection, TimerSql.TELL, Map.of(), row -> true);
    }
  }

  private static long[] ids(List<Decided> decided, Function<TickPlan.Runs, List<Long>> which) {
    return decided.stream()
        .flatMap(each -> which.apply(each.plan().runs()).stream())
        .mapToLong(Long::longValue)
        .sorted()
        .toArray();
  }

  private List<EndedRun> terminate(Connection connection, long[] ids) throws SQLException {
    return end(connection, TimerSql.TERMINATE_RUNS, ids, RunStatus.TERMINATED);
  }

  private List<EndedRun> skip(Connection connection, long[] ids) throws SQLException {
    return end(connection, TimerSql.SKIP_RUNS, ids, RunStatus.SKIPPED);
  }

  private List<EndedRun> end(Connection connection, String template, long[] ids, RunStatus status)
      throws SQLException {
    return ids.length == 0
        ? List.of()
        : statements.query(
            connection,
            template,
            Map.of("ids", ids),
            row -> new EndedRun(row.getString(1), status));
  }

  private void cancel(Connection connection, long[] ids) throws SQLException {
    if (ids.length > 0) {
      statements.update(connection, TimerSql.CANCEL_RUNS, Map.of("ids", ids));
    }
  }

  /** Runs that waited begin as soon as they may. */
  private static List<Waited> waited(List<Decided> decided) {
    return decided.stream()
        .flatMap(
            each ->
                each.record().open().stream()
                    .filter(run -> each.plan().runs().begun().contains(run.id()))
                    .map(run -> new Waited(each.timer(), run)))
        .toList();
  }

  private static List<Added> added(List<Decided> decided) {
    return decided.stream()
        .flatMap(
            each ->
                each.plan().runs().added().stream()
                    .map(run -> new Added(each.timer(), run, each.record().deployment())))
        .toList();
  }

  /** Publishes the messages of what begins, then notes which is whose, and the timers. */
  private Written begin(
      Connection connection, List<Decided> decided, Instant now, Set<String> others)
      throws SQLException {
    List<Waited> waited = waited(decided);
    List<Added> added = added(decided);
    List<OutboxMessage> messages = new ArrayList<>();
    waited.forEach(each -> messages.add(message(each.timer(), each.run().key(), now, now)));
    added.stream()
        .filter(Added::begins)
        .forEach(each -> messages.add(message(each.timer(), each.key(), Instant.MIN, now)));
    Iterator<Long> published =
        messages.isEmpty()
            ? Collections.emptyIterator()
            : publisher.publish(connection, messages).stream()
                .map(each -> each.rowId().orElseThrow())
                .iterator();
    if (!waited.isEmpty()) {
      long[] ids = waited.stream().mapToLong(each -> each.run().id()).toArray();
      long[] messageIds = waited.stream().mapToLong(each -> published.next()).toArray();
      statements.update(
          connection, TimerSql.BEGIN_RUNS, Map.of("ids", ids, "message_ids", messageIds));
    }
    long[] messageIds =
        added.stream().mapToLong(each -> each.begins() ? published.next() : NONE).toArray();
    Map<String, Object> values = runs(added);
    values.put("message_ids", messageIds);
    values.putAll(TimerChange.values(decided.stream().map(Decided::change).toList()));
    values.put("others", others.toArray(String[]::new));
    Inserted inserted =
        statements.execute(
            connection, TimerSql.INSERT_AND_UPDATE, values, TickWrites::readInserted);
    deleteOthers(connection, messageIds, inserted);
    return new Written(inserted.skipped(), inserted.untilNext());
  }

  private static Map<String, Object> runs(List<Added> added) {
    return Parameters.of(added)
        .texts("run_names", each -> each.timer().name())
        .instants("instants", each -> each.run().instant())
        .texts("causes", each -> TimerRow.stored(each.run().cause()))
        .texts("requests", Added::request)
        .instants("run_missed_firsts", each -> first(each.run().missed()))
        .numbers("run_missed_counts", each -> count(each.run().missed()))
        .texts("statuses", each -> status(each.run().fate()))
        .values();
  }

  /** Of the runs that were not on record before: their messages, and those that are skipped. */
  private record Inserted(
      Set<Long> messages, List<EndedRun> skipped, @Nullable Duration untilNext) {}

  private static Inserted readInserted(Results results) throws SQLException {
    Set<Long> messages = new HashSet<>();
    List<EndedRun> skipped = new ArrayList<>();
    try (ResultSet row = results.rows()) {
      while (row.next()) {
        messages.add(row.getLong(1));
        if (row.getString(3).equals(status(Fate.SKIPPED))) {
          skipped.add(new EndedRun(row.getString(2), RunStatus.SKIPPED));
        }
      }
    }
    results.next();
    try (ResultSet row = results.next().rows()) {
      row.next();
      return new Inserted(messages, skipped, TimerRow.untilNext(row));
    }
  }

  private void deleteOthers(Connection connection, long[] messageIds, Inserted inserted)
      throws SQLException {
    long[] ofOthers =
        LongStream.of(messageIds)
            .filter(id -> id != NONE && !inserted.messages().contains(id))
            .toArray();
    if (ofOthers.length > 0) {
      statements.update(connection, TimerSql.DELETE_MESSAGES, Map.of("ids", ofOthers));
    }
  }

  private OutboxMessage message(Timer timer, RunKey run, Instant earliest, Instant now) {
    Instant start = run.instant();
    if (run.cause() != Cause.MANUAL && run.cause() != Cause.BACKFILL) {
      start = start.plus(Instants.jitter(timer, start));
    }
    OutboxMessage.Builder message =
        OutboxMessage.to(queue)
            .type(timer.name())
            .correlationId(timer.name() + "/" + run.instant())
            .header(RunKey.HEADER, run.toString())
            .header(RunKey.APPLICATION, application)
            .deliverAt(start.isAfter(earliest) ? start : earliest);
    if (timer.retriesUntilNext()) {
      next(timer, start.isAfter(now) ? start : now).ifPresent(message::expiresAt);
    }
    return message.build();
  }

  /** None if its schedule fails: no other timer is to stand still for that. */
  private static Optional<Instant> next(Timer timer, Instant after) {
    try {
      return Instants.next(timer, after);
    } catch (RuntimeException e) {
      log.error("timer {}: its schedule fails, so a run of it does not expire", timer.name(), e);
      return Optional.empty();
    }
  }

  private static String status(Fate fate) {
    return switch (fate) {
      case BEGINS -> "begun";
      case WAITS -> "waiting";
      case SKIPPED -> "skipped";
    };
  }

  private static @Nullable Instant first(@Nullable Missed missed) {
    return missed == null ? null : missed.first();
  }

  private static long count(@Nullable Missed missed) {
    return missed == null ? 0 : missed.count();
  }
}
