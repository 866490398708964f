package dev.outbox4j.postgres.internal;

import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.spi.LeaseRef;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * The last write of a handler's transaction: the same as the store's, of one row, and without what
 * the store sets for its own statements. The owner of the lease is a part of its fence: the handler
 * may have a connection to another database, with a row of the same id and token. Immutable.
 */
public final class SettlingWrites {
  /**
   * For the server, of how long the commit may take to come: the bucket is locked until then, and
   * of a network that is cut the server hears nothing. What is shorter is left so; zero is no
   * limit.
   */
  static final String LET_NOTHING_STAND =
      """
      select set_config('idle_in_transaction_session_timeout', (
        select case when known > 0 and known < :idle_millis::bigint then known
          else :idle_millis::bigint end
        from (
          select 1000 * extract(epoch from
            current_setting('idle_in_transaction_session_timeout')::interval)) as s (known)
      )::bigint::text, true)\
      """;

  private final OutboxTable table;
  private final Sql ack;
  private final Sql ackOfBucket;
  private final Sql reschedule;
  private final Sql rescheduleOfBucket;
  private final Sql handOver;

  /**
   * Renders them. They name the schema, since a handler may have set another search path.
   *
   * @param table the outbox
   * @param schema where it is; null if it is found on the search path
   * @param following what is written with an ack
   */
  public SettlingWrites(OutboxTable table, @Nullable String schema, Following following) {
    String name = table.name();
    FencedSql acking = new FencedSql(FencedSql.ACK.followedBy(following));
    this.table = table;
    this.ack = acking.alone("", schema, name);
    this.ackOfBucket = acking.ofBuckets().alone(LET_NOTHING_STAND + ";\n", schema, name);
    this.reschedule = new FencedSql(FencedSql.RESCHEDULE).alone("", schema, name);
    this.handOver = new FencedSql(FencedSql.HAND_OVER).alone("", schema, name);
    this.rescheduleOfBucket =
        new FencedSql(FencedSql.RESCHEDULE)
            .ofBuckets()
            .alone(LET_NOTHING_STAND + ";\n", schema, name);
  }

  /**
   * Deletes a row.
   *
   * @param connection in the handler's transaction
   * @param lease the row
   * @param owner who holds the lease
   * @param timeoutMillis for how long it may take
   * @return false if it is not held under the lease any more
   * @throws SQLException if it failed
   */
  public boolean ack(Connection connection, LeaseRef lease, String owner, int timeoutMillis)
      throws SQLException {
    return settle(
        connection, lease, ack, ackOfBucket, values(lease, owner, timeoutMillis), timeoutMillis);
  }

  /**
   * Makes a row due again.
   *
   * @param connection in the handler's transaction
   * @param lease the row
   * @param owner who holds the lease
   * @param delay how long from the write on
   * @param timeoutMillis for how long it may take
   * @return false if it is not held under the lease any more
   * @throws SQLException if it failed
   */
  public boolean reschedule(
      Connection connection, LeaseRef lease, String owner, Duration delay, int timeoutMillis)
      throws SQLException {
    Map<String, Object> values = values(lease, owner, timeoutMillis);
    values.put("delays", new double[] {ServerTime.seconds(delay)});
    values.put("channel", table.channel());
    return settle(connection, lease, reschedule, rescheduleOfBucket, values, timeoutMillis);
  }

  /** What was published in the row's place meanwhile is let go of, and what was done stands. */
  private boolean settle(
      Connection connection,
      LeaseRef lease,
      Sql ofRow,
      Sql ofBucket,
      Map<String, Object> values,
      int timeoutMillis)
      throws SQLException {
    if (BucketFence.isNeeded(lease)) {
      return run(connection, ofBucket, values, timeoutMillis);
    }
    if (run(connection, ofRow, values, timeoutMillis)) {
      return true;
    }
    values.put("channel", table.channel());
    return run(connection, handOver, values, timeoutMillis);
  }

  static Map<String, Object> values(LeaseRef lease, String owner, int timeoutMillis) {
    Map<String, Object> values = new HashMap<>();
    values.put("idle_millis", 2L * timeoutMillis + 1_000);
    values.put("queue", lease.queue());
    values.put("owner", owner);
    values.put("ids", new long[] {lease.id()});
    values.put("tokens", new long[] {lease.token()});
    if (BucketFence.isNeeded(lease)) {
      values.putAll(BucketFence.values(List.of(lease)));
    }
    return values;
  }

  private static boolean run(
      Connection connection, Sql sql, Map<String, Object> values, int timeoutMillis)
      throws SQLException {
    try (PreparedStatement statement = connection.prepareStatement(sql.text())) {
      // somebody may have locked the row
      statement.setQueryTimeout((int) Math.max(1, TimeUnit.MILLISECONDS.toSeconds(timeoutMillis)));
      sql.bind(statement, values);
      Results results = Results.of(statement);
      for (int i = 1; i < sql.statements(); i++) {
        results.next();
      }
      try (ResultSet done = results.rows()) {
        return done.next();
      }
    }
  }
}
