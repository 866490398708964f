package dev.outbox4j.dlq;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.OutboxStoreException.Fault;
import dev.outbox4j.dlq.PartitionSql.Range;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicInteger;
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
                true, 0, 0, List.of(), List.of(), List.of(), List.of("p"), 0, true)));

    assertThat(state.isOwing()).isTrue();
    assertThat(state.health(true).problems())
        .containsExactly("p has to wait, since others have it in use");
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
        .isTrue();
    assertThat(
            patience.does(
                () -> {
                  throw failure(Fault.TRANSIENT, "40P01");
                }))
        .isFalse();
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

    boolean done =
        new Patience(3, Duration.ofDays(1))
            .does(
                () -> {
                  throw failure(Fault.TIMEOUT, "55P03");
                });

    assertThat(done).isFalse();
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
                sql.exclude("\"p\"", range),
                sql.include("\"p\"")))
        .allSatisfy(
            text ->
                assertThat(text)
                    .startsWith("set transaction_isolation = 'read committed';\nselect set_config(")
                    .contains("set_config('statement_timeout', '90ms', true)")
                    .contains("set_config('lock_timeout', '50ms', true)")
                    .contains("set_config('synchronous_commit', 'local', true)")
                    .doesNotContain("{"));
    assertThatExceptionOfType(IllegalStateException.class)
        .isThrownBy(() -> sql.close("\"a$outbox4j$b\""));
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

  private static DeadLetterRetentionReport report(List<String> postponed) {
    return new DeadLetterRetentionReport(
        true, 0, 0, List.of(), List.of(), List.of(), postponed, 0, true);
  }
}
