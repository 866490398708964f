package dev.outbox4j.benchmarks.spi;

import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicLongArray;

/**
 * What somebody tells of a lag, against what it is: the age of the oldest message that is committed
 * and not handled. Sampled by one thread; the rest is thread-safe.
 */
final class LagSamples {
  /** When the commit of each message returned; zero before. */
  private final AtomicLongArray committed;

  private final AtomicIntegerArray handled;

  /** All before it are handled. */
  private int low;

  private long samples;
  private long unknown;
  private double truth;
  private double error;

  LagSamples(int messages) {
    committed = new AtomicLongArray(messages);
    handled = new AtomicIntegerArray(messages);
  }

  void committed(int message, long nanos) {
    committed.set(message, nanos);
  }

  void handled(int message) {
    handled.set(message, 1);
  }

  /** Takes a sample of what is told now. */
  void sample(double told, long now) {
    double lag = lag(now);
    if (Double.isNaN(told)) {
      unknown++;
      return;
    }
    samples++;
    truth += lag;
    error += Math.abs(told - lag);
  }

  private double lag(long now) {
    while (low < handled.length() && handled.get(low) == 1) {
      low++;
    }
    long oldest = now;
    int notCommitted = 0;
    // writers are at most a few transactions apart from each other
    for (int i = low; i < handled.length() && notCommitted < 10_000; i++) {
      long at = committed.get(i);
      if (at == 0) {
        notCommitted++;
      } else if (handled.get(i) == 0 && at < oldest) {
        oldest = at;
      }
    }
    return now - oldest;
  }

  /** Adds the lag on average, and the sum of all errors by the sum of all lags. */
  Numbers summary(Numbers into) {
    return into.with("lag_samples", samples)
        .with("lag_unknown", unknown)
        .with("lag_mean_ms", samples == 0 ? Double.NaN : truth / samples / 1e6)
        .with("lag_error_share", truth == 0 ? Double.NaN : error / truth);
  }
}
