package dev.outbox4j.timer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import java.time.Instant;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class ConstantIntervalTest {
  @ParameterizedTest
  @CsvSource({
    "PT30S,     1970-01-01T00:00:00Z, 2026-11-24T10:00:00Z,           2026-11-24T10:00:30Z",
    "PT30S,     1970-01-01T00:00:00Z, 2026-11-24T10:00:29.999999999Z, 2026-11-24T10:00:30Z",
    "PT0.25S,   1970-01-01T00:00:00Z, 2026-11-24T10:00:00.3Z,         2026-11-24T10:00:00.5Z",
    "PT7S,      2026-11-24T10:00:00Z, 2026-11-24T10:00:00Z,           2026-11-24T10:00:07Z",
    "PT7S,      2026-11-24T10:00:00Z, 2026-11-24T09:59:59Z,           2026-11-24T10:00:00Z",
    "PT7S,      2026-11-24T10:00:00Z, 2026-11-24T09:59:52Z,           2026-11-24T09:59:53Z",
    "P40D,      2026-01-01T00:00:00Z, 2026-01-02T00:00:00Z,           2026-02-10T00:00:00Z",
    "P365250D,  2026-01-01T00:00:00Z, 2026-01-02T00:00:00Z,           3026-01-09T00:00:00Z",
    "PT1S,      2026-01-01T00:00:00Z, -9999-01-01T00:00:00.5Z,        -9999-01-01T00:00:01Z",
  })
  void theNextInstantIsAWholeNumberOfIntervalsFromTheAnchor(
      Duration interval, Instant anchor, Instant after, Instant next) {
    assertThat(Schedule.every(interval, anchor).next(after)).contains(next);
  }

  @ParameterizedTest
  @ValueSource(strings = {"PT0S", "PT-1S", "PT0.000999S", "P365251D"})
  void anIntervalOutOfRangeIsRefused(Duration interval) {
    assertThatThrownBy(() -> Schedule.every(interval))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("interval is " + interval + "; it must be from 1 ms to 1,000 years");
  }

  @Test
  void whatTheDatabaseCannotHoldIsRefused() {
    assertThatThrownBy(() -> Schedule.every(Duration.ofNanos(1_000_000_333)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("interval is PT1.000000333S")
        .hasMessageContaining("must be in whole microseconds");
    assertThatThrownBy(
            () ->
                Schedule.every(
                    Duration.ofSeconds(1), Instant.parse("2026-01-01T00:00:00.1234567Z")))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("anchor is 2026-01-01T00:00:00.123456700Z");
  }

  @Test
  void anAnchorFarAwayIsRefused() {
    assertThatThrownBy(() -> Schedule.every(Duration.ofSeconds(1), Instant.MAX))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("anchor is " + Instant.MAX)
        .hasMessageContaining("within 10,000 years of 1970");
  }
}
