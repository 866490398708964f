package dev.outbox4j.job;

import static dev.outbox4j.job.JobKit.ANALYSE;
import static dev.outbox4j.job.JobKit.AT_ONCE;
import static dev.outbox4j.job.JobKit.ENDS_WELL;
import static dev.outbox4j.job.JobKit.SOON;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.Delivery;
import dev.outbox4j.FailureReason;
import dev.outbox4j.Outcome;
import dev.outbox4j.RateLimit;
import dev.outbox4j.RetryPolicy;
import dev.outbox4j.SubscriberEvents;
import dev.outbox4j.postgres.testing.CountingDataSource;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** What becomes of jobs that are delivered where no handler of their type is. */
@ExtendWith(PostgresExtension.class)
class LeftJobsIT {
  private static final JobType<String> OTHER = JobType.of("other", String.class);
  private static final int BUDGET = JobQueue.Builder.DEFAULT_BUDGET;

  /** Lets one begin at a time, and notes what begins. */
  private static final class OneAtATime implements RateLimit {
    private final List<Integer> taken = new CopyOnWriteArrayList<>();

    @Override
    public int available() {
      return 1;
    }

    @Override
    public void take(int messages) {
      taken.add(messages);
    }

    @Override
    public Duration untilNext() {
      return Duration.ofMillis(1);
    }
  }

  /** Notes for how long jobs are left. */
  private static final class Leaves implements SubscriberEvents {
    private final List<Duration> delays = new CopyOnWriteArrayList<>();

    @Override
    public void rescheduled(String subscriber, Delivery delivery, Duration delay) {
      delays.add(delay);
    }
  }

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
    assertThat(kit.status(result).state().isFinal()).isFalse();
    assertThat(kit.status(result).attempts()).isZero();
    assertThat(kit.status(result).deliveries()).isLessThanOrEqualTo(1);
    assertThat(without.health().leftTypes()).containsExactly("other");
    await().atMost(SOON).until(() -> without.health().healthy());

    JobQueue with = kit.start(kit.builder().on(OTHER, (body, delivery) -> {}));

