package dev.outbox4j.job;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.outbox4j.RetryPolicy;
import java.time.Duration;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class JobBackoffTest {
  private static final JobBackoff STANDARD = JobBackoff.standard();

  @ParameterizedTest
  @CsvSource({"1, 750", "2, 1500", "3, 3000", "4, 6000", "5, 6000", "1000, 6000"})
  void doublesUpToTheCapAndAddsAtMostTheJitter(int failure, long millis) {
    assertThat(STANDARD.after(failure, 0)).hasMillis(millis);
    assertThat(STANDARD.after(failure, 0.5)).hasMillis(millis + 100);
    assertThat(STANDARD.after(failure, 1)).hasMillis(millis + 200);
  }

  /** What the runbook of a rising dead-letter ratio says. */
  @Test
  void fifteenDeliveriesWithACapOfFiveMinutesBridgeHalfAnHour() {
    JobBackoff raised = new JobBackoff(STANDARD.base(), Duration.ofMinutes(5), STANDARD.jitter());
    assertThat(bridged(raised, 15)).isGreaterThan(Duration.ofMinutes(30));
    assertThat(bridged(raised, 10)).isBetween(Duration.ofMinutes(6), Duration.ofMinutes(7));
    assertThat(bridged(STANDARD, 5)).isBetween(Duration.ofSeconds(11), Duration.ofSeconds(12));
  }

  private static Duration bridged(JobBackoff backoff, int budget) {
    return IntStream.range(1, budget)
        .mapToObj(failure -> backoff.after(failure, 0))
        .reduce(Duration.ZERO, Duration::plus);
  }

  @Test
  void theLongestOnesDoNotOverflow() {
    JobBackoff longest =
        new JobBackoff(RetryPolicy.MAX_DELAY, RetryPolicy.MAX_DELAY, Duration.ZERO);
    assertThat(longest.after(Integer.MAX_VALUE, 1)).isEqualTo(RetryPolicy.MAX_DELAY);
    JobBackoff shortest =
        new JobBackoff(Duration.ofMillis(1), RetryPolicy.MAX_DELAY, Duration.ZERO);
    assertThat(shortest.after(63, 0)).isEqualTo(RetryPolicy.MAX_DELAY);
    assertThat(shortest.after(64, 0)).isEqualTo(RetryPolicy.MAX_DELAY);
  }

  @Test
  void asAPolicyItStaysWithinTheBoundsAndEndsWithTheBudget() {
    RetryPolicy policy = STANDARD.policy(5);
    IntStream.rangeClosed(1, 4)
        .forEach(
            failure -> {
              assertThat(policy.givesUp(failure, Duration.ofDays(1), null)).isFalse();
              for (int i = 0; i < 1_000; i++) {
                assertThat(policy.delayAfter(failure, null))
                    .isBetween(STANDARD.after(failure, 0), STANDARD.after(failure, 1));
              }
            });
    assertThat(policy.givesUp(5, Duration.ZERO, null)).isTrue();
  }

  @Test
  void refusesWhatIsOutOfRange() {
    Duration second = Duration.ofSeconds(1);
    assertThatThrownBy(() -> new JobBackoff(Duration.ZERO, second, second))
        .hasMessage("base is PT0S; it must be PT0.001S to PT8760H");
    assertThatThrownBy(() -> new JobBackoff(second, Duration.ofMillis(999), second))
        .hasMessage("cap is PT0.999S; it must be PT1S to PT8760H");
    assertThatThrownBy(() -> new JobBackoff(second, second, Duration.ofMillis(-1)))
        .hasMessage("jitter is PT-0.001S; it must be PT0S to PT8760H");
  }
}
