package dev.outbox4j.examples.jobs;

import static dev.outbox4j.dlq.DeadLetterFilter.type;
import static dev.outbox4j.dlq.DeadLetterFilter.unresolved;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.FailureReason;
import dev.outbox4j.codec.jackson2.Jackson2Codec;
import dev.outbox4j.dlq.DeadLetterFilter;
import dev.outbox4j.dlq.DeadLetterReport;
import dev.outbox4j.dlq.DeadLetterSummary;
import dev.outbox4j.dlq.Redrive;
import dev.outbox4j.job.EnqueueResult;
import dev.outbox4j.job.EnqueueResult.Decision;
import dev.outbox4j.job.JobAlert;
import dev.outbox4j.job.JobAlerts;
import dev.outbox4j.job.JobQueue;
import dev.outbox4j.job.JobState;
import dev.outbox4j.job.JobStatus;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.notify.pgjdbc.PgjdbcListen;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.PayloadCodec;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/**
 * What may go wrong with a job, and what becomes of it:
 *
 * <ul>
 *   <li>many requests at once, one that is rolled back, one while the job is in flight or was
 *       completed a short time ago, and one after these windows;
 *   <li>an analysis service that fails and then works, fails for longer than the budget lasts,
 *       fails again after each replay, is down, or refuses;
 *   <li>a payload that cannot be decoded, and a job that kills each process that runs it;
 *   <li>items that are liked at once, or while older ones are analysed;
 *   <li>two operators at once, a purge of what nobody has looked at, and a queue that stands still.
 * </ul>
 *
 * After each test, each request and each message is accounted for.
 */
@ExtendWith(PostgresExtension.class)
class TasteServiceIT {
  private static final Duration SOON = Duration.ofMinutes(1);
  private static final int BUDGET = JobQueue.Builder.DEFAULT_BUDGET;
  static final String CLEAR =
      """
      truncate outbox, outbox_dlq, outbox_dlq_trips, outbox_job, outbox_job_end,
        liked_items, taste_profiles, taste_requests, taste_analyses
      """;

  private final TestDatabase database;
  private final HikariDataSource pool;
  private final LocalTasteApi api = new LocalTasteApi();
  private final List<AutoCloseable> opened = new ArrayList<>();
  private final List<JobAlert> alarms = new CopyOnWriteArrayList<>();

  TasteServiceIT(TestDatabase database) {
    this.database = database;
    this.pool = database.pool(2 * TasteApplication.CONNECTIONS);
  }

  @BeforeEach
  void setUp() {
    TasteApplication.migrate(pool, "public");
    database.update(CLEAR);
    api.start();
  }

  @AfterEach
  void allIsAccountedFor() throws Exception {
    for (AutoCloseable each : opened) {
      each.close();
    }
    api.close();
    reconcile();
  }

  private void reconcile() throws SQLException {
    JobQueue asked = define(Jackson2Codec.standard()).build();
    assertThat(new Reconciliation(pool, asked).compare().lines())
        .allSatisfy(line -> assertThat(line.wrong()).as(line.toString()).isZero());
  }

  private JobQueue.Builder define(PayloadCodec codec) {
    return TasteQueue.define(PostgresOutbox.on(pool, database.table()), codec, TasteTimes.brief());
  }

  private TasteApplication application(PayloadCodec codec) {
    TasteApplication application =
        new TasteApplication(
            pool,
            PgjdbcListen.on(database.plain()),
            codec,
            new TasteApi(api.url()),
            TasteTimes.brief(),
            alarms::add);
    opened.add(application);
    return application;
  }

  private TasteApplication started() {
    TasteApplication application = application(Jackson2Codec.standard());
    application.start();
    return application;
  }

  private <T> List<T> together(List<Callable<T>> calls) throws Exception {
    ExecutorService threads = Executors.newFixedThreadPool(calls.size());
    try {
      List<T> results = new ArrayList<>();
      for (Future<T> each : threads.invokeAll(calls)) {
        results.add(each.get());
      }
      return results;
    } finally {
      threads.shutdownNow();
    }
  }

  private <T> List<T> together(int times, Callable<T> call) throws Exception {
    return together(Collections.nCopies(times, call));
  }

