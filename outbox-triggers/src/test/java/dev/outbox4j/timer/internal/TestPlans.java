package dev.outbox4j.timer.internal;

import java.time.Instant;
import java.time.LocalTime;
import java.time.ZoneOffset;
import java.util.List;

/** Plans in words. */
final class TestPlans {
  private TestPlans() {}

  static List<String> runs(TickPlan plan) {
    return plan.runs().added().stream().map(TestPlans::text).toList();
  }

  private static String text(PlannedRun run) {
    Missed missed = run.missed();
    String text = "%s %s %s".formatted(run.cause(), time(run.instant()), run.fate());
    return missed == null
        ? text
        : text + " for %d since %s".formatted(missed.count(), time(missed.first()));
  }

  static LocalTime time(Instant instant) {
    return instant.atOffset(ZoneOffset.UTC).toLocalTime();
  }
}
