package dev.outbox4j.examples.chaos;

import java.io.IOException;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import javax.sql.DataSource;

/** Waits until something is so again, and tells how long that took. */
final class Watch {
  static final Duration LONGEST_RECOVERY = Duration.ofSeconds(90);

  private static final Duration LOOK_AGAIN = Duration.ofMillis(50);

  private final DataSource direct;
  private final Fleet fleet;
  private final Sessions sessions;
  private final Report report;
  private final long longest;

  Watch(DataSource direct, Fleet fleet, Report report, Duration slack) {
    this.direct = direct;
    this.fleet = fleet;
    this.sessions = new Sessions(direct);
    this.report = report;
    this.longest = LONGEST_RECOVERY.plus(slack).toSeconds();
  }

  /** An instant from which on the fleet is to recover, and the time since. */
  record Since(String instant, long nanos) {
    double seconds() {
      return (System.nanoTime() - nanos) / 1e9;
    }
  }

  /** Now, once there is a server. */
  Since since() {
    long begun = System.nanoTime();
    return new Since(now(), begun);
  }

  /** The server's time, once there is a server. */
  String now() {
    while (true) {
      try {
        return Database.texts(direct, "select true_now()::text").get(0);
      } catch (SQLException serverIsDown) {
        pause(LOOK_AGAIN);
      }
    }
  }

  /** Waits until a message is handled, and returns how many seconds that took. */
  double untilHandled(Since since) {
    return until(
        () ->
            !Database.texts(
                    direct,
                    "select 1 from (select max(at) as latest from handled) x"
                        + " where latest > ?::timestamptz",
                    since.instant())
                .isEmpty(),
        "a message to be handled",
        since);
  }

  /**
   * Waits until each subscriber has handled a message and says that it is well, and none has more
   * connections than it should. Returns how many seconds that took.
   */
  double untilAllAreWell(Since since) {
    return untilNone(() -> troubles(since.instant()), "all to be well", since);
  }

  private List<String> troubles(String since) throws IOException, SQLException {
    List<String> troubles = new ArrayList<>(fleet.ailing());
    if (troubles.isEmpty()) { // each question takes longer than the one before
      troubles.addAll(
          Database.texts(
              direct,
              "select name || ' handles nothing' from unnest(?::text[]) as s (name) where not exists"
                  + " (select from handled h where h.at > ?::timestamptz and h.owner = s.name)",
              fleet.subscriberNames().toArray(String[]::new),
              since));
    }
    if (troubles.isEmpty()) {
      troubles.addAll(sessions.excess(fleet.sessionLimits(), fleet.pooledNames()));
    }
    return troubles;
  }

  /**
   * Waits until it is so; if it is not in a long time, this is a breach. Returns the seconds since
   * then.
   */
  double until(Callable<Boolean> condition, String what, Since since) {
    return untilNone(() -> condition.call() ? List.of() : List.of("it is not so"), what, since);
  }

  private double untilNone(Callable<List<String>> troubles, String what, Since since) {
    long limit = System.nanoTime() + TimeUnit.SECONDS.toNanos(longest);
    for (List<String> left = ask(troubles); !left.isEmpty(); left = ask(troubles)) {
      if (System.nanoTime() > limit) {
        report.breach("waited " + longest + " s for " + what + ": " + left);
        break;
      }
      pause(LOOK_AGAIN);
    }
    return since.seconds();
  }

  private static List<String> ask(Callable<List<String>> troubles) {
    try {
      return troubles.call();
    } catch (SQLException serverIsDown) {
      return List.of("the server does not answer: " + serverIsDown.getMessage());
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
