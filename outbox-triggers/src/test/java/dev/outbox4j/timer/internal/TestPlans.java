package dev.outbox4j.timer.internal;

import dev.outbox4j.timer.Cause;
import dev.outbox4j.timer.RecordedRun;
import dev.outbox4j.timer.internal.PlannedRun.Fate;
import java.time.Instant;
import java.time.LocalTime;
import java.time.ZoneOffset;
import java.util.Comparator;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Plans in words, and what has become of them on a server. */
final class TestPlans {
  private TestPlans() {}

  static List<String> runs(TickPlan plan) {
    return plan.runs().added().stream().map(TestPlans::text).toList();
  }

  /** The same of runs that are on record since a tick, of which none has ended otherwise. */
  static List<String> onRecord(List<RecordedRun> history) {
    return history.stream()
        .sorted(Comparator.comparing(RecordedRun::instant).thenComparing(RecordedRun::id))
        .map(TestPlans::text)
        .toList();
  }

  private static String text(PlannedRun run) {
    return text(run.cause(), run.instant(), run.fate(), run.missed());
  }

  private static String text(RecordedRun run) {
    Fate fate =
        switch (run.status()) {
          case BEGUN -> Fate.BEGINS;
          case WAITING -> Fate.WAITS;
          case SKIPPED -> Fate.SKIPPED;
          default -> throw new IllegalStateException(run.toString());
        };
    Missed missed =
        run.firstMissed().map(first -> new Missed(first, run.instant(), run.missed())).orElse(null);
    return text(run.cause(), run.instant(), fate, missed);
  }

  private static String text(Cause cause, Instant instant, Fate fate, @Nullable Missed missed) {
    String text = "%s %s %s".formatted(cause, time(instant), fate);
    return missed == null
        ? text
        : text + " for %d since %s".formatted(missed.count(), time(missed.first()));
  }

  static LocalTime time(Instant instant) {
    return instant.atOffset(ZoneOffset.UTC).toLocalTime();
  }
}
