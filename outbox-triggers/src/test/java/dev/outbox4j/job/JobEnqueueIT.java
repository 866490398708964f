package dev.outbox4j.job;

import static dev.outbox4j.job.EnqueueResult.Decision.COMPLETED;
import static dev.outbox4j.job.EnqueueResult.Decision.ENQUEUED;
import static dev.outbox4j.job.EnqueueResult.Decision.IN_FLIGHT;
import static dev.outbox4j.job.JobKit.ANALYSE;
import static dev.outbox4j.job.JobKit.job;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.Outcome;
import dev.outbox4j.codec.jackson2.Jackson2Codec;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.CountingDataSource;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** A job is enqueued once within its windows, and what is refused is processed all the same. */
@ExtendWith(PostgresExtension.class)
class JobEnqueueIT {
  private static final Duration SECOND = Duration.ofSeconds(1);
  private static final Duration IN_FLIGHT_WINDOW = Duration.ofMinutes(3);
  private static final Duration COMPLETED_WINDOW = Duration.ofHours(1);

  private final TestDatabase database;
  private final JobKit kit;
  private final JobQueue producer;
  private final Set<Long> handled = ConcurrentHashMap.newKeySet();
  private final ExecutorService threads = Executors.newCachedThreadPool();

  JobEnqueueIT(TestDatabase database) {
    this.database = database;
    this.kit = new JobKit(database, database.pool(10));
    this.producer = kit.producer();
  }

  @BeforeEach
  void setUp() {
    JobKit.migrate(database);
  }

  @AfterEach
  void stop() {
    kit.close();
    threads.shutdownNow();
  }

  private JobQueue worker() {
    return kit.start(
        kit.builder()
            .on(
                ANALYSE,
                (body, delivery) -> {
                  handled.add(delivery.id());
                }));
  }

  private EnqueueResult enqueue() {
    return producer.enqueue(job("outbox4j"));
  }

  @Test
  void ofAHundredAtOnceOneIsPublishedAndItIsProcessed() throws Exception {
    List<Future<EnqueueResult>> results = new ArrayList<>();
    CountDownLatch go = new CountDownLatch(1);
    try (HikariDataSource pool = database.pool(100)) {
      JobQueue hundred =
          JobQueue.builder(PostgresOutbox.on(pool, database.table()), JobKit.QUEUE)
              .codec(Jackson2Codec.standard())
              .build();
      for (int i = 0; i < 100; i++) {
        results.add(
            threads.submit(
                () -> {
                  try (Connection connection = pool.getConnection()) {
                    connection.setAutoCommit(false);
                    go.await();
                    EnqueueResult result = hundred.enqueue(connection, job("outbox4j"));
                    connection.commit();
                    return result;
                  }
                }));
      }
      go.countDown();
      List<EnqueueResult> all = new ArrayList<>();
      for (Future<EnqueueResult> each : results) {
        all.add(each.get());
      }
      assertThat(all).filteredOn(EnqueueResult::enqueued).hasSize(1);
      assertThat(all).extracting(EnqueueResult::messageId).containsOnly(all.get(0).messageId());
      assertThat(all)
          .filteredOn(each -> !each.enqueued())
          .extracting(EnqueueResult::decision)
          .containsOnly(IN_FLIGHT);
    }
    assertThat(kit.messages()).isEqualTo(1);

    JobQueue worker = worker();
    kit.awaitState(worker, producer.idOf(job("outbox4j")), JobState.COMPLETED);
    assertThat(handled).hasSize(1);
    assertThat(kit.messages()).isZero();
  }

  /** Each of them but the one that commits rolls back; somebody's is processed. */
  @Test
  void ofManyOfWhichMostRollBackOneThatCommitsIsPublished() throws Exception {
    AtomicInteger place = new AtomicInteger();
    List<Future<EnqueueResult>> results = new ArrayList<>();
    try (HikariDataSource pool = database.pool(20)) {
      for (int i = 0; i < 20; i++) {
        results.add(
            threads.submit(
                () -> {
                  try (Connection connection = pool.getConnection()) {
                    connection.setAutoCommit(false);
                    EnqueueResult result = producer.enqueue(connection, job("outbox4j"));
                    if (place.getAndIncrement() % 4 == 3) {
                      connection.commit();
                    } else {
                      connection.rollback();
                    }
                    return result;
                  }
                }));
      }
      for (Future<EnqueueResult> each : results) {
        each.get();
      }
    }
    assertThat(kit.messages()).isEqualTo(1);
    assertThat(enqueue().decision()).isEqualTo(IN_FLIGHT);
  }

