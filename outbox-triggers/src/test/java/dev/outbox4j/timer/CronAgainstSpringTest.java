package dev.outbox4j.timer;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Instant;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.scheduling.support.CronExpression;

/** Spring's cron, which was written by others, in the dialect that both have in common. */
class CronAgainstSpringTest {
  private static final int COMPARISONS = 10_000;

  @Test
  void bothHaveTheSameInstants() {
    Random random = new Random(20_261_124);
    for (int i = 0; i < COMPARISONS; i++) {
      String expression = common(random);
      Instant after =
          Instant.parse("2020-01-01T00:00:00Z").plusSeconds(random.nextInt(400_000_000));

      assertThat(Schedule.cron(expression).next(after))
          .as("%s after %s", expression, after)
          .contains(ofSpring(expression, after));
    }
  }

  /** But for what is different by the tests below. */
  private static String common(Random random) {
    while (true) {
      String expression = new RandomCron(random).any().replaceAll("\\b(7|SUN)-\\1(/\\d+)?", "$1");
      String weekday = expression.substring(expression.lastIndexOf(' ') + 1);
      if (!weekday.contains("*/") && !weekday.contains("SUN/")) {
        return expression;
      }
    }
  }

  /** A range that begins with 7 is every day there. */
  @Test
  void aRangeFromSundayToSundayDiffers() {
    Instant sunday = Instant.parse("2026-11-29T00:00:00Z");

    assertThat(Schedule.cron("0 0 0 * * 7-7").next(sunday))
        .contains(Instant.parse("2026-12-06T00:00:00Z"));
    assertThat(ofSpring("0 0 0 * * 7-7", sunday)).isEqualTo(Instant.parse("2026-11-30T00:00:00Z"));
    assertThat(Schedule.cron("0 0 0 * * SUN-SUN").next(sunday))
        .contains(Instant.parse("2026-12-06T00:00:00Z"));
    assertThat(ofSpring("0 0 0 * * SUN-SUN", sunday))
        .isEqualTo(Instant.parse("2026-11-30T00:00:00Z"));
  }

  /** Steps count from Sunday as 0 here, and from Monday as 1 there. */
  @ParameterizedTest
  @CsvSource({
    "0 0 0 * * */2, 2026-11-29T00:00:00Z, 2026-12-01T00:00:00Z, 2026-11-30T00:00:00Z",
    "0 0 0 * * */3, 2026-11-29T00:00:00Z, 2026-12-02T00:00:00Z, 2026-11-30T00:00:00Z",
  })
  void aStepInTheWeekdayDiffers(String expression, Instant after, Instant here, Instant there) {
    assertThat(Schedule.cron(expression).next(after)).contains(here);
    assertThat(ofSpring(expression, after)).isEqualTo(there);
  }

  /** It is the first day of a week here, and the last one there. */
  @Test
  void stepsFromSundayByItsNameDiffer() {
    Instant sunday = Instant.parse("2026-11-29T00:00:00Z");

    assertThat(Schedule.cron("0 0 0 * * SUN/2").next(sunday))
        .contains(Instant.parse("2026-12-01T00:00:00Z"));
    assertThat(ofSpring("0 0 0 * * SUN/2", sunday))
        .isEqualTo(Instant.parse("2026-12-06T00:00:00Z"));
  }

  private static Instant ofSpring(String expression, Instant after) {
    ZonedDateTime next = CronExpression.parse(expression).next(after.atZone(ZoneOffset.UTC));
    return next.toInstant();
  }
}
