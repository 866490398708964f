package dev.outbox4j.benchmarks.spi;

import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;

/** Asks for a lag at random moments, some thirty times a second, on a thread of its own. */
final class LagSampler {
  private static final long SHORTEST_NANOS = TimeUnit.MILLISECONDS.toNanos(10);
  private static final long LONGEST_NANOS = TimeUnit.MILLISECONDS.toNanos(60);

  private final Lagging lagging;
  private final LagSamples samples;
  private final Thread thread = new Thread(this::run, "lag-sampler");
  private volatile boolean stopped;

  private LagSampler(Lagging lagging, LagSamples samples) {
    this.lagging = lagging;
    this.samples = samples;
  }

  static LagSampler start(Lagging lagging, LagSamples samples) {
    LagSampler sampler = new LagSampler(lagging, samples);
    sampler.thread.setDaemon(true);
    sampler.thread.start();
    return sampler;
  }

  private void run() {
    while (!stopped) {
      samples.sample(lagging.lagNanos(), System.nanoTime());
      PacedWriters.pace(
          System.nanoTime() + ThreadLocalRandom.current().nextLong(SHORTEST_NANOS, LONGEST_NANOS));
    }
  }

  /** Waits until it has ended. */
  void stop() throws InterruptedException {
    stopped = true;
    thread.join();
  }
}
