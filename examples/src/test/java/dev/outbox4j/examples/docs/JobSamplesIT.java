package dev.outbox4j.examples.docs;

import static dev.outbox4j.dlq.DeadLetterFilter.any;
import static dev.outbox4j.dlq.DeadLetterFilter.reason;
import static dev.outbox4j.dlq.DeadLetterFilter.resolvedBefore;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.FailureReason;
import dev.outbox4j.Outcome;
import dev.outbox4j.codec.jackson2.Jackson2Codec;
import dev.outbox4j.dlq.DeadLetterReport;
import dev.outbox4j.dlq.Redrive;
import dev.outbox4j.job.EnqueueResult;
import dev.outbox4j.job.Job;
import dev.outbox4j.job.JobAlert;
import dev.outbox4j.job.JobAlerts;
import dev.outbox4j.job.JobBackoff;
import dev.outbox4j.job.JobQueue;
import dev.outbox4j.job.JobSample;
import dev.outbox4j.job.JobState;
import dev.outbox4j.job.JobStatus;
import dev.outbox4j.job.JobType;
import dev.outbox4j.migrations.JobMigrations;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.notify.pgjdbc.PgjdbcListen;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.io.IOException;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.postgresql.ds.PGSimpleDataSource;

/** The samples of {@code docs/job-queues.md} and of its runbooks. */
@ExtendWith(PostgresExtension.class)
class JobSamplesIT {
  // tag::type
  record Analysis(String repository, String commit) {}

  static final JobType<Analysis> ANALYSE =
      JobType.of("repository.analyse", Analysis.class)
          .identifiedBy(analysis -> analysis.repository() + "@" + analysis.commit())
          .checking(
              analysis ->
                  analysis.repository() == null
                      ? Optional.of("it has no repository")
                      : Optional.empty());

  // end::type

  private static final Job<Analysis> JOB =
      Job.of(ANALYSE, new Analysis("https://git.example/a", "1f0c"));

  private final TestDatabase database;
  private final HikariDataSource dataSource;
  private final OutboxTable table;
  private final List<String> analysed = new CopyOnWriteArrayList<>();
  private final AtomicBoolean down = new AtomicBoolean();

  JobSamplesIT(TestDatabase database) {
    this.database = database;
    this.dataSource = database.pool(10);
    this.table = database.table();
  }

  @BeforeEach
  void setUp() {
    // tag::migrate
    JobMigrations.of("public", "outbox").migrate(dataSource);
    // end::migrate
    database.update("truncate outbox, outbox_dlq, outbox_job, outbox_job_end");
    database.update("create table if not exists results (repository text)");
    database.update("truncate results");
  }

  private void analyse(Analysis analysis) {
    if (down.get()) {
      throw new IllegalStateException("the service is down");
    }
    analysed.add(analysis.commit());
  }

  private void save(Connection connection, Analysis analysis) throws SQLException {
    try (var statement = connection.prepareStatement("insert into results values (?)")) {
      statement.setString(1, analysis.repository());
      statement.executeUpdate();
    }
  }

  private boolean ping() {
    if (down.get()) {
      throw new IllegalStateException("the service is down");
    }
    return true;
  }

  @Test
  void aJobIsEnqueuedOnceAndItsStateIsTold() throws SQLException {
    PGSimpleDataSource unpooled = database.plain();
    // tag::queue
    JobQueue jobs =
        JobQueue.builder(PostgresOutbox.on(dataSource, table), "analyses")
            .codec(Jackson2Codec.standard())
            .listen(PgjdbcListen.on(unpooled))
            .on(
                ANALYSE,
                (analysis, delivery) -> {
                  analyse(analysis);
                })
            .probing(this::ping) // throws while what the handler depends on is down
            .build();
    jobs.start();
    // end::queue
    try (jobs;
        Connection connection = dataSource.getConnection()) {
      connection.setAutoCommit(false);
      // tag::enqueue
      EnqueueResult result =
          jobs.enqueue(connection, Job.of(ANALYSE, new Analysis("https://git.example/a", "1f0c")));
      // end::enqueue
      connection.commit();
      assertThat(result.enqueued()).isTrue();
      assertThat(jobs.enqueue(JOB).enqueued()).isFalse();
      // tag::status
      Optional<JobStatus> status = jobs.status(result.jobId());
      // end::status
      assertThat(status).isPresent();
      await()
          .untilAsserted(
              () ->
                  assertThat(jobs.status(result.jobId()).orElseThrow().state())
                      .isEqualTo(JobState.COMPLETED));
      assertThat(analysed).containsExactly("1f0c");
    }
  }

  @Test
  void effectsAndCompletionAreOneTransaction() {
    // tag::transactional
    JobQueue jobs =
        JobQueue.builder(PostgresOutbox.on(dataSource, table), "analyses")
            .codec(Jackson2Codec.standard())
            .onTransactional(
                ANALYSE,
                (analysis, delivery, connection) -> {
                  if (analysis.commit().isEmpty()) {
                    return Outcome.reject("there is nothing to analyse");
                  }
                  save(connection, analysis); // your SQL
                  return Outcome.ack();
                })
            .budget(3)
            .backoff(
                new JobBackoff(Duration.ofSeconds(2), Duration.ofMinutes(1), Duration.ofSeconds(1)))
            .networkTimeout(Duration.ofSeconds(7))
            .subscriber(settings -> settings.workers(8).lease(Duration.ofSeconds(30)))
            .build();
    // end::transactional
    try (jobs) {
      jobs.start();
      EnqueueResult result = jobs.enqueue(JOB);
      await().untilAsserted(() -> assertThat(database.count("results")).isEqualTo(1));
      assertThat(jobs.status(result.jobId()).orElseThrow().state()).isEqualTo(JobState.COMPLETED);
    }
  }

