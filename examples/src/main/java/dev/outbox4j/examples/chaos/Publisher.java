package dev.outbox4j.examples.chaos;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.examples.chaos.Ledger.Kind;
import dev.outbox4j.postgres.OutboxPublisher;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.Published;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A process that publishes until it is killed: domain row and message in one transaction. */
final class Publisher {
  private static final Logger log = LoggerFactory.getLogger(Publisher.class);
  private static final int BATCH = 20;
  private static final Duration DELAY = Duration.ofSeconds(2);

  private final HikariDataSource pool;
  private final OutboxPublisher publisher =
      PostgresOutbox.publisher(OutboxTable.named("outbox")).build();
  private final long first;
  private final int perSecond;
  private final Random random = new Random();

  private Publisher(HikariDataSource pool, long first, int perSecond) {
    this.pool = pool;
    this.first = first;
    this.perSecond = perSecond;
  }

  /** Arguments: port, number of the first message, messages per second. */
  public static void main(String[] arguments) {
    HikariDataSource pool =
        Database.pool(Integer.parseInt(arguments[0]), 2, "chaos-publisher", false);
    new Publisher(pool, Long.parseLong(arguments[1]), Integer.parseInt(arguments[2])).run();
  }

  private void run() {
    long no = first;
    long begun = System.nanoTime();
    while (true) {
      long ahead =
          (no - first) * TimeUnit.SECONDS.toNanos(1) / perSecond - (System.nanoTime() - begun);
      if (ahead > 0) {
        LockSupport.parkNanos(ahead);
      } else if (ahead < -TimeUnit.SECONDS.toNanos(2)) {
        begun -= ahead; // after an outage, go on at the same rate and not faster
      }
      try (Connection connection = pool.getConnection()) {
        connection.setAutoCommit(false);
        publish(connection, no);
        if (random.nextInt(10) == 0) {
          connection.rollback();
        } else {
          connection.commit();
        }
      } catch (SQLException | RuntimeException outage) {
        log.info("a transaction failed: {}", outage.getMessage());
        LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(100));
      }
      no += BATCH; // never used again, whatever became of the transaction
    }
  }

  private void publish(Connection connection, long no) throws SQLException {
    List<Kind> kinds = new ArrayList<>();
    List<OutboxMessage> messages = new ArrayList<>();
    for (int i = 0; i < BATCH; i++) {
      Kind kind = kind();
      kinds.add(kind);
      OutboxMessage.Builder message =
          OutboxMessage.to("chaos").type(kind.name()).body(Long.toString(no + i));
      messages.add(kind == Kind.DELAYED ? message.deliverIn(DELAY).build() : message.build());
    }
    List<Published> rows = publisher.publish(connection, messages);
    try (PreparedStatement domain =
        connection.prepareStatement(
            "insert into committed (no, kind, outbox_id, due_at)"
                + " values (?, ?, ?, now() + make_interval(secs => ?))")) {
      for (int i = 0; i < BATCH; i++) {
        domain.setLong(1, no + i);
        domain.setString(2, kinds.get(i).name());
        domain.setLong(3, rows.get(i).rowId().orElseThrow());
        domain.setDouble(4, kinds.get(i) == Kind.DELAYED ? DELAY.toMillis() / 1e3 : 0);
        domain.addBatch();
      }
      domain.executeBatch();
    }
  }

  private Kind kind() {
    int lot = random.nextInt(10_000);
    if (lot < 200) {
      return Kind.FLAKY;
    }
    if (lot < 300) {
      return Kind.POISON;
    }
    if (lot < 350) {
      return Kind.ERROR;
    }
    if (lot < 450) {
      return Kind.SLOW;
    }
    if (lot < 452) {
      return Kind.STUBBORN;
    }
    return lot < 550 ? Kind.DELAYED : Kind.NORMAL;
  }
}
