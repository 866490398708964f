package dev.outbox4j.benchmarks.peers;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.benchmarks.spi.BatchLoad;
import dev.outbox4j.benchmarks.spi.Bench;
import dev.outbox4j.benchmarks.spi.Draining;
import dev.outbox4j.benchmarks.spi.Sink;
import java.sql.SQLException;
import java.time.Duration;
import java.util.Base64;
import org.jobrunr.configuration.JobRunr;
import org.jobrunr.jobs.lambdas.JobRequest;
import org.jobrunr.jobs.lambdas.JobRequestHandler;
import org.jobrunr.server.BackgroundJobServerConfiguration;
import org.jobrunr.server.JobActivator;
import org.jobrunr.storage.StorageProvider;
import org.jobrunr.storage.sql.common.SqlStorageProviderFactory;
import org.jspecify.annotations.Nullable;

/** JobRunr's free edition: an enqueued job request per message. */
public final class JobRunrQueue implements Draining {
  private static volatile @Nullable Sink receiver;

  private @Nullable HikariDataSource pool;

  /** Made by the service loader. */
  public JobRunrQueue() {}

  /** A message as a job. */
  public static final class Message implements JobRequest {
    private String payload = "";

    /** Made by the library. */
    public Message() {}

    /** {@return the payload in Base64} */
    public String getPayload() {
      return payload;
    }

    /**
     * Sets the payload.
     *
     * @param payload in Base64
     */
    public void setPayload(String payload) {
      this.payload = payload;
    }

    @Override
    public Class<Handler> getJobRequestHandler() {
      return Handler.class;
    }
  }

  /** Runs the job of a message. */
  public static final class Handler implements JobRequestHandler<Message> {
    /** Made by the library. */
    public Handler() {}

    @Override
    public void run(Message message) {
      Sink sink = receiver;
      if (sink != null) {
        sink.handle(Base64.getDecoder().decode(message.getPayload()));
      }
    }
  }

  private static final class Activator implements JobActivator {
    private final Handler handler = new Handler();

    @Override
    public <T> T activateJob(Class<T> type) {
      return type.cast(handler);
    }
  }

  @Override
  public String name() {
    return "jobrunr";
  }

  @Override
  public String contract() {
    return "at least once: picked in batches with heartbeats, optimistic version, finished jobs are kept";
  }

  @Override
  public void prepare(Bench bench) throws SQLException {
    try (HikariDataSource connections = bench.pool(4)) {
      StorageProvider storage = SqlStorageProviderFactory.using(connections);
      Message message = new Message();
      message.setPayload(Base64.getEncoder().encodeToString(BatchLoad.MARKER));
      JobRunr.configure()
          .useStorageProvider(storage)
          .useJobActivator(new Activator())
          .initialize()
          .getJobRequestScheduler()
          .enqueue(message);
      JobRunr.destroy();
    }
    BatchLoad.keepTemplate(bench, "jobrunr_jobs");
  }

  @Override
  public void load(Bench bench, long first, long rows, int bytes) throws SQLException {
    // the job's id is in its JSON, too
    String id = "'00000000-0000-4000-8000-' || lpad(to_hex(m.sequence), 12, '0')";
    BatchLoad.copies(
        bench,
        "jobrunr_jobs",
        "jsonb_build_object('id', "
            + id
            + ", 'jobasjson', replace(replace(t.jobasjson, trim(t.id::text), "
            + id
            + "), "
            + BatchLoad.marker()
            + ", m.payload))",
        first,
        rows,
        bytes);
  }

  @Override
  public String countLeft() {
    return "select count(*) from jobrunr_jobs where state <> 'SUCCEEDED'";
  }

  @Override
  public void start(Bench bench, Sink sink) {
    receiver = sink;
    int threads = bench.number("threads");
    HikariDataSource connections = bench.pool(threads + 4);
    JobRunr.configure()
        .useStorageProvider(SqlStorageProviderFactory.using(connections))
        .useJobActivator(new Activator())
        .useBackgroundJobServer(
            BackgroundJobServerConfiguration.usingStandardBackgroundJobServerConfiguration()
                .andPollInterval(Duration.ofMillis(bench.number("pollMillis")))
                .andWorkerCount(threads)
                .andInterruptJobsAwaitDurationOnStopBackgroundJobServer(Duration.ofSeconds(2)))
        .initialize();
    pool = connections;
  }

  @Override
  public void stop() {
    JobRunr.destroy();
    if (pool != null) {
      pool.close();
    }
  }
}
