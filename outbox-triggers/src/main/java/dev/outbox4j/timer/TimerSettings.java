package dev.outbox4j.timer;

import java.time.Duration;
import java.time.Instant;
import org.jspecify.annotations.Nullable;

/** What a timer was told. Changed only before the timer that holds it is made. */
final class TimerSettings {
  private static final Duration A_MINUTE = Duration.ofMinutes(1);

  CatchUp catchUp = CatchUp.ONE;
  Duration catchUpWindow = Duration.ofDays(365);
  Duration onTime = Duration.ofSeconds(60);
  OverlapPolicy overlap = OverlapPolicy.BUFFER_ONE;
  Duration jitter = Duration.ZERO;
  OnChange onChange = OnChange.RESET;
  boolean runOnStartup;
  boolean keepState = true;
  boolean retries = true;
  boolean retryUntilNext;

  /** Zero is never. */
  int pauseAfterFailures;

  /** Zero is no limit. */
  long runs;

  @Nullable Instant start;
  @Nullable Instant end;
  @Nullable Duration missedGrace;
  @Nullable Duration successWithin;
  Duration runningLimit = Duration.ofHours(1);

  private TimerSettings() {}

  static TimerSettings defaults(Schedule schedule) {
    TimerSettings settings = new TimerSettings();
    settings.keepState = !isBelowAMinute(schedule);
    return settings;
  }

  private static boolean isBelowAMinute(Schedule schedule) {
    if (schedule instanceof ConstantInterval constant) {
      return constant.interval().compareTo(A_MINUTE) < 0;
    }
    return schedule instanceof CivilSchedule civil && civil.isOfSeconds();
  }

  TimerSettings copy() {
    TimerSettings copy = new TimerSettings();
    copy.catchUp = catchUp;
    copy.catchUpWindow = catchUpWindow;
    copy.onTime = onTime;
    copy.overlap = overlap;
    copy.jitter = jitter;
    copy.onChange = onChange;
    copy.runOnStartup = runOnStartup;
    copy.keepState = keepState;
    copy.retries = retries;
    copy.retryUntilNext = retryUntilNext;
    copy.pauseAfterFailures = pauseAfterFailures;
    copy.runs = runs;
    copy.start = start;
    copy.end = end;
    copy.missedGrace = missedGrace;
    copy.successWithin = successWithin;
    copy.runningLimit = runningLimit;
    return copy;
  }

  void requireStartBeforeEnd() {
    if (start != null && end != null && !start.isBefore(end)) {
      throw new IllegalArgumentException(
          "start is %s and end is %s; the start must be before the end".formatted(start, end));
    }
  }
}
