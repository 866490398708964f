package dev.outbox4j.examples.poller;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.Delivery;
import dev.outbox4j.SubscriberEvents;
import dev.outbox4j.examples.run.EmbeddedServer;
import dev.outbox4j.examples.run.ExampleDatabase;
import dev.outbox4j.examples.run.Report;
import dev.outbox4j.examples.run.Waits;
import dev.outbox4j.migrations.OrderedMigrations;
import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.migrations.PollerMigrations;
import dev.outbox4j.poller.Cursor;
import dev.outbox4j.poller.PollerStatus;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import javax.sql.DataSource;

/**
 * Runs the example: writers, a follower, the read model, and at the end a backfill and the
 * reconciliations. {@code ./mvnw -q -Pquickstart
 * -Dquickstart.main=dev.outbox4j.examples.poller.CustomersExample}
 */
public final class CustomersExample {
  private static final int CONNECTIONS = 12;
  private static final int SEEDED = 200;

  private final DataSource unpooled;
  private final Options options;
  private final PrintStream out;
  private final Waits waits = new Waits();
  private final Ticks ticks = new Ticks(waits);

  /**
   * How much is written.
   *
   * @param writers how many write at once, at most 8
   * @param transactions how many transactions each makes
   * @param longest for how long one of these stays open at most
   * @param cursor how the follower follows
   */
  record Options(int writers, int transactions, Duration longest, Cursor cursor) {}

  CustomersExample(DataSource unpooled, Options options, PrintStream out) {
    this.unpooled = unpooled;
    this.options = options;
    this.out = out;
  }

  /**
   * Runs it on a server of its own, and ends the JVM.
   *
   * @param args none
   * @throws Exception if it cannot be run
   */
  public static void main(String[] args) throws Exception {
    PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    boolean right;
    out.println("Starting an embedded PostgreSQL");
    try (EmbeddedServer server = EmbeddedServer.start()) {
      Options options =
          new Options(8, 200, Duration.ofMillis(1_500), Cursor.serverTime("updated_at"));
      right = new CustomersExample(server.dataSource(), options, out).run();
    }
    System.exit(right ? 0 : 1);
  }

  /** {@return whether everything is accounted for} */
  boolean run() throws Exception {
    int connections = CONNECTIONS + options.writers();
    try (HikariDataSource pool = ExampleDatabase.pool(unpooled, connections)) {
      OutboxMigrations.standard().migrate(pool);
      PollerMigrations.of("public", "outbox").migrate(pool);
      OrderedMigrations.of("public", "outbox", CustomersPoller.QUEUE).migrate(pool);
      LegacyDatabase.create(pool);
      PostgresOutbox outbox = PostgresOutbox.on(pool, OutboxTable.named("outbox"));
      try (CustomerDirectory directory = new CustomerDirectory(outbox, unpooled, handled());
          CustomersPoller follower =
              new CustomersPoller(outbox, pool, options.cursor(), waits, ticks)) {
        follower.forget();
        directory.start();
        follower.start();
        return writeAndReconcile(pool, follower);
      }
    }
  }

  private SubscriberEvents handled() {
    return new SubscriberEvents() {
      @Override
      public void acked(String subscriber, Delivery delivery) {
        waits.happened();
      }
    };
  }

  private boolean writeAndReconcile(DataSource pool, CustomersPoller follower) throws Exception {
    LegacyWriters writers =
        new LegacyWriters(pool, options.writers(), options.transactions(), options.longest());
    writers.insert(SEEDED);
    waits.until(
        "that the first customers are published",
        () -> follower.status().filter(status -> status.rows() == SEEDED).isPresent());

    writers.write();
    long written = System.nanoTime();
    awaitAll(follower, written);
    awaitEmptyQueue(pool);
    out.printf(
        "%d transactions were committed, %d rolled back%n",
        writers.committed(), writers.rolledBack());
    ticks.longestWait().ifPresent(held -> out.printf("The longest wait: %s%n", held));

    Reconciliation reconciliation = new Reconciliation(pool);
    out.printf("%nWhat the follower has published:%n");
    Report before = reconciliation.beforeBackfill();
    before.print(out);

    long rows = follower.backfill("customers-backfill-1");
    awaitEmptyQueue(pool);
    out.printf("%nRows that are dated back are behind the position of the follower.%n");
    out.printf("A backfill of %d rows has published them:%n", rows);
    Report after = reconciliation.afterBackfill();
    after.print(out);

    boolean right = before.holds() && after.holds();
    out.printf("%n%s%n", right ? "All accounted for" : "SOMETHING IS WRONG");
    return right;
  }

  /** The lag says since when all is handled that was committed. */
  private void awaitAll(CustomersPoller follower, long written) throws Exception {
    waits.until(
        "that all is published",
        () ->
            follower
                .status()
                .flatMap(PollerStatus::lag)
                .filter(lag -> lag.toNanos() < System.nanoTime() - written)
                .isPresent());
  }

  private void awaitEmptyQueue(DataSource pool) throws Exception {
    waits.until("that the queue is empty", () -> isEmpty(pool));
  }

  private static boolean isEmpty(DataSource pool) throws SQLException {
    try (Connection connection = pool.getConnection();
        Statement statement = connection.createStatement();
        ResultSet row =
            statement.executeQuery(
                "select not exists (select from outbox where queue = 'customers')")) {
      return row.next() && row.getBoolean(1);
    }
  }
}
