package dev.outbox4j.benchmarks.peers;

import com.gruelbox.transactionoutbox.Dialect;
import com.gruelbox.transactionoutbox.ExecutorSubmitter;
import com.gruelbox.transactionoutbox.Instantiator;
import com.gruelbox.transactionoutbox.Persistor;
import com.gruelbox.transactionoutbox.Submitter;
import com.gruelbox.transactionoutbox.TransactionManager;
import com.gruelbox.transactionoutbox.TransactionOutbox;
import com.gruelbox.transactionoutbox.TransactionOutboxEntry;
import com.gruelbox.transactionoutbox.TransactionOutboxListener;
import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.benchmarks.spi.BatchLoad;
import dev.outbox4j.benchmarks.spi.Bench;
import dev.outbox4j.benchmarks.spi.Draining;
import dev.outbox4j.benchmarks.spi.Sink;
import java.sql.SQLException;
import java.time.Duration;
import java.util.Base64;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;
import org.slf4j.event.Level;

/** transaction-outbox of Gruelbox: a saved method call per message. */
public final class Gruelbox implements Draining {
  private static volatile @Nullable Sink receiver;

  private @Nullable Thread flusher;
  private @Nullable ExecutorService workers;
  private @Nullable HikariDataSource pool;
  private volatile boolean running;

  /** Made by the service loader. */
  public Gruelbox() {}

  /** What is called later. */
  public static class Calls {
    /** Made by the library. */
    public Calls() {}

    /**
     * Handles a message.
     *
     * @param payload in Base64
     */
    public void handle(String payload) {
      Sink sink = receiver;
      if (sink != null) {
        sink.handle(Base64.getDecoder().decode(payload));
      }
    }
  }

  @Override
  public String name() {
    return "transaction-outbox";
  }

  @Override
  public String contract() {
    return "at least once: row lock and transaction held while the handler runs, delete one by one";
  }

  @Override
  public boolean reportsAcks() {
    return true;
  }

  private static TransactionOutbox outbox(
      TransactionManager transactions, Submitter submitter, TransactionOutboxListener listener) {
    return TransactionOutbox.builder()
        .transactionManager(transactions)
        .persistor(Persistor.forDialect(Dialect.POSTGRESQL_9))
        .instantiator(Instantiator.usingReflection())
        .submitter(submitter)
        .listener(listener)
        .build();
  }

  @Override
  public void prepare(Bench bench) throws SQLException {
    try (HikariDataSource connections = bench.pool(4)) {
      TransactionManager transactions = TransactionManager.fromDataSource(connections);
      TransactionOutbox outbox =
          outbox(transactions, (entry, work) -> {}, new TransactionOutboxListener() {});
      transactions.inTransaction(
          () ->
              outbox
                  .schedule(Calls.class)
                  .handle(Base64.getEncoder().encodeToString(BatchLoad.MARKER)));
    }
    BatchLoad.keepTemplate(bench, "txno_outbox");
  }

  @Override
  public void load(Bench bench, long first, long rows, int bytes) throws SQLException {
    BatchLoad.copies(
        bench,
        "txno_outbox",
        "jsonb_build_object('id', gen_random_uuid(), 'nextattempttime', localtimestamp - interval '1 day',"
            + " 'invocation', replace(t.invocation, "
            + BatchLoad.marker()
            + ", m.payload))",
        first,
        rows,
        bytes);
  }

  @Override
  public String countLeft() {
    return "select count(*) from txno_outbox where not processed";
  }

  @Override
  public void start(Bench bench, Sink sink) {
    receiver = sink;
    int threads = bench.number("threads");
    int queued = bench.number("queued");
    Duration pause = Duration.ofMillis(bench.number("flushMillis"));
    HikariDataSource connections = bench.pool(threads + 2);
    ThreadPoolExecutor executor =
        new ThreadPoolExecutor(
            threads, threads, 1, TimeUnit.SECONDS, new ArrayBlockingQueue<>(queued));
    TransactionOutbox outbox =
        outbox(
            TransactionManager.fromDataSource(connections),
            ExecutorSubmitter.builder()
                .executor(executor)
                .logLevelWorkQueueSaturation(Level.DEBUG)
                .build(),
            new TransactionOutboxListener() {
              @Override
              public void success(TransactionOutboxEntry entry) {
                sink.acked(1);
              }
            });
    running = true;
    Thread thread =
        new Thread(
            () -> {
              while (running) {
                // a flush reads more than the workers can hold if it is not held back
                if (executor.getQueue().remainingCapacity() < queued / 2 || !outbox.flush()) {
                  LockSupport.parkNanos(pause.toNanos());
                }
              }
            },
            "flusher");
    thread.start();
    flusher = thread;
    workers = executor;
    pool = connections;
  }

  @Override
  public void stop() throws InterruptedException {
    running = false;
    if (flusher != null && workers != null && pool != null) {
      flusher.join();
      workers.shutdownNow();
      if (!workers.awaitTermination(10, TimeUnit.SECONDS)) {
        throw new IllegalStateException("workers do not end");
      }
      pool.close();
    }
  }
}
