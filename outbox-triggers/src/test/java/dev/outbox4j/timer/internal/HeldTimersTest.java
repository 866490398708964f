package dev.outbox4j.timer.internal;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.Set;
import org.junit.jupiter.api.Test;

class HeldTimersTest {
  private long now;
  private final HeldTimers held = new HeldTimers(() -> now);

  private void goBy(Duration time) {
    now += time.toNanos();
  }

  @Test
  void oneThatIsHeldForFiveSecondsIsToldOnceAMinute() {
    assertThat(held.note(Set.of("a"))).isEmpty();
    goBy(Duration.ofSeconds(5).minusNanos(1));
    assertThat(held.note(Set.of("a"))).isEmpty();
    goBy(Duration.ofNanos(1));
    assertThat(held.note(Set.of("a", "b"))).containsExactly("a");
    assertThat(held.note(Set.of("a", "b"))).isEmpty();
    goBy(Duration.ofMinutes(1));
    assertThat(held.note(Set.of("a", "b"))).containsExactlyInAnyOrder("a", "b");
  }

  @Test
  void oneThatWasFreeInBetweenIsHeldFromThenOn() {
    assertThat(held.note(Set.of("a"))).isEmpty();
    goBy(Duration.ofSeconds(4));
    assertThat(held.note(Set.of())).isEmpty();
    assertThat(held.note(Set.of("a"))).isEmpty();
    goBy(Duration.ofSeconds(4));
    assertThat(held.note(Set.of("a"))).isEmpty();
  }
}
