package dev.outbox4j.timer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Instant;
import java.time.LocalDateTime;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

class CronTest {
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          # expression                | after                | next
          0 0 9 * * 1                 | 2026-11-24T10:00:00Z | 2026-11-30T09:00:00Z
          0 9 * * MON                 | 2026-11-24T10:00:00Z | 2026-11-30T09:00:00Z
          0 9 * * mon                 | 2026-11-24T10:00:00Z | 2026-11-30T09:00:00Z
          0 0 0 * * 0                 | 2026-11-24T10:00:00Z | 2026-11-29T00:00:00Z
          0 0 0 * * 7                 | 2026-11-24T10:00:00Z | 2026-11-29T00:00:00Z
          0 0 0 * * SUN               | 2026-11-24T10:00:00Z | 2026-11-29T00:00:00Z
          0 0 9 * * SUN-TUE           | 2026-11-24T10:00:00Z | 2026-11-29T09:00:00Z
          0 0 0 * * 5-7               | 2026-11-28T10:00:00Z | 2026-11-29T00:00:00Z
          0 0 0 1 JAN *               | 2026-11-24T10:00:00Z | 2027-01-01T00:00:00Z
          */20 * * * * *              | 2026-11-24T10:00:00Z | 2026-11-24T10:00:20Z
          5/20 * * * * *              | 2026-11-24T10:00:30Z | 2026-11-24T10:00:45Z
          0 10-50/20 * * * *          | 2026-11-24T10:30:00Z | 2026-11-24T10:50:00Z
          20/10 * * * * *             | 2026-11-24T10:00:50Z | 2026-11-24T10:01:20Z
          0 25/10 * * * *             | 2026-11-24T10:55:00Z | 2026-11-24T11:25:00Z
          0 0 0 20/7 * *              | 2026-12-01T10:00:00Z | 2026-12-20T00:00:00Z
          0 0 0 * * 1/2               | 2026-11-24T10:00:00Z | 2026-11-25T00:00:00Z
          0 0 0 * * 4/3               | 2026-11-24T10:00:00Z | 2026-11-26T00:00:00Z
          1-5,20-40/5 0 0 * * *       | 2026-11-24T00:00:05Z | 2026-11-24T00:00:20Z
          0 0 0 * * SUN-TUE,FRI       | 2026-11-24T10:00:00Z | 2026-11-27T00:00:00Z
          0 0 0 29 2 *                | 2026-11-24T10:00:00Z | 2028-02-29T00:00:00Z
          0 0 0 29 2 1                | 2026-11-24T10:00:00Z | 2044-02-29T00:00:00Z
          0 0 0 31 * *                | 2026-08-31T00:00:00Z | 2026-10-31T00:00:00Z
          59 59 23 31 12 *            | 2026-12-31T23:59:59Z | 2027-12-31T23:59:59Z
          0   0  9  *  *  *           | 2026-11-24T10:00:00Z | 2026-11-25T09:00:00Z
          """)
  void theNextInstant(String expression, Instant after, Instant next) {
    assertThat(Schedule.cron(expression).next(after)).contains(next);
  }

  @Test
  void dayAndWeekdayMustBothMatch() {
    Schedule fridayThe13th = Schedule.cron("0 0 0 13 * FRI");

    assertThat(fridayThe13th.next(Instant.parse("2026-01-01T00:00:00Z")))
        .contains(Instant.parse("2026-02-13T00:00:00Z"));
    assertThat(fridayThe13th.next(Instant.parse("2026-03-13T00:00:00Z")))
        .contains(Instant.parse("2026-11-13T00:00:00Z"));
  }

  @Test
  void theNextInstantIsStrictlyAfter() {
    Schedule daily = Schedule.cron("0 0 9 * * *");
    Instant nine = Instant.parse("2026-11-24T09:00:00Z");

    assertThat(daily.next(nine.minusNanos(1))).contains(nine);
    assertThat(daily.next(nine)).contains(Instant.parse("2026-11-25T09:00:00Z"));
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          # expression      | the rule
          '* * * *'         | has 4 fields; it must have 6, or 5 without the second
          '* * * * * * *'   | has 7 fields; it must have 6, or 5 without the second
          ' '               | has 0 fields; it must have 6, or 5 without the second
          '@daily'          | has 1 fields; it must have 6, or 5 without the second
          '0 0 0 30 2 *'    | matches no day at all
          '0 0 0 31 4,6 *'  | matches no day at all
          """)
  void whatIsNotValidIsRefusedWithItsValueAndTheRule(String expression, String rule) {
    assertThatThrownBy(() -> Schedule.cron(expression))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("'" + expression + "'")
        .hasMessageContaining(rule);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          # expression               | what is wrong
          '60 * * * * *'             | Value 60 not in range [0, 59]
          '* 60 * * * *'             | Value 60 not in range [0, 59]
          '* * 24 * * *'             | Value 24 not in range [0, 23]
          '* * * 0 * *'              | Value 0 not in range [1, 31]
          '* * * 32 * *'             | Value 32 not in range [1, 31]
          '* * * * 13 *'             | Value 13 not in range [1, 12]
          '* * * * 0 *'              | Value 0 not in range [1, 12]
          '* * * * * 8'              | Value 8 not in range [0, 7]
          '* * 0,24 * * *'           | Value 24 not in range [0, 23]
          '60/5 * * * * *'           | Value 60 not in range [0, 59]
          '* * * * FOO *'            | Expression: FOO
          '* * * * * FOO'            | Expression: FOO
          '* * * * JANUARY *'        | Expression: JANUARY
          '* * * * * monday'         | Expression: MONDAY
          '* * * * * MONDAY-FRIDAY'  | Expression: MONDAY
          '* * * * * SUNDAY-TUESDAY' | Expression: SUNDAY
          '* 30-10 * * * *'          | Invalid range! [30,10]
          '*/0 * * * * *'            | Period 0 not in range
          '*/60 * * * * *'           | Period 60 not in range
          '0 0 0 * * 6-0'            | Invalid range! [6,0]
          '* * * ? * *'              | Invalid expression: ?
          '* * * L * *'              | Expression: L
          '* * * * * 5#2'            | Invalid expression: 5#2
          '-1 * * * * *'             | Expression: -1
          """)
  void aFieldThatIsNotValidIsRefusedWithWhatIsWrongAndAnExample(String expression, String wrong) {
    assertThatThrownBy(() -> Schedule.cron(expression))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageStartingWith("cron expression '" + expression + "' is not valid: ")
        .hasMessageContaining(wrong)
        .hasMessageEndingWith(
            "; '0 30 9 * * MON-FRI' (second minute hour day month weekday) is half past nine on"
                + " weekdays");
  }

  @ParameterizedTest
  @ValueSource(strings = {"* * * * * *", "*/30 * * * * *", "0,30 * * * * *", "0-1 * * * * *"})
  void isOfSecondsWhereEachMinuteHasSeveral(String expression) {
    assertThat(CronTimes.parse(expression).isOfSeconds()).isTrue();
  }

  @ParameterizedTest
  @ValueSource(
      strings = {"0 * * * * *", "* * * * *", "*/59 5 * * * *", "*/5 0 * * * *", "*/5 * * * * MON"})
  void isNotOfSecondsWhereAMinuteHasOneOrNone(String expression) {
    assertThat(CronTimes.parse(expression).isOfSeconds()).isFalse();
  }

  static Stream<Long> seeds() {
    return Stream.of(1L, 2L, 3L, 4L);
  }

  /** By going through every second up to it. */
  @ParameterizedTest
  @MethodSource("seeds")
  void noMatchingTimeIsLeftOut(long seed) {
    Random random = new Random(seed);
    for (int i = 0; i < 250; i++) {
      String expression = new RandomCron(random).any();
      CronTimes times = CronTimes.parse(expression);
      CronMatcher matcher = new CronMatcher(expression);
      LocalDateTime after =
          LocalDateTime.of(2026, 1, 1, 0, 0).plusSeconds(random.nextInt(31_536_000));
      LocalDateTime next = times.next(after).orElseThrow();

      assertThat(matcher.matches(next)).as("%s after %s", expression, after).isTrue();
      LocalDateTime until = next.isBefore(after.plusHours(6)) ? next : after.plusHours(6);
      for (LocalDateTime time = after.plusSeconds(1);
          time.isBefore(until);
          time = time.plusSeconds(1)) {
        assertThat(matcher.matches(time)).as("%s at %s", expression, time).isFalse();
      }
    }
  }
}