  private JobStatus awaitState(TasteApplication application, String jobId, JobState state) {
    return await(jobId)
        .atMost(SOON)
        .until(
            () -> application.queue().status(jobId).orElseThrow(),
            status -> status.state() == state);
  }

  private void awaitEnds() {
    await().atMost(SOON).until(() -> database.count("outbox") == 0);
  }

  private List<DeadLetterSummary> open(TasteApplication application) {
    return application.queue().deadLetters().where(unresolved()).page(100).letters();
  }

  @Test
  void ofAHundredRequestsAtOnceOneIsAJobWhichIsDoneOnce() throws Exception {
    TasteApplication application = started();

    List<EnqueueResult> results = together(100, () -> application.service().analyse("ann"));

    assertThat(results).filteredOn(EnqueueResult::enqueued).hasSize(1);
    assertThat(results.stream().map(EnqueueResult::messageId).distinct()).hasSize(1);
    awaitState(application, results.get(0).jobId(), JobState.COMPLETED);
    assertThat(api.calls("ann")).isEqualTo(1);
  }

  @Test
  void whatIsRolledBackLeavesNothing() throws Exception {
    TasteApplication application = started();
    try (Connection connection = pool.getConnection()) {
      connection.setAutoCommit(false);
      EnqueueResult result = application.service().like(connection, "ann", "a hat");
      assertThat(result.enqueued()).isTrue();
      connection.rollback();

      assertThat(application.queue().status(result.jobId())).isEmpty();
    }
    assertThat(database.count("liked_items")).isZero();
    assertThat(database.count("outbox")).isZero();
    assertThat(application.service().analyse("ann").enqueued()).isTrue();
    awaitEnds();
  }

  @Test
  void whoHasWaitedForARequestThatIsRolledBackTakesItsPlace() throws Exception {
    TasteApplication application = started();
    ExecutorService other = Executors.newSingleThreadExecutor();
    Future<EnqueueResult> second;
    try (Connection connection = pool.getConnection()) {
      connection.setAutoCommit(false);
      assertThat(application.service().analyse(connection, "ann").enqueued()).isTrue();
      second = other.submit(() -> application.service().analyse("ann"));
      await()
          .atMost(SOON)
          .until(
              () ->
                  database.count(
                          "pg_stat_activity where datname = current_database()"
                              + " and wait_event_type = 'Lock'")
                      == 1);
      connection.rollback();
    } finally {
      other.shutdown();
    }

    assertThat(second.get().enqueued()).isTrue();
    awaitState(application, second.get().jobId(), JobState.COMPLETED);
  }

  @Test
  void aFailureIsTriedAgainUntilTheServiceWorks() throws Exception {
    TasteApplication application = started();
    api.failNext("ann", BUDGET - 1);

    EnqueueResult result = application.service().like("ann", "a scarf");

    awaitState(application, result.jobId(), JobState.COMPLETED);
    assertThat(api.calls("ann")).isEqualTo(BUDGET);
    assertThat(application.service().taste("ann")).contains("likes 1 things");
    assertThat(database.count("outbox_dlq")).isZero();
  }

  @Test
  void aSpentBudgetIsADeadLetterThatIsReplayedOnceTheServiceWorks() throws Exception {
    TasteApplication application = started();
    api.failNext("ann", BUDGET);
    EnqueueResult result = application.service().like("ann", "a scarf");
    JobStatus dead = awaitState(application, result.jobId(), JobState.DEAD_LETTERED);
    assertThat(dead.reason()).contains(FailureReason.RETRY_TERMINAL.code());
    assertThat(api.calls("ann")).isEqualTo(BUDGET);

    api.setDown(true);
    Round down = application.deadLetters().look();
    assertThat(down.replayed()).isZero();
    assertThat(down.probe().orElseThrow()).contains("503");
    assertThat(down.kept()).hasSize(1);
    assertThat(database.count("outbox")).isZero();

    api.setDown(false);
    assertThat(application.deadLetters().look().replayed()).isEqualTo(1);
    awaitState(application, result.jobId(), JobState.COMPLETED);
    assertThat(api.calls("ann")).isEqualTo(BUDGET + 1);
    assertThat(open(application)).isEmpty();
  }

