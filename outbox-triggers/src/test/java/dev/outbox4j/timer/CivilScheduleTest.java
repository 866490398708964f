package dev.outbox4j.timer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.outbox4j.timer.CivilSchedule.Gap;
import dev.outbox4j.timer.CivilSchedule.Overlap;
import java.time.DayOfWeek;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.time.zone.ZoneOffsetTransition;
import java.time.zone.ZoneRules;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

class CivilScheduleTest {
  private static final ZoneId BERLIN = ZoneId.of("Europe/Berlin");

  /** The days on which clocks change in 2026, which are all Sundays. */
  private static final String SUNDAYS =
      """
      # zone              | times of day            | gap  | overlap | local day  | the instants of that day
      Europe/Berlin       | 01:30 02:15 03:30       | MOVE | FIRST   | 2026-03-29 | 01:30+01:00 03:15+02:00 03:30+02:00
      Europe/Berlin       | 01:30 02:15 03:30       | MOVE | BOTH    | 2026-03-29 | 01:30+01:00 03:15+02:00 03:30+02:00
      Europe/Berlin       | 01:30 02:15 03:30       | SKIP | FIRST   | 2026-03-29 | 01:30+01:00 03:30+02:00
      Europe/Berlin       | 01:30 02:15 03:30       | SKIP | BOTH    | 2026-03-29 | 01:30+01:00 03:30+02:00
      Europe/Berlin       | 02:15 03:15             | MOVE | FIRST   | 2026-03-29 | 03:15+02:00
      Europe/Berlin       | 02:00 02:59:59          | SKIP | FIRST   | 2026-03-29 | ''
      Europe/Berlin       | 01:30 02:00 02:30 03:00 | MOVE | FIRST   | 2026-10-25 | 01:30+02:00 02:00+02:00 02:30+02:00 03:00+01:00
      Europe/Berlin       | 01:30 02:00 02:30 03:00 | MOVE | BOTH    | 2026-10-25 | 01:30+02:00 02:00+02:00 02:30+02:00 02:00+01:00 02:30+01:00 03:00+01:00
      Europe/Berlin       | 01:30 02:00 02:30 03:00 | SKIP | FIRST   | 2026-10-25 | 01:30+02:00 02:00+02:00 02:30+02:00 03:00+01:00
      Europe/Berlin       | 01:30 02:00 02:30 03:00 | SKIP | BOTH    | 2026-10-25 | 01:30+02:00 02:00+02:00 02:30+02:00 02:00+01:00 02:30+01:00 03:00+01:00
      America/New_York    | 01:30 02:15 03:30       | MOVE | FIRST   | 2026-03-08 | 01:30-05:00 03:15-04:00 03:30-04:00
      America/New_York    | 01:30 02:15 03:30       | MOVE | BOTH    | 2026-03-08 | 01:30-05:00 03:15-04:00 03:30-04:00
      America/New_York    | 01:30 02:15 03:30       | SKIP | FIRST   | 2026-03-08 | 01:30-05:00 03:30-04:00
      America/New_York    | 01:30 02:15 03:30       | SKIP | BOTH    | 2026-03-08 | 01:30-05:00 03:30-04:00
      America/New_York    | 00:30 01:00 01:30 02:00 | MOVE | FIRST   | 2026-11-01 | 00:30-04:00 01:00-04:00 01:30-04:00 02:00-05:00
      America/New_York    | 00:30 01:00 01:30 02:00 | MOVE | BOTH    | 2026-11-01 | 00:30-04:00 01:00-04:00 01:30-04:00 01:00-05:00 01:30-05:00 02:00-05:00
      America/New_York    | 00:30 01:00 01:30 02:00 | SKIP | FIRST   | 2026-11-01 | 00:30-04:00 01:00-04:00 01:30-04:00 02:00-05:00
      America/New_York    | 00:30 01:00 01:30 02:00 | SKIP | BOTH    | 2026-11-01 | 00:30-04:00 01:00-04:00 01:30-04:00 01:00-05:00 01:30-05:00 02:00-05:00
      Australia/Lord_Howe | 01:30 02:15 03:00       | MOVE | FIRST   | 2026-10-04 | 01:30+10:30 02:45+11:00 03:00+11:00
      Australia/Lord_Howe | 01:30 02:15 03:00       | MOVE | BOTH    | 2026-10-04 | 01:30+10:30 02:45+11:00 03:00+11:00
      Australia/Lord_Howe | 01:30 02:15 03:00       | SKIP | FIRST   | 2026-10-04 | 01:30+10:30 03:00+11:00
      Australia/Lord_Howe | 01:30 02:15 03:00       | SKIP | BOTH    | 2026-10-04 | 01:30+10:30 03:00+11:00
      Australia/Lord_Howe | 01:15 01:30 01:45 02:00 | MOVE | FIRST   | 2026-04-05 | 01:15+11:00 01:30+11:00 01:45+11:00 02:00+10:30
      Australia/Lord_Howe | 01:15 01:30 01:45 02:00 | MOVE | BOTH    | 2026-04-05 | 01:15+11:00 01:30+11:00 01:45+11:00 01:30+10:30 01:45+10:30 02:00+10:30
      Australia/Lord_Howe | 01:15 01:30 01:45 02:00 | SKIP | FIRST   | 2026-04-05 | 01:15+11:00 01:30+11:00 01:45+11:00 02:00+10:30
      Australia/Lord_Howe | 01:15 01:30 01:45 02:00 | SKIP | BOTH    | 2026-04-05 | 01:15+11:00 01:30+11:00 01:45+11:00 01:30+10:30 01:45+10:30 02:00+10:30
      """;

