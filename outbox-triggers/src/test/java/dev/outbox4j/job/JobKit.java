package dev.outbox4j.job;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.TypedHandler;
import dev.outbox4j.codec.jackson2.Jackson2Codec;
import dev.outbox4j.migrations.JobMigrations;
import dev.outbox4j.migrations.OrderedMigrations;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.notify.pgjdbc.PgjdbcListen;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import javax.sql.DataSource;

/** A queue of jobs on a real server, as tests need it. */
final class JobKit implements AutoCloseable {
  static final Duration SOON = Duration.ofMinutes(1);
  static final String QUEUE = "analyses";
  static final JobBackoff AT_ONCE =
      new JobBackoff(Duration.ofMillis(1), Duration.ofMillis(1), Duration.ZERO);
  static final JobType<Analysis> ANALYSE =
      JobType.of("analyse", Analysis.class)
          .checking(
              body ->
                  body.repository().isBlank()
                      ? Optional.of("it has no repository")
                      : Optional.empty());

  static final TypedHandler<Analysis> ENDS_WELL = (body, delivery) -> {};

  /** What is to be analysed. */
  record Analysis(String repository, int depth) {}

  private final TestDatabase database;
  private final PostgresOutbox outbox;
  private final List<JobQueue> started = new ArrayList<>();

  JobKit(TestDatabase database, DataSource dataSource) {
    this.database = database;
    this.outbox = PostgresOutbox.on(dataSource, database.table());
  }

  static void migrate(TestDatabase database) {
    JobMigrations.of("public", "outbox").migrate(database.plain());
    database.update(
        "truncate outbox, outbox_dlq, outbox_dlq_trips, outbox_dlq_audit, outbox_job,"
            + " outbox_job_end");
  }

  static Job<Analysis> job(String repository) {
    return Job.of(ANALYSE, new Analysis(repository, 1));
  }

  JobQueue.Builder builder() {
    return JobQueue.builder(outbox, QUEUE)
        .codec(Jackson2Codec.standard())
        .listen(PgjdbcListen.on(database.plain()))
        .subscriber(settings -> settings.gracefulTimeout(Duration.ofSeconds(5)));
  }

  /** A queue that only enqueues, and knows the type. */
  JobQueue producer() {
    return builder().knows(ANALYSE).build();
  }

  /** A queue of the name {@code ordered}, with its migration. */
  JobQueue.Builder ordered() {
    OrderedMigrations.of("public", "outbox", "ordered").migrate(database.plain());
    return JobQueue.builder(outbox, "ordered")
        .codec(Jackson2Codec.standard())
        .subscriber(OutboxSubscriber.Builder::ordered);
  }

  JobStatus status(EnqueueResult of) {
    return producer().status(of.jobId()).orElseThrow();
  }

  JobQueue start(JobQueue.Builder builder) {
    JobQueue jobs = builder.build();
    started.add(jobs);
    jobs.start();
    return jobs;
  }

  void awaitState(JobQueue jobs, String jobId, JobState state) {
    await()
        .atMost(SOON)
        .untilAsserted(() -> assertThat(jobs.status(jobId).map(JobStatus::state)).contains(state));
  }

  /** Waits until so many messages wait for their time. */
  void awaitAvailableLater(int messages) {
    await()
        .atMost(SOON)
        .until(() -> database.count("outbox where available_at > now()") == messages);
  }

  /** The record of the queue, with the windows of a queue by default. */
  JobStore store() {
    return new JobStore(
        PostgresOutbox.on(database.plain(), database.table()),
        QUEUE,
        JobQueue.Builder.DEFAULT_IN_FLIGHT_WINDOW,
        JobQueue.Builder.DEFAULT_COMPLETED_WINDOW,
        PostgresOutbox.DEFAULT_NETWORK_TIMEOUT);
  }

  long messages() {
    return database.count("outbox where queue = '" + QUEUE + "'");
  }

  Connection transaction() throws SQLException {
    Connection connection = database.plain().getConnection();
    connection.setAutoCommit(false);
    return connection;
  }

  /** Waits until so many sessions wait for another's transaction. */
  void awaitWaiting(int count) {
    await()
        .atMost(SOON)
        .until(
            () ->
                database.one(
                        Long.class,
                        "select count(*) from pg_stat_activity where wait_event_type = 'Lock'"
                            + " and datname = current_database()")
                    == count);
  }

  /** All that is on record becomes older by that, and all messages. */
  void passes(Duration time) {
    database.update(
        "update outbox set created_at = created_at - make_interval(secs => ?),"
            + " last_error = case when starts_with(last_error, 'left to other subscribers since ')"
            + " then left(last_error, 32) || to_char(substr(last_error, 33, 20)::timestamptz"
            + " at time zone 'UTC' - make_interval(secs => ?), 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')"
            + " || substr(last_error, 53)"
            + " else last_error end",
        (double) time.toSeconds(),
        (double) time.toSeconds());
    database.update(
        "update outbox_job set enqueued_at = enqueued_at - make_interval(secs => ?),"
            + " due_at = due_at - make_interval(secs => ?)",
        (double) time.toSeconds(),
        (double) time.toSeconds());
    database.update(
        "update outbox_job_end set ended_at = ended_at - make_interval(secs => ?)",
        (double) time.toSeconds());
  }

  @Override
  public void close() {
    started.forEach(JobQueue::stop);
    started.clear();
  }
}
