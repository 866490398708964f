package dev.outbox4j.benchmarks.spi;

import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;

/**
 * Writers at a steady rate for long, subscriber in the same process: whether the last tenth of the
 * time is as the first. Latency is from the scheduled instant; what the heap holds at the least is
 * what is never given back.
 */
final class SoakTask {
  private static final long FIRST = 1L << 40;
  private static final int PARTS = 10;
  private static final int PATIENCE_SECONDS = 60;
  private static final long SAMPLE = TimeUnit.MILLISECONDS.toNanos(500);

  private final Publishing publishing;
  private final Consuming consuming;
  private final Bench bench;

  SoakTask(Publishing publishing, Consuming consuming, Bench bench) {
    this.publishing = publishing;
    this.consuming = consuming;
    this.bench = bench;
  }

  Numbers run(int bytes, int rate, int warmUpSeconds, int seconds, int writers) throws Exception {
    int warmUp = warmUpSeconds * rate;
    int recorded = rate * seconds;
    int count = warmUp + recorded;
    PacedWriters.Load load = new PacedWriters.Load(FIRST, count, bytes, rate, 1);
    List<Histogram> parts = Stream.generate(Histogram::new).limit(PARTS).toList();
    AtomicLong begin = new AtomicLong();
    CountingSink sink =
        new CountingSink(
            FIRST,
            count,
            false,
            false,
            sequence -> {
              int message = (int) (sequence - FIRST);
              if (message >= warmUp) {
                int part = (int) ((long) (message - warmUp) * PARTS / recorded);
                parts.get(part).record(System.nanoTime() - begin.get() - load.instant(message));
              }
            });
    Publisher publisher = publishing.publisher(bench);
    consuming.start(bench, sink);
    ProcessMeter meter = new ProcessMeter();
    double[] heap = new double[PARTS];
    try (PacedWriters running = new PacedWriters(bench, writers)) {
      begin.set(System.nanoTime());
      running.start(publisher, load, begin.get(), (message, nanos) -> {});
      long next = begin.get() + TimeUnit.SECONDS.toNanos(warmUpSeconds);
      for (int part = 0; part < PARTS; part++) {
        long end = next + TimeUnit.SECONDS.toNanos(seconds) / PARTS;
        heap[part] = Double.MAX_VALUE;
        for (; next < end; next += SAMPLE) {
          PacedWriters.pace(next);
          Runtime runtime = Runtime.getRuntime();
          double used = (double) (runtime.totalMemory() - runtime.freeMemory()) / (1 << 20);
          heap[part] = Math.min(heap[part], used);
        }
        next = end;
      }
      running.await();
      boolean complete = sink.await(PATIENCE_SECONDS);
      Numbers numbers = meter.read(sink.finished());
      consuming.stop();
      for (int part = 0; part < PARTS; part++) {
        String number = "_" + (part + 1);
        numbers
            .with("p50_ms" + number, parts.get(part).percentile(0.5))
            .with("p99_ms" + number, parts.get(part).percentile(0.99))
            .with("heap_least_mib" + number, heap[part]);
      }
      return numbers.with("repeated", sink.repeated()).with("complete", complete ? 1 : 0);
    }
  }
}