  /**
   * The changes of 2026: Berlin goes from 02:00 to 03:00 on 29 March and from 03:00 to 02:00 on 25
   * October, New York from 02:00 to 03:00 on 8 March and from 02:00 to 01:00 on 1 November, Lord
   * Howe, by half an hour, from 02:00 to 01:30 on 5 April and from 02:00 to 02:30 on 4 October.
   */
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          # zone              | expression         | local day  | the instants of that day, in local time
          Europe/Berlin       | 0 30 2 * * *       | 2026-03-28 | 02:30+01:00
          Europe/Berlin       | 0 30 2 * * *       | 2026-03-29 | 03:30+02:00
          Europe/Berlin       | 0 0 2,3 * * *      | 2026-03-29 | 03:00+02:00
          Europe/Berlin       | 0 30 2,3 * * *     | 2026-03-29 | 03:30+02:00
          Europe/Berlin       | 0 0,30 2 * * *     | 2026-03-29 | 03:00+02:00 03:30+02:00
          Europe/Berlin       | 0 30 1-4 * * *     | 2026-03-29 | 01:30+01:00 03:30+02:00 04:30+02:00
          Europe/Berlin       | 0 0/30 1-3 * * *   | 2026-03-29 | 01:00+01:00 01:30+01:00 03:00+02:00 03:30+02:00
          Europe/Berlin       | 0 30 2 * * *       | 2026-10-25 | 02:30+02:00
          Europe/Berlin       | 0 0,30 2 * * *     | 2026-10-25 | 02:00+02:00 02:30+02:00
          Europe/Berlin       | 0 30 2,3 * * *     | 2026-10-25 | 02:30+02:00 03:30+01:00
          Europe/Berlin       | 0 30 1-3 * * *     | 2026-10-25 | 01:30+02:00 02:30+02:00 02:30+01:00 03:30+01:00
          Europe/Berlin       | 0 0/30 2 * * *     | 2026-10-25 | 02:00+02:00 02:30+02:00 02:00+01:00 02:30+01:00
          America/New_York    | 0 30 2 * * *       | 2026-03-08 | 03:30-04:00
          America/New_York    | 0 30 2,3 * * *     | 2026-03-08 | 03:30-04:00
          America/New_York    | 0 0/30 1-3 * * *   | 2026-03-08 | 01:00-05:00 01:30-05:00 03:00-04:00 03:30-04:00
          America/New_York    | 0 15 1 * * *       | 2026-11-01 | 01:15-04:00
          America/New_York    | 0 15 * 1 11 *      | 2026-11-01 | 00:15-04:00 01:15-04:00 01:15-05:00 02:15-05:00 03:15-05:00 04:15-05:00 05:15-05:00 06:15-05:00 07:15-05:00 08:15-05:00 09:15-05:00 10:15-05:00 11:15-05:00 12:15-05:00 13:15-05:00 14:15-05:00 15:15-05:00 16:15-05:00 17:15-05:00 18:15-05:00 19:15-05:00 20:15-05:00 21:15-05:00 22:15-05:00 23:15-05:00
          Australia/Lord_Howe | 0 15 2 * * *       | 2026-10-04 | 02:45+11:00
          Australia/Lord_Howe | 0 15,45 2 * * *    | 2026-10-04 | 02:45+11:00
          Australia/Lord_Howe | 0 0/15 2 * * *     | 2026-10-04 | 02:30+11:00 02:45+11:00
          Australia/Lord_Howe | 0 45 1 * * *       | 2026-04-05 | 01:45+11:00
          Australia/Lord_Howe | 0 0/15 1 * * *     | 2026-04-05 | 01:00+11:00 01:15+11:00 01:30+11:00 01:45+11:00 01:30+10:30 01:45+10:30
          Pacific/Apia        | 0 0 12 * * *       | 2011-12-31 | 12:00+14:00
          Pacific/Apia        | 0 0 12 30 12 *     | 2011-12-31 | 12:00+14:00
          UTC                 | 0 30 2 * * *       | 2026-03-29 | 02:30Z
          """)
  void theInstantsOfADayOnWhichClocksChange(
      ZoneId zone, String expression, String day, String expected) {
    assertThat(instantsOf(day, zone, Schedule.cron(expression).in(zone)))
        .isEqualTo(listed(expected));
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          # expression      | gap  | overlap | local day  | the instants of that day
          0 30 2 * * *      | SKIP | FIRST   | 2026-03-29 | ''
          0 30 1-4 * * *    | SKIP | FIRST   | 2026-03-29 | 01:30+01:00 03:30+02:00 04:30+02:00
          0 30 2,4 * * *    | SKIP | FIRST   | 2026-03-29 | 04:30+02:00
          0 30 2 * * *      | MOVE | BOTH    | 2026-10-25 | 02:30+02:00 02:30+01:00
          0 30 1-3 * * *    | MOVE | FIRST   | 2026-10-25 | 01:30+02:00 02:30+02:00 03:30+01:00
          0 0/30 2 * * *    | MOVE | FIRST   | 2026-10-25 | 02:00+02:00 02:30+02:00
          """)
  void aRuleOfItsOwnForGapAndOverlap(
      String expression, Gap gap, Overlap overlap, String day, String expected) {
    Schedule schedule = Schedule.cron(expression).in(BERLIN).gap(gap).overlap(overlap);

    assertThat(instantsOf(day, BERLIN, schedule)).isEqualTo(listed(expected));
  }

  @Test
  void timesOfDayAndOfWeekdaysAreMovedAndComeOnce() {
    Schedule daily = Schedule.daily(LocalTime.of(2, 30), LocalTime.of(3, 30)).in(BERLIN);
    Schedule weekly =
        Schedule.weekly(
                Map.of(
                    DayOfWeek.SUNDAY, List.of(LocalTime.of(2, 30), LocalTime.of(9, 0)),
                    DayOfWeek.MONDAY, List.of(LocalTime.of(8, 0))))
            .in(BERLIN);

    assertThat(instantsOf("2026-03-29", BERLIN, daily)).containsExactly("03:30+02:00");
    assertThat(instantsOf("2026-10-25", BERLIN, daily))
        .containsExactly("02:30+02:00", "03:30+01:00");
    assertThat(instantsOf("2026-03-29", BERLIN, weekly))
        .containsExactly("03:30+02:00", "09:00+02:00");
    assertThat(instantsOf("2026-10-25", BERLIN, weekly))
        .containsExactly("02:30+02:00", "09:00+01:00");
    assertThat(instantsOf("2026-10-26", BERLIN, weekly)).containsExactly("08:00+01:00");
    assertThat(instantsOf("2026-10-27", BERLIN, weekly)).isEmpty();
  }

  @ParameterizedTest
  @CsvSource(delimiter = '|', textBlock = SUNDAYS)
  void theTimesOfADayOnWhichClocksChange(
      ZoneId zone, String times, Gap gap, Overlap overlap, String day, String expected) {
    List<LocalTime> all = Stream.of(times.split(" ", -1)).map(LocalTime::parse).toList();
    LocalTime[] more = all.stream().skip(1).toArray(LocalTime[]::new);
    Schedule daily = Schedule.daily(all.get(0), more).in(zone).gap(gap).overlap(overlap);

    assertThat(instantsOf(day, zone, daily)).isEqualTo(listed(expected));
  }

  @ParameterizedTest
  @CsvSource(delimiter = '|', textBlock = SUNDAYS)
  void theTimesOfAWeekdayOnWhichClocksChange(
      ZoneId zone, String times, Gap gap, Overlap overlap, String day, String expected) {
    List<LocalTime> all = Stream.of(times.split(" ", -1)).map(LocalTime::parse).toList();
    Schedule weekly =
        Schedule.weekly(Map.of(DayOfWeek.SUNDAY, all, DayOfWeek.MONDAY, List.of(LocalTime.NOON)))
            .in(zone)
            .gap(gap)
            .overlap(overlap);
    LocalDate sunday = LocalDate.parse(day);

    assertThat(instantsOf(day, zone, weekly)).isEqualTo(listed(expected));
    assertThat(instantsOf(sunday.minusDays(1).toString(), zone, weekly)).isEmpty();
    assertThat(instantsOf(sunday.plusDays(1).toString(), zone, weekly))
        .singleElement()
        .asString()
        .startsWith("12:00");
    assertThat(instantsOf(sunday.plusDays(2).toString(), zone, weekly)).isEmpty();
  }

  @Test
  void timesOfDayAreMovedAndComeOnceUnlessItIsSaid() {
    CivilSchedule daily = Schedule.daily(LocalTime.of(2, 30)).in(BERLIN);
    CivilSchedule weekly = Schedule.weekly(DayOfWeek.SUNDAY, LocalTime.of(2, 30)).in(BERLIN);

    for (CivilSchedule schedule : List.of(daily, weekly)) {
      assertThat(schedule.description())
          .isEqualTo(schedule.gap(Gap.MOVE).overlap(Overlap.FIRST).description());
    }
  }

  /** Whatever clocks on walls show; of such a schedule nothing can be said about gap or overlap. */
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          # zone              | local day  | half-hours | those around the change, in local time
          Europe/Berlin       | 2026-03-29 | 46         | 01:00+01:00 01:30+01:00 03:00+02:00 03:30+02:00
          Europe/Berlin       | 2026-10-25 | 50         | 02:00+02:00 02:30+02:00 02:00+01:00 02:30+01:00 03:00+01:00
          America/New_York    | 2026-03-08 | 46         | 01:00-05:00 01:30-05:00 03:00-04:00 03:30-04:00
          America/New_York    | 2026-11-01 | 50         | 01:00-04:00 01:30-04:00 01:00-05:00 01:30-05:00 02:00-05:00
          Australia/Lord_Howe | 2026-10-04 | 47         | 01:00+10:30 01:30+10:30 02:30+11:00 03:00+11:00
          Australia/Lord_Howe | 2026-04-05 | 49         | 01:00+11:00 01:30+11:00 01:30+10:30 02:00+10:30
          """)
  void aConstantIntervalGoesOnWhereClocksChange(
      ZoneId zone, String day, int number, String around) {
    Schedule halfHourly = Schedule.every(Duration.ofMinutes(30));

    assertThat(instantsOf(day, zone, halfHourly)).hasSize(number).containsSequence(listed(around));
  }

  private static List<String> listed(String instants) {
    return instants.isEmpty() ? List.of() : List.of(instants.split(" ", -1));
  }

  @Test
  void anHourStaysAnHourForAConstantInterval() {
    Schedule hourly = Schedule.every(Duration.ofHours(1));

    assertThat(instantsOf("2026-03-29", BERLIN, hourly)).hasSize(23);
    assertThat(instantsOf("2026-10-25", BERLIN, hourly)).hasSize(25);
  }

  static Stream<Arguments> changes() {
    return Stream.of(
        Arguments.of("Europe/Berlin", "2026-03-29T01:00:00Z"),
        Arguments.of("Europe/Berlin", "2026-10-25T01:00:00Z"),
        Arguments.of("America/New_York", "2026-03-08T07:00:00Z"),
        Arguments.of("America/New_York", "2026-11-01T06:00:00Z"),
        Arguments.of("Australia/Lord_Howe", "2026-04-04T15:00:00Z"),
        Arguments.of("Australia/Lord_Howe", "2026-10-03T15:30:00Z"));
  }

  /** Against the rule applied to every minute around a change of the clocks. */
  @ParameterizedTest
  @MethodSource("changes")
  void noInstantIsLeftOutOrAdded(String zone, Instant change) {
    ZoneId in = ZoneId.of(zone);
    Instant from = change.minus(Duration.ofHours(6));
    Instant until = change.plus(Duration.ofHours(6));
    ZoneOffsetTransition transition = in.getRules().nextTransition(from);
    assertThat(transition.getInstant()).isEqualTo(change);
    Random random = new Random(42);
    for (int i = 0; i < 100; i++) {
      String expression = new RandomCron(random).ofTheNight();
      for (Gap gap : Gap.values()) {
        for (Overlap overlap : Overlap.values()) {
          Schedule schedule = Schedule.cron(expression).in(in).gap(gap).overlap(overlap);
          CronMatcher matcher = new CronMatcher(expression);

          List<Instant> expected = new ArrayList<>();
          for (Instant at = from.plusSeconds(60); at.isBefore(until); at = at.plusSeconds(60)) {
            if (isDue(matcher, in.getRules(), transition, at, gap, overlap)) {
              expected.add(at);
            }
          }
          assertThat(between(schedule, from, until))
              .as("%s, %s, %s", expression, gap, overlap)
              .isEqualTo(expected);
        }
      }
    }
  }

  private static boolean isDue(
      CronMatcher matcher,
      ZoneRules rules,
      ZoneOffsetTransition change,
      Instant at,
      Gap gap,
      Overlap overlap) {
    LocalDateTime shown = LocalDateTime.ofInstant(at, rules.getOffset(at));
    LocalDateTime asBefore = LocalDateTime.ofInstant(at, change.getOffsetBefore());
    boolean after = !at.isBefore(change.getInstant());
    boolean leftOut = after && change.isGap() && asBefore.isBefore(change.getDateTimeAfter());
    boolean secondCopy = after && change.isOverlap() && shown.isBefore(change.getDateTimeBefore());
    if (leftOut && gap == Gap.MOVE && matcher.matches(asBefore)) {
      return true;
    }
    return matcher.matches(shown) && !(secondCopy && overlap == Overlap.FIRST);
  }

  @Test
  void everyInstantIsStrictlyAfterTheOneBefore() {
    Schedule schedule = Schedule.cron("0 */7 * * * *").in(BERLIN);
    Instant at = Instant.parse("2026-03-28T23:00:00.123456789Z");

    for (int i = 0; i < 400; i++) {
      Instant next = schedule.next(at).orElseThrow();
      assertThat(next).isAfter(at);
      assertThat(schedule.next(next.minusNanos(1))).contains(next);
      at = next;
    }
  }

  @Test
  void thereIsNoInstantAfterTheLastOneThatCanBe() {
    assertThat(Schedule.daily(LocalTime.NOON).next(Instant.MAX)).isEmpty();
    assertThat(Schedule.daily(LocalTime.NOON).in(BERLIN).next(Instant.MAX)).isEmpty();
    assertThat(Schedule.every(Duration.ofDays(1)).next(Instant.MAX)).isEmpty();
  }

  @Test
  void theDescriptionTellsWhatTheInstantsDependOn() {
    assertThat(Schedule.cron("*/5 9 * * mon").in(BERLIN).description())
        .isEqualTo("cron 0 */5 9 * * MON in Europe/Berlin, gap MOVE, overlap BOTH");
    assertThat(Schedule.cron("0 9 1 1 mon").gap(Gap.SKIP).description())
        .isEqualTo("cron 0 0 9 1 1 MON in Z, gap SKIP, overlap FIRST");
    assertThat(
            Schedule.weekly(
                    Map.of(
                        DayOfWeek.MONDAY, List.of(LocalTime.of(9, 0), LocalTime.of(8, 0)),
                        DayOfWeek.FRIDAY, List.of()))
                .description())
        .isEqualTo("weekly MONDAY [08:00, 09:00] in Z, gap MOVE, overlap FIRST");
    assertThat(Schedule.every(Duration.ofDays(30)).description()).isEqualTo("every PT720H");
  }

  @Test
  void timesOfDayThatCannotBeAreRefused() {
    assertThatThrownBy(() -> Schedule.daily(LocalTime.of(9, 0, 0, 1)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage(
            "time of day is 09:00:00.000000001; it must be in whole seconds, so drop the fraction");
    assertThatThrownBy(() -> Schedule.weekly(Map.of(DayOfWeek.MONDAY, List.of())))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("no weekday has a time of day");
  }

  /** Local times with their offsets. */
  private static List<String> instantsOf(String day, ZoneId zone, Schedule schedule) {
    Instant from = LocalDateTime.parse(day + "T00:00:00").atZone(zone).toInstant();
    Instant until = LocalDateTime.parse(day + "T00:00:00").plusDays(1).atZone(zone).toInstant();
    return between(schedule, from.minusNanos(1), until).stream()
        .map(instant -> local(instant, zone))
        .toList();
  }

  private static String local(Instant instant, ZoneId zone) {
    ZoneOffset offset = zone.getRules().getOffset(instant);
    return instant.atOffset(offset).toOffsetTime().toString();
  }

  private static List<Instant> between(Schedule schedule, Instant from, Instant until) {
    List<Instant> found = new ArrayList<>();
    Instant at = schedule.next(from).orElseThrow();
    while (at.isBefore(until)) {
      found.add(at);
      at = schedule.next(at).orElseThrow();
    }
    return found;
  }
}
