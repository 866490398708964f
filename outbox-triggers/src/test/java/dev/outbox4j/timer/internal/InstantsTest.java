package dev.outbox4j.timer.internal;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.timer.Schedule;
import dev.outbox4j.timer.Timer;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class InstantsTest {
  private static final Schedule MINUTELY = Schedule.every(Duration.ofMinutes(1));
  private static final List<Instant> MINUTES =
      IntStream.range(0, 10_000)
          .mapToObj(
              minute -> Instant.parse("2026-11-24T00:00:00Z").plus(Duration.ofMinutes(minute)))
          .toList();

  private static List<Duration> jitters(Timer timer) {
    return MINUTES.stream().map(instant -> Instants.jitter(timer, instant)).toList();
  }

  @ParameterizedTest
  @ValueSource(strings = {"PT0.002S", "PT1S", "PT30S", "PT10M", "PT876600H"})
  void theJitterIsFromZeroToBelowTheMost(Duration most) {
    assertThat(jitters(Timer.of("t", MINUTELY).jitter(most)))
        .allMatch(jitter -> !jitter.isNegative() && jitter.compareTo(most) < 0);
  }

  @Test
  void withoutJitterThereIsNone() {
    assertThat(jitters(Timer.of("t", MINUTELY))).containsOnly(Duration.ZERO);
  }

  @Test
  void theJitterIsTheSameForTheSameTimerAndInstantAndDiffersForAnotherTimer() {
    Duration most = Duration.ofMinutes(10);
    List<Duration> ofOne = jitters(Timer.of("one", MINUTELY).jitter(most));

    assertThat(jitters(Timer.of("one", Schedule.cron("* * * * *")).jitter(most))).isEqualTo(ofOne);
    assertThat(jitters(Timer.of("other", MINUTELY).jitter(most))).isNotEqualTo(ofOne);
  }

  /** A tenth each, give or take a fifth of that. */
  @Test
  void theJitterOfManyInstantsIsSpreadOverTheWhole() {
    List<Duration> jitters = jitters(Timer.of("t", MINUTELY).jitter(Duration.ofMinutes(10)));

    for (int i = 0; i < 10; i++) {
      int minute = i;
      assertThat(jitters.stream().filter(jitter -> jitter.toMinutes() == minute).count())
          .as("of minute %d", minute)
          .isBetween(800L, 1_200L);
    }
  }
}
