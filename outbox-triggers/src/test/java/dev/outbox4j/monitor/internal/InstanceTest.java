package dev.outbox4j.monitor.internal;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.monitor.MonitorStatus;
import java.time.Duration;
import java.time.Instant;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** What an instance knows of its time, by the server's clock. */
class InstanceTest {
  private static final Instant EXPIRES = Instant.parse("2026-01-01T00:00:00Z");

  private static Instance read(
      Instant at, @Nullable Instant expires, @Nullable Instant firstFailed) {
    return new Instance(
        "x",
        "watch",
        7,
        MonitorStatus.RUNNING,
        0,
        0,
        "null",
        null,
        0,
        100,
        EXPIRES.minusSeconds(60),
        expires,
        firstFailed,
        at,
        System.nanoTime(),
        1);
  }

  @Test
  void itExpiresAtItsInstantAndNoMicrosecondBefore() {
    assertThat(read(EXPIRES, EXPIRES, null).isExpired()).isTrue();
    assertThat(read(EXPIRES.plusNanos(1_000), EXPIRES, null).isExpired()).isTrue();
    assertThat(read(EXPIRES.minusNanos(1_000), EXPIRES, null).isExpired()).isFalse();
    assertThat(read(EXPIRES, null, null).isExpired()).isFalse();
  }

  @Test
  void theTimeThatIsLeftIsCountedFromWhenItWasRead() {
    assertThat(read(EXPIRES.minusSeconds(60), EXPIRES, null).untilExpiry())
        .isBetween(Duration.ofSeconds(30), Duration.ofSeconds(60));
    assertThat(read(EXPIRES.plusSeconds(1), EXPIRES, null).untilExpiry()).isNegative();
    assertThat(read(EXPIRES, null, null).untilExpiry()).isNull();
  }

  @Test
  void itMayHaveExpiredSinceItWasRead() {
    assertThat(read(EXPIRES.minusSeconds(60), EXPIRES, null).hasExpiredSince()).isFalse();
    assertThat(read(EXPIRES.minusNanos(1), EXPIRES, null).hasExpiredSince()).isTrue();
    assertThat(read(EXPIRES, EXPIRES, null).hasExpiredSince()).isTrue();
    assertThat(read(EXPIRES, null, null).hasExpiredSince()).isFalse();
  }

  @Test
  void attemptsAreCountedFromTheFirstThatFailed() {
    assertThat(read(EXPIRES, null, EXPIRES.minusSeconds(600)).sinceFirstAttempt())
        .isBetween(Duration.ofSeconds(600), Duration.ofSeconds(630));
    assertThat(read(EXPIRES, null, null).sinceFirstAttempt())
        .isBetween(Duration.ZERO, Duration.ofSeconds(30));
  }
}
