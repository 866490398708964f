package dev.outbox4j.examples.jobs;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.FailureReason;
import dev.outbox4j.codec.jackson2.Jackson2Codec;
import dev.outbox4j.dlq.DeadLetterFilter;
import dev.outbox4j.dlq.DeadLetterReport;
import dev.outbox4j.examples.run.ExampleDatabase;
import dev.outbox4j.examples.run.Report;
import dev.outbox4j.examples.run.Waits;
import dev.outbox4j.job.JobQueue;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.notify.pgjdbc.PgjdbcListen;
import dev.outbox4j.spi.PayloadCodec;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import javax.sql.DataSource;
import org.postgresql.ds.PGSimpleDataSource;

/**
 * Runs the example with shorter times: users like items, the analysis service fails, refuses and is
 * down, an older version of the service writes what the newer one cannot read, and one job kills
 * each process that runs it. The dead letters are looked at until none is open, and each request is
 * accounted for. {@code ./mvnw -q -Pquickstart
 * -Dquickstart.main=dev.outbox4j.examples.jobs.TasteExample}, with {@code -Dquickstart.url} on a
 * database of yours.
 */
public final class TasteExample {
  private static final String SCHEMA = "outbox_example_tastes";
  private static final int USERS = 20;
  private static final int ITEMS = 5;
  private static final int CONCURRENT = 100;
  private static final String OPERATOR = "ann";

  private final PGSimpleDataSource unpooled;
  private final String schema;
  private final int users;
  private final PrintStream out;
  private final Waits waits = new Waits();

