package dev.outbox4j.job;

import static dev.outbox4j.job.JobKit.ANALYSE;
import static dev.outbox4j.job.JobKit.AT_ONCE;
import static dev.outbox4j.job.JobKit.ENDS_WELL;
import static dev.outbox4j.job.JobKit.SOON;
import static dev.outbox4j.job.JobKit.job;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.Delivery;
import dev.outbox4j.FailureReason;
import dev.outbox4j.Outcome;
import dev.outbox4j.RetryPolicy;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.CountingDataSource;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Connection;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** How jobs end, and what is told of them meanwhile. */
@ExtendWith(PostgresExtension.class)
class JobQueueIT {

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

  @Test
  void aJobIsQueuedInFlightAndCompleted() {
    EnqueueResult result = producer.enqueue(job("outbox4j"));
    JobStatus queued = kit.status(result);
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
    assertThat(kit.status(result).deliveries()).isEqualTo(1);
    go.countDown();

    kit.awaitState(producer, result.jobId(), JobState.COMPLETED);
    JobStatus completed = kit.status(result);
    assertThat(completed.endedAt().orElseThrow()).isAfter(completed.enqueuedAt());
    assertThat(completed.reason()).isEmpty();
    assertThat(completed.state().isFinal()).isTrue();
    assertThat(completed.attempts()).isZero();
    assertThat(completed.deliveries()).isEqualTo(1);
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
    assertThat(kit.status(first).reason()).contains(FailureReason.REJECTED.code());
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
    JobStatus dead = kit.status(result);
    assertThat(dead.reason()).contains(FailureReason.RETRY_TERMINAL.code());
    assertThat(dead.attempts()).isEqualTo(5);
    assertThat(dead.deliveries()).isEqualTo(5);
    assertThat(producer.enqueue(job("outbox4j")).enqueued()).isTrue();
  }

  /** Of each failure, so that the doubling, the cap and the jitter are all seen. */
  @Test
  void theStandardBackoffIsWithinItsBoundsOnTheRows() {
    double[] base = {0.75, 1.5, 3, 6, 6, 6};
    kit.start(
        kit.builder()
            .budget(base.length + 1)
            .on(
                ANALYSE,
                (JobKit.Analysis body, Delivery delivery) -> {
                  throw new IllegalStateException("no");
                }));
    for (int i = 0; i < 20; i++) {
      producer.enqueue(job("r" + i));
    }
    for (int failure = 1; failure <= base.length; failure++) {
      int attempts = failure;
      await()
          .atMost(SOON)
          .until(() -> database.count("outbox where attempts_count = " + attempts) == 20);
      List<Double> waits =
          database.list(
              Double.class,
              "select extract(epoch from available_at - last_attempt_at)::float8 from outbox");
      double from = base[failure - 1];
      assertThat(waits)
          .hasSize(20)
          .allSatisfy(wait -> assertThat(wait).isBetween(from, from + 0.2));
      // the wait is over, as if it had been waited for
      database.update("update outbox set available_at = clock_timestamp()");
      database.list(String.class, "select pg_notify('outbox_outbox', 'analyses')::text");
    }
    await().atMost(SOON).until(() -> database.count("outbox_dlq") == 20);
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
    assertThat(database.one(Integer.class, "select deliveries_count from outbox_job_end"))
        .isEqualTo(2);
    assertThat(commits.get()).isGreaterThanOrEqualTo(2);
    assertThat(database.count("outbox_job_end where status = 'completed'")).isEqualTo(1);
  }

  @Test
  void aCompletedJobTellsHowOftenItFailedAndWasDelivered() {
    AtomicInteger calls = new AtomicInteger();
    EnqueueResult result = producer.enqueue(job("outbox4j"));
    kit.start(
        kit.builder()
            .backoff(AT_ONCE)
            .on(
                ANALYSE,
                (body, delivery) -> {
                  if (calls.incrementAndGet() < 3) {
                    throw new IllegalStateException("no");
                  }
                }));
    kit.awaitState(producer, result.jobId(), JobState.COMPLETED);
    assertThat(kit.status(result).attempts()).isEqualTo(2);
    assertThat(kit.status(result).deliveries()).isEqualTo(3);
  }