  @Test
  void whoWaitsForATransactionThatRollsBackTakesOver() throws Exception {
    try (Connection first = kit.transaction()) {
      assertThat(producer.enqueue(first, job("outbox4j")).enqueued()).isTrue();
      Future<EnqueueResult> second = threads.submit(this::enqueue);
      kit.awaitWaiting(1);
      assertThat(second.isDone()).isFalse();
      first.rollback();
      assertThat(second.get().decision()).isEqualTo(ENQUEUED);
    }
    assertThat(kit.messages()).isEqualTo(1);
  }

  @Test
  void theTimeThatItHasWaitedForAnotherIsNoPartOfItsWindow() throws Exception {
    JobQueue brief = kit.builder().inFlightWindow(Duration.ofSeconds(2)).build();
    try (Connection first = kit.transaction()) {
      assertThat(brief.enqueue(first, job("outbox4j")).enqueued()).isTrue();
      Future<EnqueueResult> second = threads.submit(() -> brief.enqueue(job("outbox4j")));
      kit.awaitWaiting(1);
      database.list(String.class, "select pg_sleep(2.5)::text");
      first.rollback();
      assertThat(second.get().decision()).isEqualTo(ENQUEUED);
    }
    assertThat(brief.enqueue(job("outbox4j")).decision()).isEqualTo(IN_FLIGHT);
  }

  @Test
  void whoIsRefusedHoldsNothingThatOthersWaitFor() throws Exception {
    enqueue();
    try (Connection refused = kit.transaction()) {
      assertThat(producer.enqueue(refused, job("outbox4j")).decision()).isEqualTo(IN_FLIGHT);
      assertThat(enqueue().decision()).isEqualTo(IN_FLIGHT);
      kit.passes(IN_FLIGHT_WINDOW.plus(SECOND));
      assertThat(enqueue().decision()).isEqualTo(ENQUEUED);
      refused.rollback();
    }
  }

  @Test
  void aSecondAfterTheWindowInFlightItIsEnqueuedBesideTheOneBefore() {
    EnqueueResult first = enqueue();
    assertThat(first.decision()).isEqualTo(ENQUEUED);
    kit.passes(IN_FLIGHT_WINDOW.minusSeconds(60));
    EnqueueResult refused = enqueue();
    assertThat(refused.decision()).isEqualTo(IN_FLIGHT);
    assertThat(refused.messageId()).isEqualTo(first.messageId());
    kit.passes(SECOND.plusSeconds(60));

    EnqueueResult second = enqueue();

    assertThat(second.decision()).isEqualTo(ENQUEUED);
    assertThat(second.messageId()).isNotEqualTo(first.messageId());
    assertThat(enqueue().decision()).isEqualTo(IN_FLIGHT);
    assertThat(kit.messages()).isEqualTo(2);
    worker();
    await().atMost(JobKit.SOON).until(() -> handled.size() == 2); // neither is lost
  }

  @Test
  void itIsEnqueuedAgainASecondAfterTheWindowOfItsCompletion() {
    EnqueueResult first = enqueue();
    JobQueue worker = worker();
    kit.awaitState(worker, first.jobId(), JobState.COMPLETED);
    EnqueueResult refused = enqueue();
    assertThat(refused.decision()).isEqualTo(COMPLETED);
    assertThat(refused.messageId()).isEqualTo(first.messageId());
    kit.passes(COMPLETED_WINDOW.minusSeconds(60));
    assertThat(enqueue().decision()).isEqualTo(COMPLETED);
    kit.passes(SECOND.plusSeconds(60));

    EnqueueResult second = enqueue();

    assertThat(second.decision()).isEqualTo(ENQUEUED);
    await().atMost(JobKit.SOON).until(() -> handled.contains(second.messageId()));
    kit.awaitState(worker, second.jobId(), JobState.COMPLETED);
    assertThat(enqueue().decision()).isEqualTo(COMPLETED);
  }

