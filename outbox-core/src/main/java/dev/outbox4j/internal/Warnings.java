package dev.outbox4j.internal;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.event.Level;

/**
 * Rate-limited log lines: of one subject so many a minute, and then how many were left out.
 * Thread-safe.
 */
public final class Warnings {
  private static final int A_MINUTE = 10;
  private static final long MINUTE = TimeUnit.MINUTES.toNanos(1);
  private static final int MOST_SUBJECTS = 200;

  private final String subscriber;
  private final Map<String, Subject> subjects = new ConcurrentHashMap<>();

  public Warnings(String subscriber) {
    this.subscriber = subscriber;
  }

  private static final class Subject {
    private long minuteBegan = System.nanoTime();
    private int said;
    private long leftOut;

    /** Returns how many lines were left out before this one, or -1 if this one is left out, too. */
    synchronized long may() {
      long now = System.nanoTime();
      if (now - minuteBegan >= MINUTE) {
        minuteBegan = now;
        said = 0;
      }
      if (said >= A_MINUTE) {
        leftOut++;
        return -1;
      }
      said++;
      long before = leftOut;
      leftOut = 0;
      return before;
    }
  }

  /** Returns whose lines they are. */
  public String subscriber() {
    return subscriber;
  }

  public void warn(Logger log, String subject, String text, @Nullable Object... arguments) {
    say(log, Level.WARN, Runnable::run, subject, text, arguments);
  }

  public void error(Logger log, String subject, String text, @Nullable Object... arguments) {
    say(log, Level.ERROR, Runnable::run, subject, text, arguments);
  }

  /** As the others; what surrounds a line is not asked if the line is left out. */
  public void say(
      Logger log,
      Level level,
      Consumer<Runnable> around,
      String subject,
      String text,
      @Nullable Object... arguments) {
    String key = subjects.size() < MOST_SUBJECTS || subjects.containsKey(subject) ? subject : "";
    long leftOut = subjects.computeIfAbsent(key, none -> new Subject()).may();
    if (leftOut < 0) {
      return;
    }
    String line =
        prefix() + text + (leftOut == 0 ? "" : " (" + leftOut + " more like this were not logged)");
    around.accept(() -> log.atLevel(level).log(line, arguments));
  }

  /** An error that is never left out. */
  public void each(Logger log, String text, @Nullable Object... arguments) {
    log.atError().log(prefix() + text, arguments);
  }

  private String prefix() {
    return "[" + subscriber.replace("{}", "{ }") + "] ";
  }
}
