package dev.outbox4j.postgres.metrics;

import dev.outbox4j.postgres.QueueDepth;
import dev.outbox4j.postgres.metrics.DepthMeters.Tag;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.TimeGauge;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import java.util.function.ToDoubleFunction;
import org.jspecify.annotations.Nullable;

/**
 * The gauges of one outbox in one registry. Thread-safe. What they show is over by itself at an
 * instant, so that a thread that is stuck leaves nothing stale.
 */
final class DepthGauges {
  /** How long a queue that has become empty is shown. */
  static final long KEEP_EMPTY_NANOS = TimeUnit.HOURS.toNanos(1);

  private final MeterRegistry registry;
  private final String table;
  private final LongSupplier nanoTime;
  private final Map<String, Series> shown = new HashMap<>(); // guarded by this
  private @Nullable Meter asking; // guarded by this
  private boolean closed; // guarded by this
  private volatile @Nullable Long untilOrNull;

  /** What was counted last, and until when that holds. */
  private record Counted(Depth depth, long until) {}

  /** The gauges of one queue. */
  private static final class Series {
    final List<Meter> meters;
    final Holder holder;
    @Nullable Long emptySince;

    Series(Holder holder, List<Meter> meters) {
      this.holder = holder;
      this.meters = meters;
    }
  }

  /** What the gauges of one queue read, from any thread. */
  private static final class Holder {
    private volatile @Nullable Counted counted;
  }

  DepthGauges(MeterRegistry registry, String table, LongSupplier nanoTime) {
    this.registry = registry;
    this.table = table;
    this.nanoTime = nanoTime;
  }

  /**
   * Registers the gauge that tells whether this process counts.
   *
   * @throws IllegalStateException if the registry has it already
   */
  synchronized void open() {
    Tags tags = Tags.of(Tag.TABLE, table);
    if (registry.find(DepthMeters.ASKING.id()).tags(tags).meter() != null) {
      throw new IllegalStateException(
          "The registry has the depths of table '"
              + table
              + "' already; use one object for each outbox and registry, and tableTag(...) where"
              + " outboxes of several databases have the same name");
    }
    asking =
        Gauge.builder(DepthMeters.ASKING.id(), this::asking)
            .description(DepthMeters.ASKING.description())
            .tags(tags)
            .register(registry);
  }

  private Number asking() {
    Long until = untilOrNull;
    return until != null && isAhead(until) ? 1 : 0;
  }

  private boolean isAhead(long instant) {
    return instant - nanoTime.getAsLong() > 0;
  }

  /**
   * Shows what was counted.
   *
   * @param depths all queues that have rows
   * @param until when that is over, by the clock of this object
   */
  synchronized void show(List<QueueDepth> depths, long until) {
    if (closed) {
      return;
    }
    Set<String> present = new HashSet<>();
    depths.forEach(depth -> present.add(depth.queue()));
    Map<String, Depth> named = new HashMap<>();
    for (QueueDepth depth : depths) {
      String name =
          admits(depth.queue(), present) ? depth.queue() : OutboxDepthMetrics.OTHER_QUEUES;
      named.merge(name, Depth.of(depth), Depth::plus);
    }
    named.forEach(
        (name, depth) -> {
          Series series = shown.computeIfAbsent(name, this::register);
          series.emptySince = null;
          series.holder.counted = new Counted(depth, until);
        });
    showEmpty(named.keySet(), until);
    untilOrNull = until;
  }

  /** Tells whether a queue has gauges of its own, for which an empty one may have to go. */
  private boolean admits(String queue, Set<String> present) {
    if (queue.equals(OutboxDepthMetrics.OTHER_QUEUES)) {
      return false;
    }
    if (shown.containsKey(queue)) {
      return true;
    }
    boolean others = shown.containsKey(OutboxDepthMetrics.OTHER_QUEUES);
    if (shown.size() - (others ? 1 : 0) >= OutboxDepthMetrics.MAX_QUEUES) {
      String longestEmpty = longestEmpty(present);
      if (longestEmpty == null) {
        return false;
      }
      remove(Objects.requireNonNull(shown.remove(longestEmpty)));
    }
    shown.put(queue, register(queue));
    return true;
  }

  private @Nullable String longestEmpty(Set<String> present) {
    String found = null;
    long age = -1;
    for (Map.Entry<String, Series> each : shown.entrySet()) {
      String queue = each.getKey();
      if (!present.contains(queue) && !queue.equals(OutboxDepthMetrics.OTHER_QUEUES)) {
        Long since = each.getValue().emptySince;
        long thisAge = since == null ? 0 : nanoTime.getAsLong() - since;
        if (thisAge > age) {
          found = queue;
          age = thisAge;
        }
      }
    }
    return found;
  }

  private void showEmpty(Set<String> named, long until) {
    long now = nanoTime.getAsLong();
    for (Iterator<Map.Entry<String, Series>> all = shown.entrySet().iterator(); all.hasNext(); ) {
      Map.Entry<String, Series> each = all.next();
      if (!named.contains(each.getKey())) {
        Series series = each.getValue();
        Long since = series.emptySince;
        if (since == null) {
          series.emptySince = now;
        }
        if (since != null && now - since >= KEEP_EMPTY_NANOS) {
          all.remove();
          remove(series);
        } else {
          series.holder.counted = new Counted(Depth.EMPTY, until);
        }
      }
    }
  }

  private Series register(String queue) {
    Holder holder = new Holder();
    Tags tags = Tags.of(Tag.TABLE, table, Tag.QUEUE, queue);
    return new Series(
        holder,
        List.of(
            gauge(DepthMeters.READY, tags, holder, Depth::ready),
            gauge(DepthMeters.LEASED, tags, holder, Depth::leased),
            gauge(DepthMeters.LATER, tags, holder, Depth::later),
            timeGauge(DepthMeters.OLDEST_READY, tags, holder, Depth::oldestNanos),
            timeGauge(DepthMeters.OLDEST_DUE, tags, holder, Depth::oldestDueNanos)));
  }

  private Meter timeGauge(
      DepthMeters meter, Tags tags, Holder holder, ToDoubleFunction<Depth> reader) {
    return TimeGauge.builder(meter.id(), () -> value(holder, reader), TimeUnit.NANOSECONDS)
        .description(meter.description())
        .tags(tags)
        .register(registry);
  }

  private Meter gauge(DepthMeters meter, Tags tags, Holder holder, ToDoubleFunction<Depth> reader) {
    return Gauge.builder(meter.id(), () -> value(holder, reader))
        .description(meter.description())
        .tags(tags)
        .register(registry);
  }

  private Number value(Holder holder, ToDoubleFunction<Depth> reader) {
    Counted counted = holder.counted;
    return counted == null || !isAhead(counted.until())
        ? Double.NaN
        : reader.applyAsDouble(counted.depth());
  }

  /** Another process counts: removes the gauges of all queues. */
  synchronized void clear() {
    untilOrNull = null;
    shown.values().forEach(this::remove);
    shown.clear();
  }

  private void remove(Series series) {
    series.holder.counted = null;
    series.meters.forEach(registry::remove);
  }

  /** Removes all gauges; nothing is shown after that. */
  synchronized void close() {
    closed = true;
    clear();
    if (asking != null) {
      registry.remove(asking);
      asking = null;
    }
  }
}
