package dev.outbox4j.benchmarks.dbos;

import com.zaxxer.hikari.HikariDataSource;
import dev.dbos.transact.DBOS;
import dev.dbos.transact.StartWorkflowOptions;
import dev.dbos.transact.config.DBOSConfig;
import dev.dbos.transact.workflow.Queue;
import dev.dbos.transact.workflow.Workflow;
import dev.outbox4j.benchmarks.spi.BatchLoad;
import dev.outbox4j.benchmarks.spi.Bench;
import dev.outbox4j.benchmarks.spi.Draining;
import dev.outbox4j.benchmarks.spi.Sink;
import java.sql.SQLException;
import java.time.Duration;
import java.util.Base64;
import org.jspecify.annotations.Nullable;

/** A durable queue of DBOS Transact: a workflow without steps per message. */
public final class Dbos implements Draining {
  private static final String QUEUE = "bench";

  private @Nullable DBOS dbos;
  private @Nullable HikariDataSource pool;

  /** Made by the service loader. */
  public Dbos() {}

  private static final class Handler implements Handling {
    private final @Nullable Sink sink;

    Handler(@Nullable Sink sink) {
      this.sink = sink;
    }

    @Override
    @Workflow(name = "handle")
    public void handle(String payload) {
      if (sink != null) {
        sink.handle(Base64.getDecoder().decode(payload));
      }
    }
  }

  @Override
  public String name() {
    return "dbos-transact";
  }

  @Override
  public String contract() {
    return "at least once: a durable workflow per message, taken in batches, finished workflows are kept";
  }

  private static DBOS open(HikariDataSource connections) {
    return new DBOS(
        DBOSConfig.defaults(QUEUE)
            .withDataSource(connections)
            .withAppVersion("1")
            .withExecutorId("bench"));
  }

  @Override
  public void prepare(Bench bench) throws SQLException {
    try (HikariDataSource connections = bench.pool(8);
        DBOS writer =
            new DBOS(
                DBOSConfig.defaults(QUEUE)
                    .withDataSource(connections)
                    .withAppVersion("1")
                    .withExecutorId("writer")
                    .withListenQueues("another"))) {
      writer.registerQueues(new Queue(QUEUE), new Queue("another"));
      Handling workflow = writer.registerProxy(Handling.class, new Handler(null));
      writer.launch();
      String payload = Base64.getEncoder().encodeToString(BatchLoad.MARKER);
      writer.startWorkflow(
          () -> workflow.handle(payload), new StartWorkflowOptions().withQueue(QUEUE));
    }
    BatchLoad.keepTemplate(bench, "dbos.workflow_status");
  }

  @Override
  public void load(Bench bench, long first, long rows, int bytes) throws SQLException {
    BatchLoad.copies(
        bench,
        "dbos.workflow_status",
        "jsonb_build_object('workflow_uuid', gen_random_uuid()::text, 'inputs', replace(t.inputs, "
            + BatchLoad.marker()
            + ", m.payload))",
        first,
        rows,
        bytes);
  }

  @Override
  public String countLeft() {
    return "select count(*) from dbos.workflow_status where status <> 'SUCCESS'";
  }

  @Override
  public void start(Bench bench, Sink sink) {
    HikariDataSource connections = bench.pool(bench.number("connections"));
    DBOS opened = open(connections);
    opened.registerQueues(
        new Queue(QUEUE)
            .withWorkerConcurrency(bench.number("threads"))
            .withPollingInterval(Duration.ofMillis(bench.number("pollMillis"))));
    opened.registerProxy(Handling.class, new Handler(sink));
    opened.launch();
    dbos = opened;
    pool = connections;
  }

  @Override
  public void stop() {
    if (dbos != null && pool != null) {
      dbos.close();
      pool.close();
    }
  }
}