  @Test
  void whatFailsAgainAfterEachReplayIsLeftToAPerson() throws Exception {
    TasteApplication application = started();
    api.failNext("ann", Integer.MAX_VALUE);
    EnqueueResult result = application.service().like("ann", "a scarf");
    for (int replays = 0; replays < Verdict.MOST_REPLAYS; replays++) {
      awaitState(application, result.jobId(), JobState.DEAD_LETTERED);
      assertThat(application.deadLetters().look().replayed()).isEqualTo(1);
    }
    awaitState(application, result.jobId(), JobState.DEAD_LETTERED);

    Round round = application.deadLetters().look();

    assertThat(round.replayed()).isZero();
    assertThat(round.kept().values())
        .singleElement()
        .asString()
        .startsWith("retry_terminal after 5 deliveries, 5 failures and 2 replays: ");
    assertThat(open(application)).singleElement().returns(2, DeadLetterSummary::redrives);
    assertThat(api.calls("ann")).isEqualTo(3 * BUDGET);
  }

  @Test
  void whatTheServiceRefusesIsAskedForOnceAndDiscarded() throws Exception {
    TasteApplication application = started();
    EnqueueResult result = application.service().like("ann", LocalTasteApi.REFUSED);
    JobStatus failed = awaitState(application, result.jobId(), JobState.FAILED);
    assertThat(failed.reason()).contains(FailureReason.REJECTED.code());

    assertThat(application.deadLetters().look().discarded()).isEqualTo(1);

    assertThat(open(application)).isEmpty();
    assertThat(api.calls("ann")).isEqualTo(1);
    assertThat(database.one(String.class, "select resolved_by from outbox_dlq"))
        .isEqualTo(DeadLetterConsumer.NAME);
  }

  @Test
  void whatCannotBeDecodedIsKeptByteForByteUntilItsCodecIsRepaired() throws Exception {
    TasteApplication application = started();
    TasteService older = new TasteService(pool, define(new LinesCodec()).build());
    EnqueueResult result = older.like("ann", "a cloak");
    JobStatus dead = awaitState(application, result.jobId(), JobState.DEAD_LETTERED);
    assertThat(dead.reason()).contains(FailureReason.UNDECODABLE.code());
    String hash = result.jobId().substring(result.jobId().lastIndexOf(':') + 1);
    assertThat(database.one(byte[].class, "select payload from outbox_dlq"))
        .asString(StandardCharsets.UTF_8)
        .isEqualTo("ann\n" + hash + "\n");

    Round unrepaired = application.deadLetters().look();
    assertThat(unrepaired.replayed()).isZero();
    assertThat(unrepaired.kept().values()).singleElement().asString().contains("Undecodable");
    assertThat(api.calls("ann")).isZero();
    application.close();

    TasteApplication repaired = application(new RepairedCodec());
    repaired.start();
    assertThat(repaired.deadLetters().look().replayed()).isEqualTo(1);
    awaitState(repaired, result.jobId(), JobState.COMPLETED);
    assertThat(api.calls("ann")).isEqualTo(1);
  }

  /** With a lease of 2 s, which must end after each process. */
  @Test
  @Tag("large")
  void aJobThatKillsEachProcessIsADeadLetterAfterItsBudgetAndIsNotRunOnceMore() throws Exception {
    TasteApplication operator = application(Jackson2Codec.standard());
    EnqueueResult doomed = operator.service().like("ann", CrashingAnalyst.DEADLY);
    List<EnqueueResult> others = new ArrayList<>();
    for (int i = 0; i < 10; i++) {
      others.add(operator.service().like("user-" + i, "a scarf"));
    }
    try (RestartedWorker worker = new RestartedWorker(database.plain(), api.url())) {
      worker.start();
      await().atMost(Duration.ofMinutes(3)).until(() -> database.count("outbox") == 0);
      assertThat(worker.ends()).isEqualTo(BUDGET);
      assertThat(api.calls("ann")).isEqualTo(BUDGET);
      JobStatus dead = awaitState(operator, doomed.jobId(), JobState.DEAD_LETTERED);
      assertThat(dead.reason()).contains(FailureReason.MAX_DELIVERIES.code());

      Round round = operator.deadLetters().look();
      assertThat(round.replayed() + round.discarded()).isZero();
      assertThat(round.kept().values()).allSatisfy(why -> assertThat(why).contains("max_deliver"));

      // what a process has in hand when it dies was delivered as well: a person tells them apart
      DeadLetterFilter its = DeadLetterFilter.messageId(doomed.messageId());
      DeadLetterReport discarded =
          operator.queue().deadLetters().discard(its, "ann", "it kills processes");
      assertThat(discarded.done()).isEqualTo(1);
      operator.queue().deadLetters().replay(unresolved(), Redrive.by("ann"));
      for (EnqueueResult other : others) {
        awaitState(operator, other.jobId(), JobState.COMPLETED);
      }
    }
    assertThat(api.calls("ann")).isEqualTo(BUDGET);
  }

