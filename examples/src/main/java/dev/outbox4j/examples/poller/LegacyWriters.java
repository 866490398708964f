package dev.outbox4j.examples.poller;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.util.Random;
import java.util.TreeSet;
import java.util.concurrent.CompletionService;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorCompletionService;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import javax.sql.DataSource;

/**
 * What the legacy application does: transactions that overlap, some of which stay open for a while,
 * some of which are rolled back, and some of which date rows back. Thread-safe.
 */
final class LegacyWriters {
  private static final String INSERT =
      "insert into legacy.customers (name, city) values (?, ?) returning id";

  /** As an import of old data does. */
  private static final String IMPORT =
      """
      insert into legacy.customers (name, city, updated_at)
      values (?, ?, now() - make_interval(hours => ?))
      """;

  private static final String UPDATE =
      """
      update legacy.customers
      set city = ?, revision = revision + 1, updated_at = now()
      where id = ?
      """;

  /** As a script does that "corrects" rows. */
  private static final String BACK_DATE =
      """
      update legacy.customers
      set city = ?, revision = revision + 1, updated_at = now() - make_interval(hours => ?)
      where id = ?
      """;

  private static final String DELETE =
      """
      update legacy.customers
      set deleted_at = now(), revision = revision + 1, updated_at = now()
      where id = ? and deleted_at is null
      """;

  private static final int MOST_HOURS = 1_000;

  private final DataSource dataSource;
  private final int writers;
  private final int transactions;
  private final Duration longest;

  /** The greatest id that may be updated. */
  private final AtomicLong ids = new AtomicLong();

  private final LongAdder committed = new LongAdder();
  private final LongAdder rolledBack = new LongAdder();

  /**
   * Creates what is not started.
   *
   * @param dataSource where the table is
   * @param writers how many there are
   * @param transactions how many each makes
   * @param longest for how long one of these stays open at most
   */
  LegacyWriters(DataSource dataSource, int writers, int transactions, Duration longest) {
    this.dataSource = dataSource;
    this.writers = writers;
    this.transactions = transactions;
    this.longest = longest;
  }

  /** Inserts customers, in one transaction. */
  void insert(int count) throws SQLException {
    try (Connection connection = begin()) {
      for (int i = 0; i < count; i++) {
        ids.accumulateAndGet(insert(connection, "customer " + i), Math::max);
      }
      connection.commit();
      committed.increment();
    }
  }

  /** Writes until all transactions are over. */
  void write() throws InterruptedException {
    ExecutorService threads = Executors.newFixedThreadPool(writers + 1);
    try {
      CompletionService<Void> all = new ExecutorCompletionService<>(threads);
      CountDownLatch begun = new CountDownLatch(1);
      CountDownLatch half = new CountDownLatch(writers * transactions / 2);
      all.submit(() -> stayOpen(begun, half));
      begun.await();
      for (int i = 0; i < writers; i++) {
        Random random = new Random(i);
        all.submit(() -> write(random, half));
      }
      for (int i = 0; i <= writers; i++) {
        all.take().get(); // in the order in which they end, so that one that fails ends the others
      }
    } catch (ExecutionException e) {
      throw new IllegalStateException("a writer failed", e.getCause());
    } finally {
      threads.shutdownNow();
    }
  }

  /** A transaction that begins before all others, and commits when half of them are over. */
  private Void stayOpen(CountDownLatch begun, CountDownLatch half)
      throws SQLException, InterruptedException {
    try (Connection connection = begin()) {
      for (int i = 0; i < 3; i++) {
        insert(connection, "late " + i);
      }
      begun.countDown();
      half.await();
      connection.commit();
      committed.increment();
    } finally {
      begun.countDown();
    }
    return null;
  }

  private Void write(Random random, CountDownLatch half) throws SQLException {
    for (int i = 0; i < transactions; i++) {
      try (Connection connection = begin()) {
        change(connection, random);
        stayOpen(connection, open(random));
        if (random.nextInt(20) == 0) {
          connection.rollback();
          rolledBack.increment();
        } else {
          connection.commit();
          committed.increment();
        }
      }
      half.countDown();
    }
    return null;
  }

  /** Time is all that is waited for here: it passes in a slow statement, as in many a program. */
  private static void stayOpen(Connection connection, long millis) throws SQLException {
    if (millis == 0) {
      return;
    }
    try (PreparedStatement slow = connection.prepareStatement("select pg_sleep(? / 1000.0)")) {
      slow.setLong(1, millis);
      slow.execute();
    }
  }

  /** Most are short, and one in twenty is long. */
  private long open(Random random) {
    return switch (random.nextInt(20)) {
      case 0 -> random.nextLong(longest.toMillis() + 1);
      case 1, 2, 3, 4 -> random.nextLong(longest.toMillis() / 10 + 1);
      default -> 0;
    };
  }

  /**
   * Rows are changed in the order of their ids, so that no two transactions wait for each other.
   */
  private void change(Connection connection, Random random) throws SQLException {
    for (int i = random.nextInt(3); i > 0; i--) {
      if (random.nextInt(5) == 0) {
        update(connection, IMPORT, "imported", "Lübeck", 1 + random.nextInt(MOST_HOURS));
      } else {
        insert(connection, "customer");
      }
    }
    TreeSet<Long> rows = new TreeSet<>();
    for (int i = random.nextInt(4); i > 0; i--) {
      rows.add(1 + random.nextLong(ids.get()));
    }
    for (long id : rows) {
      String city = "city " + random.nextInt(100);
      switch (random.nextInt(8)) {
        case 0 -> update(connection, BACK_DATE, city, 1 + random.nextInt(MOST_HOURS), id);
        case 1 -> update(connection, DELETE, id);
        default -> update(connection, UPDATE, city, id);
      }
    }
  }

  private Connection begin() throws SQLException {
    Connection connection = dataSource.getConnection();
    connection.setAutoCommit(false);
    return connection;
  }

  private static long insert(Connection connection, String name) throws SQLException {
    try (PreparedStatement insert = connection.prepareStatement(INSERT)) {
      insert.setString(1, name);
      insert.setString(2, "Kiel");
      try (ResultSet row = insert.executeQuery()) {
        row.next();
        return row.getLong(1);
      }
    }
  }

  private static void update(Connection connection, String sql, Object... values)
      throws SQLException {
    try (PreparedStatement update = connection.prepareStatement(sql)) {
      for (int i = 0; i < values.length; i++) {
        update.setObject(i + 1, values[i]);
      }
      update.executeUpdate();
    }
  }

  /** {@return how many transactions were committed} */
  long committed() {
    return committed.sum();
  }

  /** {@return how many were rolled back} */
  long rolledBack() {
    return rolledBack.sum();
  }
}
