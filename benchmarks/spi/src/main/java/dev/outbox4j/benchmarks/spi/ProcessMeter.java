package dev.outbox4j.benchmarks.spi;

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryPoolMXBean;
import java.lang.management.MemoryType;

/** What a task costs this process: time, CPU, heap, statements and round trips. */
final class ProcessMeter {
  private final OperatingSystemMXBean system =
      (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
  private long cpu;
  private long statements;
  private long roundTrips;
  private long start;

  /** Collects garbage, and counts from now. */
  ProcessMeter() {
    System.gc();
    ManagementFactory.getMemoryPoolMXBeans().forEach(MemoryPoolMXBean::resetPeakUsage);
    restart();
  }

  /** Counts from now, and stops nobody; the peak of the heap stays that since the beginning. */
  final void restart() {
    cpu = system.getProcessCpuTime();
    statements = CountingSocketFactory.statements();
    roundTrips = CountingSocketFactory.roundTrips();
    start = System.nanoTime();
  }

  double seconds() {
    return (System.nanoTime() - start) / 1e9;
  }

  Numbers read(long messages) {
    double seconds = seconds();
    double each = Math.max(1, messages);
    double heap =
        ManagementFactory.getMemoryPoolMXBeans().stream()
            .filter(pool -> pool.getType() == MemoryType.HEAP)
            .mapToLong(pool -> pool.getPeakUsage().getUsed())
            .sum();
    return new Numbers()
        .with("messages", messages)
        .with("seconds", seconds)
        .with("rate", messages / seconds)
        .with("cpu_us_per_message", (system.getProcessCpuTime() - cpu) / 1e3 / each)
        .with("heap_peak_mib", heap / (1 << 20))
        .with("statements_per_message", (CountingSocketFactory.statements() - statements) / each)
        .with("round_trips_per_message", (CountingSocketFactory.roundTrips() - roundTrips) / each);
  }
}