  @Test
  void aCompletedJobIsNotEnqueuedAgainBeforeItsWindowIsOver() throws Exception {
    TasteApplication application = started();
    EnqueueResult first = application.service().like("ann", "a scarf");
    awaitState(application, first.jobId(), JobState.COMPLETED);

    EnqueueResult again = application.service().analyse("ann");
    assertThat(again.decision()).isEqualTo(Decision.COMPLETED);
    assertThat(again.messageId()).isEqualTo(first.messageId());

    database.update("update outbox_job_end set ended_at = ended_at - interval '1 hour'");
    EnqueueResult after = application.service().analyse("ann");
    assertThat(after.enqueued()).isTrue();
    assertThat(after.jobId()).isEqualTo(first.jobId());
    awaitState(application, after.jobId(), JobState.COMPLETED);
    assertThat(api.calls("ann")).isEqualTo(2);
  }

  @Test
  void aJobThatHangsKeepsNobodyFromItForLongerThanItsWindow() throws Exception {
    TasteApplication application = application(Jackson2Codec.standard());
    EnqueueResult first = application.service().like("ann", "a scarf");
    assertThat(application.service().analyse("ann").decision()).isEqualTo(Decision.IN_FLIGHT);

    database.update("update outbox_job set due_at = due_at - interval '3 minutes'");
    database.update("update outbox set created_at = created_at - interval '3 minutes'");
    EnqueueResult second = application.service().analyse("ann");
    assertThat(second.enqueued()).isTrue();
    assertThat(second.messageId()).isNotEqualTo(first.messageId());

    // the window guards the enqueue only, so both are run, and the profile is the same
    application.start();
    awaitEnds();
    assertThat(api.calls("ann")).isEqualTo(2);
    assertThat(database.count("taste_profiles")).isEqualTo(1);
  }

  @Test
  void aDeadJobCanBeEnqueuedAtOnce() throws Exception {
    TasteApplication application = started();
    api.failNext("ann", BUDGET);
    EnqueueResult first = application.service().like("ann", "a scarf");
    awaitState(application, first.jobId(), JobState.DEAD_LETTERED);

    EnqueueResult second = application.service().analyse("ann");

    assertThat(second.enqueued()).isTrue();
    awaitState(application, second.jobId(), JobState.COMPLETED);
    // the letter is not needed any more, and does no harm
    assertThat(application.deadLetters().look().replayed()).isEqualTo(1);
    awaitEnds();
    assertThat(application.service().taste("ann")).contains("likes 1 things");
  }

  @Test
  void itemsThatAreLikedAtOnceAreAllAnalysed() throws Exception {
    TasteApplication application = started();
    List<Callable<EnqueueResult>> likes =
        IntStream.range(0, 20)
            .<Callable<EnqueueResult>>mapToObj(
                item -> () -> application.service().like("ann", "item " + item))
            .toList();

    assertThat(together(likes)).allMatch(EnqueueResult::enqueued);

    awaitEnds();
    assertThat(application.service().taste("ann")).contains("likes 20 things");
  }

