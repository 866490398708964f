package dev.outbox4j.triggers.metrics;

import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.DistributionSummary;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.TimeGauge;
import io.micrometer.core.instrument.Timer;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/**
 * Registers meters, and removes gauges. What counts is found if it is there already. Thread-safe.
 */
final class Registrar {
  private final MeterRegistry registry;
  private final List<Meter> gauges = new CopyOnWriteArrayList<>();

  Registrar(MeterRegistry registry) {
    this.registry = registry;
  }

  Timer timer(Described meter, String... values) {
    return Timer.builder(meter.facts().id())
        .description(meter.facts().description())
        .tags(tags(meter, values))
        .register(registry);
  }

  Counter counter(Described meter, String... values) {
    return Counter.builder(meter.facts().id())
        .description(meter.facts().description())
        .tags(tags(meter, values))
        .register(registry);
  }

  DistributionSummary summary(Described meter, String... values) {
    return DistributionSummary.builder(meter.facts().id())
        .description(meter.facts().description())
        .tags(tags(meter, values))
        .register(registry);
  }

  void gauge(Described meter, Supplier<Number> value, String... values) {
    gauges.add(
        Gauge.builder(meter.facts().id(), value)
            .description(meter.facts().description())
            .tags(tags(meter, values))
            .register(registry));
  }

  /** A gauge of a time in nanoseconds, shown in the registry's own unit. */
  void timeGauge(Described meter, Supplier<Number> nanos, String... values) {
    gauges.add(
        TimeGauge.builder(meter.facts().id(), nanos, TimeUnit.NANOSECONDS)
            .description(meter.facts().description())
            .tags(tags(meter, values))
            .register(registry));
  }

  void removeGauges() {
    gauges.forEach(registry::remove);
    gauges.clear();
  }

  private static Tags tags(Described meter, String... values) {
    Tags tags = Tags.empty();
    for (int i = 0; i < values.length; i++) {
      tags = tags.and(meter.facts().tags().get(i), values[i]);
    }
    return tags;
  }
}
