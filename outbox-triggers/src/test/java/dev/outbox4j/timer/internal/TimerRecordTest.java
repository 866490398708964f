package dev.outbox4j.timer.internal;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.timer.Schedule;
import dev.outbox4j.timer.Timer;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import org.junit.jupiter.api.Test;

/** What becomes of a record when its timer is registered with another limit. */
class TimerRecordTest {
  private static final Instant NOON = Instant.parse("2026-03-02T12:00:00Z");
  private static final Instant DAYS_LATER = NOON.plus(Duration.ofDays(3));
  private static final Timer HOURLY =
      Timer.of("hourly", Schedule.every(Duration.ofHours(1))).limitedTo(2);

  private static TimerRecord withRunsLeft(long left) {
    TimerRecord first = TimerRecord.first(HOURLY, null, NOON);
    return new TimerRecord(
        first.schedule(), NOON, null, false, first.limit(), left, null, null, List.of());
  }

  @Test
  void nothingWasMissedWhileTheLimitWasUsedUp() {
    TimerRecord used = withRunsLeft(0);
    assertThat(used.due(HOURLY)).isEmpty();

    TimerRecord raised = used.registered(HOURLY.limitedTo(5), null, DAYS_LATER);

    assertThat(raised.cursor()).isEqualTo(DAYS_LATER);
    assertThat(raised.runsLeft()).isEqualTo(5);
    assertThat(raised.due(HOURLY.limitedTo(5))).contains(DAYS_LATER.plus(Duration.ofHours(1)));
  }

  @Test
  void whatWasMissedBeforeTheLimitWasUsedUpIsStillToBeDecided() {
    TimerRecord raised = withRunsLeft(1).registered(HOURLY.limitedTo(5), null, DAYS_LATER);

    assertThat(raised.cursor()).isEqualTo(NOON);
  }
}