  @Test
  void aLateAnalysisDoesNotReplaceTheProfileOfNewerItems() throws Exception {
    CountDownLatch newer = new CountDownLatch(1);
    Analyst analyst =
        liked -> {
          if (liked.items().size() == 1) {
            newer.await();
          }
          return "likes " + liked.items();
        };
    JobQueue queue =
        define(Jackson2Codec.standard())
            .onTransactional(TasteQueue.ANALYSIS, new TasteHandler(analyst)::handle)
            .build();
    opened.add(queue);
    TasteService service = new TasteService(pool, queue);
    queue.start();
    EnqueueResult older = service.like("ann", "a hat");
    await()
        .atMost(SOON)
        .until(() -> queue.status(older.jobId()).orElseThrow().state() == JobState.IN_FLIGHT);

    EnqueueResult later = service.like("ann", "a scarf");
    await()
        .atMost(SOON)
        .until(() -> queue.status(later.jobId()).orElseThrow().state() == JobState.COMPLETED);
    newer.countDown();
    awaitEnds();

    assertThat(service.taste("ann")).contains("likes [a hat, a scarf]");
    assertThat(
            database.one(
                Boolean.class,
                "select superseded from taste_analyses where message_id = ?",
                older.messageId()))
        .isTrue();
  }

  @Test
  void twoOperatorsAtOnceReplayEachLetterOnce() throws Exception {
    TasteApplication application = started();
    for (int i = 0; i < 20; i++) {
      api.failNext("user-" + i, BUDGET);
      application.service().like("user-" + i, "a scarf");
    }
    await().atMost(SOON).until(() -> open(application).size() == 20);

    List<Round> rounds = together(2, () -> application.deadLetters().look());

    assertThat(rounds.stream().mapToLong(Round::replayed).sum()).isEqualTo(20);
    awaitEnds();
    assertThat(open(application)).isEmpty();
    assertThat(database.count("taste_profiles")).isEqualTo(20);
  }

  @Test
  void aPurgeDeletesWhatWasLookedAtAndNothingElse() throws Exception {
    TasteApplication application = started();
    application.service().like("ann", LocalTasteApi.REFUSED);
    await().atMost(SOON).until(() -> open(application).size() == 1);
    application.deadLetters().look();
    application.service().like("bob", LocalTasteApi.REFUSED);
    await().atMost(SOON).until(() -> open(application).size() == 1);
    reconcile();

    DeadLetterReport purged =
        application.queue().deadLetters().purge(type(TasteQueue.ANALYSIS.name()), "ann");

    assertThat(purged.done()).isEqualTo(1);
    assertThat(purged.refused()).isEqualTo(1);
    assertThat(purged.refusals())
        .extracting(DeadLetterReport.Refusal::id)
        .containsExactly(open(application).get(0).id());
    assertThat(application.deadLetters().purge()).isZero();
    // what is deleted can be accounted for no more
    database.update("delete from taste_requests where user_id = 'ann'");
    database.update("delete from liked_items where user_id = 'ann'");
  }

  @Test
  void tellsOnceThatMoreIsDeadThanUsual() throws Exception {
    TasteApplication application = started();
    for (int i = 0; i < 25; i++) {
      application.service().like("user-" + i, i % 5 == 0 ? LocalTasteApi.REFUSED : "a hat");
    }
    awaitEnds();

    assertThat(application.deadLetters().look().alerts())
        .extracting(JobAlert::rule)
        .containsExactly(JobAlert.Rule.DEAD_LETTER_RATIO);
    application.deadLetters().look();

    assertThat(alarms)
        .singleElement()
        .returns(JobAlert.Rule.DEAD_LETTER_RATIO, JobAlert::rule)
        .extracting(JobAlert::detail)
        .asString()
        .startsWith("5 of 25 jobs of the last 15 min are dead letters");
  }

  @Test
  void tellsThatTheQueueStandsStill() throws Exception {
    TasteApplication application = application(Jackson2Codec.standard());
    application.service().like("ann", "a hat");
    database.update("update outbox set available_at = available_at - interval '30 hours'");
    database.update("update outbox_job set due_at = due_at - interval '37 hours'");

    assertThat(application.deadLetters().look().alerts())
        .extracting(JobAlert::rule)
        .containsExactly(JobAlert.Rule.NO_SUCCESS);
    for (int looks = 1; looks < JobAlerts.standard().risingSamples(); looks++) {
      database.update("update outbox set available_at = available_at - interval '5 minutes'");
      application.deadLetters().look();
    }

    assertThat(alarms)
        .extracting(JobAlert::rule)
        .containsExactly(JobAlert.Rule.NO_SUCCESS, JobAlert.Rule.OLDEST_RISING);
  }
}
