package dev.outbox4j.test;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.ZoneId;
import java.time.ZoneOffset;
import org.junit.jupiter.api.Test;

class SettableClockTest {
  private static final Instant NOON = Instant.parse("2026-01-01T12:00:00Z");

  private final SettableClock clock = new SettableClock(NOON);

  @Test
  void movesOnlyWhenTold() {
    assertThat(clock.instant()).isEqualTo(NOON);

    clock.advance(Duration.ofSeconds(5));
    assertThat(clock.instant()).isEqualTo(NOON.plusSeconds(5));

    clock.set(NOON.minusSeconds(5));
    assertThat(clock.instant()).isEqualTo(NOON.minusSeconds(5));
    assertThat(clock.getZone()).isEqualTo(ZoneOffset.UTC);
  }

  @Test
  void beginsAtThePresentInstant() {
    Instant before = Instant.now();

    assertThat(new SettableClock().instant()).isBetween(before, Instant.now());
  }

  @Test
  void movesTogetherWithItselfInAnotherZone() {
    Clock inAuckland = clock.withZone(ZoneId.of("Pacific/Auckland"));

    clock.advance(Duration.ofHours(1));

    assertThat(inAuckland.instant()).isEqualTo(clock.instant());
    assertThat(LocalDate.now(inAuckland)).isEqualTo(LocalDate.of(2026, 1, 2));
  }

  @Test
  void tellsWhoWatchesIt() {
    int[] told = new int[1];
    clock.onChange(() -> told[0]++);

    clock.advance(Duration.ofSeconds(1));
    clock.withZone(ZoneId.of("Pacific/Auckland")).set(NOON);

    assertThat(told[0]).isEqualTo(2);
  }
}
