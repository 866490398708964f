package dev.outbox4j.postgres.internal;

import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.spi.HandlerTransactions.Decision;
import dev.outbox4j.spi.LeaseRef;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.DoubleStream;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.jspecify.annotations.Nullable;

/**
 * The last write of a handler's transaction, for drivers that number parameters and take one
 * statement at a time. Immutable.
 */
public final class NumberedWrites {
  private final OutboxTable table;
  private final Sql letNothingStand;
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
   */
  public NumberedWrites(OutboxTable table, @Nullable String schema) {
    String name = table.name();
    this.table = table;
    this.letNothingStand = Sql.of(SettlingWrites.LET_NOTHING_STAND, schema, name);
    this.ack = new FencedSql(FencedSql.ACK).alone("", schema, name);
    this.ackOfBucket = new FencedSql(FencedSql.ACK).ofBuckets().alone("", schema, name);
    this.reschedule = new FencedSql(FencedSql.RESCHEDULE).alone("", schema, name);
    this.rescheduleOfBucket =
        new FencedSql(FencedSql.RESCHEDULE).ofBuckets().alone("", schema, name);
    this.handOver = new FencedSql(FencedSql.HAND_OVER).alone("", schema, name);
  }

  /**
   * A statement.
   *
   * @param text with {@code $1} for the first value
   * @param values none of them an array of primitives
   */
  public record Statement(String text, List<Object> values) {}

  /**
   * Returns the statements that settle a row, in their order. The last one gives a row, unless the
   * lease is not held any more, or the row {@linkplain #handOver was replaced}.
   *
   * @param lease the row
   * @param owner who holds the lease
   * @param decision to ack or to reschedule
   * @param timeoutMillis how long a commit may take to come
   * @return the statements
   */
  public List<Statement> of(LeaseRef lease, String owner, Decision decision, int timeoutMillis) {
    Map<String, Object> values = SettlingWrites.values(lease, owner, timeoutMillis);
    boolean ofBucket = BucketFence.isNeeded(lease);
    List<Statement> statements = new ArrayList<>();
    if (ofBucket) {
      statements.add(statement(letNothingStand, values));
    }
    if (decision instanceof Decision.Reschedule later) {
      values.put("delays", new double[] {ServerTime.seconds(later.delay())});
      values.put("channel", table.channel());
      statements.add(statement(ofBucket ? rescheduleOfBucket : reschedule, values));
    } else {
      statements.add(statement(ofBucket ? ackOfBucket : ack, values));
    }
    return statements;
  }

  /**
   * Returns the statement that lets go of what was published in a row's place meanwhile. It gives a
   * row, unless the lease is not held any more.
   *
   * @param lease the row
   * @param owner who holds the lease
   * @param timeoutMillis how long a commit may take to come
   * @return the statement; none for rows of buckets, whose first one does it
   */
  public List<Statement> handOver(LeaseRef lease, String owner, int timeoutMillis) {
    if (BucketFence.isNeeded(lease)) {
      return List.of();
    }
    Map<String, Object> values = SettlingWrites.values(lease, owner, timeoutMillis);
    values.put("channel", table.channel());
    return List.of(statement(handOver, values));
  }

  private static Statement statement(Sql sql, Map<String, Object> values) {
    return new Statement(
        sql.numbered(),
        sql.distinct().stream()
            .map(name -> boxed(Objects.requireNonNull(values.get(name), name)))
            .toList());
  }

  private static Object boxed(Object value) {
    if (value instanceof long[] longs) {
      return LongStream.of(longs).boxed().toArray(Long[]::new);
    }
    if (value instanceof int[] ints) {
      return IntStream.of(ints).boxed().toArray(Integer[]::new);
    }
    if (value instanceof double[] doubles) {
      return DoubleStream.of(doubles).boxed().toArray(Double[]::new);
    }
    return value;
  }
}
