package dev.outbox4j.monitor.internal;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.monitor.MonitorStatus;
import java.time.Duration;
import java.time.Instant;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** For how long an instance is left whose row is locked, and for how long a row is waited for. */
class LockWaitsTest {
  private static final Instant READ = Instant.parse("2026-01-01T00:00:00Z");

  private final LockWaits waits = new LockWaits();

  private static Instance instance(String id, long execution, @Nullable Duration untilExpiry) {
    return new Instance(
        id,
        "watch",
        execution,
        MonitorStatus.RUNNING,
        0,
        0,
        "null",
        null,
        0,
        100,
        READ,
        untilExpiry == null ? null : READ.plus(untilExpiry),
        null,
        READ,
        System.nanoTime(),
        1);
  }

  private List<Duration> inVain(Instance instance, int times) {
    return Stream.generate(() -> waits.inVain(instance)).limit(times).toList();
  }

  private static List<Duration> seconds(long... seconds) {
    return Arrays.stream(seconds).mapToObj(Duration::ofSeconds).toList();
  }

  @Test
  void anInstanceComesAgainLaterAndLaterUpToHalfAMinute() {
    Instance locked = instance("a", 7, null);
    assertThat(waits.wasLocked(locked)).isFalse();
    assertThat(inVain(locked, 8)).isEqualTo(seconds(1, 2, 4, 8, 16, 30, 30, 30));
    assertThat(waits.wasLocked(locked)).isTrue();
  }

  @Test
  void ofEachInstanceAndExecutionItIsCountedByItself() {
    inVain(instance("a", 7, null), 5);
    assertThat(waits.wasLocked(instance("a", 8, null))).isFalse();
    assertThat(inVain(instance("a", 8, null), 1)).isEqualTo(seconds(1));
    assertThat(inVain(instance("b", 7, null), 1)).isEqualTo(seconds(1));
    assertThat(inVain(instance("a", 7, null), 1)).isEqualTo(seconds(30));
  }

  @Test
  void oneThatWasWrittenBeginsAnew() {
    Instance locked = instance("a", 7, null);
    inVain(locked, 5);
    waits.free(locked);
    assertThat(waits.wasLocked(locked)).isFalse();
    assertThat(inVain(locked, 1)).isEqualTo(seconds(1));
  }

  @Test
  void itComesAgainNotLaterThanItExpires() {
    inVain(instance("a", 7, null), 5);
    assertThat(waits.inVain(instance("a", 7, Duration.ofSeconds(9))))
        .isBetween(Duration.ofSeconds(1), Duration.ofSeconds(9));
    assertThat(waits.inVain(instance("a", 7, Duration.ofHours(1))))
        .isEqualTo(Duration.ofSeconds(30));
    assertThat(waits.inVain(instance("a", 7, Duration.ofSeconds(-1))))
        .as("it is ended as soon as its row is free")
        .isEqualTo(Duration.ofSeconds(30));
  }

  @Test
  void whenOneWasWaitedForInVainTheNextOnesAreWaitedForBriefly() {
    assertThat(waits.timeout()).isEqualTo("500ms");
    inVain(instance("a", 7, null), 1);
    assertThat(waits.timeout()).isEqualTo("100ms");
  }

  @Test
  void noMoreAreRememberedThanMay() {
    for (int number = 0; number <= 10_000; number++) {
      waits.inVain(instance("i" + number, 7, null));
    }
    assertThat(waits.wasLocked(instance("i0", 7, null))).isFalse();
    assertThat(waits.wasLocked(instance("i1", 7, null))).isTrue();
    assertThat(waits.wasLocked(instance("i10000", 7, null))).isTrue();
  }
}
