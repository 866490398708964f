package dev.outbox4j.benchmarks.spi;

import java.time.Duration;
import java.time.Instant;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;

/**
 * Timers that run, and stretches of time in which their runs are looked at: those that begin in a
 * stretch, whatever their instants, so one that falls behind is seen to.
 */
final class TimerTask {
  private final Timing timing;
  private final Bench bench;
  private final Beats beats;

  /** The instant of each timer's latest run, in milliseconds; zero if it has had none. */
  private final AtomicLongArray latest;

  private volatile @Nullable Stretch looking;

  TimerTask(Timing timing, Bench bench, Beats beats) {
    this.timing = timing;
    this.bench = bench;
    this.beats = beats;
    this.latest = new AtomicLongArray(beats.timers());
  }

  void start() throws Exception {
    timing.start(bench, beats, this::begin);
  }

  void stop() throws Exception {
    timing.stop();
  }

  private void begin(int timer, Instant instant) {
    Instant now = Instant.now();
    long millis = instant.toEpochMilli();
    long before = latest.getAndAccumulate(timer, millis, Math::max);
    Stretch stretch = looking;
    if (stretch != null) {
      long steps = before == 0 ? 1 : (millis - before) / beats.interval().toMillis();
      stretch.add(Duration.between(instant, now).toNanos(), steps);
    }
  }

  /**
   * Looks for some seconds.
   *
   * @return what began meanwhile: how late, how many before their instant, how many for the second
   *     time, and how many instants were left out
   */
  Numbers look(int seconds) {
    long instants =
        (TimeUnit.SECONDS.toMillis(seconds) / beats.interval().toMillis() + 1) * beats.timers();
    ProcessMeter meter = new ProcessMeter();
    // one that was behind may catch up
    Stretch stretch = new Stretch(Math.toIntExact(2 * instants));
    looking = stretch;
    meter.restart();
    PacedWriters.pace(System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds));
    looking = null;
    return stretch.summary(meter.read(stretch.runs.sum()));
  }

  /** What began in a stretch of time. */
  static final class Stretch {
    private final Latencies lateness;
    private final LongAdder runs = new LongAdder();
    private final LongAdder early = new LongAdder();
    private final LongAdder repeated = new LongAdder();
    private final LongAdder leftOut = new LongAdder();

    Stretch(int capacity) {
      lateness = new Latencies(capacity);
    }

    /**
     * Adds a run.
     *
     * @param late how long after its instant it began, in nanoseconds
     * @param steps how many instants it is after the latest run of its timer
     */
    void add(long late, long steps) {
      runs.increment();
      lateness.record(late);
      if (late < 0) {
        early.increment();
      }
      if (steps < 1) {
        repeated.increment();
      } else {
        leftOut.add(steps - 1);
      }
    }

    Numbers summary(Numbers into) {
      return lateness
          .summary(into, "lateness")
          .with("early", early.sum())
          .with("repeated", repeated.sum())
          .with("left_out", leftOut.sum());
    }
  }
}