  /** There a delivery is written with the end, and not before. */
  @Test
  void soDoesOneOfAnOrderedQueue() {
    try (JobQueue ordered = kit.ordered().on(ANALYSE, ENDS_WELL).build()) {
      List<String> ids = new ArrayList<>();
      for (int i = 0; i < 20; i++) {
        ids.add(ordered.enqueue(job("r" + i)).jobId());
      }
      ordered.start();
      await()
          .atMost(SOON)
          .untilAsserted(
              () ->
                  assertThat(ordered.statuses(ids))
                      .hasSize(20)
                      .allMatch(status -> status.state() == JobState.COMPLETED)
                      .allMatch(status -> status.deliveries() == 1 && status.attempts() == 0));
    }
  }

  @Test
  void noPolicyOfATypeGoesRoundTheBudget() {
    AtomicInteger calls = new AtomicInteger();
    kit.start(
        kit.builder()
            .backoff(AT_ONCE)
            .subscriber(
                settings -> settings.retry("analyse", RetryPolicy.constant(SOON).attempts(2)))
            .on(
                ANALYSE,
                (JobKit.Analysis body, Delivery delivery) -> {
                  calls.incrementAndGet();
                  throw new IllegalStateException("no");
                }));
    EnqueueResult result = producer.enqueue(job("outbox4j"));
    kit.awaitState(producer, result.jobId(), JobState.DEAD_LETTERED);
    assertThat(calls).hasValue(JobQueue.Builder.DEFAULT_BUDGET);
  }

