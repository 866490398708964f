package dev.outbox4j.benchmarks.spi;

import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.locks.LockSupport;

/**
 * When single messages are published.
 *
 * @param minGapMillis the shortest pause before each
 * @param maxGapMillis the longest pause before each
 * @param busy how many others are published and handled before the pause, to keep the consumer busy
 * @param maxHoldMillis how long the transaction of every second one may stay open after publishing,
 *     and one in twenty ten times that long
 */
record Rhythm(double minGapMillis, double maxGapMillis, int busy, double maxHoldMillis) {

  static Rhythm of(String[] task, int from) {
    return new Rhythm(
        Double.parseDouble(task[from]),
        Double.parseDouble(task[from + 1]),
        Integer.parseInt(task[from + 2]),
        Double.parseDouble(task[from + 3]));
  }

  void pause() {
    park(ThreadLocalRandom.current().nextDouble(minGapMillis, maxGapMillis));
  }

  void hold() {
    double chance = ThreadLocalRandom.current().nextDouble();
    if (maxHoldMillis > 0 && chance < 0.5) {
      double longest = chance < 0.05 ? 10 * maxHoldMillis : maxHoldMillis;
      park(ThreadLocalRandom.current().nextDouble(longest));
    }
  }

  private static void park(double millis) {
    long end = System.nanoTime() + (long) (millis * 1e6);
    for (long left = end - System.nanoTime(); left > 0; left = end - System.nanoTime()) {
      LockSupport.parkNanos(left);
    }
  }
}
