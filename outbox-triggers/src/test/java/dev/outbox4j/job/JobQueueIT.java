package dev.outbox4j.job;

import static dev.outbox4j.job.JobKit.ANALYSE;
import static dev.outbox4j.job.JobKit.SOON;
import static dev.outbox4j.job.JobKit.job;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.Delivery;
import dev.outbox4j.FailureReason;
import dev.outbox4j.Outcome;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.CountingDataSource;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Connection;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** How jobs end, and what is told of them meanwhile. */
@ExtendWith(PostgresExtension.class)
class JobQueueIT {
  private static final JobBackoff AT_ONCE =
      new JobBackoff(Duration.ofMillis(1), Duration.ofMillis(1), Duration.ZERO);

  private final TestDatabase database;
  private final JobKit kit;
  private final JobQueue producer;
  private final CountDownLatch go = new CountDownLatch(1);

  JobQueueIT(TestDatabase database) {
    this.database = database;
    this.kit = new JobKit(database, database.pool(12));
    this.producer = kit.producer();
  }

  @BeforeEach
  void setUp() {
    JobKit.migrate(database);
    database.update("create table if not exists effects (n int)");
    database.update("truncate effects");
  }

  @AfterEach
  void stop() {
    go.countDown();
    kit.close();
  }

  private JobStatus status(EnqueueResult of) {
    return producer.status(of.jobId()).orElseThrow();
  }

  @Test
  void aJobIsQueuedInFlightAndCompleted() {
    EnqueueResult result = producer.enqueue(job("outbox4j"));
    JobStatus queued = status(result);
    assertThat(queued.state()).isEqualTo(JobState.QUEUED);
    assertThat(queued.type()).isEqualTo("analyse");
    assertThat(queued.messageId()).isEqualTo(result.messageId());
    assertThat(queued.endedAt()).isEmpty();
    assertThat(queued.deliveries()).isZero();

    kit.start(
        kit.builder()
            .on(
                ANALYSE,
                (body, delivery) -> {
                  go.await();
                }));
    kit.awaitState(producer, result.jobId(), JobState.IN_FLIGHT);
    assertThat(status(result).deliveries()).isEqualTo(1);
    go.countDown();

    kit.awaitState(producer, result.jobId(), JobState.COMPLETED);
    JobStatus completed = status(result);
    assertThat(completed.endedAt().orElseThrow()).isAfter(completed.enqueuedAt());
    assertThat(completed.reason()).isEmpty();
    assertThat(completed.state().isFinal()).isTrue();
    assertThat(producer.status("analyse:nothing")).isEmpty();
  }

  @Test
  void aJobThatItsHandlerRejectsIsFailedAndCanBeEnqueuedAnew() {
    EnqueueResult first = producer.enqueue(job("outbox4j"));
    AtomicBoolean rejects = new AtomicBoolean(true);
    kit.start(
        kit.builder()
            .on(
                ANALYSE,
                (body, delivery) -> rejects.get() ? Outcome.reject("too large") : Outcome.ack()));
    kit.awaitState(producer, first.jobId(), JobState.FAILED);
    assertThat(status(first).reason()).contains(FailureReason.REJECTED);
    assertThat(database.count("outbox_dlq")).isEqualTo(1);

    rejects.set(false);
    EnqueueResult second = producer.enqueue(job("outbox4j"));
    assertThat(second.enqueued()).isTrue();
    kit.awaitState(producer, second.jobId(), JobState.COMPLETED);
    assertThat(database.count("outbox_dlq")).isEqualTo(1); // the first one's is still there
  }

  @Test
  void aJobIsDeadLetteredWhenItsBudgetIsSpentAndWaitsAsStatedBefore() {
    List<Double> waits = new CopyOnWriteArrayList<>();
    AtomicInteger calls = new AtomicInteger();
    kit.start(
        kit.builder()
            .backoff(
                new JobBackoff(Duration.ofMillis(20), Duration.ofMillis(80), Duration.ofMillis(10)))
            .on(
                ANALYSE,
                (JobKit.Analysis body, Delivery delivery) -> {
                  calls.incrementAndGet();
                  if (delivery.attempt()
                      > 1) { // the row still has both times of the attempt before
                    waits.add(
                        database.one(
                            Double.class,
                            "select extract(epoch from available_at - last_attempt_at)::float8"
                                + " from outbox where id = ?",
                            delivery.id()));
                  }
                  throw new IllegalStateException("no");
                }));
    EnqueueResult result = producer.enqueue(job("outbox4j"));

    kit.awaitState(producer, result.jobId(), JobState.DEAD_LETTERED);

    assertThat(calls).hasValue(5);
    assertThat(waits).hasSize(4);
    double[] least = {0.020, 0.040, 0.080, 0.080};
    for (int i = 0; i < 4; i++) {
      assertThat(waits.get(i)).isBetween(least[i] - 1e-9, least[i] + 0.010 + 1e-9);
    }
    JobStatus dead = status(result);
    assertThat(dead.reason()).contains(FailureReason.RETRY_TERMINAL);
    assertThat(dead.attempts()).isEqualTo(5);
    assertThat(dead.deliveries()).isEqualTo(5);
    assertThat(producer.enqueue(job("outbox4j")).enqueued()).isTrue();
  }

