package dev.outbox4j.postgres.internal;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.time.Instant;
import org.junit.jupiter.api.Test;

class ServerTimeTest {
  @Test
  void secondsAreExactToTheMicrosecondAndStayWithinTheCalendar() {
    assertThat(ServerTime.seconds(Duration.ofNanos(1_500_000_001_000L))).isEqualTo(1500.000001);
    assertThat(ServerTime.seconds(Duration.ofSeconds(-1))).isZero();
    assertThat(ServerTime.seconds(Duration.ofSeconds(Long.MAX_VALUE))).isEqualTo(36_525 * 86_400.0);
  }

  @Test
  void whatIsYetToComeIsNoTimeAgo() {
    Instant now = Instant.parse("2030-01-01T00:00:00Z");

    assertThat(ServerTime.between(now, now.plusSeconds(2))).isEqualTo(Duration.ofSeconds(2));
    assertThat(ServerTime.between(now.plusSeconds(2), now)).isZero();
  }
}
