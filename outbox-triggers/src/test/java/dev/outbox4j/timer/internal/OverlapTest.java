package dev.outbox4j.timer.internal;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.timer.CatchUp;
import dev.outbox4j.timer.OverlapPolicy;
import dev.outbox4j.timer.Schedule;
import dev.outbox4j.timer.Timer;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** An hourly timer from 10:00 to 16:00 whose runs last two and a half hours. */
class OverlapTest {
  private static final Timer HOURLY = Timer.of("t", Schedule.cron("0 0 * * * *"));

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          SKIP            | 10:00 begins 10:00, 11:00 skips 11:00, 12:00 skips 12:00, 12:30 ends 10:00, 13:00 begins 13:00, 14:00 skips 14:00, 15:00 skips 15:00, 15:30 ends 13:00, 16:00 begins 16:00
          BUFFER_ONE      | 10:00 begins 10:00, 11:00 waits 11:00, 12:00 skips 12:00, 12:30 ends 10:00, 12:30 begins 11:00, 13:00 waits 13:00, 14:00 skips 14:00, 15:00 ends 11:00, 15:00 begins 13:00, 15:00 waits 15:00, 16:00 skips 16:00
          BUFFER_ALL      | 10:00 begins 10:00, 11:00 waits 11:00, 12:00 waits 12:00, 12:30 ends 10:00, 12:30 begins 11:00, 13:00 waits 13:00, 14:00 waits 14:00, 15:00 ends 11:00, 15:00 begins 12:00, 15:00 waits 15:00, 16:00 waits 16:00
          CANCEL_OTHER    | 10:00 begins 10:00, 11:00 cancels 10:00, 11:00 waits 11:00, 11:10 ends 10:00, 11:10 begins 11:00, 12:00 cancels 11:00, 12:00 waits 12:00, 12:10 ends 11:00, 12:10 begins 12:00, 13:00 cancels 12:00, 13:00 waits 13:00, 13:10 ends 12:00, 13:10 begins 13:00, 14:00 cancels 13:00, 14:00 waits 14:00, 14:10 ends 13:00, 14:10 begins 14:00, 15:00 cancels 14:00, 15:00 waits 15:00, 15:10 ends 14:00, 15:10 begins 15:00, 16:00 cancels 15:00, 16:00 waits 16:00
          TERMINATE_OTHER | 10:00 begins 10:00, 11:00 terminates 10:00, 11:00 begins 11:00, 12:00 terminates 11:00, 12:00 begins 12:00, 13:00 terminates 12:00, 13:00 begins 13:00, 14:00 terminates 13:00, 14:00 begins 14:00, 15:00 terminates 14:00, 15:00 begins 15:00, 16:00 terminates 15:00, 16:00 begins 16:00
          ALLOW_ALL       | 10:00 begins 10:00, 11:00 begins 11:00, 12:00 begins 12:00, 12:30 ends 10:00, 13:00 begins 13:00, 13:30 ends 11:00, 14:00 begins 14:00, 14:30 ends 12:00, 15:00 begins 15:00, 15:30 ends 13:00, 16:00 begins 16:00
          """)
  void whatBecomesOfInstantsWhileARunLasts(OverlapPolicy policy, String expected) {
    SimulatedTimer simulated =
        new SimulatedTimer(HOURLY.overlap(policy), at("09:59"), Duration.ofMinutes(150))
            .heedingCancelAfter(Duration.ofMinutes(10));

    simulated.runUntil(at("16:00"));

    assertThat(simulated.events()).isEqualTo(List.of(expected.split(", ", -1)));
  }

  @Test
  void whoDoesNotHeedACancelHoldsUpTheLatestInstantOnly() {
    SimulatedTimer simulated =
        new SimulatedTimer(
            HOURLY.overlap(OverlapPolicy.CANCEL_OTHER), at("09:59"), Duration.ofMinutes(150));

    simulated.runUntil(at("13:00"));

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

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          SKIP            | 12:30 begins 10:00, 12:30 waits 11:00, 12:30 waits 12:00, 13:00 skips 13:00, 14:00 skips 14:00, 15:00 ends 10:00, 15:00 begins 11:00, 15:00 skips 15:00
          BUFFER_ONE      | 12:30 begins 10:00, 12:30 waits 11:00, 12:30 waits 12:00, 13:00 waits 13:00, 14:00 skips 14:00, 15:00 ends 10:00, 15:00 begins 11:00, 15:00 skips 15:00
          ALLOW_ALL       | 12:30 begins 10:00, 12:30 waits 11:00, 12:30 waits 12:00, 13:00 begins 13:00, 14:00 begins 14:00, 15:00 ends 10:00, 15:00 begins 11:00, 15:00 begins 15:00
          TERMINATE_OTHER | 12:30 begins 10:00, 12:30 waits 11:00, 12:30 waits 12:00, 13:00 terminates 10:00, 13:00 begins 13:00, 14:00 terminates 13:00, 14:00 begins 14:00, 15:00 terminates 14:00, 15:00 begins 15:00
          """)
  void thoseThatAreAllCaughtUpWaitForOneAnotherAndAreNotSkipped(
      OverlapPolicy policy, String expected) {
    SimulatedTimer simulated =
        new SimulatedTimer(
            HOURLY.overlap(policy).catchUp(CatchUp.ALL), at("09:59"), Duration.ofMinutes(150));
    simulated.nobodyLooksUntil(at("12:30"));

    simulated.runUntil(at("15:00"));

    assertThat(simulated.events()).isEqualTo(List.of(expected.split(", ", -1)));
  }

  /** A run of the first minute that lasts so long that all others of the day wait for it. */
  @Test
  void atMostAThousandWaitAndTheNextOneDoesWhenOneOfThemBegins() {
    Timer minutely = Timer.of("t", Schedule.cron("0 * * * * *")).overlap(OverlapPolicy.BUFFER_ALL);
    SimulatedTimer simulated = new SimulatedTimer(minutely, at("00:00"), Duration.ofMinutes(1_005));

    simulated.runUntil(at("16:47"));

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

  private static Instant at(String time) {
    return Instant.parse("2026-11-24T" + time + ":00Z");
  }
}
