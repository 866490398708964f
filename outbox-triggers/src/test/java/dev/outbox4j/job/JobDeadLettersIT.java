package dev.outbox4j.job;

import static dev.outbox4j.dlq.DeadLetterFilter.any;
import static dev.outbox4j.dlq.DeadLetterFilter.ids;
import static dev.outbox4j.dlq.DeadLetterFilter.unresolved;
import static dev.outbox4j.job.JobKit.ANALYSE;
import static dev.outbox4j.job.JobKit.QUEUE;
import static dev.outbox4j.job.JobKit.SOON;
import static dev.outbox4j.job.JobKit.job;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.FailureReason;
import dev.outbox4j.OutboxException;
import dev.outbox4j.Outcome;
import dev.outbox4j.Payload;
import dev.outbox4j.codec.jackson2.Jackson2Codec;
import dev.outbox4j.dlq.DeadLetter;
import dev.outbox4j.dlq.DeadLetterEdit;
import dev.outbox4j.dlq.DeadLetterPage;
import dev.outbox4j.dlq.DeadLetterQueue;
import dev.outbox4j.dlq.DeadLetterReport;
import dev.outbox4j.dlq.DeadLetterWorklist;
import dev.outbox4j.dlq.Redrive;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.PayloadCodec;
import java.lang.reflect.Type;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.time.Duration;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What is kept of jobs that failed, what is replayed, and what is deleted. */
@ExtendWith(PostgresExtension.class)
class JobDeadLettersIT {
  private static final Duration KEPT = JobQueue.Builder.DEFAULT_KEEP;
  private static final Redrive BY_ANN = Redrive.by("ann").note("mended");

  private final TestDatabase database;
  private final JobKit kit;
  private final BlockingQueue<JobKit.Analysis> handled = new LinkedBlockingQueue<>();
  private final AtomicBoolean rejects = new AtomicBoolean();

  JobDeadLettersIT(TestDatabase database) {
    this.database = database;
    this.kit = new JobKit(database, database.pool(12));
  }

  @BeforeEach
  void setUp() {
    JobKit.migrate(database);
  }

  @AfterEach
  void stop() {
    kit.close();
  }

  private JobQueue.Builder builder() {
    return kit.builder()
        .on(
            ANALYSE,
            (body, delivery) -> {
              if (rejects.get()) {
                return Outcome.reject("not now");
              }
              handled.add(body);
              return Outcome.ack();
            });
  }

  /** Reads bodies that end with a semicolon, too. */
  private static final class RepairedCodec implements PayloadCodec {
    private final PayloadCodec json = Jackson2Codec.standard();

    @Override
    public String contentType() {
      return json.contentType();
    }

    @Override
    public Payload encode(Object body) throws Exception {
      return json.encode(body);
    }

    @Override
    public Object decode(Payload payload, Map<String, String> headers, Type type) throws Exception {
      String text = new String(payload.bytes(), StandardCharsets.ISO_8859_1);
      String repaired = text.substring(0, text.indexOf(';'));
      return json.decode(Payload.ofText(repaired), headers, type);
    }
  }

  private long publish(byte[] payload) {
    return database.one(Long.class, "select outbox_publish(?, ?, 'analyse')", QUEUE, payload);
  }

  private DeadLetter whole(long letter) {
    return DeadLetterWorklist.of(
            PostgresOutbox.on(database.plain(), database.table()), DeadLetterQueue.in("outbox_dlq"))
        .find(letter)
        .orElseThrow();
  }

  private long letter() {
    return database.one(Long.class, "select id from outbox_dlq");
  }

