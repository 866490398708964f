package dev.outbox4j.postgres.internal;

import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.QueueDepth;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.List;
import java.util.Map;
import java.util.function.BooleanSupplier;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/**
 * Counts all queues of an outbox, if no other process does so. Not thread-safe; holds no connection
 * between two looks.
 *
 * <p>Who counts has a lease, a row among the sleepers under a queue that no message can have. The
 * instant until which it lasts, by the server's clock, is what its owner knows it by: each lease
 * ends later than the one before, so nobody else has the same. Taken in a transaction of its own,
 * it is not locked while the queues are counted.
 */
public final class SharedDepths {
  /** No lease is longer. One that seems to be is of a clock that was set back, and is over. */
  public static final Duration LONGEST_LEASE = Duration.ofMinutes(10);

  private static final Duration LONGEST_ANSWER = Duration.ofSeconds(10);
  private static final OffsetDateTime NONE = OffsetDateTime.MIN; // -infinity

  /** Looks before it writes: who has no chance locks nothing. */
  static final String TAKE =
      """
      with taken as (
        insert into {sleepers} as s (queue, subscriber, wake_at, until)
        select '', 'depths', timestamptz '-infinity',
          clock_timestamp() + make_interval(secs => :lease)
        where not exists (
          select from {sleepers} h
          where h.queue = '' and h.subscriber = 'depths' and h.until <> :mine
            and h.until > clock_timestamp()
            and h.until <= clock_timestamp() + make_interval(secs => :longest))
        on conflict (queue, subscriber) do update set until = excluded.until
        where s.until = :mine or s.until <= clock_timestamp()
          or s.until > clock_timestamp() + make_interval(secs => :longest)
        returning s.until)
      select t.until, true, 0::float8 from taken t
      union all
      select h.until, false, extract(epoch from h.until - clock_timestamp())::float8
      from {sleepers} h
      where h.queue = '' and h.subscriber = 'depths' and not exists (select from taken)
      """;

  static final String GIVE_BACK =
      """
      update {sleepers} set until = clock_timestamp()
      where queue = '' and subscriber = 'depths' and until = :mine
      """;

  private final Jdbc jdbc;
  private final QueueDepths depths;
  private final Duration lease;
  private final Sql take;
  private final Sql giveBack;
  private OffsetDateTime mine = NONE;
  private boolean counting;

  /**
   * Renders the statements; does no I/O.
   *
   * @param dataSource where to borrow a connection for each look
   * @param table the outbox
   * @param interval how often it will look; a lease lasts for two, no statement longer than one
   */
  public SharedDepths(DataSource dataSource, OutboxTable table, Duration interval) {
    this.jdbc =
        new Jdbc(
            dataSource, table, interval.compareTo(LONGEST_ANSWER) < 0 ? interval : LONGEST_ANSWER);
    this.depths = new QueueDepths(table);
    this.lease = interval.multipliedBy(2);
    this.take = Preamble.before(TAKE, table);
    this.giveBack = Preamble.before(GIVE_BACK, table);
  }

  /**
   * What a look gave.
   *
   * @param depths all queues that have rows; null if they were not counted
   * @param heldFor how long the lease of whoever counts still lasts; zero if that is not known
   */
  public record Look(@Nullable List<QueueDepth> depths, Duration heldFor) {}

  /** {@return how long a lease lasts from its look on} */
  public Duration lease() {
    return lease;
  }

  /**
   * Takes or renews the lease, and if it was had counts.
   *
   * @param stopped asked once a connection is there, for which a pool may let wait; then nothing is
   *     sent any more
   * @return what was found
   * @throws dev.outbox4j.OutboxStoreException if a statement failed
   */
  public Look look(BooleanSupplier stopped) {
    counting = false;
    return jdbc.run(
        "counting all queues",
        connection -> stopped.getAsBoolean() ? new Look(null, Duration.ZERO) : look(connection));
  }

  private Look look(Connection connection) throws SQLException {
    Duration heldFor =
        jdbc.preamble()
            .run(
                connection,
                take,
                Map.of(
                    "lease", ServerTime.seconds(lease),
                    "longest", ServerTime.seconds(LONGEST_LEASE),
                    "mine", mine),
                null,
                (start, results) -> taken(results.next().rows()));
    if (!holds()) {
      return new Look(null, heldFor);
    }
    counting = true;
    return new Look(
        depths.readAll(connection, jdbc.preamble(), QueueDepths.DEFAULT_COUNT_LIMIT),
        Duration.ZERO);
  }

  private Duration taken(ResultSet rows) throws SQLException {
    try (rows) {
      boolean told = rows.next();
      mine = told && rows.getBoolean(2) ? rows.getObject(1, OffsetDateTime.class) : NONE;
      double seconds = told ? Math.max(0, rows.getDouble(3)) : 0;
      return Duration.ofNanos((long) (seconds * 1e9));
    }
  }

  /** {@return whether the last look had the lease} */
  public boolean holds() {
    return !mine.equals(NONE);
  }

  /** {@return whether the last look had come to count} */
  public boolean counting() {
    return counting;
  }

  /** Lets the lease run out, so that another process may try. */
  public void forgo() {
    mine = NONE;
  }

  /**
   * Ends the lease, so that another process need not wait.
   *
   * @throws dev.outbox4j.OutboxStoreException if the statement failed
   */
  public void giveBack() {
    if (holds()) {
      Map<String, Object> values = Map.of("mine", mine);
      mine = NONE;
      jdbc.run(
          "giving back the lease to count all queues",
          connection ->
              jdbc.preamble().run(connection, giveBack, values, null, (start, results) -> start));
    }
  }
}
