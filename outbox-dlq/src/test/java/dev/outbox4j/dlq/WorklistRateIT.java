package dev.outbox4j.dlq;

import static dev.outbox4j.dlq.DeadLetterFilter.queue;
import static org.assertj.core.api.Assertions.assertThat;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.time.Duration;
import java.util.Optional;
import java.util.function.Supplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** How fast letters go back, and how many at once. */
@ExtendWith(PostgresExtension.class)
@Tag("once")
class WorklistRateIT {
  private final TestDatabase database;
  private final Letters letters;
  private final HikariDataSource pool;
  private final DeadLetterWorklist worklist;

  WorklistRateIT(TestDatabase database) {
    this.database = database;
    this.letters = new Letters(database);
    this.pool = database.pool(1);
    this.worklist = DeadLetterWorklist.of(PostgresOutbox.on(pool, database.table()), Letters.TABLE);
  }

  @BeforeEach
  void clear() {
    letters.clear();
  }

  @AfterEach
  void close() {
    letters.clear();
    pool.close();
  }

  private static Duration timed(Supplier<DeadLetterReport> run, long done) {
    long begun = System.nanoTime();
    assertThat(run.get().done()).isEqualTo(done);
    return Duration.ofNanos(System.nanoTime() - begun);
  }

  @ParameterizedTest
  @ValueSource(ints = {1_000, 95, 7})
  void noMoreGoBackInASecondThanTheRate(int rate) {
    letters.plain("orders", 1, 3 * rate);

    Duration took =
        timed(
            () -> worklist.where(queue("orders")).redrive(Redrive.by("a").perSecond(rate)),
            3L * rate);

    // the last batch, a tenth of a second's, is not waited for
    assertThat(took).isBetween(Duration.ofMillis(2_600), Duration.ofMillis(6_000));
  }

  @Test
  void whatIsRefusedDoesNotUseUpTheRate() {
    letters.plain("orders", 1, 500);

    Duration took =
        timed(
            () ->
                worklist
                    .where(queue("orders"))
                    .redrive(
                        Redrive.by("a")
                            .perSecond(100)
                            .checking(
                                letter ->
                                    letter.summary().id() % 10 == 0
                                        ? Optional.empty()
                                        : Optional.of("no"))),
            50);

    assertThat(took).isLessThan(Duration.ofSeconds(3));
  }

  @Test
  void checksHaveTenTimesTheRateAlsoInADryRun() {
    letters.plain("orders", 1, 200);

    Duration took =
        timed(
            () ->
                worklist
                    .where(queue("orders"))
                    .dryRun(Redrive.by("a").perSecond(10).checking(letter -> Optional.of("no"))),
            0);

    assertThat(took).isBetween(Duration.ofMillis(1_700), Duration.ofMillis(6_000));
  }

  @Test
  void fewLargeLettersGoInOneStatement() {
    letters.plain("orders", 1, 6);
    database.update(
        "update outbox_dlq set payload = convert_to(repeat('x', 3000000), 'UTF8') where id < 4");
    database.update(
        "update outbox_dlq set headers = jsonb_build_object('h', repeat('x', 3000000))"
            + " where id > 3");

    assertThat(worklist.where(queue("orders")).redrive(Letters.by("a")).done()).isEqualTo(6);

    // of one statement they have one time
    assertThat(
            database.one(
                Long.class,
                "select max(n) from (select count(*) as n from outbox_dlq group by resolved_at) x"))
        .isLessThanOrEqualTo(2);
  }
}