  @Test
  void whatCannotBeDecodedIsKeptByteForByteAndARepairedCodecDeliversIt() throws Exception {
    byte[] payload =
        "{\"repository\":\"outbox4j\",\"depth\":3};\0\u00ff\u0080"
            .getBytes(StandardCharsets.ISO_8859_1);
    JobQueue jobs = kit.start(builder());
    publish(payload);
    await().atMost(SOON).until(() -> database.count("outbox_dlq") == 1);

    assertThat(handled).isEmpty();
    assertThat(database.one(String.class, "select failure_reason from outbox_dlq"))
        .isEqualTo(FailureReason.UNDECODABLE.code());
    assertThat(database.one(byte[].class, "select payload from outbox_dlq")).isEqualTo(payload);

    DeadLetterReport refused = jobs.deadLetters().replay(any(), BY_ANN);
    assertThat(refused.done()).isZero();
    assertThat(refused.refused()).isEqualTo(1);
    assertThat(database.one(byte[].class, "select payload from outbox_dlq")).isEqualTo(payload);
    kit.close();

    JobQueue repaired = kit.start(builder().codec(new RepairedCodec()));
    assertThat(repaired.deadLetters().dryRun(any(), BY_ANN).done()).isEqualTo(1);
    assertThat(handled).isEmpty();
    DeadLetterReport replayed = repaired.deadLetters().replay(any(), BY_ANN);
    assertThat(replayed.done()).isEqualTo(1);
    assertThat(handled.poll(60, TimeUnit.SECONDS)).isEqualTo(new JobKit.Analysis("outbox4j", 3));
  }

  @Test
  void aReplayAsksTheProbeOnceAndSendsNothingIfItFails() {
    AtomicInteger probes = new AtomicInteger();
    AtomicBoolean down = new AtomicBoolean(true);
    rejects.set(true);
    JobQueue jobs =
        kit.start(
            builder()
                .probing(
                    () -> {
                      probes.incrementAndGet();
                      if (down.get()) {
                        throw new IllegalStateException("the service is down");
                      }
                      return null;
                    }));
    EnqueueResult first = jobs.enqueue(job("one"));
    EnqueueResult second = jobs.enqueue(job("two"));
    kit.awaitState(jobs, first.jobId(), JobState.FAILED);
    kit.awaitState(jobs, second.jobId(), JobState.FAILED);
    rejects.set(false);

    assertThatThrownBy(() -> jobs.deadLetters().replay(any(), BY_ANN))
        .isInstanceOf(OutboxException.class);
    assertThat(probes).hasValue(1);
    assertThat(kit.messages()).isZero();
    down.set(false);

    assertThat(jobs.deadLetters().replay(any(), BY_ANN).done()).isEqualTo(2);
    assertThat(probes).hasValue(2);
    kit.awaitState(jobs, first.jobId(), JobState.COMPLETED);
    kit.awaitState(jobs, second.jobId(), JobState.COMPLETED);
  }

  @Test
  void aReplayedJobIsQueuedUntilItEndsOnceMore() {
    rejects.set(true);
    JobQueue jobs = kit.start(builder());
    EnqueueResult result = jobs.enqueue(job("one"));
    kit.awaitState(jobs, result.jobId(), JobState.FAILED);
    kit.close();
    JobQueue idle = kit.producer();
    assertThat(idle.deadLetters().replay(any(), BY_ANN).done()).isEqualTo(1);
    JobStatus queued = idle.status(result.jobId()).orElseThrow();
    assertThat(queued.state()).isEqualTo(JobState.QUEUED);
    assertThat(queued.reason()).isEmpty();
    assertThat(queued.endedAt()).isEmpty();
    assertThat(idle.enqueue(job("one")).decision()).isEqualTo(EnqueueResult.Decision.IN_FLIGHT);

    JobQueue again = kit.start(builder());
    await().atMost(SOON).until(() -> database.count("outbox_dlq where resolved_at is null") == 1);
    kit.awaitState(again, result.jobId(), JobState.FAILED);
    rejects.set(false);
    assertThat(again.deadLetters().replay(any(), BY_ANN).done()).isEqualTo(1);
    kit.awaitState(again, result.jobId(), JobState.COMPLETED);
    assertThat(again.enqueue(job("one")).decision()).isEqualTo(EnqueueResult.Decision.COMPLETED);
  }

