package dev.outbox4j.examples.chaos;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.LongAdder;
import org.postgresql.ds.PGSimpleDataSource;

/**
 * Writers of the {@link PollerProof}: transactions that stay open for up to 3 s, with rows at their
 * begin and their end, one of ten of which is rolled back; and one writer whose transaction stays
 * open for long.
 */
final class ChangeWriters implements AutoCloseable {
  /** What the session of the one that stays open is called. */
  static final String LONG = "long writer";

  private static final int WRITERS = 16;
  private static final int LONGEST_MILLIS = 3_000;
  private static final int ONE_OF_SO_MANY_IS_ROLLED_BACK = 10;
  private static final int MOST_ROWS = 4;
  private static final Duration BETWEEN_LONG_ONES = Duration.ofSeconds(5);
  private static final Duration LOOK_AGAIN = Duration.ofMillis(100);

  private static final String INSERT = "insert into changes default values";

  /** One of the latest rows, so that versions follow each other closely. */
  private static final String UPDATE =
      "update changes set revision = revision where id = (select max(id) - ? from changes)";

  private final String ports;
  private final PollerLedger ledger;
  private final long seed;
  private final Duration longTime;
  private final ExecutorService threads = Executors.newFixedThreadPool(WRITERS + 1);
  private final List<Future<?>> running = new ArrayList<>();
  private final LongAdder committed = new LongAdder();
  private final LongAdder rolledBack = new LongAdder();
  private volatile boolean stopping;
  private volatile long longNumber;
  private volatile long longSince;

  /**
   * Creates what is not started.
   *
   * @param ports the server's
   * @param ledger told of long transactions
   * @param seed fixes how long the others are
   * @param longTime how long the long ones are
   */
  ChangeWriters(String ports, PollerLedger ledger, long seed, Duration longTime) {
    this.ports = ports;
    this.ledger = ledger;
    this.seed = seed;
    this.longTime = longTime;
  }

  void start() {
    for (int i = 0; i < WRITERS; i++) {
      Random random = new Random(seed + i);
      running.add(threads.submit(() -> write(random)));
    }
    running.add(threads.submit(() -> writeForLong()));
  }

  private Void write(Random random) throws SQLException {
    try (Connection connection = open("writer")) {
      while (!stopping) {
        Duration half = Duration.ofMillis(random.nextInt(LONGEST_MILLIS) / 2);
        insert(connection, 1 + random.nextInt(MOST_ROWS));
        Watch.pause(half);
        if (random.nextBoolean()) {
          update(connection, random.nextInt(100));
        }
        Watch.pause(half);
        insert(connection, random.nextInt(MOST_ROWS));
        if (random.nextInt(ONE_OF_SO_MANY_IS_ROLLED_BACK) == 0) {
          connection.rollback();
          rolledBack.increment();
        } else {
          connection.commit();
          committed.increment();
        }
      }
    }
    return null;
  }

  private Void writeForLong() throws SQLException {
    try (Connection connection = open(LONG)) {
      for (long no = 1; !stopping; no++) {
        insert(connection, MOST_ROWS);
        ledger.longWriteBegins(no, longTime);
        longSince = System.nanoTime();
        longNumber = no;
        boolean whole = pause(longTime);
        longNumber = 0;
        insert(connection, MOST_ROWS);
        connection.commit();
        if (whole) {
          ledger.longWriteEnds(no);
        }
        pause(BETWEEN_LONG_ONES);
      }
    }
    return null;
  }

  /** Returns false if it was cut short, since the writers stop. */
  private boolean pause(Duration time) {
    long until = System.nanoTime() + time.toNanos();
    while (!stopping && System.nanoTime() < until) {
      Watch.pause(LOOK_AGAIN);
    }
    return !stopping;
  }

  private Connection open(String name) throws SQLException {
    PGSimpleDataSource source = Database.at(ports);
    source.setApplicationName(name);
    Connection connection = source.getConnection();
    connection.setAutoCommit(false);
    return connection;
  }

  private static void insert(Connection connection, int rows) throws SQLException {
    try (PreparedStatement insert = connection.prepareStatement(INSERT)) {
      for (int i = 0; i < rows; i++) {
        insert.executeUpdate();
      }
    }
  }

  private static void update(Connection connection, int behind) throws SQLException {
    try (PreparedStatement update = connection.prepareStatement(UPDATE)) {
      update.setInt(1, behind);
      update.executeUpdate();
    }
  }

  /** The long transaction that is open; 0 if none is. */
  long longNumber() {
    return longNumber;
  }

  /** For how long it is open at least. */
  Duration longFor() {
    return Duration.ofNanos(System.nanoTime() - longSince);
  }

  long committed() {
    return committed.sum();
  }

  long rolledBack() {
    return rolledBack.sum();
  }

  /** Lets all transactions come to their end; what failed is a breach. */
  void stop(Report report) throws InterruptedException {
    stopping = true;
    for (Future<?> each : running) {
      try {
        each.get();
      } catch (ExecutionException e) {
        report.breach("a writer failed: " + e.getCause());
      }
    }
  }

  @Override
  public void close() {
    stopping = true;
    threads.shutdownNow();
  }
}
