package dev.outbox4j.examples.orders;

import dev.outbox4j.timer.RecordedRun;
import dev.outbox4j.timer.TimerControl;
import dev.outbox4j.timer.TimerStatus;
import java.time.Instant;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** What {@code GET /timers} tells: each timer as it is on record, with its latest runs. */
final class TimerOverview {
  private static final int LATEST_RUNS = 10;

  private final TimerControl control;

  TimerOverview(TimerControl control) {
    this.control = control;
  }

  List<ListedTimer> list() {
    return control.timers().stream()
        .map(timer -> ListedTimer.of(timer, control.history(timer.name(), LATEST_RUNS)))
        .toList();
  }

  private static @Nullable String text(Optional<Instant> instant) {
    return instant.map(Instant::toString).orElse(null);
  }

  /** One timer in the answer, which is JSON. */
  record ListedTimer(
      String name,
      String schedule,
      @Nullable String due,
      @Nullable String paused,
      long notRun,
      @Nullable String lastSuccess,
      List<ListedRun> latestRuns) {

    static ListedTimer of(TimerStatus timer, List<RecordedRun> runs) {
      return new ListedTimer(
          timer.name(),
          timer.schedule(),
          text(timer.due()),
          timer.pause().map(ListedTimer::words).orElse(null),
          timer.notRun(),
          text(timer.lastSuccess()),
          runs.stream().map(ListedRun::of).toList());
    }

    private static String words(TimerStatus.Pause pause) {
      return "since %s by %s: %s".formatted(pause.since(), pause.by(), pause.reason());
    }
  }

  /** One run in the answer. */
  record ListedRun(
      String instant,
      String cause,
      String status,
      int attempts,
      @Nullable String started,
      @Nullable String ended,
      @Nullable String lastError) {

    static ListedRun of(RecordedRun run) {
      return new ListedRun(
          run.instant().toString(),
          run.cause().name(),
          run.status().name(),
          run.attempts(),
          text(run.started()),
          text(run.ended()),
          run.lastError().orElse(null));
    }
  }
}