  /** Of a job that is on record, and of one that is not any more. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aReplayedJobIsOnRecordAndHasAWindowInFlightOfItsOwn(boolean purged) {
    rejects.set(true);
    JobQueue jobs = kit.start(builder());
    EnqueueResult first = jobs.enqueue(job("one"));
    kit.awaitState(jobs, first.jobId(), JobState.FAILED);
    kit.close();
    kit.passes(Duration.ofDays(8));
    if (purged) {
      assertThat(kit.store().purge(KEPT, 100)).isEqualTo(1);
    }
    JobQueue idle = kit.producer();
    assertThat(idle.status(first.jobId()).isPresent()).isNotEqualTo(purged);
    assertThat(idle.deadLetters().dryRun(any(), BY_ANN).done()).isEqualTo(1);
    assertThat(idle.status(first.jobId()).isPresent()).isNotEqualTo(purged);

    assertThat(idle.deadLetters().replay(any(), BY_ANN).done()).isEqualTo(1);

    JobStatus queued = idle.status(first.jobId()).orElseThrow();
    assertThat(queued.state()).isEqualTo(JobState.QUEUED);
    assertThat(queued.messageId()).isEqualTo(first.messageId());
    assertThat(queued.type()).isEqualTo("analyse");
    EnqueueResult refused = idle.enqueue(job("one"));
    assertThat(refused.decision()).isEqualTo(EnqueueResult.Decision.IN_FLIGHT);
    assertThat(refused.messageId()).isEqualTo(first.messageId());
    kit.passes(JobQueue.Builder.DEFAULT_IN_FLIGHT_WINDOW.minusSeconds(60));
    assertThat(idle.enqueue(job("one")).decision()).isEqualTo(EnqueueResult.Decision.IN_FLIGHT);
    assertThat(kit.messages()).isEqualTo(1);

    rejects.set(false);
    JobQueue again = kit.start(builder());
    kit.awaitState(again, first.jobId(), JobState.COMPLETED);
    assertThat(again.enqueue(job("one")).decision()).isEqualTo(EnqueueResult.Decision.COMPLETED);
  }

  @Test
  void aSecondAfterTheWindowOfItsReplayAJobIsEnqueuedBesideItself() {
    rejects.set(true);
    JobQueue jobs = kit.start(builder());
    EnqueueResult first = jobs.enqueue(job("one"));
    kit.awaitState(jobs, first.jobId(), JobState.FAILED);
    kit.close();
    kit.passes(Duration.ofMinutes(10));
    JobQueue idle = kit.producer();
    assertThat(idle.deadLetters().replay(any(), BY_ANN).done()).isEqualTo(1);
    kit.passes(JobQueue.Builder.DEFAULT_IN_FLIGHT_WINDOW.plusSeconds(1));

    EnqueueResult second = idle.enqueue(job("one"));

    assertThat(second.enqueued()).isTrue();
    rejects.set(false);
    kit.start(builder());
    await().atMost(SOON).until(() -> handled.size() == 2); // neither is lost
  }

  /** It is put on record before it is put back. */
  @Test
  void noPurgeTakesTheRecordFromAReplay() {
    rejects.set(true);
    JobQueue jobs = kit.start(builder());
    EnqueueResult first = jobs.enqueue(job("one"));
    kit.awaitState(jobs, first.jobId(), JobState.FAILED);
    kit.close();
    kit.passes(Duration.ofDays(8));
    database.update("update outbox_dlq set failed_at = failed_at - interval '8 days'");
    assertThat(kit.store().purge(KEPT, 100)).isEqualTo(1);
    JobQueue idle = kit.producer();
    Redrive purging =
        BY_ANN.checking(
            letter -> {
              kit.store().purge(KEPT, 100);
              return Optional.empty();
            });
    DeadLetterReport refused =
        idle.deadLetters()
            .replay(any(), purging.checking(letter -> Optional.of("the user's own check")));
    assertThat(refused.refused()).isEqualTo(1);
    assertThat(idle.status(first.jobId())).as("it was not to be replayed").isEmpty();

    kit.store().record(first.jobId(), whole(letter()));
    assertThat(kit.store().purge(KEPT, 100)).isZero();

    JobStatus failed = idle.status(first.jobId()).orElseThrow();
    assertThat(failed.state()).isEqualTo(JobState.FAILED);
    assertThat(failed.reason()).contains(FailureReason.REJECTED.code());
    assertThat(failed.deliveries()).isEqualTo(1);
    assertThat(idle.deadLetters().replay(any(), purging).done()).isEqualTo(1);
    assertThat(idle.status(first.jobId()).orElseThrow().state()).isEqualTo(JobState.QUEUED);
  }