  @Test
  void deadLettersAreReplayedOnceTheirDependencyWorks() {
    down.set(true);
    JobQueue jobs =
        JobQueue.builder(PostgresOutbox.on(dataSource, table), "analyses")
            .codec(Jackson2Codec.standard())
            .budget(1)
            .on(
                ANALYSE,
                (analysis, delivery) -> {
                  analyse(analysis);
                })
            .probing(this::ping)
            .build();
    Instant aMonthAgo = Instant.now().minus(Duration.ofDays(30));
    try (jobs) {
      jobs.start();
      EnqueueResult result = jobs.enqueue(JOB);
      await().untilAsserted(() -> assertThat(database.count("outbox_dlq")).isEqualTo(1));
      down.set(false);
      // tag::replay
      Redrive redrive = Redrive.by("ann").note("the service answers again").perSecond(20);
      DeadLetterReport expected = jobs.deadLetters().dryRun(any(), redrive); // changes nothing
      DeadLetterReport replayed = jobs.deadLetters().replay(any(), redrive);
      // end::replay
      assertThat(expected.done()).isEqualTo(1);
      assertThat(replayed.done()).isEqualTo(1);
      await()
          .untilAsserted(
              () ->
                  assertThat(jobs.status(result.jobId()).orElseThrow().state())
                      .isEqualTo(JobState.COMPLETED));
      // tag::purge
      DeadLetterReport purged = jobs.deadLetters().purge(resolvedBefore(aMonthAgo), "ann");
      // end::purge
      assertThat(purged.done()).isZero();
      // tag::one-by-one
      DeadLetterReport one =
          jobs.deadLetters()
              .replay(reason(FailureReason.MAX_DELIVERIES), Redrive.by("ann").atMost(1));
      // end::one-by-one
      assertThat(one.done()).isZero();
    }
  }

  /** Whoever is on call has no handler, and refuses what cannot work all the same. */
  @Test
  void aProgramWithoutHandlersReplays() {
    // tag::operator
    JobQueue jobs =
        JobQueue.builder(PostgresOutbox.on(dataSource, table), "analyses")
            .codec(Jackson2Codec.standard())
            .knows(ANALYSE) // each type, whose letters are decoded and checked
            .probing(this::ping)
            .build();
    // end::operator
    database.update(
        """
        insert into outbox_dlq (id, outbox, original_id, lease_token, queue, type, payload,
          deliveries_count, attempts_count, created_at, available_at, failure_reason)
        select n, 'public.outbox', 100 + n, 1, 'analyses', 'repository.analyse',
          convert_to(case n when 7 then '{"commit": "1f0c"}'
            else '{"repository": "https://git.example/a", "commit": "1f0c"}' end, 'UTF8'),
          1, 0, now(), now(), 'undecodable'
        from generate_series(7, 8) n
        """);
    Redrive redrive = Redrive.by("ann");

    assertThat(jobs.deadLetters().dryRun(any(), redrive).done()).isEqualTo(1);
    DeadLetterReport replayed = jobs.deadLetters().replay(any(), redrive);

    assertThat(replayed.done()).isEqualTo(1);
    assertThat(replayed.refusals())
        .containsExactly(new DeadLetterReport.Refusal(7, "it has no repository"));
    assertThat(database.list(Long.class, "select id from outbox")).containsExactly(108L);
  }

  @Test
  void samplesAreJudgedByPureFunctions() {
    JobQueue jobs =
        JobQueue.builder(PostgresOutbox.on(dataSource, table), "analyses")
            .codec(Jackson2Codec.standard())
            .build();
    JobSample before = jobs.sample();
    JobSample later = jobs.sample();
    // tag::alerts
    JobSample now = jobs.sample();
    List<JobAlert> alerts = JobAlerts.standard().of(List.of(before, later, now), List.of());
    // end::alerts
    assertThat(alerts).isEmpty();
  }

  @Test
  void theStatementsOfTheRunbooksAreRight() throws IOException {
    String kinds = DocumentedSql.of("operations/runbook-poison-messages.md", "kinds");
    String bytes = DocumentedSql.of("operations/runbook-poison-messages.md", "bytes");
    String causes = DocumentedSql.of("operations/runbook-dead-letter-ratio.md", "causes");
    for (String sql : List.of(kinds, bytes, causes)) {
      assertThat(database.list(Object.class, sql)).isEmpty();
    }
    database.update(
        """
        insert into outbox_dlq (id, outbox, original_id, lease_token, queue, type, payload,
          deliveries_count, attempts_count, created_at, available_at, failure_reason, last_exception,
          resolved_at)
        select n, case n when 9 then 'public.other' else 'public.outbox' end, n, 1,
          case n when 10 then 'others' else 'analyses' end, 'type', decode('ff41', 'hex'), 1, 0, now(), now(),
          'undecodable', 'no JSON', case n when 11 then now() end
        from generate_series(7, 11) n
        """);
    assertThat(database.list(Long.class, kinds)).containsExactlyInAnyOrder(7L, 8L);
    assertThat(database.list(String.class, bytes)).containsExactly("\\377A");
    assertThat(
            database.list(String.class, "select exception || ' ' || count from (" + causes + ") c"))
        .containsExactly("no JSON 2");
  }
}
