package dev.outbox4j.timer.internal;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.testing.CapturedLogs;
import java.time.Duration;
import java.time.InstantSource;
import java.util.List;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** When a node says that its clock is wrong. */
class NodeStateTest {
  private final NodeState state = new NodeState("shop", InstantSource.system());

  @ParameterizedTest
  @ValueSource(strings = {"PT0S", "PT59.999S", "PT60S", "PT-60S"})
  void aClockThatIsUpToAMinuteOffIsRight(Duration offset) {
    assertThat(saidOf(offset, offset)).isEmpty();
  }

  @ParameterizedTest
  @ValueSource(strings = {"PT60.000000001S", "PT-60.000000001S", "PT1H", "PT-1H"})
  void aClockThatIsMoreThanAMinuteOffIsToldOnceUntilItIsRightAgain(Duration offset) {
    String wrong =
        "WARN timers of shop: this process's clock is %s off the server's; no timer depends on it,"
                .formatted(offset)
            + " but logs and handlers may";
    String right = "INFO timers of shop: this process's clock is right again";
    Duration aMinute = Duration.ofSeconds(offset.isNegative() ? -60 : 60);

    assertThat(saidOf(offset, offset, aMinute, aMinute, offset))
        .containsExactly(wrong, right, wrong);
  }

  private List<String> saidOf(Duration... offsets) {
    try (CapturedLogs logs = new CapturedLogs()) {
      for (Duration offset : offsets) {
        state.ticked(offset);
      }
      return logs.lines().stream()
          .filter(line -> line.contains(NodeState.class.getName()))
          .map(line -> line.replaceFirst(" .* - ", " "))
          .toList();
    }
  }
}