  /** Nobody has purged it yet, and a process that does starts meanwhile. */
  @Test
  void noPurgeTakesAnOldRecordThatIsStillThereFromAReplay() {
    rejects.set(true);
    JobQueue jobs = kit.start(builder());
    EnqueueResult first = jobs.enqueue(job("one"));
    kit.awaitState(jobs, first.jobId(), JobState.FAILED);
    kit.close();
    kit.passes(Duration.ofDays(8));
    JobQueue idle = kit.producer();
    kit.store().record(first.jobId(), whole(letter()));

    assertThat(kit.store().purge(KEPT, 100)).isZero();

    DeadLetterWorklist.of(
            PostgresOutbox.on(database.plain(), database.table()), DeadLetterQueue.in("outbox_dlq"))
        .where(any())
        .redrive(BY_ANN);
    assertThat(idle.status(first.jobId()).orElseThrow().state()).isEqualTo(JobState.QUEUED);
    assertThat(idle.enqueue(job("one")).decision()).isEqualTo(EnqueueResult.Decision.IN_FLIGHT);
  }

  @Test
  void theRecordOfAJobThatWasEnqueuedAnewStaysThatOfTheLaterMessage() {
    rejects.set(true);
    JobQueue jobs = kit.start(builder());
    EnqueueResult first = jobs.enqueue(job("one"));
    kit.awaitState(jobs, first.jobId(), JobState.FAILED);
    kit.close();
    JobQueue idle = kit.producer();
    EnqueueResult second = idle.enqueue(job("one"));
    assertThat(second.enqueued()).isTrue();

    assertThat(idle.deadLetters().replay(any(), BY_ANN).done()).isEqualTo(1);

    assertThat(idle.status(first.jobId()).orElseThrow().messageId()).isEqualTo(second.messageId());
    assertThat(database.count("outbox_job_end")).isEqualTo(1);
    rejects.set(false);
    JobQueue again = kit.start(builder());
    await().atMost(SOON).until(() -> handled.size() == 2);
    kit.awaitState(again, first.jobId(), JobState.COMPLETED);
  }

  /** In the order of their messages; neither is on record any more. */
  @Test
  void ofTwoLettersOfAJobThatAreReplayedTheLaterOneIsOnRecord() {
    rejects.set(true);
    JobQueue jobs = kit.start(builder());
    EnqueueResult first = jobs.enqueue(job("one"));
    kit.awaitState(jobs, first.jobId(), JobState.FAILED);
    EnqueueResult second = jobs.enqueue(job("one"));
    await().atMost(SOON).until(() -> database.count("outbox_dlq") == 2);
    kit.close();
    kit.passes(Duration.ofDays(8));
    while (kit.store().purge(KEPT, 100) > 0) {
      // a part
    }
    JobQueue idle = kit.producer();
    assertThat(idle.status(first.jobId())).isEmpty();

    assertThat(idle.deadLetters().replay(any(), BY_ANN).done()).isEqualTo(2);

    JobStatus queued = idle.status(first.jobId()).orElseThrow();
    assertThat(queued.messageId()).isEqualTo(second.messageId());
    assertThat(queued.state()).isEqualTo(JobState.QUEUED);
    rejects.set(false);
    JobQueue again = kit.start(builder());
    await().atMost(SOON).until(() -> handled.size() == 2);
    kit.awaitState(again, first.jobId(), JobState.COMPLETED);
  }