  @Test
  void oneWhosePoolIsTooSmallSaysSoEachTimeItIsStarted() {
    try (HikariDataSource pool = database.pool(1);
        JobQueue jobs =
            JobQueue.builder(PostgresOutbox.on(pool, database.table()), "small")
                .on(JobType.of("text", String.class), (body, delivery) -> {})
                .build()) {
      for (int time = 0; time < 2; time++) {
        assertThatThrownBy(jobs::start).hasMessageContaining("too few for 1 subscriber(s)");
      }
      assertThat(Thread.getAllStackTraces().keySet())
          .extracting(Thread::getName)
          .noneMatch(name -> name.contains("small"));
    }
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
    assertThat(kit.status(first).state()).isEqualTo(JobState.COMPLETED);
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
    JobStore store = kit.store();
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
    JobStore store = kit.store();
    EnqueueResult ended = producer.enqueue(job("outbox4j"));
    end(ended, "completed");
    kit.passes(Duration.ofDays(8));
    try (Connection anew = kit.transaction()) {
      assertThat(producer.enqueue(anew, job("outbox4j")).enqueued()).isTrue();
      assertThat(store.purge(Duration.ofDays(7), 10)).isEqualTo(1);
      anew.commit();
    }
    assertThat(kit.status(ended).state()).isEqualTo(JobState.QUEUED);
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
  void aQueueWhoseJobsAreNotDueYetIsNotWithoutSuccess() {
    producer.enqueue(job("later").deliverIn(Duration.ofDays(30)));
    database.update("update outbox_job set enqueued_at = enqueued_at - interval '37 hours'");
    assertThat(producer.sample().since()).isEmpty();
    assertThat(JobAlerts.standard().noSuccess(producer.sample())).isEmpty();

    kit.passes(Duration.ofDays(30).plusHours(37));
    assertThat(JobAlerts.standard().noSuccess(producer.sample())).isPresent();
  }

  @Test
  void aStartedQueueLooksAndTellsItsAlerts() {
    for (int i = 0; i < 20; i++) {
      end(producer.enqueue(job("r" + i)), "dead_lettered");
    }
    JobQueue jobs = kit.start(kit.builder().on(ANALYSE, ENDS_WELL));
    await().atMost(SOON).until(() -> jobs.health().sample().isPresent());
    assertThat(jobs.health().alerts())
        .extracting(JobAlert::rule)
        .containsExactly(JobAlert.Rule.DEAD_LETTER_RATIO);
    await().atMost(SOON).until(() -> jobs.health().healthy());
  }

  /** What is tried again is the purge, and not the look: three looks would be an alert. */
  @Test
  void aPurgeThatFailsIsTriedAgainWithoutFurtherLooks() {
    end(producer.enqueue(job("ended")), "completed");
    kit.passes(Duration.ofDays(8));
    database.update(
        "create or replace function refuse() returns trigger language plpgsql as"
            + " $$ begin perform nextval('refusals'); raise exception 'no'; end $$");
    database.update("create sequence if not exists refusals");
    database.update(
        "create trigger refuse before delete on outbox_job_end for each row execute function"
            + " refuse()");
    CountingDataSource counting = new CountingDataSource(database.pool(8));
    try (JobKit counted = new JobKit(database, counting)) {
      JobQueue jobs = counted.start(counted.builder().on(ANALYSE, ENDS_WELL));
      await()
          .atMost(SOON)
          .until(() -> database.one(Long.class, "select last_value from refusals") >= 3);
      assertThat(jobs.health().failing()).isTrue();
      assertThat(jobs.health().lastFailure().orElseThrow()).contains("no");
      assertThat(jobs.health().sample()).isPresent();
      assertThat(counting.executionsOf("usually.well")).isEqualTo(1);

      database.update("drop trigger refuse on outbox_job_end");
      await().atMost(SOON).until(() -> database.count("outbox_job_end") == 0);
      await().atMost(SOON).until(() -> jobs.health().healthy());
    } finally {
      database.update("drop trigger if exists refuse on outbox_job_end");
      database.update("drop sequence refusals");
    }
  }

  static List<Throwable> failures() {
    return List.of(
        new IllegalStateException("the look takes too long"),
        new NoClassDefFoundError("of a library that was exchanged"),
        new StackOverflowError());
  }

  private static void fail(Throwable failure) {
    if (failure instanceof Error error) {
      throw error;
    }
    throw (RuntimeException) failure;
  }

  @ParameterizedTest
  @MethodSource("failures")
  void aLookThatFailsKeepsNoPurgeWaiting(Throwable failure) {
    end(producer.enqueue(job("ended")), "completed");
    kit.passes(Duration.ofDays(8));
    CountingDataSource failing = new CountingDataSource(database.pool(8));
    failing.beforeEach(
        text -> {
          if (text.contains("usually.well")) {
            fail(failure);
          }
        });
    try (JobKit unlucky = new JobKit(database, failing)) {
      JobQueue jobs = unlucky.start(unlucky.builder().on(ANALYSE, ENDS_WELL));
      await().atMost(SOON).until(() -> database.count("outbox_job_end") == 0);
      await().atMost(SOON).until(() -> jobs.health().failing());
      assertThat(jobs.health().lastFailure()).isPresent();
      assertThat(jobs.health().sample()).isEmpty();
      failing.beforeEach(text -> {});
      await().atMost(SOON).until(() -> jobs.health().healthy());
      assertThat(jobs.health().sample()).isPresent();
    }
  }

  /** As during a rolling deployment: what it does not know hides nothing of the others. */
  @Test
  void whatANewerVersionHasWrittenOfAJobIsToldWithTheOthers() {
    EnqueueResult known = producer.enqueue(job("known"));
    EnqueueResult reason = producer.enqueue(job("reason"));
    EnqueueResult ended = producer.enqueue(job("ended"));
    end(known, "completed");
    end(reason, "dead_lettered");
    end(ended, "cancelled");
    database.update("update outbox_job_end set reason = 'newer' where status <> 'completed'");

    Map<String, JobStatus> statuses =
        producer.statuses(List.of(known.jobId(), reason.jobId(), ended.jobId())).stream()
            .collect(Collectors.toMap(JobStatus::jobId, status -> status));

    assertThat(statuses.get(known.jobId()).state()).isEqualTo(JobState.COMPLETED);
    assertThat(statuses.get(reason.jobId()).state()).isEqualTo(JobState.DEAD_LETTERED);
    assertThat(statuses.get(reason.jobId()).reason()).contains("newer");
    assertThat(statuses.get(ended.jobId()).state()).isEqualTo(JobState.GONE);
    assertThat(statuses.get(ended.jobId()).reason()).contains("newer");
    assertThat(statuses.get(ended.jobId()).endedAt()).isPresent();
  }
}
