package dev.outbox4j.timer.internal;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.postgres.OutboxPublisher;
import dev.outbox4j.postgres.Published;
import dev.outbox4j.postgres.internal.ServerTime;
import dev.outbox4j.timer.Cause;
import dev.outbox4j.timer.Timer;
import dev.outbox4j.timer.internal.PlannedRun.Fate;
import dev.outbox4j.triggers.internal.Statements;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * Writes what a tick has decided, in its transaction. Rows of the outbox come first: who acks a
 * message locks it before its run.
 */
final class TickWrites {
  private final Statements statements;
  private final OutboxPublisher publisher;
  private final String queue;

  TickWrites(Statements statements, OutboxPublisher publisher, String queue) {
    this.statements = statements;
    this.publisher = publisher;
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
  }

  private record Key(String name, Instant instant, Cause cause) {}

  private record Added(Timer timer, PlannedRun run, @Nullable String deployment) {
    /** A deployment has one run, whatever nodes of others start in between. */
    String request() {
      return run.cause() == Cause.STARTUP && deployment != null ? deployment : "";
    }

    Key key() {
      return new Key(timer.name(), run.instant(), run.cause());
    }
  }

  private record Begun(long id, OutboxMessage message) {}

  void write(Connection connection, List<Decided> decided, Instant now) throws SQLException {
    terminate(connection, ids(decided, TickPlan.Runs::terminated));
    end(connection, TimerSql.SKIP_RUNS, ids(decided, TickPlan.Runs::skipped));
    end(connection, TimerSql.CANCEL_RUNS, ids(decided, TickPlan.Runs::cancelled));
    List<Begun> begun = waited(decided, now);
    begun.addAll(added(connection, decided, now));
    begin(connection, begun);
    follow(connection, decided);
    tell(connection, decided);
    statements.update(
        connection,
        TimerSql.UPDATE_TIMERS,
        TimerChange.values(decided.stream().map(Decided::change).toList()));
  }

  /** The end of a run for which others wait is told; who ends one meanwhile waits for this. */
  private void follow(Connection connection, List<Decided> decided) throws SQLException {
    List<Timer> followed =
        decided.stream().filter(Decided::leavesWaiting).map(Decided::timer).toList();
    if (!followed.isEmpty()) {
      statements.update(
          connection,
          TimerSql.FOLLOW_RUNS,
          Parameters.of(followed).texts("names", Timer::name).values());
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

  private void terminate(Connection connection, long[] ids) throws SQLException {
    if (ids.length > 0) {
      statements.update(connection, TimerSql.TERMINATE_RUNS, Map.of("ids", ids));
    }
  }

  private void end(Connection connection, String template, long[] ids) throws SQLException {
    if (ids.length > 0) {
      statements.update(connection, template, Map.of("ids", ids));
    }
  }

  /** Runs that waited begin as soon as they may. */
  private List<Begun> waited(List<Decided> decided, Instant now) {
    List<Begun> begun = new ArrayList<>();
    for (Decided each : decided) {
      for (OpenRun run : each.record().open()) {
        if (each.plan().runs().begun().contains(run.id())) {
          OutboxMessage.Builder message = message(each.timer(), run.id(), run.instant(), now);
          begun.add(new Begun(run.id(), message.build()));
        }
      }
    }
    return begun;
  }

  /** A run that is on record already is another's; it has its message. */
  private List<Begun> added(Connection connection, List<Decided> decided, Instant now)
      throws SQLException {
    List<Added> all =
        decided.stream()
            .flatMap(
                each ->
                    each.plan().runs().added().stream()
                        .map(run -> new Added(each.timer(), run, each.record().deployment())))
            .toList();
    if (all.isEmpty()) {
      return List.of();
    }
    Map<Key, Long> inserted = new HashMap<>();
    statements.query(
        connection,
        TimerSql.INSERT_RUNS,
        Parameters.of(all)
            .texts("names", added -> added.timer().name())
            .instants("instants", added -> added.run().instant())
            .texts("causes", added -> TimerRow.stored(added.run().cause()))
            .texts("requests", Added::request)
            .instants("missed_firsts", added -> first(added.run().missed()))
            .numbers("missed_counts", added -> count(added.run().missed()))
            .texts("statuses", added -> status(added.run().fate()))
            .values(),
        row ->
            inserted.put(
                new Key(
                    row.getString(2), ServerTime.read(row, 3), TimerRow.cause(row.getString(4))),
                row.getLong(1)));
    List<Begun> begun = new ArrayList<>();
    for (Added each : all) {
      Long id = inserted.get(each.key());
      if (id != null && each.run().fate() == Fate.BEGINS) {
        Instant instant = each.run().instant();
        Instant start = instant.plus(Instants.jitter(each.timer(), instant));
        begun.add(new Begun(id, message(each.timer(), id, instant, now).deliverAt(start).build()));
      }
    }
    return begun;
  }

  private OutboxMessage.Builder message(Timer timer, long run, Instant instant, Instant now) {
    OutboxMessage.Builder message =
        OutboxMessage.to(queue)
            .type(timer.name())
            .header(TimerStore.RUN_HEADER, String.valueOf(run));
    if (timer.retriesUntilNext()) {
      Instant start = instant.plus(Instants.jitter(timer, instant));
      Instants.next(timer, start.isAfter(now) ? start : now).ifPresent(message::expiresAt);
    }
    return message;
  }

  private void begin(Connection connection, List<Begun> begun) throws SQLException {
    if (begun.isEmpty()) {
      return;
    }
    List<Published> published =
        publisher.publish(connection, begun.stream().map(Begun::message).toList());
    long[] ids = begun.stream().mapToLong(Begun::id).toArray();
    long[] messages = published.stream().mapToLong(each -> each.rowId().orElseThrow()).toArray();
    statements.update(connection, TimerSql.BEGIN_RUNS, Map.of("ids", ids, "message_ids", messages));
  }

  private static String status(Fate fate) {
    return switch (fate) {
      case BEGINS, WAITS -> "waiting"; // until its message is there
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
