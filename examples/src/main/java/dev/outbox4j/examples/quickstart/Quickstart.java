package dev.outbox4j.examples.quickstart;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.examples.orders.OrdersApplication;
import dev.outbox4j.examples.orders.OrdersDatabase;
import dev.outbox4j.examples.orders.PortTaken;
import dev.outbox4j.examples.run.Report;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.UUID;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/**
 * Runs the quickstart: {@code ./mvnw -q -Pquickstart}. Ends with 0 only if the reconciliation finds
 * nothing wrong.
 */
public final class Quickstart {
  private static final int CONNECTIONS = 2;

  private final Options options;
  private final PrintStream out;
  private final Ledger ledger = new Ledger();
  private final Counters counters = new Counters();

  Quickstart(Options options, PrintStream out) {
    this.options = options;
    this.out = out;
  }

  /**
   * Runs it and ends the JVM.
   *
   * @param args none; options are system properties, see docs/getting-started.md
   */
  public static void main(String[] args) {
    PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    CountDownLatch closed = closeOnShutdown();
    int code;
    try {
      Options options = Options.of(System.getProperties(), System.getenv("QUICKSTART_PASSWORD"));
      code = new Quickstart(options, out).run();
    } catch (IllegalArgumentException e) { // an option is wrong: a stack trace would not help
      out.println(e.getMessage());
      code = 2;
    } catch (PortTaken e) {
      out.println(e.getMessage() + ", by -Dquickstart.port=8081");
      code = 2;
    } catch (InterruptedException e) {
      out.println("Stopped before the end");
      code = 1;
    } catch (Exception e) {
      out.println("The quickstart failed: " + e.getMessage());
      e.printStackTrace(out);
      code = 1;
    } finally {
      closed.countDown();
    }
    System.exit(code);
  }

  /** On Ctrl-C, interrupts this thread and waits until it has closed all, in order. */
  private static CountDownLatch closeOnShutdown() {
    Thread main = Thread.currentThread();
    CountDownLatch closed = new CountDownLatch(1);
    Thread stopper =
        new Thread(
            () -> {
              main.interrupt();
              try {
                if (!closed.await(30, TimeUnit.SECONDS)) {
                  System.err.println("Not all was closed within 30 s");
                }
              } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
              }
            },
            "quickstart-stopper");
    Runtime.getRuntime().addShutdownHook(stopper);
    return closed;
  }

  /** {@return the process's exit code} */
  int run() throws SQLException, InterruptedException {
    out.println(options.url() == null ? "Starting an embedded PostgreSQL" : "Using your database");
    SimulatedWorld world = new SimulatedWorld();
    try (Database database = Database.open(options);
        OrdersApplication application =
            new OrdersApplication(database.config(), world, world, counters);
        HikariDataSource pool =
            new OrdersDatabase(database.config()).pool("quickstart", CONNECTIONS)) {
      HeartbeatClock clock = new HeartbeatClock(pool);
      Instant begun = clock.now(); // before anything is due
      application.start();
      out.printf("Serving at %s (/orders, /timers, /health, /metrics)%n", application.url());
      boolean right = driveAndReconcile(application.url(), pool, clock, begun);
      if (right && options.keepServing()) {
        serveUntilEnded(application.url());
      }
      return right ? 0 : 1;
    }
  }

  private boolean driveAndReconcile(
      String url, HikariDataSource pool, HeartbeatClock clock, Instant begun)
      throws SQLException, InterruptedException {
    out.printf("Placing %d orders over HTTP%n%n", options.orders());
    LoadDriver driver = new LoadDriver(url, options.orders(), ledger);
    driver.start();
    Duration took = new Progress(pool, driver, ledger, counters, out).watch();
    Period period = clock.awaitNext(begun);

    out.printf("%nReconciliation, from the database:%n");
    Report report = new Reconciliation(pool).compare(ledger.entries(), period);
    report.print(out);
    int unexpected = options.orders() - ledger.committed() - ledger.rolledBack();
    if (unexpected > 0) {
      out.printf("%d orders without the planned answer, such as:%n", unexpected);
      ledger.unexpectedExamples().forEach(example -> out.println("    " + example));
    }
    boolean right = report.holds() && unexpected == 0;
    out.printf(
        "%n%s: %d orders in %.1f s, %.0f orders/s from HTTP request to shipment%n",
        right ? "All accounted for" : "SOMETHING IS WRONG",
        options.orders(),
        took.toMillis() / 1000.0,
        counters.acked.sum() * 1000.0 / Math.max(1, took.toMillis()));
    return right;
  }

  private void serveUntilEnded(String url) throws InterruptedException {
    out.printf("%nServing on until Ctrl-C. Try:%n");
    out.printf("  curl -i %s/health%n", url);
    out.printf("  curl -s %s/timers%n", url);
    out.printf("  curl -s %s/metrics%n", url);
    out.printf(
        "  curl -i %s/orders -d '{\"id\":\"%s\",\"customer\":\"me\",\"item\":\"a book\",\"quantity\":1}'%n",
        url, UUID.randomUUID());
    new CountDownLatch(1).await(); // never counted down: Ctrl-C interrupts this thread
  }
}
