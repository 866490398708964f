package dev.outbox4j.job;

import static dev.outbox4j.job.JobKit.ANALYSE;
import static dev.outbox4j.job.JobKit.AT_ONCE;
import static dev.outbox4j.job.JobKit.SOON;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.Delivery;
import dev.outbox4j.FailureReason;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.Outcome;
import dev.outbox4j.RateLimit;
import dev.outbox4j.TypedHandler;
import dev.outbox4j.codec.jackson2.Jackson2Codec;
import dev.outbox4j.migrations.OrderedMigrations;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** What becomes of jobs that are delivered where no handler of their type is. */
@ExtendWith(PostgresExtension.class)
class LeftJobsIT {
  private static final JobType<String> OTHER = JobType.of("other", String.class);
  private static final int BUDGET = JobQueue.Builder.DEFAULT_BUDGET;
  private static final TypedHandler<JobKit.Analysis> ENDS_WELL = (body, delivery) -> {};

  private static final RateLimit ONE_AT_A_TIME =
      new RateLimit() {
        @Override
        public int available() {
          return 1;
        }

        @Override
        public void take(int messages) {}

        @Override
        public Duration untilNext() {
          return Duration.ofMillis(1);
        }
      };

  private final TestDatabase database;
  private final JobKit kit;
  private final JobQueue producer;

  LeftJobsIT(TestDatabase database) {
    this.database = database;
    this.kit = new JobKit(database, database.pool(12));
    this.producer = kit.producer();
  }

  @BeforeEach
  void setUp() {
    JobKit.migrate(database);
  }

  @AfterEach
  void stop() {
    kit.close();
  }

  private EnqueueResult enqueue() {
    return producer.enqueue(Job.of(OTHER, "x"));
  }

  private JobStatus status(EnqueueResult of) {
    return producer.status(of.jobId()).orElseThrow();
  }

  private void awaitDeliveries(int count) {
    await()
        .atMost(SOON)
        .until(() -> database.one(Long.class, "select max(lease_token) from outbox") >= count);
  }

  @Test
  void theyAreLeftToAnotherProcessAndTheirBudgetIsNotSpent() {
    JobQueue without = kit.start(kit.builder().on(ANALYSE, ENDS_WELL));
    EnqueueResult result = enqueue();
    awaitDeliveries(2 * BUDGET);
    assertThat(status(result).state().isFinal()).isFalse();
    assertThat(status(result).attempts()).isZero();
    assertThat(status(result).deliveries()).isLessThanOrEqualTo(1);
    assertThat(without.health().leftTypes()).containsExactly("other");
    await().atMost(SOON).until(() -> without.health().healthy());

    JobQueue with = kit.start(kit.builder().on(OTHER, (body, delivery) -> {}));

    kit.awaitState(producer, result.jobId(), JobState.COMPLETED);
    assertThat(status(result).deliveries()).isEqualTo(1);
    assertThat(with.health().leftTypes()).isEmpty();
  }

  /** It is left for seconds then, and who leaves it knows best when it falls due. */
  @Test
  void aProcessThatStartsLateHasItToo() {
    kit.start(kit.builder().on(ANALYSE, ENDS_WELL));
    EnqueueResult result = enqueue();
    awaitDeliveries(22);

    kit.start(kit.builder().on(OTHER, (body, delivery) -> {}));

    kit.awaitState(producer, result.jobId(), JobState.COMPLETED);
  }

  @Test
  void whoLeavesJobsHasItsOwnLimitsAndHandlesItsOwn() {
    AtomicInteger calls = new AtomicInteger();
    kit.start(
        kit.builder()
            .subscriber(settings -> settings.rateLimit(JobKit.QUEUE, ONE_AT_A_TIME))
            .on(
                ANALYSE,
                (body, delivery) -> {
                  calls.incrementAndGet();
                }));
    for (int i = 0; i < 20; i++) {
      producer.enqueue(Job.of(OTHER, "x" + i));
      producer.enqueue(JobKit.job("r" + i));
    }
    await().atMost(SOON).untilAsserted(() -> assertThat(calls).hasValue(20));
    assertThat(kit.messages()).isEqualTo(20);
    assertThat(database.count("outbox_dlq")).isZero();
  }

