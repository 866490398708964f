package dev.outbox4j.examples.chaos;

import com.zaxxer.hikari.HikariDataSource;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.sql.DataSource;

/**
 * What a stopped subscriber's process still holds, though it should hold nothing.
 *
 * @param threads of the framework
 * @param connections borrowed from the pool, and sessions that listen
 */
record Leftovers(int threads, int connections) {
  private static final Pattern TEXT = Pattern.compile("(\\d+) threads, (\\d+) connections");
  private static final Duration PATIENCE = Duration.ofSeconds(15); // a connect under way is bounded

  /** Looks until nothing is left, or patience ends. */
  static Leftovers find(List<HikariDataSource> pools, DataSource direct, String listener) {
    return find(pools, direct, listener, PATIENCE);
  }

  static Leftovers find(
      List<HikariDataSource> pools, DataSource direct, String listener, Duration patience) {
    long until = System.nanoTime() + patience.toNanos();
    Leftovers left = look(pools, direct, listener);
    while (!left.equals(new Leftovers(0, 0)) && System.nanoTime() < until) {
      LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(50));
      left = look(pools, direct, listener);
    }
    return left;
  }

  private static Leftovers look(List<HikariDataSource> pools, DataSource direct, String listener) {
    return new Leftovers(
        frameworkThreads().size(),
        sessions(direct, listener)
            + pools.stream()
                .mapToInt(pool -> pool.getHikariPoolMXBean().getActiveConnections())
                .sum());
  }

  /** What cannot be asked counts as one. */
  private static int sessions(DataSource direct, String listener) {
    try {
      return (int)
          Database.number(
              direct, "select count(*) from pg_stat_activity where usename = ?", listener);
    } catch (SQLException unknown) {
      return 1;
    }
  }

  /** Workers end by themselves after a while. */
  private static List<String> frameworkThreads() {
    return Thread.getAllStackTraces().keySet().stream()
        .map(Thread::getName)
        .filter(thread -> thread.startsWith("outbox-") && !thread.contains("-worker-"))
        .toList();
  }

  /** As {@link #parse} reads it. */
  @Override
  public String toString() {
    return threads + " threads, " + connections + " connections";
  }

  static Leftovers parse(String text) {
    Matcher words = TEXT.matcher(text);
    if (!words.matches()) {
      throw new IllegalArgumentException("not what is left: " + text);
    }
    return new Leftovers(Integer.parseInt(words.group(1)), Integer.parseInt(words.group(2)));
  }
}