  /** Such as one who enqueues the job anew: the next replay finds the letter as it was. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aLetterWhoseJobSomebodyHasIsPassedByAndNotRefused(boolean edited) throws Exception {
    rejects.set(true);
    JobQueue jobs = kit.start(builder());
    EnqueueResult first = jobs.enqueue(job("one"));
    kit.awaitState(jobs, first.jobId(), JobState.FAILED);
    kit.awaitState(jobs, jobs.enqueue(job("two")).jobId(), JobState.FAILED);
    kit.close();
    kit.passes(Duration.ofDays(2)); // so that the record is written anew
    long letter =
        database.one(
            Long.class, "select id from outbox_dlq where original_id = ?", first.messageId());
    JobDeadLetters letters =
        kit.builder().knows(ANALYSE).networkTimeout(Duration.ofSeconds(2)).build().deadLetters();
    try (Connection stranger = kit.transaction()) {
      stranger
          .createStatement()
          .execute("select from outbox_job where job_id = '" + first.jobId() + "' for update");

      DeadLetterReport report =
          edited
              ? letters.replay(letter, DeadLetterEdit.header("tenant", "acme"), BY_ANN)
              : letters.replay(any(), BY_ANN);

      assertThat(report.passedBy()).isEqualTo(1);
      assertThat(report.refused()).isZero();
      assertThat(report.done()).isEqualTo(edited ? 0 : 1);
      stranger.rollback();
    }
    assertThat(whole(letter).summary().note()).isEmpty();
    assertThat(letters.replay(ids(letter), BY_ANN).done()).isEqualTo(1);
  }

  /** Such as of two that replay the letters of the same jobs, at a deadlock. */
  @Test
  void aLetterWhoseRecordLosesARaceIsPassedByAndNotRefused() {
    rejects.set(true);
    JobQueue jobs = kit.start(builder());
    kit.awaitState(jobs, jobs.enqueue(job("one")).jobId(), JobState.FAILED);
    kit.close();
    kit.passes(Duration.ofDays(2)); // so that the record is written anew
    JobDeadLetters letters = kit.builder().knows(ANALYSE).build().deadLetters();
    database.update(
        "create or replace function loses() returns trigger language plpgsql as $$ begin"
            + " raise exception 'deadlock detected' using errcode = '40P01'; end $$");
    database.update(
        "create trigger loses before insert or update on outbox_job"
            + " for each row execute function loses()");
    try {
      DeadLetterReport report = letters.replay(any(), BY_ANN);

      assertThat(report.passedBy()).isEqualTo(1);
      assertThat(report.refused()).isZero();
      assertThat(report.done()).isZero();
    } finally {
      database.update("drop trigger loses on outbox_job");
    }
    assertThat(letters.replay(any(), BY_ANN).done()).isEqualTo(1);
  }

  @Test
  void whatIsNoJobIsReplayedWithoutARecord() throws Exception {
    rejects.set(true);
    JobQueue jobs = kit.start(builder());
    publish("{\"repository\":\"x\",\"depth\":3}".getBytes(StandardCharsets.UTF_8));
    await().atMost(SOON).until(() -> database.count("outbox_dlq") == 1);
    rejects.set(false);
    assertThat(jobs.deadLetters().replay(any(), BY_ANN).done()).isEqualTo(1);
    assertThat(handled.poll(60, TimeUnit.SECONDS)).isEqualTo(new JobKit.Analysis("x", 3));
    assertThat(database.count("outbox_job")).isZero();
  }

  @Test
  void lettersAreLookedAtInPages() {
    rejects.set(true);
    JobQueue jobs = kit.start(builder());
    for (int i = 0; i < 3; i++) {
      kit.awaitState(jobs, jobs.enqueue(job("r" + i)).jobId(), JobState.FAILED);
    }
    JobDeadLetters.Letters open = jobs.deadLetters().where(unresolved());
    assertThat(open.count(10)).isEqualTo(3);
    DeadLetterPage page = open.page(2);
    assertThat(page.letters()).hasSize(2);
    assertThat(open.page(2, page.next().orElseThrow()).letters()).hasSize(1);
  }