  @Test
  void inAnOrderedQueueTheyWaitToo() {
    OrderedMigrations.of("public", "outbox", "ordered").migrate(database.plain());
    try (JobQueue ordered =
        JobQueue.builder(PostgresOutbox.on(database.pool(8), database.table()), "ordered")
            .codec(Jackson2Codec.standard())
            .subscriber(OutboxSubscriber.Builder::ordered)
            .on(ANALYSE, ENDS_WELL)
            .build()) {
      EnqueueResult other = ordered.enqueue(Job.of(OTHER, "x"));
      EnqueueResult own = ordered.enqueue(JobKit.job("one"));
      ordered.start();
      kit.awaitState(ordered, own.jobId(), JobState.COMPLETED);
      await().atMost(SOON).until(() -> ordered.health().leftTypes().contains("other"));
      assertThat(ordered.status(other.jobId()).orElseThrow().state()).isEqualTo(JobState.QUEUED);
    }
  }

  @Test
  void whoLeavesAJobGivesNothingBackOfWhatOthersHaveSpent() {
    AtomicInteger calls = new AtomicInteger();
    kit.start(kit.builder().on(ANALYSE, ENDS_WELL));
    EnqueueResult result = enqueue();
    awaitDeliveries(2);
    kit.start(
        kit.builder()
            .backoff(AT_ONCE)
            .on(
                OTHER,
                (String body, Delivery delivery) -> {
                  calls.incrementAndGet();
                  throw new IllegalStateException("no");
                }));

    kit.awaitState(producer, result.jobId(), JobState.DEAD_LETTERED);

    assertThat(calls).hasValue(BUDGET);
    assertThat(status(result).attempts()).isEqualTo(BUDGET);
    assertThat(status(result).deliveries()).isEqualTo(BUDGET);
  }

  @Test
  void whatNobodyHasTakenForADayFails() {
    EnqueueResult result = enqueue();
    kit.start(kit.builder().budget(2).backoff(AT_ONCE).on(ANALYSE, ENDS_WELL));
    awaitDeliveries(3);
    kit.close();
    assertThat(database.one(String.class, "select last_error from outbox"))
        .matches("left to other subscribers since \\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\dZ");
    kit.passes(LeftJobs.LONGEST.plusHours(1));
    kit.start(kit.builder().budget(2).backoff(AT_ONCE).on(ANALYSE, ENDS_WELL));

    kit.awaitState(producer, result.jobId(), JobState.DEAD_LETTERED);

    assertThat(status(result).reason()).contains(FailureReason.RETRY_TERMINAL);
    assertThat(status(result).attempts()).isEqualTo(1);
    assertThat(database.one(String.class, "select last_exception from outbox_dlq"))
        .contains("no process has handled a job of type 'other' for PT24H");
  }

  @Test
  void whatOthersHaveHadMeanwhileDoesNotFailThoughItIsOld() {
    EnqueueResult polls = producer.enqueue(Job.of(OTHER, "polls"));
    EnqueueResult fails = producer.enqueue(Job.of(OTHER, "fails"));
    kit.start(
        kit.builder()
            .backoff(new JobBackoff(Duration.ofHours(1), Duration.ofHours(1), Duration.ZERO))
            .on(
                OTHER,
                (String body, Delivery delivery) -> {
                  if (body.equals("polls")) {
                    return Outcome.reschedule(Duration.ofHours(1));
                  }
                  throw new IllegalStateException("the bank is closed");
                }));
    kit.awaitAvailableLater(2);
    kit.close();
    kit.passes(LeftJobs.LONGEST.plusHours(1)); // in which it went on so
    database.update("update outbox set available_at = now()");
    long token = database.one(Long.class, "select max(lease_token) from outbox");
    kit.start(kit.builder().backoff(AT_ONCE).on(ANALYSE, ENDS_WELL));
    awaitDeliveries((int) token + 6);

    assertThat(status(polls).state().isFinal()).isFalse();
    assertThat(status(polls).attempts()).isZero();
    assertThat(status(fails).state().isFinal()).isFalse();
    assertThat(status(fails).attempts()).isEqualTo(1);
  }

  @Test
  void theDayCountsFromWhenTheJobWasDue() {
    EnqueueResult result = producer.enqueue(Job.of(OTHER, "x").deliverIn(Duration.ofDays(30)));
    kit.passes(Duration.ofDays(30));
    database.update("update outbox set available_at = now()");
    kit.start(kit.builder().budget(1).on(ANALYSE, ENDS_WELL));
    awaitDeliveries(3);
    assertThat(status(result).state().isFinal()).isFalse();
  }

  @Test
  void whatHasNoTypeIsNoJobOfAnybody() {
    database.list(Long.class, "select outbox_publish('analyses', 'x'::bytea)");
    kit.start(kit.builder().budget(1).on(ANALYSE, ENDS_WELL));
    await().atMost(SOON).until(() -> database.count("outbox_dlq") == 1);
    assertThat(database.one(String.class, "select last_exception from outbox_dlq"))
        .contains("a message of job queue 'analyses' has no type");
  }
}