  /**
   * Creates what is not started.
   *
   * @param unpooled connections that find the schema first
   * @param schema where the tables are to be
   * @param users how many there are of each kind
   * @param out told what happens
   */
  TasteExample(PGSimpleDataSource unpooled, String schema, int users, PrintStream out) {
    this.unpooled = unpooled;
    this.schema = schema;
    this.users = users;
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
      right = new TasteExample(database.unpooled(), database.schema(), USERS, out).run();
    }
    System.exit(right ? 0 : 1);
  }

  /** {@return whether everything is accounted for} */
  boolean run() throws Exception {
    try (HikariDataSource pool = ExampleDatabase.pool(unpooled, TasteApplication.CONNECTIONS);
        LocalTasteApi api = new LocalTasteApi()) {
      TasteApplication.migrate(pool, schema);
      api.start();
      try (TasteApplication application = application(pool, api, Jackson2Codec.standard())) {
        application.start();
        likeItems(pool, api, application.service());
        awaitEnds(pool);
        api.setDown(true);
        print("The analysis service is down", application.deadLetters().look());
        api.setDown(false);
        print("It works again", application.deadLetters().look());
        awaitEnds(pool);
      }
      runTheDeadlyJob(pool, api);
      // what was repaired is deployed
      try (TasteApplication application = application(pool, api, new RepairedCodec())) {
        application.start();
        print("With a repaired codec", application.deadLetters().look());
        discardTheDeadlyJob(application.queue());
        awaitEnds(pool);
        print("At the end", application.deadLetters().look());
        return reconcile(pool, application.queue());
      }
    }
  }

  private TasteApplication application(DataSource pool, LocalTasteApi api, PayloadCodec codec) {
    return new TasteApplication(
        pool,
        PgjdbcListen.on(unpooled),
        codec,
        new TasteApi(api.url()),
        TasteTimes.brief(),
        alert -> out.printf("ALERT %s: %s%n", alert.rule(), alert.detail()));
  }

  private void likeItems(DataSource pool, LocalTasteApi api, TasteService service)
      throws SQLException, InterruptedException {
    for (int i = 0; i < users; i++) {
      for (int item = 0; item < ITEMS; item++) {
        service.like("plain-" + i, "item " + item);
      }
      api.failNext("flaky-" + i, JobQueue.Builder.DEFAULT_BUDGET - 1);
      service.like("flaky-" + i, "a scarf");
      api.failNext("unlucky-" + i, JobQueue.Builder.DEFAULT_BUDGET);
      service.like("unlucky-" + i, "an umbrella");
      service.like("refused-" + i, LocalTasteApi.REFUSED);
      rollBack(pool, service, "undecided-" + i);
    }
    long enqueued = together(service, "popular");
    out.printf("%d requests of one user at once have enqueued %d job%n", CONCURRENT, enqueued);
    likeByAnOlderVersion(pool);
  }

  private static void rollBack(DataSource pool, TasteService service, String user)
      throws SQLException {
    try (Connection connection = pool.getConnection()) {
      connection.setAutoCommit(false);
      service.like(connection, user, "a hat");
      connection.rollback();
    }
  }

  /** {@return how many of many requests at once have enqueued a job} */
  private static long together(TasteService service, String user)
      throws SQLException, InterruptedException {
    Callable<Boolean> request = () -> service.analyse(user).enqueued();
    ExecutorService threads = Executors.newFixedThreadPool(CONCURRENT);
    try {
      long enqueued = 0;
      for (Future<Boolean> each : threads.invokeAll(Collections.nCopies(CONCURRENT, request))) {
        enqueued += each.get() ? 1 : 0;
      }
      return enqueued;
    } catch (ExecutionException e) {
      throw new IllegalStateException("a request failed", e.getCause());
    } finally {
      threads.shutdownNow();
    }
  }

  private void likeByAnOlderVersion(DataSource pool) throws SQLException {
    JobQueue older =
        TasteQueue.define(
                PostgresOutbox.on(pool, OutboxTable.named("outbox")),
                new LinesCodec(),
                TasteTimes.brief())
            .build();
    TasteService service = new TasteService(pool, older);
    for (int i = 0; i < users; i++) {
      service.like("older-" + i, "a cloak");
    }
  }

  private void runTheDeadlyJob(DataSource pool, LocalTasteApi api) throws Exception {
    try (TasteApplication application = application(pool, api, Jackson2Codec.standard())) {
      application.service().like("doomed", CrashingAnalyst.DEADLY); // it is not started
    }
    try (RestartedWorker worker = new RestartedWorker(unpooled, api.url())) {
      worker.start();
      awaitEnds(pool);
      out.printf(
          "A job has ended %d processes, and its user was asked for %d times%n",
          worker.ends(), api.calls("doomed"));
    }
  }

  private void discardTheDeadlyJob(JobQueue queue) {
    DeadLetterReport report =
        queue
            .deadLetters()
            .discard(
                DeadLetterFilter.reason(FailureReason.MAX_DELIVERIES),
                OPERATOR,
                "the library that crashes at a cursed ring is replaced first");
    out.printf("%s has discarded %d%n", OPERATOR, report.done());
  }

  private void print(String when, Round round) {
    out.printf(
        "%s: %d dead letters are replayed, %d discarded, %d kept%n",
        when, round.replayed(), round.discarded(), round.kept().size());
    round.probe().ifPresent(why -> out.printf("  nothing is replayed: %s%n", why));
    Map<String, Integer> reasons = new TreeMap<>();
    round.kept().values().forEach(why -> reasons.merge(firstLine(why), 1, Integer::sum));
    reasons.forEach((why, count) -> out.printf("  %d kept: %s%n", count, why));
  }

  private static String firstLine(String text) {
    return text.lines().findFirst().orElse("");
  }

  private boolean reconcile(DataSource pool, JobQueue queue) throws SQLException {
    Report found = new Reconciliation(pool, queue).compareWithinTheWindows();
    List<Report.Line> lines = new ArrayList<>(found.lines());
    lines.add(rolledBack(pool));
    Report report = new Report(lines, found.notes());
    out.printf("%nReconciliation, from the database:%n");
    report.print(out);
    out.printf("%n%s%n", report.holds() ? "All accounted for" : "SOMETHING IS WRONG");
    return report.holds();
  }

  private Report.Line rolledBack(DataSource pool) throws SQLException {
    String sql =
        """
        select %d, count(*), (array_agg(user_id))[1:3]
        from (
          select user_id from liked_items union all select user_id from taste_requests
          union all select user_id from taste_profiles) u
        where user_id like 'undecided-%%'
        """
            .formatted(users);
    try (Connection connection = pool.getConnection()) {
      return Report.Line.of(connection, "rolled back: nothing is there", sql);
    }
  }

  private void awaitEnds(DataSource pool) throws Exception {
    waits.until("that no job waits", () -> isEmpty(pool));
  }

  private static boolean isEmpty(DataSource pool) throws SQLException {
    try (Connection connection = pool.getConnection();
        Statement statement = connection.createStatement();
        ResultSet row = statement.executeQuery("select not exists (select from outbox)")) {
      return row.next() && row.getBoolean(1);
    }
  }
}
