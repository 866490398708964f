package dev.outbox4j.examples.chaos;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.lock.HeldLock;
import dev.outbox4j.lock.LockLostException;
import dev.outbox4j.lock.Locks;
import dev.outbox4j.lock.SingletonLock;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.notify.pgjdbc.PgjdbcListen;
import java.io.IOException;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.locks.LockSupport;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A process of the {@link LockProof}: threads that want the same lock, until it is killed. */
final class LockContender {
  private static final Logger log = LoggerFactory.getLogger(LockContender.class);
  private static final int POOL = 6;
  private static final int ONE_OF_SO_MANY_HOLDS_LONG = 40;
  private static final int USUAL_MILLIS = 400;

  /** Longer than a period, so that it is renewed. */
  private static final int LONG_MILLIS = 20_000;

  private static final Duration BETWEEN_WRITES = Duration.ofMillis(20);
  private static final Duration AFTER_A_FAILURE = Duration.ofMillis(100);

  private final HikariDataSource pool;
  private final SingletonLock lock;
  private final RunLog beliefs;

  private LockContender(HikariDataSource pool, SingletonLock lock, RunLog beliefs) {
    this.pool = pool;
    this.lock = lock;
    this.beliefs = beliefs;
  }

  /** Arguments: name, port, directory of what is left behind, number of threads. */
  public static void main(String[] arguments) throws IOException {
    String name = arguments[0];
    HikariDataSource pool = Database.pool(arguments[1], POOL, name, false);
    Locks locks =
        Locks.builder(PostgresOutbox.on(pool, OutboxTable.named("outbox")), "proof")
            .listen(PgjdbcListen.on(Database.at(arguments[1])))
            .build();
    locks.start();
    LockContender contender =
        new LockContender(pool, locks.lock("one"), RunLog.of(Path.of(arguments[2]), name));
    Orders.follow(order -> {});
    for (int i = 0; i < Integer.parseInt(arguments[3]); i++) {
      new Thread(contender::contend, "contender-" + i).start();
    }
    log.info("{}up", Subscriber.HEALTH);
  }

  private void contend() {
    while (true) {
      try (HeldLock held = lock.acquire()) {
        hold(held);
      } catch (InterruptedException e) {
        return;
      } catch (SQLException | IOException | RuntimeException e) {
        log.warn("a turn failed", e);
        LockSupport.parkNanos(AFTER_A_FAILURE.toNanos());
      }
    }
  }

  private void hold(HeldLock held) throws SQLException, IOException {
    ThreadLocalRandom random = ThreadLocalRandom.current();
    boolean isLong = random.nextInt(ONE_OF_SO_MANY_HOLDS_LONG) == 0;
    int millis = isLong ? LONG_MILLIS : random.nextInt(USUAL_MILLIS);
    long until = System.nanoTime() + Duration.ofMillis(millis).toNanos();
    long at = RunLog.now();
    while (held.isHeld()) {
      beliefs.done(new RunLog.Run(0, 0, held.token(), at, at));
      write(held);
      if (System.nanoTime() - until > 0) {
        break;
      }
      LockSupport.parkNanos(BETWEEN_WRITES.toNanos());
      at = RunLog.now(); // before it is asked, so that it was true then
    }
    if (!held.isHeld()) {
      writeAllTheSame(held);
    }
  }

  /** Reads a sum and writes one more, which goes wrong if another does it at the same time. */
  private void write(HeldLock held) throws SQLException {
    try (Connection connection = pool.getConnection();
        Statement statement = connection.createStatement()) {
      connection.setAutoCommit(false);
      try {
        held.guard(connection);
        statement.execute(
            "do $$ declare read bigint; begin select n into read from summed;"
                + " update summed set n = read + 1; end $$");
        statement.execute("insert into written (token) values (" + held.token() + ")");
        statement.execute("update fenced set fence = greatest(fence, " + held.token() + ")");
        connection.commit();
      } catch (LockLostException e) {
        connection.rollback();
      }
    }
  }

  /** As one does who does not know yet: the fence alone keeps the write from counting. */
  private void writeAllTheSame(HeldLock held) throws SQLException, IOException {
    try (Connection connection = pool.getConnection();
        Statement statement = connection.createStatement()) {
      int rows =
          statement.executeUpdate(
              "update fenced set fence = %d where fence <= %d"
                  .formatted(held.token(), held.token()));
      if (rows == 0) {
        long at = RunLog.now();
        beliefs.failed(new RunLog.Run(0, 0, held.token(), at, at));
      }
    }
  }
}
