package dev.outbox4j.dlq;

import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.postgres.PostgresOutbox;
import java.time.Duration;
import java.util.Objects;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Keeps a dead-letter table small, and its partitions ahead of time.
 *
 * <p>In a plain table it deletes, in batches, the letters of its outbox that were resolved longer
 * ago than they are kept, as {@link DeadLetterSelection#purge} does. In a table that is partitioned
 * by {@code failed_at} it creates the coming partitions, and drops the old ones: one that has had
 * no unresolved letter for as long as resolved ones are kept, whichever outboxes its letters are
 * of. Unresolved letters are never deleted, and hold their partition, unless {@link
 * Builder#keepAll} says otherwise.
 *
 * <p>Any number of processes may run it: one at a time works, and what a process leaves undone that
 * dies, another does after five minutes, or after 35 if the server was reading for it. Each run is
 * in the audit, and so is each partition that is dropped. It holds no connection between its
 * statements. Its connections need the rights of an operator for a plain table, and those of the
 * tables' owner for a partitioned one. Thread-safe.
 */
public final class DeadLetterRetention {
  /** How long resolved letters are kept unless another time is given: 30 days. */
  public static final Duration DEFAULT_KEEP_RESOLVED = Duration.ofDays(30);

  /** How often it runs unless another time is given: once a day. */
  public static final Duration DEFAULT_EVERY = Duration.ofDays(1);

  /** How many coming partitions there are unless another number is given: {@value}. */
  public static final int DEFAULT_PARTITIONS_AHEAD = 3;

  /** What the audit has for who did it unless another name is given: {@value}. */
  public static final String DEFAULT_BY = "retention";

  private final JdbcWorklist worklist;
  private final JdbcPartitions partitions;
  private final RetentionSettings settings;
  private final Patience patience;
  private final Object lock = new Object();
  private final RetentionState state = new RetentionState();
  private @Nullable RetentionLoop loop; // guarded by lock

  private DeadLetterRetention(Builder builder) {
    this.worklist = new JdbcWorklist(builder.outbox, builder.deadLetters);
    this.partitions = new JdbcPartitions(builder.outbox, builder.deadLetters);
    this.settings =
        new RetentionSettings(
            builder.by,
            builder.keepResolved,
            builder.keepAll,
            builder.every,
            builder.partitionsAhead);
    this.patience = builder.patience;
  }

  /**
   * Starts a retention of the letters of an outbox.
   *
   * @param outbox the outbox, and where to reach it
   * @param deadLetters the table to which its subscribers move what failed
   * @return a builder; it touches no database
   */
  public static Builder builder(PostgresOutbox outbox, DeadLetterQueue deadLetters) {
    return new Builder(outbox, deadLetters);
  }

  /**
   * Begins to run: at once, and then as often as it is told, on a daemon thread of its own. A run
   * that fails, or leaves something, is logged and tried again after five minutes, or three times
   * what it took if that is longer. Does nothing if it was started already.
   */
  public void start() {
    synchronized (lock) {
      if (loop == null || !loop.isAlive()) {
        RetentionLoop next =
            new RetentionLoop(
                worklist.name(),
                settings.every(),
                () -> tried(state.isOwing() ? Duration.ZERO : enough(settings.every())));
        next.start();
        loop = next;
      }
    }
  }

  /**
   * Ends it: a run that goes on stops after the statement that is under way. Waits up to 5 s for
   * that. Does nothing if it was not started.
   */
  public void stop() {
    RetentionLoop last;
    synchronized (lock) {
      last = loop;
      loop = null;
    }
    if (last != null) {
      last.stop();
    }
  }

  /**
   * Runs once, on the caller's thread, whether it was started or not. An interrupt ends it early:
   * the report says so, and the thread stays interrupted.
   *
   * @return what it has done; empty if another process, or another thread of this one, runs it at
   *     this moment
   * @throws OutboxStoreException if a statement fails; what was done before stays so
   * @throws OutboxException if the comment on a partitioned table does not say by what
   */
  public Optional<DeadLetterRetentionReport> run() {
    return tried(Duration.ZERO);
  }

  /** One that ended so long ago is enough; a little less than the pause, which begins later. */
  private static Duration enough(Duration every) {
    return every.multipliedBy(9).dividedBy(10);
  }

  private Optional<DeadLetterRetentionReport> tried(Duration pause) {
    try {
      Optional<DeadLetterRetentionReport> report =
          new RetentionRun(worklist, partitions, settings, patience).run(pause);
      state.ran(report);
      return report;
    } catch (RuntimeException | Error failure) {
      state.failed(failure);
      throw failure;
    }
  }

  /** {@return how it is; in memory, cheap} */
  public DeadLetterRetentionHealth health() {
    boolean running;
    synchronized (lock) {
      running = loop != null && loop.isAlive();
    }
    return state.health(running);
  }

  @Override
  public String toString() {
    return "DeadLetterRetention[" + worklist.name() + "]";
  }

  /** Sets a retention up. Not thread-safe. */
  public static final class Builder {
    private static final Duration LEAST_KEPT = Duration.ofHours(1);
    private static final Duration MOST_KEPT = Duration.ofDays(36_525);
    private static final Duration MOST_OFTEN = Duration.ofMinutes(1);
    private static final Duration LEAST_OFTEN = Duration.ofDays(7);
    private static final int MOST_AHEAD = 50;

    private final PostgresOutbox outbox;
    private final DeadLetterQueue deadLetters;
    private String by = DEFAULT_BY;
    private Duration keepResolved = DEFAULT_KEEP_RESOLVED;
    private @Nullable Duration keepAll;
    private Duration every = DEFAULT_EVERY;
    private int partitionsAhead = DEFAULT_PARTITIONS_AHEAD;
    private Patience patience = Patience.STANDARD;

    private Builder(PostgresOutbox outbox, DeadLetterQueue deadLetters) {
      this.outbox = Objects.requireNonNull(outbox, "outbox");
      this.deadLetters = Objects.requireNonNull(deadLetters, "deadLetters");
    }

    /**
     * Sets how long letters are kept after they were resolved. A partition is kept so long after
     * its last letter was found resolved.
     *
     * @param time 1 hour to 100 years; default {@link #DEFAULT_KEEP_RESOLVED}
     * @return this builder
     * @throws IllegalArgumentException if it is out of range
     */
    public Builder keepResolved(Duration time) {
      this.keepResolved =
          require("keepResolved", time, LEAST_KEPT, MOST_KEPT, "1 hour to 100 years");
      return this;
    }

    /**
     * Sets how long any letter is kept after it failed, <b>whether anybody has looked at it or
     * not</b>, and whether its message is in the outbox again or not; an ordering key that waits
     * for it goes on. A partition is dropped once all of its letters failed so long ago.
     *
     * @param time 1 hour to 100 years, and not shorter than resolved letters are kept; by default,
     *     letters that nobody resolves are kept for ever
     * @return this builder
     * @throws IllegalArgumentException if it is out of range
     */
    public Builder keepAll(Duration time) {
      this.keepAll = require("keepAll", time, LEAST_KEPT, MOST_KEPT, "1 hour to 100 years");
      return this;
    }

    /**
     * Sets how often it runs, over all processes.
     *
     * @param time 1 minute to 7 days; default {@link #DEFAULT_EVERY}
     * @return this builder
     * @throws IllegalArgumentException if it is out of range
     */
    public Builder every(Duration time) {
      this.every = require("every", time, MOST_OFTEN, LEAST_OFTEN, "1 minute to 7 days");
      return this;
    }

    /**
     * Sets how many partitions there are beyond the one of now, in a partitioned table. Together
     * they should be of more time than the retention may stand still. There are as many more as it
     * takes until the next run.
     *
     * @param count 1 to 50; default {@value #DEFAULT_PARTITIONS_AHEAD}
     * @return this builder
     * @throws IllegalArgumentException if it is out of range
     */
    public Builder partitionsAhead(int count) {
      if (count < 1 || count > MOST_AHEAD) {
        throw new IllegalArgumentException(
            "partitionsAhead is " + count + "; it must be 1 to " + MOST_AHEAD);
      }
      this.partitionsAhead = count;
      return this;
    }

    /**
     * Sets who is in the audit.
     *
     * @param by the name of the service, or of who runs it; not blank, at most 255 bytes in UTF-8;
     *     default {@value #DEFAULT_BY}
     * @return this builder
     * @throws IllegalArgumentException if the text is blank or too long
     */
    public Builder by(String by) {
      this.by = Words.requireBy(by);
      return this;
    }

    Builder patience(Patience patience) {
      this.patience = patience;
      return this;
    }

    /**
     * Builds it. Does no I/O.
     *
     * @return the retention, not started
     * @throws IllegalStateException if {@code keepAll} is shorter than {@code keepResolved}
     */
    public DeadLetterRetention build() {
      if (keepAll != null && keepAll.compareTo(keepResolved) < 0) {
        throw new IllegalStateException(
            "keepAll is "
                + keepAll
                + " and keepResolved is "
                + keepResolved
                + "; resolved letters would not be kept as long as they are to be: set keepAll to"
                + " as much or more");
      }
      return new DeadLetterRetention(this);
    }

    private static Duration require(
        String what, Duration time, Duration least, Duration most, String range) {
      if (time.compareTo(least) < 0 || time.compareTo(most) > 0) {
        throw new IllegalArgumentException(what + " is " + time + "; it must be " + range);
      }
      return time;
    }
  }
}
