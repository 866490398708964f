package dev.outbox4j.examples.chaos;

import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.QueuePauses;
import java.sql.SQLException;
import java.time.Duration;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import javax.sql.DataSource;

/**
 * Pauses a queue and resumes it, over and over, whatever faults are done meanwhile; and notes when
 * it was paused for certain. At its end the queue is not paused.
 */
final class Pauses implements AutoCloseable {
  private static final String BY = "harness";
  private static final Duration SHORTEST = Duration.ofSeconds(3);
  private static final Duration LONGEST = Duration.ofSeconds(8);
  private static final Duration TRY_AGAIN = Duration.ofMillis(100);

  private final QueuePauses pauses;
  private final Watch watch;
  private final Ledger ledger;
  private final Random random;
  private final Thread thread = new Thread(this::run, "chaos-pauses");
  private volatile boolean closed;

  Pauses(DataSource direct, Watch watch, Ledger ledger, long seed) {
    this.pauses = PostgresOutbox.on(direct, OutboxTable.named("outbox")).pauses();
    this.watch = watch;
    this.ledger = ledger;
    this.random = new Random(seed);
    thread.setDaemon(true);
  }

  void start() {
    thread.start();
  }

  private void run() {
    while (!closed) {
      aWhile();
      untilDone(() -> pauses.pause(Subscriber.PAUSED_QUEUE, BY, "to see that nothing begins"));
      String from = watch.now();
      aWhile();
      String to = watch.now();
      untilDone(() -> pauses.resume(Subscriber.PAUSED_QUEUE, BY));
      untilDone(() -> ledger.paused(from, to));
    }
  }

  /** A statement that may be repeated. */
  private interface Deed {
    void run() throws SQLException;
  }

  /** Tries until the server has done it. */
  private static void untilDone(Deed deed) {
    while (true) {
      try {
        deed.run();
        return;
      } catch (SQLException | RuntimeException serverIsDown) {
        Watch.pause(TRY_AGAIN);
      }
    }
  }

  private void aWhile() {
    long until =
        System.nanoTime()
            + SHORTEST.toNanos()
            + (long) (random.nextDouble() * LONGEST.minus(SHORTEST).toNanos());
    for (long left = until - System.nanoTime();
        left > 0 && !closed;
        left = until - System.nanoTime()) {
      LockSupport.parkNanos(left);
    }
  }

  /** Waits until the queue is resumed. */
  @Override
  public void close() {
    closed = true;
    LockSupport.unpark(thread);
    try {
      thread.join(TimeUnit.SECONDS.toMillis(90));
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    if (thread.isAlive()) {
      throw new IllegalStateException("the queue could not be resumed");
    }
  }
}
