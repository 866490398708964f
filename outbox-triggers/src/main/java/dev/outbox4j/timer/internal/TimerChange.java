package dev.outbox4j.timer.internal;

import dev.outbox4j.triggers.internal.Parameters;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * What is to be on record of a timer.
 *
 * @param name the timer's
 * @param record the record; its runs do not count
 * @param notRun how many more instants were missed and have no run
 * @param due when to look at it next
 */
record TimerChange(String name, TimerRecord record, long notRun, Optional<Instant> due) {

  static TimerChange by(String name, TimerRecord before, TickPlan plan) {
    TimerRecord after =
        new TimerRecord(
            before.schedule(),
            plan.cursor(),
            plan.missed(),
            before.paused(),
            before.limit(),
            plan.runsLeft(),
            before.deployment(),
            plan.startup(),
            List.of());
    return new TimerChange(name, after, plan.notRun(), plan.next());
  }

  static Map<String, Object> values(List<TimerChange> changes) {
    return Parameters.of(changes)
        .texts("names", TimerChange::name)
        .texts("schedules", change -> change.record.schedule())
        .instants("decided_up_to", change -> change.record.cursor())
        .instants("missed_firsts", change -> first(change.record.missed()))
        .instants("missed_latests", change -> latest(change.record.missed()))
        .numbers("missed_counts", change -> count(change.record.missed()))
        .numbers("not_run", TimerChange::notRun)
        .numbers("runs_limits", change -> change.record.limit().orElse(0))
        .numbers("runs_left", change -> change.record.runsLeft())
        .texts("deployments", change -> change.record.deployment())
        .instants("startup_at", change -> change.record.startup())
        .instants("due_at", change -> change.due.orElse(null))
        .values();
  }

  private static @Nullable Instant first(@Nullable Missed missed) {
    return missed == null ? null : missed.first();
  }

  private static @Nullable Instant latest(@Nullable Missed missed) {
    return missed == null ? null : missed.latest();
  }

  private static long count(@Nullable Missed missed) {
    return missed == null ? 0 : missed.count();
  }
}
