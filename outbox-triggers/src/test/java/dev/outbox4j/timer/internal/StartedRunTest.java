package dev.outbox4j.timer.internal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.outbox4j.Outcome;
import dev.outbox4j.timer.Schedule;
import dev.outbox4j.timer.Timer;
import java.time.Duration;
import java.time.Instant;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What a handler is told of an attempt. */
class StartedRunTest {
  private static final Instant NINE = Instant.parse("2026-11-24T09:00:00Z");
  private static final Duration AN_HOUR = Duration.ofHours(1);
  private static final Timer HOURLY =
      Timer.of("t", Schedule.every(AN_HOUR)).onTime(Duration.ofSeconds(60));

  /** It would begin early where the server's clock was set back meanwhile. */
  @ParameterizedTest
  @CsvSource({
    "2026-11-24T08:59:59Z,        PT0S,          false",
    "2026-11-24T09:00:00Z,        PT0S,          false",
    "2026-11-24T09:00:00.25Z,     PT0.25S,       false",
    "2026-11-24T09:01:00Z,        PT60S,         false",
    "2026-11-24T09:01:00.000001Z, PT60.000001S,  true",
    "2026-11-25T09:00:00Z,        PT24H,         true",
  })
  void isPastDueIfItsLatenessIsAboveTheThreshold(
      Instant begun, Duration lateness, boolean pastDue) {
    StartedRun run = TestRuns.attempt(HOURLY, NINE, begun);

    assertThat(run.lateness()).isEqualTo(lateness);
    assertThat(run.isPastDue()).isEqualTo(pastDue);
  }

  @Test
  void aThresholdOfZeroMakesEachDelayPastDue() {
    Timer strict = HOURLY.onTime(Duration.ZERO);

    assertThat(TestRuns.attempt(strict, NINE, NINE).isPastDue()).isFalse();
    assertThat(TestRuns.attempt(strict, NINE, NINE.plusNanos(1_000)).isPastDue()).isTrue();
  }

  @Test
  void theNextInstantsComeAfterItsOwnWheneverItBegins() {
    StartedRun run = TestRuns.attempt(HOURLY, NINE, NINE.plus(Duration.ofDays(3)));

    assertThat(run.next(2)).containsExactly(NINE.plus(AN_HOUR), NINE.plus(AN_HOUR.multipliedBy(2)));
    assertThat(run.next(1_000))
        .hasSize(1_000)
        .endsWith(NINE.plus(AN_HOUR.multipliedBy(999)), NINE.plus(AN_HOUR.multipliedBy(1_000)));
  }

  @ParameterizedTest
  @ValueSource(ints = {Integer.MIN_VALUE, -1, 0, 1_001, Integer.MAX_VALUE})
  void aNumberOfInstantsOutOfRangeIsRefused(int most) {
    StartedRun run = TestRuns.attempt(HOURLY, NINE, NINE);

    assertThatThrownBy(() -> run.next(most))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("most is " + most + "; it must be 1 to 1000");
  }

  @Test
  void isToStopOnceItIsAskedToOrItsLeaseIsLostOrItsNodeStops() {
    StartedRun asked = TestRuns.attempt(HOURLY, NINE, NINE);
    assertThat(asked.isCancelled()).isFalse();
    asked.cancel();
    assertThat(asked.isCancelled()).isTrue();

    assertThat(withMessage(new TestRuns.Message(1, true, false)).isCancelled()).isTrue();
    assertThat(withMessage(new TestRuns.Message(1, false, true)).isCancelled()).isTrue();
  }

  @ParameterizedTest
  @CsvSource({"true, false", "false, true"})
  void comesAgainOnceItsHandlerWasToldThatItsLeaseIsLostOrItsNodeStops(
      boolean leaseLost, boolean stopping) {
    TestRuns.Message message = new TestRuns.Message(1, leaseLost, stopping);
    StartedRun run = withMessage(message);
    assertThat(run.isFenced()).isEqualTo(leaseLost);
    assertThat(message.decisions()).isEmpty();

    assertThat(run.isCancelled()).isTrue();
    assertThat(run.isCancelled()).isTrue();

    assertThat(message.decisions()).hasSize(1).allMatch(Outcome.Reschedule.class::isInstance);
  }

  @Test
  void endsAsItDidOnceItsHandlerHasReturnedWhoeverStillAsks() {
    TestRuns.Message message = new TestRuns.Message(1, false, true);
    StartedRun run = withMessage(message);
    run.returned();

    assertThat(run.isCancelled()).isTrue();

    assertThat(message.decisions()).isEmpty();
    assertThat(run.comesAgain()).isFalse();
  }

  @Test
  void endsAsItsHandlerDoesIfItWasAskedToStopOrHasEnded() {
    for (boolean ended : new boolean[] {true, false}) {
      TestRuns.Message message = new TestRuns.Message(1, false, true);
      StartedRun run = withMessage(message);
      if (ended) {
        run.end();
      } else {
        run.cancel();
      }

      assertThat(run.isCancelled()).isTrue();
      assertThat(run.isFenced()).isEqualTo(ended);
      assertThat(message.decisions()).isEmpty();
    }
  }

  @Test
  void itsTokenIsThatOfItsLease() {
    assertThat(withMessage(new TestRuns.Message(42, false, false)).token()).isEqualTo(42);
  }

  private static StartedRun withMessage(TestRuns.Message message) {
    return TestRuns.attempt(HOURLY, NINE, NINE, message);
  }
}
