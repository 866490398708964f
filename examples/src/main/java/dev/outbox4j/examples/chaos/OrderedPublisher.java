package dev.outbox4j.examples.chaos;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.examples.chaos.Ledger.Kind;
import dev.outbox4j.postgres.OutboxPublisher;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.Published;
import java.io.IOException;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/**
 * Publishes to keys of its own, one transaction after the other, so that each key has an order, at
 * a rate at most; and only a little ahead of the effects, so that no message waits for long behind
 * those of other keys.
 */
final class OrderedPublisher extends Thread {
  /** Each has so many numbers of its own. */
  private static final long NUMBERS = 1_000_000_000_000L;

  private static final int AT_ONCE = 200;
  private static final int AHEAD_OF_EACH_KEY = 4;
  private static final int FLAKY_PERCENT = 5;
  private static final int SLOW_PERCENT = 5;

  private final DataSource pool;
  private final Path runs;
  private final int slot;
  private final int keys;
  private final long messages;
  private final double rate;
  private final Random random;
  private final OutboxPublisher publisher =
      PostgresOutbox.publisher(OutboxTable.named("outbox")).build();
  private volatile @Nullable Throwable failure;

  /**
   * @param runs the directory of what has run
   * @param keys how many are its own
   * @param messages how many it publishes
   * @param rate how many a second at most
   */
  OrderedPublisher(
      DataSource pool, Path runs, int slot, int keys, long messages, double rate, Random seeds) {
    super("chaos-publisher-" + slot);
    setDaemon(true);
    this.pool = pool;
    this.runs = runs;
    this.slot = slot;
    this.keys = keys;
    this.messages = messages;
    this.rate = rate;
    this.random = new Random(seeds.nextLong());
  }

  /** What ended it too early, if anything did. */
  Optional<Throwable> failure() {
    return Optional.ofNullable(failure);
  }

  @Override
  public void run() {
    try {
      publishAll();
    } catch (IOException | SQLException | RuntimeException refused) {
      failure = refused;
    }
  }

  private void publishAll() throws IOException, SQLException {
    long ahead = (long) AHEAD_OF_EACH_KEY * keys;
    long mine = 0; // a part of the effects is of the others' messages, about as many for each
    long next = System.nanoTime();
    try (Connection connection = pool.getConnection()) {
      connection.setAutoCommit(false);
      while (mine < messages) {
        int count = (int) Math.min(AT_ONCE, messages - mine);
        publish(connection, slot * NUMBERS + mine, count);
        connection.commit();
        mine += count;
        next += (long) (count * 1e9 / rate);
        Watch.pause(Duration.ofNanos(next - System.nanoTime()));
        next = Math.max(next, System.nanoTime()); // what was held up is not made up for
        while (mine - RunLog.count(runs, RunLog.DONE) / OrderProof.PUBLISHERS > ahead) {
          Watch.pause(Duration.ofMillis(20));
        }
      }
    }
  }

  private void publish(Connection connection, long first, int count) throws SQLException {
    Long[] numbers = new Long[count];
    String[] kinds = new String[count];
    String[] ofKeys = new String[count];
    List<OutboxMessage> messages = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      Kind kind = drawnKind();
      numbers[i] = first + i;
      kinds[i] = kind.name();
      ofKeys[i] = slot + "-" + random.nextInt(keys);
      messages.add(
          OutboxMessage.to(Subscriber.ORDERED_QUEUE)
              .type(kind.name())
              .orderingKey(ofKeys[i])
              .body(Long.toString(first + i))
              .build());
    }
    Long[] rows =
        publisher.publish(connection, messages).stream()
            .map(OrderedPublisher::rowId)
            .toArray(Long[]::new);
    try (PreparedStatement domain =
        connection.prepareStatement(
            "insert into committed (no, kind, outbox_id, due_at, key, ordered)"
                + " select no, kind, row, clock_timestamp(), key, true"
                + " from unnest(?, ?, ?, ?) as t(no, kind, row, key)")) {
      domain.setArray(1, connection.createArrayOf("int8", numbers));
      domain.setArray(2, connection.createArrayOf("text", kinds));
      domain.setArray(3, connection.createArrayOf("int8", rows));
      domain.setArray(4, connection.createArrayOf("text", ofKeys));
      domain.executeUpdate();
    }
  }

  private static Long rowId(Published published) {
    return published.rowId().orElseThrow();
  }

  private Kind drawnKind() {
    int lot = random.nextInt(100);
    return lot < FLAKY_PERCENT
        ? Kind.FLAKY
        : lot < FLAKY_PERCENT + SLOW_PERCENT ? Kind.SLOW : Kind.NORMAL;
  }
}
