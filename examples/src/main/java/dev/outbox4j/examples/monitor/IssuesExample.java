package dev.outbox4j.examples.monitor;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.RetryPolicy;
import dev.outbox4j.examples.run.ExampleDatabase;
import dev.outbox4j.examples.run.Report;
import dev.outbox4j.examples.run.Waits;
import dev.outbox4j.monitor.MonitorControl;
import dev.outbox4j.monitor.MonitorType;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.notify.pgjdbc.PgjdbcListen;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import javax.sql.DataSource;

/**
 * Runs the example with shorter times: watches that end in each way there is, an API that fails for
 * a while, and a service that is replaced by another one; at the end each watch and each alert is
 * accounted for. {@code ./mvnw -q -Pquickstart
 * -Dquickstart.main=dev.outbox4j.examples.monitor.IssuesExample}, with {@code -Dquickstart.url} on
 * a database of yours.
 */
public final class IssuesExample {
  private static final String SCHEMA = "outbox_example_issues";
  private static final int THRESHOLD = 3;
  private static final int FAILURES = 20;
  private static final Duration SHORT = Duration.ofSeconds(2);
  private static final Duration MOST = Duration.ofMinutes(2);

  private static final MonitorType<IssueWatch> TYPE =
      OpenIssuesCheck.TYPE
          .every(Duration.ofMillis(200))
          .retry(RetryPolicy.constant(Duration.ofMillis(50)).attempts(1 + FAILURES));

  private final DataSource unpooled;
  private final String schema;
  private final int watches;
  private final PrintStream out;
  private final Waits waits = new Waits();

  /**
   * Creates what is not started.
   *
   * @param unpooled connections that find the schema first
   * @param schema where the tables are to be
   * @param watches how many there are of each course
   * @param out told what happens
   */
  IssuesExample(DataSource unpooled, String schema, int watches, PrintStream out) {
    this.unpooled = unpooled;
    this.schema = schema;
    this.watches = watches;
    this.out = out;
  }

  /**
   * Runs it and ends the JVM, with 0 only if the reconciliation finds nothing wrong.
   *
   * @param args none
   * @throws Exception if it cannot be run
   */
  public static void main(String[] args) throws Exception {
    PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    boolean right;
    try (ExampleDatabase database = ExampleDatabase.open(SCHEMA, out)) {
      right = new IssuesExample(database.unpooled(), database.schema(), 25, out).run();
    }
    System.exit(right ? 0 : 1);
  }

  /** {@return whether everything is accounted for} */
  boolean run() throws Exception {
    try (HikariDataSource pool = ExampleDatabase.pool(unpooled, IssueWatcher.CONNECTIONS);
        LocalIssuesApi api = new LocalIssuesApi()) {
      IssueWatcher.migrate(pool, schema);
      api.start();
      try (IssueWatcher first = started(TYPE, pool, api)) {
        WatchClient client = new WatchClient(first.url());
        for (Course course : List.of(Course.BUSY, Course.CLOSED, Course.GONE)) {
          startWatches(course, client, api);
        }
      }
      out.printf("%d watches were started, and their service is stopped%n", 3 * watches);
      // an expiry is on record with its instance, so this one is of those started here alone
      try (IssueWatcher second = started(TYPE.expiresAfter(SHORT), pool, api)) {
        WatchClient client = new WatchClient(second.url());
        api.failNext(FAILURES);
        startWatches(Course.QUIET, client, api);
        endWatches(client, api);
        return reconcile(pool);
      }
    }
  }

  private IssueWatcher started(MonitorType<IssueWatch> type, DataSource pool, LocalIssuesApi api) {
    IssueWatcher watcher = new IssueWatcher(pool, PgjdbcListen.on(unpooled), type, api.url());
    watcher.start(0);
    return watcher;
  }

  private void startWatches(Course course, WatchClient client, LocalIssuesApi api)
      throws IOException, InterruptedException {
    for (int i = 0; i < watches; i++) {
      String repository = Course.repository(course.id(i));
      if (course != Course.GONE) {
        api.setOpenIssues(repository, THRESHOLD - 1);
      }
      client.start(course.id(i), new IssueWatch(repository, THRESHOLD));
    }
  }

  private void endWatches(WatchClient client, LocalIssuesApi api)
      throws IOException, InterruptedException {
    for (int i = 0; i < watches; i++) {
      api.setOpenIssues(Course.repository(Course.BUSY.id(i)), THRESHOLD);
      client.terminate(Course.CLOSED.id(i), "the project is over");
    }
    out.printf("Another one goes on, with an API that fails %d requests%n", FAILURES);
  }

  private boolean reconcile(DataSource pool) throws Exception {
    MonitorControl control =
        MonitorControl.of(
            PostgresOutbox.on(pool, OutboxTable.named("outbox")), IssueWatcher.APPLICATION);
    List<Report.Line> lines = new ArrayList<>();
    for (Course course : Course.values()) {
      lines.add(ends(course, control));
    }
    waits.until("that all is handled", () -> isOver(pool));

    Reconciliation.Report found = Reconciliation.compare(pool);
    out.printf("%nReconciliation, from the database:%n");
    new Report(lines, found.faults()).print(out);
    boolean right =
        lines.stream().allMatch(Report.Line::holds)
            && found.faults().isEmpty()
            && found.met() == watches;
    out.printf(
        "%n%s: %d alerts of %d repositories with too many open issues%n",
        right ? "All accounted for" : "SOMETHING IS WRONG", found.alerts(), watches);
    return right;
  }

  private Report.Line ends(Course course, MonitorControl control) throws InterruptedException {
    List<String> wrong = new ArrayList<>();
    for (int i = 0; i < watches; i++) {
      String id = course.id(i);
      if (control.await(id, MOST).filter(course::isEndOf).isEmpty()) {
        wrong.add(id);
      }
    }
    return new Report.Line(
        course.end(), watches, wrong.size(), wrong.subList(0, Math.min(3, wrong.size())));
  }

  /** An instance that has ended may have a wake or an alert on its way. */
  private static boolean isOver(DataSource pool) throws SQLException {
    return Reconciliation.compare(pool).messages() == 0;
  }
}
