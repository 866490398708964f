package dev.outbox4j.spring;

import dev.outbox4j.OutboxException;
import dev.outbox4j.postgres.metrics.OutboxDepthMetrics;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.composite.CompositeMeterRegistry;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.context.SmartLifecycle;

/**
 * Starts the depth gauges with the context, and stops them after the subscribers. Where nobody
 * would read them they are not started, since another process that is read could then not count.
 */
final class DepthMetricsLifecycle implements SmartLifecycle {
  private static final Logger log = LoggerFactory.getLogger(DepthMetricsLifecycle.class);

  private final OutboxDepthMetrics metrics;
  private final MeterRegistry registry;
  private final boolean always;
  private volatile boolean running;

  /**
   * Takes what it starts.
   *
   * @param registry that of the metrics
   * @param always also for a registry that nobody seems to read
   */
  DepthMetricsLifecycle(OutboxDepthMetrics metrics, MeterRegistry registry, boolean always) {
    this.metrics = metrics;
    this.registry = registry;
    this.always = always;
  }

  /** Looks at the registry here and not before: until now others may have been added to it. */
  @Override
  public void start() {
    if (!always && isInMemoryOnly(registry)) {
      log.info(
          "This process does not count what the queues hold: its meter registry keeps all in"
              + " memory, and as the one process that counts it would keep the depths from those"
              + " that are scraped. outbox4j.depth-metrics.enabled=true counts all the same");
      return;
    }
    try {
      metrics.start();
    } catch (IllegalStateException taken) {
      throw new OutboxException(
          "The meter registry shows the depths of a table of this name already; set"
              + " outbox4j.depth-metrics.table-tag to another name for this one, or"
              + " outbox4j.depth-metrics.enabled=false if it is the same table",
          taken);
    }
    running = true;
  }

  /** Such as that of a service with no other, or a composite that is empty. */
  private static boolean isInMemoryOnly(MeterRegistry registry) {
    return registry instanceof CompositeMeterRegistry composite
        ? composite.getRegistries().stream().allMatch(DepthMetricsLifecycle::isInMemoryOnly)
        : registry instanceof SimpleMeterRegistry;
  }

  @Override
  public void stop() {
    metrics.stop();
    running = false;
  }

  @Override
  public boolean isRunning() {
    return running;
  }

  /** Below the subscribers', so that it is stopped after them. */
  @Override
  public int getPhase() {
    return SmartLifecycle.DEFAULT_PHASE - 1;
  }
}