    kit.awaitState(producer, result.jobId(), JobState.COMPLETED);
    assertThat(kit.status(result).deliveries()).isEqualTo(1);
    assertThat(with.health().leftTypes()).isEmpty();
  }

  /** It is left for seconds then, and who leaves it knows best when it falls due. */
  @Test
  void whoStartsLateClaimsItBeforeThoseThatHaveLeftItAgainAndAgain() {
    Leaves leaves = new Leaves();
    kit.start(kit.builder().subscriber(settings -> settings.events(leaves)).on(ANALYSE, ENDS_WELL));
    EnqueueResult result = enqueue();
    awaitDeliveries(24);
    int before = leaves.delays.size();

    kit.start(kit.builder().on(OTHER, (body, delivery) -> {}));

    kit.awaitState(producer, result.jobId(), JobState.COMPLETED);
    assertThat(leaves.delays.size() - before).isLessThanOrEqualTo(2);
  }

  @Test
  void theUsersLimitHoldsForWhatIsLeftAndForWhatIsHandled() {
    AtomicInteger calls = new AtomicInteger();
    OneAtATime limit = new OneAtATime();
    kit.start(
        kit.builder()
            .subscriber(settings -> settings.rateLimit(JobKit.QUEUE, limit))
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
    assertThat(limit.taken).hasSizeGreaterThanOrEqualTo(20).containsOnly(1);
    assertThat(kit.messages()).isEqualTo(20);
    assertThat(database.count("outbox_dlq")).isZero();
  }

  @Test
  void inAnOrderedQueueAJobThatIsLeftIsNotDueForAMoment() {
    Leaves leaves = new Leaves();
    try (JobQueue ordered =
        kit.ordered()
            .subscriber(settings -> settings.events(leaves))
            .on(ANALYSE, ENDS_WELL)
            .build()) {
      EnqueueResult other = ordered.enqueue(Job.of(OTHER, "x"));
      EnqueueResult own = ordered.enqueue(JobKit.job("one"));
      ordered.start();
      kit.awaitState(ordered, own.jobId(), JobState.COMPLETED);
      await().atMost(SOON).until(() -> leaves.delays.size() > 2);
      assertThat(leaves.delays).allMatch(delay -> delay.compareTo(Duration.ofMillis(100)) >= 0);
      assertThat(ordered.health().leftTypes()).containsExactly("other");
      assertThat(ordered.status(other.jobId()).orElseThrow().state()).isEqualTo(JobState.QUEUED);
    }
  }

  /**
   * As for the time of a deployment, with a backlog. Who leaves jobs sees that others end some, and
   * keeps none of the rest from them.
   */
  @Test
  void ofABacklogOfTypesThatOneProcessEachHandlesNoJobWaitsForAProcessThatIsThere() {
    int jobs = 1_500;
    AtomicInteger own = new AtomicInteger();
    AtomicInteger others = new AtomicInteger();
    Leaves leaves = new Leaves();
    enqueueInOneTransaction(jobs);

    JobQueue first = kit.start(busy(ANALYSE, own, leaves));
    JobQueue second = kit.start(busy(OTHER, others, leaves));

    await().atMost(SOON).until(() -> own.get() > jobs / 3 && others.get() > jobs / 3);
    int before = leaves.delays.size();
    await().atMost(SOON).until(() -> kit.messages() == 0);
    assertThat(leaves.delays.subList(before, leaves.delays.size()))
        .allMatch(delay -> delay.compareTo(Duration.ofSeconds(1)) <= 0);
    assertThat(leaves.delays).hasSizeLessThan(2 * jobs * 5);
    assertThat(own).hasValue(jobs);
    assertThat(others).hasValue(jobs);
    assertThat(database.count("outbox_dlq")).isZero();
    assertThat(database.count("outbox_job_end where status = 'completed' and deliveries_count = 1"))
        .isEqualTo(2L * jobs);
    assertThat(first.health().leftTypes()).containsExactly("other");
    assertThat(second.health().leftTypes()).containsExactly("analyse");
  }

  /** No handler has decided of what is dead-lettered otherwise: it may have killed all of them. */
  @Test
  void aTypeIsHandledOfWhichAJobWasCompletedOrRejectedLately() {
    database.update(
        """
        with ended as (
          insert into outbox_job_end (message_id, queue, job_id, status, ended_at)
          select row_number() over (), queue, status || age, status,
            now() - make_interval(secs => age)
          from unnest(array['completed', 'failed', 'dead_lettered']) as s (status)
          cross join unnest(array[1, 3600]) as a (age)
          cross join unnest(array['analyses', 'others']) as q (queue)
          returning *)
        insert into outbox_job (queue, job_id, type, message_id, enqueued_at, due_at)
        select queue, job_id, job_id || queue, message_id, ended_at, ended_at from ended
        """);
    assertThat(kit.store().handledLately())
        .containsExactlyInAnyOrder("completed1analyses", "failed1analyses");
  }

  @Test
  void whetherOthersHandleTypesIsAskedOnceForAllOfThem() {
    int types = 200;
    CountingDataSource counting = new CountingDataSource(database.pool(12));
    for (int i = 0; i < types; i++) {
      producer.enqueue(Job.of(JobType.of("other." + i, String.class), "x"));
    }
    long begun = System.nanoTime();
    try (JobKit counted = new JobKit(database, counting)) {
      counted.start(counted.builder().on(ANALYSE, ENDS_WELL));
      await()
          .atMost(SOON)
          .until(() -> database.count("outbox where last_error is not null") == types);
    }
    long looks = 1 + (System.nanoTime() - begun) / Duration.ofMillis(250).toNanos();

    assertThat(counting.executionsOf("e.ended_at > now() - interval '1 minute'"))
        .isBetween(1L, looks);
  }

  /** Of both types in turn. */
  private void enqueueInOneTransaction(int jobs) {
    try (Connection connection = kit.transaction()) {
      for (int i = 0; i < jobs; i++) {
        producer.enqueue(connection, JobKit.job("r" + i));
        producer.enqueue(connection, Job.of(OTHER, "x" + i));
      }
      connection.commit();
    } catch (SQLException e) {
      throw new IllegalStateException(e);
    }
  }

  /** A process whose handler takes some milliseconds. */
  private <T> JobQueue.Builder busy(JobType<T> type, AtomicInteger calls, Leaves leaves) {
    return kit.builder()
        .subscriber(settings -> settings.name(type.name()).events(leaves))
        .on(
            type,
            (T body, Delivery delivery) -> {
              calls.incrementAndGet();
              LockSupport.parkNanos(Duration.ofMillis(4).toNanos());
            });
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
    assertThat(kit.status(result).attempts()).isEqualTo(BUDGET);
    assertThat(kit.status(result).deliveries()).isEqualTo(BUDGET);
  }

  @Test
  void whatNobodyHasTakenForADayFails() {
    EnqueueResult result = enqueue();
    kit.start(kit.builder().budget(2).backoff(AT_ONCE).on(ANALYSE, ENDS_WELL));
    awaitDeliveries(3);
    kit.close();
    assertThat(database.one(String.class, "select last_error from outbox"))
        .matches(
            "left to other subscribers since \\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\dZ at delivery 0");
    kit.passes(LeftJobs.LONGEST.plusHours(1));
    kit.start(kit.builder().budget(2).backoff(AT_ONCE).on(ANALYSE, ENDS_WELL));

    kit.awaitState(producer, result.jobId(), JobState.DEAD_LETTERED);

    assertThat(kit.status(result).reason()).contains(FailureReason.RETRY_TERMINAL.code());
    assertThat(kit.status(result).attempts()).isEqualTo(1);
    assertThat(database.one(String.class, "select last_exception from outbox_dlq"))
        .contains("no process has handled a job of type 'other' for PT24H");
  }

  @Test
  void whatNobodyHasTakenForADayFailsInAnOrderedQueueToo() {
    EnqueueResult result;
    try (JobQueue ordered = kit.ordered().on(ANALYSE, ENDS_WELL).build()) {
      result = ordered.enqueue(Job.of(OTHER, "x"));
      ordered.start();
      awaitLeft();
    }
    kit.passes(LeftJobs.LONGEST.plusHours(1));
    try (JobQueue ordered = kit.ordered().on(ANALYSE, ENDS_WELL).build()) {
      ordered.start();

      kit.awaitState(ordered, result.jobId(), JobState.DEAD_LETTERED);

      assertThat(ordered.status(result.jobId()).orElseThrow().deliveries()).isEqualTo(1);
    }
  }

  private void awaitLeft() {
    await()
        .atMost(SOON)
        .until(() -> database.count("outbox where starts_with(last_error, 'left to')") == 1);
  }

  @Test
  void noPolicyOfItsTypeGivesItAnotherTry() {
    EnqueueResult result = enqueue();
    kit.start(withPolicyOfTheOther());
    awaitDeliveries(3);
    kit.close();
    kit.passes(LeftJobs.LONGEST.plusHours(1));
    kit.start(withPolicyOfTheOther());

    kit.awaitState(producer, result.jobId(), JobState.DEAD_LETTERED);

    assertThat(kit.status(result).attempts()).isEqualTo(1);
  }

  private JobQueue.Builder withPolicyOfTheOther() {
    return kit.builder()
        .subscriber(settings -> settings.retry("other", RetryPolicy.constant(SOON).attempts(4)))
        .on(ANALYSE, ENDS_WELL);
  }

  /** The handler is there, and dies in it. */
  @Test
  void whatAProcessHasDiedOfMeanwhileIsNotFailedByWhoHasNoHandler() {
    EnqueueResult result = enqueue();
    kit.start(kit.builder().on(ANALYSE, ENDS_WELL));
    awaitDeliveries(3);
    kit.close();
    kit.passes(LeftJobs.LONGEST.plusHours(1));
    long token = database.one(Long.class, "select lease_token from outbox");
    database.update( // as a claim does; its lease is over since
        "update outbox set deliveries_count = deliveries_count + 1, lease_token = lease_token + 1,"
            + " available_at = now()");
    kit.start(kit.builder().on(ANALYSE, ENDS_WELL));
    awaitDeliveries((int) token + 4);

    assertThat(kit.status(result).state().isFinal()).isFalse();
    assertThat(kit.status(result).attempts()).isZero();
    kit.close();
    assertThat(database.one(String.class, "select last_error from outbox"))
        .matches("left to other subscribers since .*Z at delivery 1");
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

    assertThat(kit.status(polls).state().isFinal()).isFalse();
    assertThat(kit.status(polls).attempts()).isZero();
    assertThat(kit.status(fails).state().isFinal()).isFalse();
    assertThat(kit.status(fails).attempts()).isEqualTo(1);
  }

  @Test
  void theDayCountsFromWhenTheJobWasDue() {
    EnqueueResult result = producer.enqueue(Job.of(OTHER, "x").deliverIn(Duration.ofDays(30)));
    kit.passes(Duration.ofDays(30));
    database.update("update outbox set available_at = now()");
    kit.start(kit.builder().budget(1).on(ANALYSE, ENDS_WELL));
    awaitDeliveries(3);
    assertThat(kit.status(result).state().isFinal()).isFalse();
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
