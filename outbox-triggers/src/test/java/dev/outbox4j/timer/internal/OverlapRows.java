package dev.outbox4j.timer.internal;

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
 * What becomes of an hourly timer, put on record at 09:59, whose runs last two and a half hours.
 */
final class OverlapRows {
  static final Timer HOURLY = Timer.of("t", Schedule.cron("0 0 * * * *"));
  static final Instant REGISTERED = at("09:59");
  static final Duration LASTS = Duration.ofMinutes(150);
  static final Duration HEEDS_CANCEL_AFTER = Duration.ofMinutes(10);

  private OverlapRows() {}

  /** Marks a test of each policy, from 10:00 to 16:00. Who is asked to stop does so. */
  @Target(ElementType.METHOD)
  @Retention(RetentionPolicy.RUNTIME)
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
  @interface Each {}

  /** Marks a test of policies where all is caught up and nobody looked from 10:00 to 12:30. */
  @Target(ElementType.METHOD)
  @Retention(RetentionPolicy.RUNTIME)
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
  @interface EachCaughtUp {}

  static List<String> list(String events) {
    return List.of(events.split(", ", -1));
  }

  static Instant at(String time) {
    return Instant.parse("2026-11-24T" + time + ":00Z");
  }
}
