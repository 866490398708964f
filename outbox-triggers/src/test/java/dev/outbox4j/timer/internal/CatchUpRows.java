package dev.outbox4j.timer.internal;

import dev.outbox4j.timer.CatchUp;
import dev.outbox4j.timer.OnChange;
import dev.outbox4j.timer.Schedule;
import dev.outbox4j.timer.Timer;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * What is run of an hourly timer whose last instant was 10:00, by how long nobody looked, whether
 * it is hourly still or half-hourly now, and whether a new deployment asks for a run. Past due are
 * those that come more than a minute after their instants.
 */
final class CatchUpRows {
  static final Instant LAST_LOOK = at("10:00:00");

  private static final Schedule HOURLY = Schedule.cron("0 0 * * * *");
  private static final Schedule HALF_HOURLY = Schedule.cron("0 0/30 * * * *");

  private CatchUpRows() {}

  /** Marks a test of each row. */
  @Target(ElementType.METHOD)
  @Retention(RetentionPolicy.RUNTIME)
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          # policy | looks at | window | schedule | deployment | runs                                                                                                                                                            | not run | past due
          # --- somebody was there
          NONE | 11:00:05 | PT2H  | SAME  | SAME | SCHEDULED 11:00 BEGINS                                                                                                                                          | 0       | ''
          ONE  | 11:00:05 | PT2H  | SAME  | SAME | SCHEDULED 11:00 BEGINS                                                                                                                                          | 0       | ''
          ALL  | 11:00:05 | PT2H  | SAME  | SAME | SCHEDULED 11:00 BEGINS                                                                                                                                          | 0       | ''
          NONE | 11:00:05 | PT2H  | SAME  | NEW  | SCHEDULED 11:00 BEGINS, STARTUP 11:00:05 WAITS                                                                                                                  | 0       | ''
          ONE  | 11:00:05 | PT2H  | SAME  | NEW  | SCHEDULED 11:00 BEGINS, STARTUP 11:00:05 WAITS                                                                                                                  | 0       | ''
          ALL  | 11:00:05 | PT2H  | SAME  | NEW  | SCHEDULED 11:00 BEGINS, STARTUP 11:00:05 WAITS                                                                                                                  | 0       | ''
          NONE | 11:00:05 | PT2H  | RESET | SAME | ''                                                                                                                                                              | 0       | ''
          ONE  | 11:00:05 | PT2H  | RESET | SAME | ''                                                                                                                                                              | 0       | ''
          ALL  | 11:00:05 | PT2H  | RESET | SAME | ''                                                                                                                                                              | 0       | ''
          NONE | 11:00:05 | PT2H  | RESET | NEW  | STARTUP 11:00:05 BEGINS                                                                                                                                         | 0       | ''
          ONE  | 11:00:05 | PT2H  | RESET | NEW  | STARTUP 11:00:05 BEGINS                                                                                                                                         | 0       | ''
          ALL  | 11:00:05 | PT2H  | RESET | NEW  | STARTUP 11:00:05 BEGINS                                                                                                                                         | 0       | ''
          NONE | 11:00:05 | PT2H  | KEEP  | SAME | SCHEDULED 11:00 BEGINS                                                                                                                                          | 1       | ''
          ONE  | 11:00:05 | PT2H  | KEEP  | SAME | CATCH_UP 10:30 BEGINS for 1 since 10:30, SCHEDULED 11:00 WAITS                                                                                                  | 0       | 10:30
          ALL  | 11:00:05 | PT2H  | KEEP  | SAME | CATCH_UP 10:30 BEGINS for 1 since 10:30, SCHEDULED 11:00 WAITS                                                                                                  | 0       | 10:30
          NONE | 11:00:05 | PT2H  | KEEP  | NEW  | SCHEDULED 11:00 BEGINS, STARTUP 11:00:05 WAITS                                                                                                                  | 1       | ''
          ONE  | 11:00:05 | PT2H  | KEEP  | NEW  | CATCH_UP 10:30 BEGINS for 1 since 10:30, SCHEDULED 11:00 WAITS                                                                                                  | 0       | 10:30
          ALL  | 11:00:05 | PT2H  | KEEP  | NEW  | CATCH_UP 10:30 BEGINS for 1 since 10:30, SCHEDULED 11:00 WAITS                                                                                                  | 0       | 10:30
          # --- one instant was missed
          NONE | 11:20:00 | PT2H  | SAME  | SAME | ''                                                                                                                                                              | 1       | ''
          ONE  | 11:20:00 | PT2H  | SAME  | SAME | CATCH_UP 11:00 BEGINS for 1 since 11:00                                                                                                                         | 0       | 11:00
          ALL  | 11:20:00 | PT2H  | SAME  | SAME | CATCH_UP 11:00 BEGINS for 1 since 11:00                                                                                                                         | 0       | 11:00
          NONE | 11:20:00 | PT2H  | SAME  | NEW  | STARTUP 11:20 BEGINS                                                                                                                                            | 1       | ''
          ONE  | 11:20:00 | PT2H  | SAME  | NEW  | CATCH_UP 11:00 BEGINS for 1 since 11:00                                                                                                                         | 0       | 11:00
          ALL  | 11:20:00 | PT2H  | SAME  | NEW  | CATCH_UP 11:00 BEGINS for 1 since 11:00                                                                                                                         | 0       | 11:00
          NONE | 11:20:00 | PT2H  | RESET | SAME | ''                                                                                                                                                              | 0       | ''
          ONE  | 11:20:00 | PT2H  | RESET | SAME | ''                                                                                                                                                              | 0       | ''
          ALL  | 11:20:00 | PT2H  | RESET | SAME | ''                                                                                                                                                              | 0       | ''
          NONE | 11:20:00 | PT2H  | RESET | NEW  | STARTUP 11:20 BEGINS                                                                                                                                            | 0       | ''
          ONE  | 11:20:00 | PT2H  | RESET | NEW  | STARTUP 11:20 BEGINS                                                                                                                                            | 0       | ''
          ALL  | 11:20:00 | PT2H  | RESET | NEW  | STARTUP 11:20 BEGINS                                                                                                                                            | 0       | ''
          NONE | 11:20:00 | PT2H  | KEEP  | SAME | ''                                                                                                                                                              | 2       | ''
          ONE  | 11:20:00 | PT2H  | KEEP  | SAME | CATCH_UP 11:00 BEGINS for 2 since 10:30                                                                                                                         | 0       | 11:00
          ALL  | 11:20:00 | PT2H  | KEEP  | SAME | CATCH_UP 10:30 BEGINS for 1 since 10:30, CATCH_UP 11:00 WAITS for 1 since 11:00                                                                                 | 0       | 10:30 11:00
          NONE | 11:20:00 | PT2H  | KEEP  | NEW  | STARTUP 11:20 BEGINS                                                                                                                                            | 2       | ''
          ONE  | 11:20:00 | PT2H  | KEEP  | NEW  | CATCH_UP 11:00 BEGINS for 2 since 10:30                                                                                                                         | 0       | 11:00
          ALL  | 11:20:00 | PT2H  | KEEP  | NEW  | CATCH_UP 10:30 BEGINS for 1 since 10:30, CATCH_UP 11:00 WAITS for 1 since 11:00                                                                                 | 0       | 10:30 11:00
          # --- several were missed
          NONE | 13:20:00 | PT3H  | SAME  | SAME | ''                                                                                                                                                              | 3       | ''
          ONE  | 13:20:00 | PT3H  | SAME  | SAME | CATCH_UP 13:00 BEGINS for 3 since 11:00                                                                                                                         | 0       | 13:00
          ALL  | 13:20:00 | PT3H  | SAME  | SAME | CATCH_UP 11:00 BEGINS for 1 since 11:00, CATCH_UP 12:00 WAITS for 1 since 12:00, CATCH_UP 13:00 WAITS for 1 since 13:00                                         | 0       | 11:00 12:00 13:00
          NONE | 13:20:00 | PT3H  | SAME  | NEW  | STARTUP 13:20 BEGINS                                                                                                                                            | 3       | ''
          ONE  | 13:20:00 | PT3H  | SAME  | NEW  | CATCH_UP 13:00 BEGINS for 3 since 11:00                                                                                                                         | 0       | 13:00
          ALL  | 13:20:00 | PT3H  | SAME  | NEW  | CATCH_UP 11:00 BEGINS for 1 since 11:00, CATCH_UP 12:00 WAITS for 1 since 12:00, CATCH_UP 13:00 WAITS for 1 since 13:00                                         | 0       | 11:00 12:00 13:00
          NONE | 13:20:00 | PT3H  | RESET | SAME | ''                                                                                                                                                              | 0       | ''
          ONE  | 13:20:00 | PT3H  | RESET | SAME | ''                                                                                                                                                              | 0       | ''
          ALL  | 13:20:00 | PT3H  | RESET | SAME | ''                                                                                                                                                              | 0       | ''
          NONE | 13:20:00 | PT3H  | RESET | NEW  | STARTUP 13:20 BEGINS                                                                                                                                            | 0       | ''
          ONE  | 13:20:00 | PT3H  | RESET | NEW  | STARTUP 13:20 BEGINS                                                                                                                                            | 0       | ''
          ALL  | 13:20:00 | PT3H  | RESET | NEW  | STARTUP 13:20 BEGINS                                                                                                                                            | 0       | ''
          NONE | 13:20:00 | PT3H  | KEEP  | SAME | ''                                                                                                                                                              | 6       | ''
          ONE  | 13:20:00 | PT3H  | KEEP  | SAME | CATCH_UP 13:00 BEGINS for 6 since 10:30                                                                                                                         | 0       | 13:00
          ALL  | 12:20:00 | PT3H  | KEEP  | SAME | CATCH_UP 10:30 BEGINS for 1 since 10:30, CATCH_UP 11:00 WAITS for 1 since 11:00, CATCH_UP 11:30 WAITS for 1 since 11:30, CATCH_UP 12:00 WAITS for 1 since 12:00 | 0       | 10:30 11:00 11:30 12:00
          NONE | 13:20:00 | PT3H  | KEEP  | NEW  | STARTUP 13:20 BEGINS                                                                                                                                            | 6       | ''
          ONE  | 13:20:00 | PT3H  | KEEP  | NEW  | CATCH_UP 13:00 BEGINS for 6 since 10:30                                                                                                                         | 0       | 13:00
          ALL  | 12:20:00 | PT3H  | KEEP  | NEW  | CATCH_UP 10:30 BEGINS for 1 since 10:30, CATCH_UP 11:00 WAITS for 1 since 11:00, CATCH_UP 11:30 WAITS for 1 since 11:30, CATCH_UP 12:00 WAITS for 1 since 12:00 | 0       | 10:30 11:00 11:30 12:00
          # --- some of those that were missed are older than the window
          NONE | 15:20:00 | PT2H  | SAME  | SAME | ''                                                                                                                                                              | 5       | ''
          ONE  | 15:20:00 | PT2H  | SAME  | SAME | CATCH_UP 15:00 BEGINS for 5 since 11:00                                                                                                                         | 0       | 15:00
          ALL  | 15:20:00 | PT2H  | SAME  | SAME | CATCH_UP 14:00 BEGINS for 1 since 14:00, CATCH_UP 15:00 WAITS for 1 since 15:00                                                                                 | 3       | 14:00 15:00
          NONE | 15:20:00 | PT2H  | SAME  | NEW  | STARTUP 15:20 BEGINS                                                                                                                                            | 5       | ''
          ONE  | 15:20:00 | PT2H  | SAME  | NEW  | CATCH_UP 15:00 BEGINS for 5 since 11:00                                                                                                                         | 0       | 15:00
          ALL  | 15:20:00 | PT2H  | SAME  | NEW  | CATCH_UP 14:00 BEGINS for 1 since 14:00, CATCH_UP 15:00 WAITS for 1 since 15:00                                                                                 | 3       | 14:00 15:00
          NONE | 15:20:00 | PT2H  | RESET | SAME | ''                                                                                                                                                              | 0       | ''
          ONE  | 15:20:00 | PT2H  | RESET | SAME | ''                                                                                                                                                              | 0       | ''
          ALL  | 15:20:00 | PT2H  | RESET | SAME | ''                                                                                                                                                              | 0       | ''
          NONE | 15:20:00 | PT2H  | RESET | NEW  | STARTUP 15:20 BEGINS                                                                                                                                            | 0       | ''
          ONE  | 15:20:00 | PT2H  | RESET | NEW  | STARTUP 15:20 BEGINS                                                                                                                                            | 0       | ''
          ALL  | 15:20:00 | PT2H  | RESET | NEW  | STARTUP 15:20 BEGINS                                                                                                                                            | 0       | ''
          NONE | 15:20:00 | PT2H  | KEEP  | SAME | ''                                                                                                                                                              | 10      | ''
          ONE  | 15:20:00 | PT2H  | KEEP  | SAME | CATCH_UP 15:00 BEGINS for 10 since 10:30                                                                                                                        | 0       | 15:00
          ALL  | 15:20:00 | PT50M | KEEP  | SAME | CATCH_UP 14:30 BEGINS for 1 since 14:30, CATCH_UP 15:00 WAITS for 1 since 15:00                                                                                 | 8       | 14:30 15:00
          NONE | 15:20:00 | PT2H  | KEEP  | NEW  | STARTUP 15:20 BEGINS                                                                                                                                            | 10      | ''
          ONE  | 15:20:00 | PT2H  | KEEP  | NEW  | CATCH_UP 15:00 BEGINS for 10 since 10:30                                                                                                                        | 0       | 15:00
          ALL  | 15:20:00 | PT50M | KEEP  | NEW  | CATCH_UP 14:30 BEGINS for 1 since 14:30, CATCH_UP 15:00 WAITS for 1 since 15:00                                                                                 | 8       | 14:30 15:00
          # --- all that were missed are older than the window
          NONE | 15:20:00 | PT10M | SAME  | SAME | ''                                                                                                                                                              | 5       | ''
          ONE  | 15:20:00 | PT10M | SAME  | SAME | ''                                                                                                                                                              | 5       | ''
          ALL  | 15:20:00 | PT10M | SAME  | SAME | ''                                                                                                                                                              | 5       | ''
          NONE | 15:20:00 | PT10M | SAME  | NEW  | STARTUP 15:20 BEGINS                                                                                                                                            | 5       | ''
          ONE  | 15:20:00 | PT10M | SAME  | NEW  | STARTUP 15:20 BEGINS                                                                                                                                            | 5       | ''
          ALL  | 15:20:00 | PT10M | SAME  | NEW  | STARTUP 15:20 BEGINS                                                                                                                                            | 5       | ''
          NONE | 15:20:00 | PT10M | RESET | SAME | ''                                                                                                                                                              | 0       | ''
          ONE  | 15:20:00 | PT10M | RESET | SAME | ''                                                                                                                                                              | 0       | ''
          ALL  | 15:20:00 | PT10M | RESET | SAME | ''                                                                                                                                                              | 0       | ''
          NONE | 15:20:00 | PT10M | RESET | NEW  | STARTUP 15:20 BEGINS                                                                                                                                            | 0       | ''
          ONE  | 15:20:00 | PT10M | RESET | NEW  | STARTUP 15:20 BEGINS                                                                                                                                            | 0       | ''
          ALL  | 15:20:00 | PT10M | RESET | NEW  | STARTUP 15:20 BEGINS                                                                                                                                            | 0       | ''
          NONE | 15:20:00 | PT10M | KEEP  | SAME | ''                                                                                                                                                              | 10      | ''
          ONE  | 15:20:00 | PT10M | KEEP  | SAME | ''                                                                                                                                                              | 10      | ''
          ALL  | 15:20:00 | PT10M | KEEP  | SAME | ''                                                                                                                                                              | 10      | ''
          NONE | 15:20:00 | PT10M | KEEP  | NEW  | STARTUP 15:20 BEGINS                                                                                                                                            | 10      | ''
          ONE  | 15:20:00 | PT10M | KEEP  | NEW  | STARTUP 15:20 BEGINS                                                                                                                                            | 10      | ''
          ALL  | 15:20:00 | PT10M | KEEP  | NEW  | STARTUP 15:20 BEGINS                                                                                                                                            | 10      | ''
          """)
  @interface Each {}

  /** {@return the timer as it was at the last look} */
  static Timer before(CatchUp policy, Duration window) {
    return Timer.of("t", HOURLY).catchUp(policy).catchUpWindow(window).runOnStartup();
  }

  /** {@return the timer as it is now} */
  static Timer now(CatchUp policy, Duration window, String schedule) {
    return Timer.of("t", schedule.equals("SAME") ? HOURLY : HALF_HOURLY)
        .catchUp(policy)
        .catchUpWindow(window)
        .onChange(schedule.equals("KEEP") ? OnChange.KEEP : OnChange.RESET)
        .runOnStartup();
  }

  /** {@return the name of the deployment, which was v1 at the last look} */
  static String name(String deployment) {
    return deployment.equals("NEW") ? "v2" : "v1";
  }

  static List<String> list(String runs) {
    return runs.isEmpty() ? List.of() : List.of(runs.split(", ", -1));
  }

  static Instant at(String time) {
    return Instant.parse("2026-11-24T" + time + "Z");
  }
}
