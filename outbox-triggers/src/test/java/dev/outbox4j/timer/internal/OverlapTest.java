package dev.outbox4j.timer.internal;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.timer.CatchUp;
import dev.outbox4j.timer.OverlapPolicy;
import dev.outbox4j.timer.Schedule;
import dev.outbox4j.timer.Timer;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;

/** The plans of {@link OverlapRows}. */
class OverlapTest {
  private static SimulatedTimer simulated(Timer timer) {
    return new SimulatedTimer(timer, OverlapRows.REGISTERED, OverlapRows.LASTS);
  }

  @OverlapRows.Each
  void whatBecomesOfInstantsWhileARunLasts(OverlapPolicy policy, String expected) {
    SimulatedTimer simulated = simulated(OverlapRows.HOURLY.overlap(policy));
    simulated.heedCancelAfter(OverlapRows.HEEDS_CANCEL_AFTER);

    simulated.runUntil(OverlapRows.at("16:00"));

    assertThat(simulated.events()).isEqualTo(OverlapRows.list(expected));
  }

  @Test
  void whoDoesNotHeedACancelHoldsUpTheLatestInstantOnly() {
    SimulatedTimer simulated = simulated(OverlapRows.HOURLY.overlap(OverlapPolicy.CANCEL_OTHER));

    simulated.runUntil(OverlapRows.at("13:00"));

    assertThat(simulated.events())
        .containsExactly(
            "10:00 begins 10:00",
            "11:00 cancels 10:00",
            "11:00 waits 11:00",
            "12:00 skips 11:00",
            "12:00 cancels 10:00",
            "12:00 waits 12:00",
            "12:30 ends 10:00",
            "12:30 begins 12:00",
            "13:00 cancels 12:00",
            "13:00 waits 13:00");
  }

  @OverlapRows.EachCaughtUp
  void thoseThatAreAllCaughtUpWaitForOneAnotherAndAreNotSkipped(
      OverlapPolicy policy, String expected) {
    SimulatedTimer simulated = simulated(OverlapRows.HOURLY.overlap(policy).catchUp(CatchUp.ALL));
    simulated.nobodyLooksUntil(OverlapRows.at("12:30"));

    simulated.runUntil(OverlapRows.at("15:00"));

    assertThat(simulated.events()).isEqualTo(OverlapRows.list(expected));
  }

  /** A run of the first minute that lasts so long that all others of the day wait for it. */
  @Test
  void atMostAThousandWaitAndTheNextOneDoesWhenOneOfThemBegins() {
    Timer minutely = Timer.of("t", Schedule.cron("0 * * * * *")).overlap(OverlapPolicy.BUFFER_ALL);
    SimulatedTimer simulated =
        new SimulatedTimer(minutely, OverlapRows.at("00:00"), Duration.ofMinutes(1_005));

    simulated.runUntil(OverlapRows.at("16:47"));

    assertThat(events(simulated, "begins"))
        .containsExactly("00:01 begins 00:01", "16:46 begins 00:02");
    assertThat(events(simulated, "waits"))
        .hasSize(1_001)
        .startsWith("00:02 waits 00:02")
        .endsWith("16:41 waits 16:41", "16:46 waits 16:46");
    assertThat(events(simulated, "skips"))
        .containsExactly(
            "16:42 skips 16:42",
            "16:43 skips 16:43",
            "16:44 skips 16:44",
            "16:45 skips 16:45",
            "16:47 skips 16:47");
  }

  private static List<String> events(SimulatedTimer simulated, String what) {
    return simulated.events().stream().filter(event -> event.contains(what)).toList();
  }
}