  /** The first two intervals of the standard backoff, as the rows have them. */
  @Test
  void theStandardBackoffIsWithinItsBoundsOnTheRows() {
    kit.start(
        kit.builder()
            .on(
                ANALYSE,
                (JobKit.Analysis body, Delivery delivery) -> {
                  throw new IllegalStateException("no");
                }));
    List<EnqueueResult> results = new ArrayList<>();
    for (int i = 0; i < 20; i++) {
      results.add(producer.enqueue(job("r" + i)));
    }
    double[] base = {0.75, 1.5};
    for (int failure = 1; failure <= 2; failure++) {
      int attempts = failure;
      await()
          .atMost(SOON)
          .until(
              () -> database.count("outbox where attempts_count >= " + attempts) == results.size());
      List<Double> waits =
          database.list(
              Double.class,
              "select extract(epoch from available_at - last_attempt_at)::float8 from outbox"
                  + " where attempts_count = ?",
              attempts);
      double from = base[failure - 1];
      assertThat(waits).allSatisfy(wait -> assertThat(wait).isBetween(from, from + 0.2));
    }
  }

  @Test
  void effectsAndCompletionOfATransactionalHandlerAreThereTogether() throws Exception {
    CountingDataSource counting = new CountingDataSource(database.plain());
    AtomicInteger commits = new AtomicInteger();
    counting.beforeCommit(
        () -> {
          if (commits.getAndIncrement() == 0) {
            throw new IllegalStateException("the process has no connection any more");
          }
        });
    JobKit failing = new JobKit(database, counting);
    try (failing) {
      EnqueueResult result = producer.enqueue(job("outbox4j"));
      failing.start(
          failing
              .builder()
              .backoff(AT_ONCE)
              .onTransactional(
                  ANALYSE,
                  (body, delivery, connection) -> {
                    connection.createStatement().execute("insert into effects values (1)");
                  }));
      kit.awaitState(producer, result.jobId(), JobState.COMPLETED);
    }
    assertThat(database.count("effects")).isEqualTo(1);
    assertThat(commits.get()).isGreaterThanOrEqualTo(2);
    assertThat(database.count("outbox_job_end where status = 'completed'")).isEqualTo(1);
  }

  /** Whoever enqueues it anew has its row until the commit. */
  @Test
  void noAckWaitsForATransactionThatEnqueuesTheJobAnew() throws Exception {
    EnqueueResult first = producer.enqueue(job("outbox4j"));
    kit.passes(Duration.ofSeconds(181));
    try (Connection connection = kit.transaction()) {
      EnqueueResult second = producer.enqueue(connection, job("outbox4j"));
      assertThat(second.enqueued()).isTrue();
      kit.start(
          kit.builder()
              .on(
                  ANALYSE,
                  (body, delivery) -> {
                    // nothing
                  }));
      await()
          .atMost(SOON)
          .until(
              () -> database.count("outbox_job_end where message_id = " + first.messageId()) == 1);
      kit.awaitState(producer, first.jobId(), JobState.COMPLETED);
      connection.commit();
      await()
          .atMost(SOON)
          .until(
              () -> database.count("outbox_job_end where message_id = " + second.messageId()) == 1);
    }
    assertThat(status(first).state()).isEqualTo(JobState.COMPLETED);
  }

  @Test
  void anAckIsStillOneStatementForManyJobs() {
    CountingDataSource counting = new CountingDataSource(database.pool(8));
    try (JobKit counted = new JobKit(database, counting)) {
      List<String> ids = new ArrayList<>();
      for (int i = 0; i < 200; i++) {
        ids.add(producer.enqueue(job("r" + i)).jobId());
      }
      counted.start(
          counted
              .builder()
              .on(
                  ANALYSE,
                  (body, delivery) -> {
                    // nothing
                  }));
      await()
          .atMost(SOON)
          .until(
              () ->
                  producer.statuses(ids).stream()
                      .allMatch(status -> status.state() == JobState.COMPLETED));
      assertThat(counting.executionsOf("outbox_job_end")).isLessThan(200);
    }
    assertThat(database.count("outbox_job_end where status = 'completed'")).isEqualTo(200);
  }

  @Test
  void whatIsNoJobIsHandledAndLeavesNoTrace() {
    database.list(
        Long.class,
        "select outbox_publish('analyses', convert_to('{\"repository\":\"x\",\"depth\":1}',"
            + " 'UTF8'), 'analyse')");
    kit.start(
        kit.builder()
            .on(
                ANALYSE,
                (body, delivery) -> {
                  // nothing
                }));
    await().atMost(SOON).until(() -> kit.messages() == 0);
    assertThat(database.count("outbox_job_end")).isZero();
  }

