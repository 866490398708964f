package dev.outbox4j.examples.jobs;

import dev.outbox4j.job.JobAlert;
import dev.outbox4j.job.JobAlerts;
import dev.outbox4j.job.JobQueue;
import dev.outbox4j.migrations.JobMigrations;
import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.spi.NotificationSource;
import dev.outbox4j.spi.PayloadCodec;
import java.time.Duration;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import javax.sql.DataSource;
import org.flywaydb.core.Flyway;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The whole service: it enqueues analyses, runs them, and looks at what has failed for good. What
 * is not started enqueues and is an operator's tool.
 */
final class TasteApplication implements AutoCloseable {
  /** For its requests and its operator, besides those of the queue. */
  static final int CONNECTIONS = TasteQueue.CONNECTIONS + 4;

  private static final String OUTBOX = "outbox";
  private static final Duration BETWEEN_ROUNDS = Duration.ofMinutes(5);
  private static final Duration MOST_OF_A_ROUND = Duration.ofSeconds(20);
  private static final Logger LOG = LoggerFactory.getLogger(TasteApplication.class);

  private final JobQueue queue;
  private final TasteService service;
  private final DeadLetterConsumer deadLetters;
  private final ScheduledExecutorService rounds =
      Executors.newSingleThreadScheduledExecutor(task -> new Thread(task, DeadLetterConsumer.NAME));

  /**
   * Puts it together; nothing is done yet.
   *
   * @param dataSource a pool of {@value #CONNECTIONS} connections
   * @param notifications what tells of messages
   * @param codec what writes and reads jobs
   * @param api the analysis service
   * @param times those of the queue
   * @param alarm told of alerts
   */
  TasteApplication(
      DataSource dataSource,
      NotificationSource notifications,
      PayloadCodec codec,
      TasteApi api,
      TasteTimes times,
      Consumer<JobAlert> alarm) {
    PostgresOutbox outbox = PostgresOutbox.on(dataSource, OutboxTable.named(OUTBOX));
    queue =
        TasteQueue.define(outbox, codec, times)
            .onTransactional(TasteQueue.ANALYSIS, new TasteHandler(api)::handle)
            .listen(notifications)
            .probing(
                () -> {
                  api.probe();
                  return true;
                })
            .build();
    service = new TasteService(dataSource, queue);
    deadLetters = new DeadLetterConsumer(queue, JobAlerts.standard(), alarm);
  }

  /**
   * Makes the tables.
   *
   * @param dataSource connections of the tables' owner, which find the schema first
   * @param schema where they are to be
   */
  static void migrate(DataSource dataSource, String schema) {
    OutboxMigrations.of(schema, OUTBOX).migrate(dataSource);
    JobMigrations.of(schema, OUTBOX).migrate(dataSource);
    Flyway.configure()
        .dataSource(dataSource)
        .locations("classpath:dev/outbox4j/examples/jobs/migrations")
        .defaultSchema(schema)
        .table("tastes_schema_history")
        .baselineOnMigrate(true) // the outbox is in the schema already
        .baselineVersion("0")
        .load()
        .migrate();
  }

  /** Begins to run jobs, and to look at dead letters every five minutes. */
  @SuppressWarnings("FutureReturnValueIgnored") // the rounds end with their executor
  void start() {
    queue.start();
    long millis = BETWEEN_ROUNDS.toMillis();
    rounds.scheduleWithFixedDelay(this::round, millis, millis, TimeUnit.MILLISECONDS);
  }

  private void round() {
    try {
      Round round = deadLetters.look();
      LOG.info(
          "dead letters of tastes: {} replayed, {} discarded, {} kept{}",
          round.replayed(),
          round.discarded(),
          round.kept().size(),
          round.probe().map(why -> ", nothing replayed since " + why).orElse(""));
      deadLetters.purge();
    } catch (RuntimeException e) { // the next round may succeed
      LOG.warn("dead letters of tastes: a round failed, the next one goes on", e);
    }
  }

  /** {@return what users call} */
  TasteService service() {
    return service;
  }

  /** {@return the queue, to ask for the states of jobs and for its dead letters} */
  JobQueue queue() {
    return queue;
  }

  /** {@return what looks at the dead letters} */
  DeadLetterConsumer deadLetters() {
    return deadLetters;
  }

  /** Begins no job any more, and waits for those that run and for a round. */
  @Override
  public void close() {
    rounds.shutdown();
    queue.stop();
    try {
      if (!rounds.awaitTermination(MOST_OF_A_ROUND.toMillis(), TimeUnit.MILLISECONDS)) {
        rounds.shutdownNow(); // what it has done stays done
      }
    } catch (InterruptedException e) {
      rounds.shutdownNow();
      Thread.currentThread().interrupt();
    }
  }
}
