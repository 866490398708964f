package dev.outbox4j;

import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatNullPointerException;

import java.time.Duration;
import java.util.Map;
import java.util.Objects;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Every duration that a user sets. */
class DurationsTest {
  private static final Duration ABSURD = Duration.ofSeconds(Long.MAX_VALUE);

  private static OutboxSubscriber.Builder builder() {
    return OutboxSubscriber.builder("orders");
  }

  static Stream<Map.Entry<String, Consumer<Duration>>> bounded() {
    return Stream.of(
        Map.entry("lease", duration -> builder().lease(duration)),
        Map.entry("min poll", duration -> builder().poll(duration, Duration.ofSeconds(1))),
        Map.entry("max poll", duration -> builder().poll(Duration.ofSeconds(1), duration)),
        Map.entry("pollWithoutListener", duration -> builder().pollWithoutListener(duration)),
        Map.entry("gracefulTimeout", duration -> builder().gracefulTimeout(duration)),
        Map.entry("handlerTimeout", duration -> builder().handlerTimeout(duration)),
        Map.entry("initial", RetryPolicy::exponential),
        Map.entry("initial", duration -> RetryPolicy.linear(duration, Duration.ZERO)),
        Map.entry("step", duration -> RetryPolicy.linear(Duration.ofSeconds(1), duration)),
        Map.entry("delay", RetryPolicy::constant),
        Map.entry("max", duration -> RetryPolicy.standard().max(duration)),
        Map.entry("delay", duration -> Objects.requireNonNull(Outcome.retryAfter(duration))),
        Map.entry("delay", duration -> Objects.requireNonNull(Outcome.reschedule(duration))));
  }

  static Stream<Map.Entry<String, Consumer<Duration>>> all() {
    return Stream.concat(
        bounded(),
        Stream.of(
            Map.entry("maxTotalTime", duration -> RetryPolicy.standard().maxTotalTime(duration)),
            Map.entry("deliverIn", duration -> OutboxMessage.to("q").deliverIn(duration))));
  }

  @ParameterizedTest
  @MethodSource("bounded")
  void absurdOnesAreRefusedByName(Map.Entry<String, Consumer<Duration>> setting) {
    for (Duration absurd : new Duration[] {ABSURD, ABSURD.negated()}) {
      assertThatIllegalArgumentException()
          .isThrownBy(() -> setting.getValue().accept(absurd))
          .withMessageContaining(setting.getKey() + " is PT")
          .withMessageContaining("it must be");
    }
  }

  @ParameterizedTest
  @MethodSource("all")
  void nullIsRefusedByName(Map.Entry<String, Consumer<Duration>> setting) {
    assertThatNullPointerException()
        .isThrownBy(() -> setting.getValue().accept(null))
        .withMessage(setting.getKey());
  }
}