  /** The window of the completion counts from the completion, however long the job waited. */
  @Test
  void aJobThatWaitedLongIsGuardedFromItsCompletionOn() {
    EnqueueResult first = enqueue();
    kit.passes(Duration.ofHours(5));
    JobQueue worker = worker();
    kit.awaitState(worker, first.jobId(), JobState.COMPLETED);
    assertThat(enqueue().decision()).isEqualTo(COMPLETED);
  }

  @Test
  void aJobWhoseMessageIsLostIsEnqueuedAtOnce() {
    EnqueueResult first = enqueue();
    database.update("delete from outbox where id = ?", first.messageId());
    assertThat(producer.status(first.jobId()).orElseThrow().state()).isEqualTo(JobState.GONE);

    assertThat(enqueue().decision()).isEqualTo(ENQUEUED);
    assertThat(kit.messages()).isEqualTo(1);
  }

  /** As after a restore, a cut-over by logical replication, or a truncate with restart identity. */
  @Test
  void jobsEndThoughIdsBeganAnew() {
    JobQueue worker = worker();
    EnqueueResult before = enqueue();
    kit.awaitState(worker, before.jobId(), JobState.COMPLETED);
    database.list(Long.class, "select setval('outbox_id_seq', ?, false)", before.messageId());

    EnqueueResult after = producer.enqueue(job("another"));

    assertThat(after.messageId()).isEqualTo(before.messageId());
    kit.awaitState(worker, after.jobId(), JobState.COMPLETED);
    assertThat(kit.messages()).isZero();
    assertThat(producer.status(before.jobId())).isEmpty();
  }

  @Test
  void aJobThatIsDueLaterIsGuardedFromThenOn() {
    Job<JobKit.Analysis> later = job("outbox4j").deliverIn(Duration.ofHours(1));
    EnqueueResult first = producer.enqueue(later);
    kit.passes(Duration.ofHours(1));
    assertThat(enqueue().decision()).isEqualTo(IN_FLIGHT);
    kit.passes(IN_FLIGHT_WINDOW.plus(SECOND));
    assertThat(enqueue().decision()).isEqualTo(ENQUEUED);
    assertThat(first.freeAt()).isAfter(producer.status(first.jobId()).orElseThrow().enqueuedAt());
  }

  @Test
  void itIsThereWithTheCallersTransactionOrNotAtAll() throws Exception {
    try (Connection connection = kit.transaction()) {
      EnqueueResult result = producer.enqueue(connection, job("outbox4j"));
      assertThat(producer.status(result.jobId())).isEmpty();
      // twice in one transaction is once
      assertThat(producer.enqueue(connection, job("outbox4j")).decision()).isEqualTo(IN_FLIGHT);
      connection.rollback();
      assertThat(producer.status(result.jobId())).isEmpty();
      assertThat(kit.messages()).isZero();

      assertThat(producer.enqueue(connection, job("outbox4j")).enqueued()).isTrue();
      connection.commit();
      assertThat(producer.status(result.jobId())).isPresent();
    }
    try (Connection connection = database.plain().getConnection()) {
      assertThatThrownBy(() -> producer.enqueue(connection, job("other")))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("autocommit");
    }
  }

  @Test
  void itIsOneRoundTrip() throws Exception {
    CountingDataSource counting = new CountingDataSource(database.plain());
    try (Connection connection = counting.getConnection()) {
      connection.setAutoCommit(false);
      producer.enqueue(connection, job("outbox4j"));
      assertThat(counting.executions()).isEqualTo(1);
      producer.enqueue(connection, job("outbox4j"));
      assertThat(counting.executions()).isEqualTo(2);
      connection.rollback();
    }
  }

  /** An answer that is lost tells nothing; the same call again finds what became of it. */
  @Test
  void whoCallsAgainSinceTheAnswerWasLostFindsTheJob() {
    CountingDataSource failing = new CountingDataSource(database.plain());
    JobQueue unlucky = new JobKit(database, failing).producer();
    failing.beforeEach(
        text -> {
          if (text.contains("outbox_job_enqueue")) {
            enqueue(); // as if this had been its own, whose answer is lost
            throw new IllegalStateException("the connection is gone");
          }
        });
    assertThatThrownBy(() -> unlucky.enqueue(job("outbox4j"))).isInstanceOf(RuntimeException.class);
    failing.beforeEach(text -> {});

    assertThat(unlucky.enqueue(job("outbox4j")).decision()).isEqualTo(IN_FLIGHT);
    assertThat(kit.messages()).isEqualTo(1);
  }