  @Test
  void aReplayRefusesWhatTheCheckOfItsTypeRefusesUnlessItIsMended() throws Exception {
    rejects.set(true);
    JobQueue jobs = kit.start(builder());
    publish("{\"repository\":\" \",\"depth\":3}".getBytes(StandardCharsets.UTF_8));
    await().atMost(SOON).until(() -> database.count("outbox_dlq") == 1);
    rejects.set(false);

    DeadLetterReport refused = jobs.deadLetters().replay(ids(letter()), BY_ANN);
    assertThat(refused.done()).isZero();
    assertThat(refused.refusals())
        .singleElement()
        .satisfies(refusal -> assertThat(refusal.reason()).isEqualTo("it has no repository"));
    DeadLetterReport stillRefused =
        jobs.deadLetters()
            .replay(
                letter(),
                DeadLetterEdit.payload(Payload.ofText("{\"repository\":\"\",\"depth\":3}")),
                BY_ANN);
    assertThat(stillRefused.done()).isZero();

    DeadLetterReport mended =
        jobs.deadLetters()
            .replay(
                letter(),
                DeadLetterEdit.payload(Payload.ofText("{\"repository\":\"x\",\"depth\":3}")),
                BY_ANN);
    assertThat(mended.done()).isEqualTo(1);
    assertThat(handled.poll(60, TimeUnit.SECONDS)).isEqualTo(new JobKit.Analysis("x", 3));
  }

  @Test
  void aReplayRefusesTypesThatItDoesNotKnow() {
    rejects.set(true);
    JobQueue jobs = kit.start(builder());
    EnqueueResult result = jobs.enqueue(job("one"));
    kit.awaitState(jobs, result.jobId(), JobState.FAILED);
    JobQueue other =
        JobQueue.builder(PostgresOutbox.on(database.plain(), database.table()), QUEUE).build();

    assertThat(other.deadLetters().replay(any(), BY_ANN).refusals())
        .singleElement()
        .satisfies(
            refusal ->
                assertThat(refusal.reason())
                    .isEqualTo(
                        "job type 'analyse' is not known here; correct it, or add it by on(...)"
                            + " or knows(...)"));
  }

  @Test
  void aPurgeRefusesWhatNobodyHasLookedAt() {
    rejects.set(true);
    JobQueue jobs = kit.start(builder());
    EnqueueResult first = jobs.enqueue(job("one"));
    kit.awaitState(jobs, first.jobId(), JobState.FAILED);
    long letter = letter();
    EnqueueResult second = jobs.enqueue(job("two"));
    kit.awaitState(jobs, second.jobId(), JobState.FAILED);
    assertThat(jobs.deadLetters().purge(any(), "ann").refused()).isEqualTo(2);
    assertThat(database.count("outbox_dlq")).isEqualTo(2);

    assertThat(jobs.deadLetters().discard(ids(letter), "ann", "test data").done()).isEqualTo(1);
    DeadLetterReport purged = jobs.deadLetters().purge(any(), "ann");

    assertThat(purged.done()).isEqualTo(1);
    assertThat(purged.refused()).isEqualTo(1);
    assertThat(purged.refusals())
        .singleElement()
        .satisfies(
            refusal ->
                assertThat(refusal.reason())
                    .isEqualTo("nobody has looked at it; replay or discard it first"));
    assertThat(database.list(Long.class, "select id from outbox_dlq"))
        .hasSize(1)
        .doesNotContain(letter);
    // what is deleted of the letters stays on record of the job
    assertThat(jobs.status(first.jobId()).orElseThrow().state()).isEqualTo(JobState.FAILED);
  }

  @Test
  void lettersOfOtherQueuesAreNoneOfItsBusiness() {
    rejects.set(true);
    JobQueue jobs = kit.start(builder());
    EnqueueResult result = jobs.enqueue(job("one"));
    kit.awaitState(jobs, result.jobId(), JobState.FAILED);
    JobQueue other =
        JobQueue.builder(PostgresOutbox.on(database.plain(), database.table()), "others")
            .codec(Jackson2Codec.standard())
            .knows(ANALYSE)
            .build();

    assertThat(other.deadLetters().replay(any(), BY_ANN).done()).isZero();
    assertThat(other.deadLetters().purge(any(), "ann").refused()).isZero();
    assertThatThrownBy(
            () ->
                other
                    .deadLetters()
                    .replay(letter(), DeadLetterEdit.payload(Payload.empty()), BY_ANN))
        .isInstanceOf(IllegalArgumentException.class);
    assertThat(database.count("outbox_dlq where resolved_at is null")).isEqualTo(1);
  }
}
