package dev.outbox4j.job;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.outbox4j.RetryPolicy;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import java.time.Duration;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.postgresql.ds.PGSimpleDataSource;

class JobQueueBuilderTest {
  private static final JobType<String> TEXT = JobType.of("text", String.class);

  private static JobQueue.Builder builder() {
    // nobody listens there: what builds does no I/O
    PGSimpleDataSource nowhere = new PGSimpleDataSource();
    nowhere.setPortNumbers(new int[] {1});
    return JobQueue.builder(PostgresOutbox.on(nowhere, OutboxTable.named("outbox")), "jobs");
  }

  @Test
  void refusesWhatIsOutOfRangeWhereItIsSet() {
    assertThatThrownBy(() -> builder().budget(0)).hasMessage("budget is 0; it must be 1 to 1000");
    assertThatThrownBy(() -> builder().inFlightWindow(Duration.ZERO))
        .hasMessage("inFlightWindow is PT0S; it must be PT0.001S to PT87600H");
    assertThatThrownBy(() -> builder().completedWindow(Duration.ofMillis(-1)))
        .hasMessageContaining("completedWindow is PT-0.001S");
    assertThatThrownBy(() -> builder().keepEnded(Duration.ofDays(1)))
        .hasMessage("keepEnded is PT24H; it must be PT48H to PT87600H");
    assertThatThrownBy(() -> builder().networkTimeout(Duration.ZERO))
        .hasMessage("networkTimeout is PT0S; it must be PT0.001S to PT596H31M23.647S");
    assertThatThrownBy(() -> JobQueue.builder(null, "jobs"))
        .isInstanceOf(NullPointerException.class);
    assertThatThrownBy(
            () ->
                JobQueue.builder(
                    PostgresOutbox.on(new PGSimpleDataSource(), OutboxTable.named("outbox")), " "))
        .isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void refusesTwoTypesOfAName() {
    JobQueue.Builder builder = builder().on(TEXT, (text, delivery) -> {});
    assertThatThrownBy(() -> builder.knows(JobType.of("text", byte[].class)))
        .hasMessage("there are two job types of the name 'text'; name each by what it does");
  }

  @Test
  void refusesWhatContradictsItself() {
    assertThatThrownBy(
            () ->
                builder()
                    .completedWindow(Duration.ofDays(10))
                    .keepEnded(Duration.ofDays(9))
                    .build())
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("keep jobs at least as long as the window");
    assertThatThrownBy(
            () ->
                builder()
                    .on(TEXT, (text, delivery) -> {})
                    .subscriber(settings -> settings.otherwise((payload, delivery) -> {}))
                    .build())
        .hasMessageContaining("otherwise(...) is set already");
    assertThatThrownBy(
            () ->
                builder().on(JobType.of("number", Integer.class), (number, delivery) -> {}).build())
        .hasMessageContaining("there is no codec");
  }

  @Test
  void oneWithoutHandlersIsNotStartedAndIsHealthy() {
    try (JobQueue jobs = builder().knows(TEXT).build()) {
      assertThatThrownBy(jobs::start)
          .hasMessage("job queue 'jobs' has no handler here; add one by on(...), or only enqueue");
      assertThat(jobs.health().subscriber()).isEmpty();
      assertThat(jobs.health().healthy()).isTrue();
      assertThat(jobs.health().sample()).isEmpty();
    }
  }

  @Test
  void theIdIsMadeFromTypeAndContentOrKey() {
    try (JobQueue jobs = builder().build()) {
      String id = jobs.idOf(Job.of(TEXT, "a"));
      assertThat(id)
          .isEqualTo("text:ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb");
      assertThat(jobs.idOf(Job.of(TEXT, "b"))).isNotEqualTo(id);
      assertThat(jobs.idOf(Job.of(JobType.of("other", String.class), "a"))).isNotEqualTo(id);
      assertThat(jobs.idOf(Job.of(TEXT, "a").deliverIn(Duration.ofHours(1)).header("a", "b")))
          .isEqualTo(id);
      assertThat(jobs.idOf(Job.of(TEXT.identifiedBy(text -> text.substring(0, 1)), "xyz")))
          .isEqualTo("text:x");
      assertThat(jobs.idOf(Job.of(TEXT.identifiedBy(text -> text), "xyz").key("own")))
          .isEqualTo("text:own");
      for (String key : new String[] {" ", "a\0b", "x".repeat(501)}) {
        assertThatThrownBy(() -> Job.of(TEXT, "a").key(key))
            .isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> jobs.idOf(Job.of(TEXT.identifiedBy(text -> text), key)))
            .isInstanceOf(IllegalArgumentException.class);
      }
    }
  }

  @Test
  @SuppressWarnings("NullAway") // a function of the user's may return null all the same
  void aKeyThatIsNullIsRefusedInWords() {
    try (JobQueue jobs = builder().build()) {
      assertThatThrownBy(() -> jobs.enqueue(Job.of(TEXT.identifiedBy(text -> null), "a")))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessage(
              "the key of a job of type 'text' is null; identifiedBy(...) must give a text");
    }
  }

  @Test
  void theHeaderOfTheIdIsTheQueuesOwn() {
    assertThatThrownBy(() -> Job.of(TEXT, "a").header(Job.ID_HEADER, "mine"))
        .hasMessage("the header 'job-id' has the id of the job; give yours another name");
  }

  @Test
  void aTypesOwnRetriesAreOverwrittenAndItsBudgetIsThatOfTheQueue() {
    JobQueue jobs =
        builder()
            .on(TEXT, (text, delivery) -> {})
            .subscriber(settings -> settings.retry("text", RetryPolicy.standard())) // 10 attempts
            .build();
    assertThat(jobs.health().subscriber()).isPresent();
  }

  @Test
  void jobsOfTwoTypesAreTwoWhateverTheirKeysAre() {
    JobType<String> plain = JobType.of("report", String.class);
    JobType<String> daily = JobType.of("report:daily", String.class);
    try (JobQueue jobs = builder().build()) {
      assertThat(jobs.idOf(Job.of(plain, "a").key("daily:42")))
          .isNotEqualTo(jobs.idOf(Job.of(daily, "a").key("42")));
      assertThat(jobs.idOf(Job.of(JobType.of("a%3Ab", String.class), "a").key("c")))
          .isNotEqualTo(jobs.idOf(Job.of(JobType.of("a:b", String.class), "a").key("c")));
      assertThat(jobs.idOf(Job.of(daily, "a").key("42"))).isEqualTo("report%3Adaily:42");
    }
  }

  @Test
  void aBodyThatItsTypeRefusesOrNobodyEncodesIsNotSent() {
    try (JobQueue jobs = builder().build()) {
      JobType<String> checked =
          TEXT.checking(text -> text.isEmpty() ? Optional.of("empty") : Optional.empty());
      assertThatThrownBy(() -> jobs.enqueue(Job.of(checked, "")))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessage("a body of job type 'text' is refused: empty");
      assertThatThrownBy(() -> jobs.enqueue(Job.of(JobType.of("number", Integer.class), 1)))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("set one with codec(...)");
    }
  }
}
