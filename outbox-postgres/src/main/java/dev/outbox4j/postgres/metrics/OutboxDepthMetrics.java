package dev.outbox4j.postgres.metrics;

import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.internal.SharedDepths;
import io.micrometer.core.instrument.MeterRegistry;
import java.time.Duration;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Shows what all queues of an outbox hold, also those that nobody subscribes to, as gauges of a
 * Micrometer registry. Thread-safe. Use one object for each outbox and registry.
 *
 * <p>Any number of processes may do this: one of them counts, once an interval, and shows the
 * gauges; each other one reads a single row once an interval, to see whether it has to take over,
 * and shows none. When the process that counts dies or is cut off, its gauges become NaN, and
 * another one takes over within about two intervals. So a dashboard writes {@code max by (table,
 * queue)}.
 *
 * <p>A look takes a connection of the data source for a moment and keeps none. Its role needs what
 * a subscriber's or an operator's has: select on the outbox, and the right to write a row among the
 * sleepers. A database that fails is told of once in the log, and tried again.
 *
 * <p>The first {@value #MAX_QUEUES} queues have gauges of their own; what is in further ones is
 * added up under {@value #OTHER_QUEUES}, so that queues that are made from data cannot flood the
 * registry. A queue that has become empty is shown as zero for an hour, or until another needs its
 * place.
 */
public final class OutboxDepthMetrics implements AutoCloseable {
  /** How often queues are counted by default: every 15 s. */
  public static final Duration DEFAULT_INTERVAL = Duration.ofSeconds(15);

  /** How many queues have gauges of their own: {@value}. */
  public static final int MAX_QUEUES = 100;

  /** The value of the tag {@code queue} for all further queues: {@value}. */
  public static final String OTHER_QUEUES = "other";

  private final MeterRegistry registry;
  private final PostgresOutbox outbox;
  private final Duration interval;
  private final String tableTag;
  private final @Nullable ClassLoader loader = Thread.currentThread().getContextClassLoader();
  private @Nullable DepthLoop loop; // guarded by this

  private OutboxDepthMetrics(Builder settings) {
    this.registry = settings.registry;
    this.outbox = settings.outbox;
    this.interval = settings.interval;
    this.tableTag = settings.tableTag;
  }

  /**
   * Returns metrics with default settings, which are not started.
   *
   * @param registry where to show gauges; stays the caller's, who closes it
   * @param outbox the outbox, and where to borrow connections
   * @return the metrics
   */
  public static OutboxDepthMetrics on(MeterRegistry registry, PostgresOutbox outbox) {
    return builder(registry, outbox).build();
  }

  /**
   * Starts metrics with settings of your own.
   *
   * @param registry where to show gauges; stays the caller's, who closes it
   * @param outbox the outbox, and where to borrow connections
   * @return a builder; it touches no database
   */
  public static Builder builder(MeterRegistry registry, PostgresOutbox outbox) {
    return new Builder(registry, outbox);
  }

  /**
   * Begins to look, on a daemon thread {@code outbox-<table>-depths}. Succeeds without a database.
   * Does nothing if it was started already; may follow a {@link #stop()}.
   *
   * @throws IllegalStateException if the registry has gauges of this table by another object
   */
  public synchronized void start() {
    if (loop != null && loop.isAlive()) {
      return;
    }
    OutboxTable table = outbox.table();
    DepthLoop next =
        new DepthLoop(
            registry,
            table,
            new SharedDepths(outbox.dataSource(), table, interval),
            new DepthGauges(registry, tableTag, System::nanoTime),
            interval,
            loader);
    next.start();
    loop = next;
  }

  /**
   * Removes the gauges and lets another process count. Returns when the thread has ended, or after
   * 2 s; a statement that hangs longer ends behind it, at its time limit. Does nothing if it is not
   * started.
   */
  public synchronized void stop() {
    if (loop != null) {
      loop.stop();
      loop = null;
    }
  }

  /** The same as {@link #stop()}. */
  @Override
  public void close() {
    stop();
  }

  @Override
  public String toString() {
    return "OutboxDepthMetrics[" + tableTag + ", every " + interval + "]";
  }

  /** Collects settings. Not thread-safe; does no I/O. */
  public static final class Builder {
    private static final Duration SHORTEST = Duration.ofSeconds(1);
    private static final Duration LONGEST = SharedDepths.LONGEST_LEASE.dividedBy(2);

    private final MeterRegistry registry;
    private final PostgresOutbox outbox;
    private Duration interval = DEFAULT_INTERVAL;
    private String tableTag;

    private Builder(MeterRegistry registry, PostgresOutbox outbox) {
      this.registry = Objects.requireNonNull(registry, "registry");
      this.outbox = Objects.requireNonNull(outbox, "outbox");
      this.tableTag = outbox.table().toString();
    }

    /**
     * Sets how often queues are counted. No statement may take longer than this, nor than 10 s.
     *
     * @param interval from 1 s to 5 min; default {@link #DEFAULT_INTERVAL}. Best the same in all
     *     processes
     * @return this builder
     * @throws IllegalArgumentException if it is out of range
     */
    public Builder interval(Duration interval) {
      if (interval.compareTo(SHORTEST) < 0 || interval.compareTo(LONGEST) > 0) {
        throw new IllegalArgumentException(
            "interval is " + interval + "; it must be from " + SHORTEST + " to " + LONGEST);
      }
      this.interval = interval;
      return this;
    }

    /**
     * Sets the value of the tag {@code table}, to tell apart outboxes of one name in several
     * databases.
     *
     * @param value not blank; default the table's name, with its schema if it was named
     * @return this builder
     * @throws IllegalArgumentException if it is blank
     */
    public Builder tableTag(String value) {
      if (value.isBlank()) {
        throw new IllegalArgumentException("tableTag is blank; give it a value");
      }
      this.tableTag = value;
      return this;
    }

    /** {@return the metrics, which are not started} */
    public OutboxDepthMetrics build() {
      return new OutboxDepthMetrics(this);
    }
  }
}