  @Test
  void whatEndedLongAgoIsDeletedInPartsAndWhatWaitsIsNot() {
    JobStore store = store(database);
    for (int i = 0; i < 5; i++) {
      EnqueueResult ended = producer.enqueue(job("ended" + i));
      end(ended, i % 2 == 0 ? "completed" : "dead_lettered");
    }
    EnqueueResult gone = producer.enqueue(job("gone"));
    database.update("delete from outbox where id = ?", gone.messageId());
    EnqueueResult waits = producer.enqueue(job("waits"));
    EnqueueResult replayed = producer.enqueue(job("replayed"));
    database.update(
        "insert into outbox_job_end (message_id, queue, job_id, status, ended_at)"
            + " values (?, 'analyses', ?, 'dead_lettered', now())",
        replayed.messageId(),
        replayed.jobId());
    kit.passes(Duration.ofDays(8));
    EnqueueResult fresh = producer.enqueue(job("fresh"));
    end(fresh, "completed");

    int purged = 0;
    for (int part = store.purge(Duration.ofDays(7), 2); part > 0; ) {
      purged += part;
      part = store.purge(Duration.ofDays(7), 2);
    }

    assertThat(purged).isGreaterThanOrEqualTo(5);
    assertThat(database.list(String.class, "select job_id from outbox_job order by enqueued_at, 1"))
        .containsExactlyInAnyOrder(waits.jobId(), replayed.jobId(), fresh.jobId());
    assertThat(database.count("outbox_job_end")).isEqualTo(2);
  }

  private static JobStore store(TestDatabase database) {
    return new JobStore(
        PostgresOutbox.on(database.plain(), database.table()),
        JobKit.QUEUE,
        Duration.ofMinutes(3),
        Duration.ofHours(1));
  }

  private void end(EnqueueResult job, String status) {
    database.update("delete from outbox where id = ?", job.messageId());
    database.update(
        "insert into outbox_job_end (message_id, queue, job_id, status, ended_at)"
            + " values (?, 'analyses', ?, ?, now())",
        job.messageId(),
        job.jobId(),
        status);
  }

  @Test
  void aPurgeWaitsForNobody() throws Exception {
    JobStore store = store(database);
    EnqueueResult ended = producer.enqueue(job("outbox4j"));
    end(ended, "completed");
    kit.passes(Duration.ofDays(8));
    try (Connection anew = kit.transaction()) {
      assertThat(producer.enqueue(anew, job("outbox4j")).enqueued()).isTrue();
      assertThat(store.purge(Duration.ofDays(7), 10)).isEqualTo(1);
      anew.commit();
    }
    assertThat(status(ended).state()).isEqualTo(JobState.QUEUED);
    assertThat(store.purge(Duration.ofDays(7), 10)).isZero();
  }

  @Test
  void aSampleTellsHowTheQueueDoes() {
    assertThat(producer.sample().since()).isEmpty();
    assertThat(producer.sample().oldest()).isEmpty();
    end(producer.enqueue(job("a")), "completed");
    end(producer.enqueue(job("b")), "failed");
    kit.passes(Duration.ofMinutes(16));
    end(producer.enqueue(job("c")), "completed");
    end(producer.enqueue(job("d")), "completed");
    end(producer.enqueue(job("e")), "dead_lettered");
    producer.enqueue(job("later").deliverIn(Duration.ofHours(1)));
    assertThat(producer.sample().oldest()).isEmpty();
    producer.enqueue(job("waits"));

    JobSample sample = producer.sample();

    assertThat(sample.recent()).isEqualTo(new JobSample.Outcomes(2, 1));
    assertThat(sample.baseline()).isEqualTo(new JobSample.Outcomes(1, 1));
    assertThat(sample.oldest()).hasValueSatisfying(age -> assertThat(age).isLessThan(SOON));
    assertThat(sample.lastSuccess())
        .hasValueSatisfying(
            instant -> assertThat(Duration.between(instant, sample.at())).isLessThan(SOON));
    assertThat(Duration.between(sample.since().orElseThrow(), sample.at()))
        .isBetween(Duration.ofMinutes(16), Duration.ofMinutes(17));
  }

  @Test
  void aStartedQueueLooksAndTellsItsAlerts() {
    for (int i = 0; i < 20; i++) {
      end(producer.enqueue(job("r" + i)), "dead_lettered");
    }
    JobQueue jobs =
        kit.start(
            kit.builder()
                .on(
                    ANALYSE,
                    (body, delivery) -> {
                      // nothing
                    }));
    await().atMost(SOON).until(() -> jobs.health().sample().isPresent());
    assertThat(jobs.health().alerts())
        .extracting(JobAlert::rule)
        .containsExactly(JobAlert.Rule.DEAD_LETTER_RATIO);
    await().atMost(SOON).until(() -> jobs.health().healthy());
  }
}
