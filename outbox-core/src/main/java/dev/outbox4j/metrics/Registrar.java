package dev.outbox4j.metrics;

import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.DistributionSummary;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.TimeGauge;
import io.micrometer.core.instrument.Timer;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/**
 * Registers meters as {@link Meters} defines them, and removes gauges. What counts may be
 * registered by any thread, and is found if it is there already; gauges are not thread-safe.
 */
final class Registrar {
  private final MeterRegistry registry;
  private final Map<Meters, Meter> gauges = new EnumMap<>(Meters.class);

  Registrar(MeterRegistry registry) {
    this.registry = registry;
  }

  Counter counter(Meters meter, String... values) {
    return Counter.builder(meter.id())
        .description(meter.description())
        .tags(tags(meter, values))
        .register(registry);
  }

  Timer timer(Meters meter, String... values) {
    return Timer.builder(meter.id())
        .description(meter.description())
        .tags(tags(meter, values))
        .register(registry);
  }

  DistributionSummary summary(Meters meter, String... values) {
    return DistributionSummary.builder(meter.id())
        .description(meter.description())
        .baseUnit(meter.kind().unit())
        .tags(tags(meter, values))
        .register(registry);
  }

  void gauge(Meters meter, Supplier<Number> value, String... tagValues) {
    gauges.put(
        meter,
        Gauge.builder(meter.id(), value)
            .description(meter.description())
            .tags(tags(meter, tagValues))
            .register(registry));
  }

  /** A gauge of a time in nanoseconds, shown in the registry's own unit. */
  void timeGauge(Meters meter, Supplier<Number> nanos, String... tagValues) {
    gauges.put(
        meter,
        TimeGauge.builder(meter.id(), nanos, TimeUnit.NANOSECONDS)
            .description(meter.description())
            .tags(tags(meter, tagValues))
            .register(registry));
  }

  /** Tells whether somebody else has registered a meter so. */
  boolean isTaken(Meters meter, String... tagValues) {
    return !gauges.containsKey(meter)
        && registry.find(meter.id()).tags(tags(meter, tagValues)).meter() != null;
  }

  boolean hasGauge(Meters meter) {
    return gauges.containsKey(meter);
  }

  void removeGauges() {
    gauges.values().forEach(registry::remove);
    gauges.clear();
  }

  private static Tags tags(Meters meter, String... values) {
    List<String> keys = meter.tags();
    if (keys.size() != values.length) {
      throw new IllegalArgumentException(
          meter.id() + " has the tags " + keys + " but was given " + values.length + " values");
    }
    Tags tags = Tags.empty();
    for (int i = 0; i < values.length; i++) {
      tags = tags.and(keys.get(i), values[i]);
    }
    return tags;
  }
}
