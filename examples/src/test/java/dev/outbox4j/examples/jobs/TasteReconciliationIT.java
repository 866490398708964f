package dev.outbox4j.examples.jobs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;
import static org.junit.jupiter.params.provider.Arguments.arguments;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.codec.jackson2.Jackson2Codec;
import dev.outbox4j.examples.run.Report;
import dev.outbox4j.job.EnqueueResult;
import dev.outbox4j.job.EnqueueResult.Decision;
import dev.outbox4j.job.JobQueue;
import dev.outbox4j.job.JobState;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** A reconciliation is worth no more than what it finds, so each kind of fault is planted. */
@ExtendWith(PostgresExtension.class)
class TasteReconciliationIT {
  private static final Duration SOON = Duration.ofMinutes(1);
  private static final String ONE_END = "enqueued: done, waiting, dead or discarded, and only one";
  private static final String PROFILE = "a profile: of what is liked now, if that is done";
  private static final String STATE = "a job: in the state that is told of it";

  private final TestDatabase database;
  private final HikariDataSource pool;

  TasteReconciliationIT(TestDatabase database) {
    this.database = database;
    this.pool = database.pool(TasteApplication.CONNECTIONS);
  }

  /** Ann's job is done and was asked for twice, and Bob's is refused. */
  @BeforeEach
  void setUp() throws Exception {
    TasteApplication.migrate(pool, "public");
    database.update(TasteServiceIT.CLEAR);
    Analyst analyst =
        liked -> {
          if (liked.user().equals("bob")) {
            throw new RefusedItems("not these");
          }
          return "likes all";
        };
    try (JobQueue queue =
        define().onTransactional(TasteQueue.ANALYSIS, new TasteHandler(analyst)::handle).build()) {
      queue.start();
      TasteService service = new TasteService(pool, queue);
      awaitState(queue, service.like("ann", "a hat"), JobState.COMPLETED);
      assertThat(service.analyse("ann").decision()).isEqualTo(Decision.COMPLETED);
      awaitState(queue, service.like("bob", "a hat"), JobState.FAILED);
    }
    assertThat(wrong()).isEmpty();
  }

  private JobQueue.Builder define() {
    return TasteQueue.define(
        PostgresOutbox.on(pool, database.table()), Jackson2Codec.standard(), TasteTimes.brief());
  }

  private static void awaitState(JobQueue queue, EnqueueResult result, JobState state) {
    await().atMost(SOON).until(() -> queue.status(result.jobId()).orElseThrow().state() == state);
  }

  private List<String> wrong() throws SQLException {
    return new Reconciliation(pool, define().build())
        .compareWithinTheWindows().lines().stream()
            .filter(line -> !line.holds())
            .map(Report.Line::what)
            .toList();
  }

  static Stream<Arguments> faults() {
    return Stream.of(
        fault("delete from outbox_dlq", ONE_END),
        fault(
            "insert into taste_analyses select message_id, user_id, false from taste_requests"
                + " where user_id = 'bob'",
            ONE_END,
            PROFILE,
            STATE),
        fault("insert into taste_analyses select * from taste_analyses", "done: once"),
        fault(
            "insert into taste_analyses values (999, 'eve', false)",
            "done: was enqueued, and committed"),
        fault(
            "update taste_requests set message_id = 999 where decision = 'COMPLETED'",
            "refused: the message it names was committed"),
        fault(
            "insert into taste_requests (user_id, content_hash, job_id, decision, message_id)"
                + " select user_id, content_hash, job_id, decision, message_id"
                + " from taste_requests where decision = 'ENQUEUED'",
            "a job: enqueued once"),
        fault(
            "insert into liked_items values ('eve', 'a hat')",
            "what is liked: its analysis was enqueued"),
        fault("update taste_profiles set content_hash = 'of older items'", PROFILE),
        fault("delete from outbox_job_end", STATE));
  }

  private static Arguments fault(String planted, String... wrong) {
    return arguments(planted, List.of(wrong));
  }

  @ParameterizedTest
  @MethodSource("faults")
  void findsTheFault(String planted, List<String> lines) throws SQLException {
    database.update(planted);

    assertThat(wrong()).containsExactlyElementsOf(lines);
  }
}