  @Test
  void aRepeatableReadThatHasLookedBeforeIsToldToRepeat() throws Exception {
    try (Connection late = kit.transaction()) {
      late.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
      late.createStatement().execute("select 1 from outbox");
      enqueue();
      assertThatThrownBy(() -> producer.enqueue(late, job("outbox4j")))
          .isInstanceOf(OutboxStoreException.class)
          .hasRootCauseInstanceOf(SQLException.class)
          .rootCause()
          .satisfies(cause -> assertThat(((SQLException) cause).getSQLState()).isEqualTo("40001"));
      late.rollback();
    }
  }

  @Test
  void jobsOfOtherQueuesAndTypesAreOthers() {
    enqueue();
    JobQueue other =
        JobQueue.builder(PostgresOutbox.on(database.plain(), database.table()), "others")
            .codec(Jackson2Codec.standard())
            .build();
    assertThat(other.enqueue(job("outbox4j")).enqueued()).isTrue();
    assertThat(producer.enqueue(Job.of(JobType.of("text", String.class), "outbox4j")).enqueued())
        .isTrue();
    assertThat(other.status(producer.idOf(job("outbox4j"))).orElseThrow().state())
        .isEqualTo(JobState.QUEUED);
  }

  @Test
  void theMessageIsAsOneThatIsPublished() {
    EnqueueResult result = producer.enqueue(job("outbox4j").header("tenant", "acme"));
    assertThat(
            database.one(
                String.class,
                "select type || ' ' || convert_from(payload, 'UTF8') || ' ' || headers::text"
                    + " from outbox where id = ?",
                result.messageId()))
        .isEqualTo(
            "analyse {\"repository\":\"outbox4j\",\"depth\":1} {\"job-id\": \"%s\", \"tenant\":"
                    .formatted(result.jobId())
                + " \"acme\", \"content-type\": \"application/json\"}");
  }

  @Test
  void withoutTheMigrationsItSaysWhatToDo() {
    database.update("alter table outbox_job rename to outbox_job_away");
    try {
      assertThatThrownBy(this::enqueue).hasMessageContaining("JobMigrations");
    } finally {
      database.update("alter table outbox_job_away rename to outbox_job");
    }
  }

  /** Enqueues, acks and failures of few jobs meet all the time. */
  @Test
  void whileJobsEndAndAreEnqueuedAnewEachMessageThatIsToldOfIsHandled() throws Exception {
    AtomicInteger calls = new AtomicInteger();
    JobQueue busy =
        kit.start(
            kit.builder()
                .completedWindow(Duration.ZERO)
                .on(
                    ANALYSE,
                    (body, delivery) -> {
                      handled.add(delivery.id());
                      return calls.incrementAndGet() % 5 == 0
                          ? Outcome.reject("not this time")
                          : Outcome.ack();
                    }));
    Set<Long> told = ConcurrentHashMap.newKeySet();
    List<Future<?>> producers = new ArrayList<>();
    for (int i = 0; i < 4; i++) {
      producers.add(
          threads.submit(
              () -> {
                for (int n = 0; n < 150; n++) {
                  EnqueueResult result = busy.enqueue(job("r" + n % 3));
                  assertThat(result.decision()).isNotEqualTo(COMPLETED);
                  told.add(result.messageId());
                }
              }));
    }
    for (Future<?> each : producers) {
      each.get();
    }
    await().atMost(JobKit.SOON).until(() -> kit.messages() == 0);
    assertThat(handled).containsAll(told);
    assertThat(database.count("outbox_job")).isEqualTo(3);
    assertThat(
            database.list(
                String.class,
                "select distinct e.status from outbox_job j"
                    + " left join outbox_job_end e on e.message_id = j.message_id"))
        .isSubsetOf("completed", "failed");
  }
}
