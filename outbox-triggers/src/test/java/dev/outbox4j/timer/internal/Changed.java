package dev.outbox4j.timer.internal;

import java.time.Instant;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** A record with some of it changed. */
final class Changed {
  private final TimerRecord before;
  private Instant cursor;
  private @Nullable Missed missed;
  private boolean paused;
  private long runsLeft;
  private @Nullable Instant startup;
  private List<OpenRun> open;

  private Changed(TimerRecord before) {
    this.before = before;
    this.cursor = before.cursor();
    this.missed = before.missed();
    this.paused = before.paused();
    this.runsLeft = before.runsLeft();
    this.startup = before.startup();
    this.open = before.open();
  }

  static Changed from(TimerRecord before) {
    return new Changed(before);
  }

  /** What a plan says, but for the runs. */
  Changed by(TickPlan plan) {
    cursor = plan.cursor();
    missed = plan.missed();
    runsLeft = plan.runsLeft();
    startup = plan.startup();
    return this;
  }

  Changed cursor(Instant cursor) {
    this.cursor = cursor;
    return this;
  }

  Changed paused(boolean paused) {
    this.paused = paused;
    return this;
  }

  Changed startup(@Nullable Instant startup) {
    this.startup = startup;
    return this;
  }

  Changed open(List<OpenRun> open) {
    this.open = open;
    return this;
  }

  TimerRecord record() {
    return new TimerRecord(
        before.schedule(),
        cursor,
        missed,
        paused,
        before.limit(),
        runsLeft,
        before.deployment(),
        startup,
        open);
  }
}
