package dev.outbox4j.job;

import static dev.outbox4j.dlq.DeadLetterFilter.any;
import static dev.outbox4j.job.JobKit.ANALYSE;
import static dev.outbox4j.job.JobKit.SOON;
import static dev.outbox4j.job.JobKit.job;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.Outcome;
import dev.outbox4j.dlq.Redrive;
import dev.outbox4j.migrations.JobMigrations;
import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.postgresql.ds.PGSimpleDataSource;

/** The grants that are documented are enough, and not more than what is needed. */
@ExtendWith(PostgresExtension.class)
class JobRolesIT {
  private final TestDatabase database;

  JobRolesIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void setUp() {
    JobKit.migrate(database);
  }

  private PGSimpleDataSource role(String name) {
    if (database
        .list(String.class, "select rolname::text from pg_roles where rolname = ?", name)
        .isEmpty()) {
      database.update("create role " + name + " login password 'secret'");
    }
    PGSimpleDataSource source = database.plain();
    source.setUser(name);
    source.setPassword("secret");
    return source;
  }

  @Test
  void aQueueWorksWithTheGrantsOfItsRoles() {
    PGSimpleDataSource producing = role("job_producer");
    PGSimpleDataSource working = role("job_worker");
    PGSimpleDataSource operating = role("job_operator");
    database.update(
        OutboxMigrations.of("public", "outbox")
            .grantsSql("job_producer", "job_worker", "job_operator"));
    JobQueue producer = new JobKit(database, producing).producer();
    assertThatThrownBy(() -> producer.enqueue(job("one")))
        .isInstanceOf(OutboxStoreException.class)
        .hasMessageContaining("JobMigrations");
    JobMigrations jobs = JobMigrations.of("public", "outbox");
    database.update(jobs.grantsSql("job_producer"));
    database.update(jobs.grantsSql("job_worker"));
    database.update(jobs.grantsSql("job_operator"));
    AtomicBoolean rejects = new AtomicBoolean(true);
    try (JobKit kit = new JobKit(database, working)) {
      EnqueueResult result = producer.enqueue(job("one"));
      assertThat(producer.enqueue(job("one")).enqueued()).isFalse();
      JobQueue worker =
          kit.start(
              kit.builder()
                  .on(
                      ANALYSE,
                      (body, delivery) ->
                          rejects.get() ? Outcome.reject("not now") : Outcome.ack()));
      kit.awaitState(producer, result.jobId(), JobState.FAILED);
      rejects.set(false);
      JobQueue operator = new JobKit(database, operating).producer();
      assertThat(operator.deadLetters().replay(any(), Redrive.by("ann")).done()).isEqualTo(1);
      kit.awaitState(producer, result.jobId(), JobState.COMPLETED);
      assertThat(operator.deadLetters().purge(any(), "ann").done()).isEqualTo(1);
      await().atMost(SOON).until(() -> worker.health().sample().isPresent());
      await().atMost(SOON).until(() -> worker.health().healthy());
      assertThat(worker.health().lastFailure()).isEmpty();
    }
  }
}
