package dev.outbox4j.dlq;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.OutboxStoreException.Fault;
import dev.outbox4j.dlq.PartitionSql.Range;
import dev.outbox4j.dlq.Patience.Result;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.postgresql.ds.PGSimpleDataSource;

class DeadLetterRetentionTest {
  private static DeadLetterRetention.Builder builder() {
    return DeadLetterRetention.builder(
        PostgresOutbox.on(new PGSimpleDataSource(), OutboxTable.named("outbox")),
        DeadLetterQueue.in("outbox_dlq"));
  }

  @Test
  void refusesWhatIsOutOfRange() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> builder().keepResolved(Duration.ofMinutes(59)))
        .withMessage("keepResolved is PT59M; it must be 1 hour to 100 years");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> builder().keepAll(Duration.ofDays(36_526)))
        .withMessageEndingWith("it must be 1 hour to 100 years");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> builder().every(Duration.ofSeconds(59)))
        .withMessage("every is PT59S; it must be 1 minute to 7 days");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> builder().partitionsAhead(0))
        .withMessage("partitionsAhead is 0; it must be 1 to 50");
    assertThatIllegalArgumentException().isThrownBy(() -> builder().partitionsAhead(51));
    assertThatIllegalArgumentException().isThrownBy(() -> builder().by(" "));
    assertThatExceptionOfType(IllegalStateException.class)
        .isThrownBy(() -> builder().keepAll(Duration.ofDays(29)).build())
        .withMessageStartingWith("keepAll is PT696H and keepResolved is PT720H; ");
  }

  @Test
  void isFineBeforeItHasRun() {
    DeadLetterRetentionHealth health = builder().build().health();

    assertThat(health.running()).isFalse();
    assertThat(health.healthy()).isTrue();
    assertThat(health.lastRun()).isEmpty();
  }

  @Test
  void tellsHowItFailed() {
    RetentionState state = new RetentionState();
    state.failed(new IllegalStateException("no such table"));

    assertThat(state.health(true).problems())
        .containsExactly("java.lang.IllegalStateException: no such table");
    state.ran(Optional.empty());
    assertThat(state.health(true).healthy()).isTrue();
  }

  /** Another process that finds all well has not done what this one has postponed. */
  @Test
  void triesSoonAgainWhatItHasPostponed() {
    RetentionState state = new RetentionState();
    assertThat(state.isOwing()).isFalse();
    state.ran(
        Optional.of(
            new DeadLetterRetentionReport(
                true, 0, 0, List.of(), List.of(), List.of(), List.of("p"), List.of(), 0, 3, true)));

    assertThat(state.isOwing()).isTrue();
    assertThat(state.health(true).problems())
        .containsExactly("p has to wait, since others have it in use");
  }

  /** Or what is mended would be told until this process has a turn by chance. */
  @Test
  void looksItselfAgainAtWhatItHasFoundWrong() {
    RetentionState state = new RetentionState();
    state.ran(
        Optional.of(
            new DeadLetterRetentionReport(
                true, 0, 0, List.of(), List.of(), List.of(), List.of(), List.of(), 7, 3, true)));

    assertThat(state.isOwing()).isTrue();
  }

  @Test
  void tellsWhatTheServerHasEndedFromWhatOthersHaveInUse() {
    DeadLetterRetentionReport report =
        new DeadLetterRetentionReport(
            true, 0, 0, List.of(), List.of(), List.of(), List.of(), List.of("p"), 0, 3, true);

    assertThat(report.problems())
        .containsExactly(
            "p has to wait, since the server ended a statement on it, which took too long or was"
                + " cancelled");
    assertThat(new RetentionLoop("x", Duration.ofDays(1), () -> Optional.of(report)).step())
        .isEqualTo(Duration.ofMinutes(5));
  }

  @Test
  void tellsThatPartitionsPileUp() {
    assertThat(holding(List.of("oldest", "younger"), 21).problems())
        .containsExactly(
            "Letters that nobody has resolved hold 2 of 21 partitions, the oldest of which is"
                + " oldest; each statement on dead letters plans for all of them: resolve these"
                + " letters, or set keepAll");
    assertThat(holding(List.of("oldest"), 20).problems()).isEmpty();
    assertThat(holding(List.of(), 40).problems()).as("as it was configured").isEmpty();
  }

  private static DeadLetterRetentionReport holding(List<String> held, int partitions) {
    return new DeadLetterRetentionReport(
        true, 0, 0, List.of(), List.of(), held, List.of(), List.of(), 0, partitions, true);
  }

  private static OutboxStoreException failure(Fault fault, String state) {
    return new OutboxStoreException("x", fault, false, state, new IllegalStateException());
  }

  @Test
  void triesAgainWhatOthersWereInTheWayOf() {
    Patience patience = new Patience(3, Duration.ofNanos(1));
    AtomicInteger tries = new AtomicInteger();

    assertThat(
            patience.does(
                () -> {
                  if (tries.incrementAndGet() < 3) {
                    throw failure(Fault.TIMEOUT, "55P03");
                  }
                }))
        .isEqualTo(Result.DONE);
    assertThat(
            patience.does(
                () -> {
                  throw failure(Fault.TIMEOUT, "57014");
                }))
        .isEqualTo(Result.ENDED);
    assertThat(
            patience.does(
                () -> {
                  throw failure(Fault.TRANSIENT, "40P01");
                }))
        .isEqualTo(Result.IN_THE_WAY);
    assertThatExceptionOfType(OutboxStoreException.class)
        .isThrownBy(
            () ->
                patience.does(
                    () -> {
                      throw failure(Fault.SETUP, "42501");
                    }));
  }

  @Test
  void anInterruptEndsTheTriesAndStays() {
    Thread.currentThread().interrupt();

    Result done =
        new Patience(3, Duration.ofDays(1))
            .does(
                () -> {
                  throw failure(Fault.TIMEOUT, "55P03");
                });

    assertThat(done).isEqualTo(Result.IN_THE_WAY);
    assertThat(Thread.interrupted()).isTrue();
  }

  /** What keeps out writers is bounded by the server in the same execution. */
  @Test
  void whatKeepsOutWritersIsBounded() {
    PartitionSql sql = new PartitionSql("\"l\"", "\"o\"", "\"t\"", "\"a\"", "l_until");
    Range range = new Range(Instant.EPOCH, Instant.EPOCH.plusSeconds(1));

    assertThat(
            List.of(
                sql.attach("\"p\"", range),
                sql.drop("\"p\"", Instant.EPOCH, false, "words"),
                sql.drop("\"p\"", Instant.EPOCH, true, "it's"),
                sql.exclude("\"p\"", "s", range),
                sql.include("\"p\"", "s")))
        .allSatisfy(
            text ->
                assertThat(text)
                    .startsWith("set transaction_isolation = 'read committed';\nselect set_config(")
                    .contains("set_config('statement_timeout', '90ms', true)")
                    .contains("set_config('lock_timeout', '50ms', true)")
                    .contains("set_config('synchronous_commit', 'local', true)")
                    .as("histories")
                    .doesNotContain("\"t\"")
                    .doesNotContain("{"));
    assertThatExceptionOfType(IllegalStateException.class)
        .isThrownBy(() -> sql.close("\"a$outbox4j$b\""));
  }

  /** The client would hear of none that takes longer than it waits. */
  @Test
  void theServerEndsWhatTakesLong() {
    PartitionSql sql = new PartitionSql("\"l\"", "\"o\"", "\"t\"", "\"a\"", "l_until");

    assertThat(
            List.of(
                sql.unresolved("\"p\""),
                sql.caught("\"p\""),
                sql.create("\"p\""),
                sql.discard("\"p\""),
                sql.close("\"p\""),
                sql.reopen("\"p\""),
                sql.drops(),
                sql.histories(),
                sql.endDrops()))
        .allSatisfy(
            text ->
                assertThat(text)
                    .contains("set_config('statement_timeout', '12s', true)")
                    .contains("set_config('lock_timeout', '100ms', true)")
                    .doesNotContain("{"));
    assertThat(sql.validate("\"p\"")).contains("set_config('statement_timeout', '29min', true)");
  }

  /** It may die, and is succeeded after five minutes only if somebody looks. */
  @Test
  void looksSoonAgainWhenAnotherProcessHasTheTurn() {
    Duration day = Duration.ofDays(1);

    assertThat(new RetentionLoop("x", day, Optional::empty).step())
        .isEqualTo(Duration.ofMinutes(5));
    assertThat(new RetentionLoop("x", day, () -> Optional.of(report(List.of()))).step())
        .isEqualTo(day);
    assertThat(new RetentionLoop("x", day, () -> Optional.of(report(List.of("p")))).step())
        .isEqualTo(Duration.ofMinutes(5));
  }

  /** Such as one that reads a large partition until the server ends it. */
  @Test
  void restsForThreeTimesAsLongAsATryTookThatLeftSomething() {
    Duration day = Duration.ofDays(1);

    assertThat(pause(day, Duration.ofMinutes(29), List.of("p"))).isEqualTo(Duration.ofMinutes(87));
    assertThat(pause(day, Duration.ofMinutes(29), List.of())).isEqualTo(day);
    assertThat(pause(day, Duration.ofHours(9), List.of("p"))).isEqualTo(day);
    Duration hour = Duration.ofHours(1);
    assertThat(pause(hour, Duration.ofMinutes(29), List.of("p"))).isEqualTo(hour);
    assertThat(pause(hour, Duration.ofMinutes(1), List.of("p"))).isEqualTo(Duration.ofMinutes(5));
  }

  @Test
  void restsForThreeTimesAsLongAsATryTookThatFailed() {
    AtomicLong now = new AtomicLong(Long.MAX_VALUE - 1); // it may pass the greatest number

    RetentionLoop failing =
        new RetentionLoop(
            "x",
            Duration.ofDays(1),
            () -> {
              now.addAndGet(Duration.ofMinutes(10).toNanos());
              throw new IllegalStateException("no answer");
            },
            now::get);

    assertThat(failing.step()).isEqualTo(Duration.ofMinutes(30));
  }

  private static Duration pause(Duration every, Duration took, List<String> postponed) {
    AtomicLong now = new AtomicLong();
    return new RetentionLoop(
            "x",
            every,
            () -> {
              now.addAndGet(took.toNanos());
              return Optional.of(report(postponed));
            },
            now::get)
        .step();
  }

  private static DeadLetterRetentionReport report(List<String> postponed) {
    return new DeadLetterRetentionReport(
        true, 0, 0, List.of(), List.of(), List.of(), postponed, List.of(), 0, 3, true);
  }
}
