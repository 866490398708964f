package dev.outbox4j.examples.chaos;

import java.sql.SQLException;
import java.time.Duration;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import javax.sql.DataSource;

/** Waits until something is so again, and tells how long that took. */
final class Watch {
  private static final long LONGEST_RECOVERY_SECONDS = 90;
  private static final Duration LOOK_AGAIN = Duration.ofMillis(50);

  private final DataSource direct;
  private final Report report;

  Watch(DataSource direct, Report report) {
    this.direct = direct;
    this.report = report;
  }

  /** The server's time, once there is a server. */
  String now() {
    while (true) {
      try {
        return Database.texts(direct, "select clock_timestamp()::text").get(0);
      } catch (SQLException serverIsDown) {
        pause(LOOK_AGAIN);
      }
    }
  }

  /** Waits until a message is handled after now, and returns how many seconds that took. */
  double untilHandled() {
    long begun = System.nanoTime();
    String since = now();
    return until(
        () ->
            Database.number(
                    direct,
                    "select count(*) from"
                        + " (select from handled where at > ?::timestamptz limit 1) x",
                    since)
                > 0,
        "a message to be handled",
        begun);
  }

  /**
   * Waits until it is so; if it is not in a long time, this is a breach. Returns the seconds since
   * the beginning, which is a value of {@link System#nanoTime}.
   */
  double until(Callable<Boolean> condition, String what, long begun) {
    long limit = System.nanoTime() + TimeUnit.SECONDS.toNanos(LONGEST_RECOVERY_SECONDS);
    while (!holds(condition)) {
      if (System.nanoTime() > limit) {
        report.breach("waited " + LONGEST_RECOVERY_SECONDS + " s for " + what);
        break;
      }
      pause(LOOK_AGAIN);
    }
    return (System.nanoTime() - begun) / 1e9;
  }

  private static boolean holds(Callable<Boolean> condition) {
    try {
      return condition.call();
    } catch (SQLException serverIsDown) {
      return false;
    } catch (Exception broken) {
      throw new IllegalStateException(broken);
    }
  }

  static void pause(Duration time) {
    long until = System.nanoTime() + time.toNanos();
    for (long left = time.toNanos(); left > 0; left = until - System.nanoTime()) {
      LockSupport.parkNanos(left);
    }
  }
}
