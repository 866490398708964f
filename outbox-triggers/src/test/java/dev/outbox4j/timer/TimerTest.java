package dev.outbox4j.timer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import java.time.Instant;
import java.time.LocalTime;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

class TimerTest {
  private static final Schedule DAILY = Schedule.every(Duration.ofDays(1));
  private static final Duration A_CENTURY = Duration.ofDays(36_525);
  private static final Duration TOO_LONG = A_CENTURY.plusNanos(1);
  private static final Duration BELOW_ZERO = Duration.ofNanos(-1);
  private static final Instant NEW_YEAR = Instant.parse("2027-01-01T00:00:00Z");

  /** With everything that a preset may change set to something else. */
  private static final Timer CHANGED =
      Timer.of("t", DAILY)
          .catchUp(CatchUp.NONE)
          .catchUpWindow(Duration.ofHours(6))
          .onTime(Duration.ofSeconds(5))
          .overlap(OverlapPolicy.CANCEL_OTHER)
          .jitter(Duration.ofSeconds(7))
          .onChange(OnChange.KEEP)
          .runOnStartup()
          .retryUntilNext()
          .pauseAfterFailures(3)
          .limitedTo(9)
          .startingAt(NEW_YEAR)
          .endingAt(NEW_YEAR.plusSeconds(1))
          .alertWhenMissedFor(Duration.ofMinutes(2))
          .alertWithoutSuccessFor(Duration.ofMinutes(3))
          .alertWhenRunningFor(Duration.ofMinutes(4));

  static Stream<Arguments> namesThatAreRefused() {
    String isBlank = "is blank or has control characters; name it by what it does";
    return Stream.of(
        Arguments.of("", isBlank),
        Arguments.of(" \t", isBlank),
        Arguments.of("a\nb", isBlank),
        Arguments.of("a\u0000b", isBlank),
        Arguments.of("a\u007fb", isBlank),
        Arguments.of("a\u0085b", isBlank),
        Arguments.of("x".repeat(201), "has 201 bytes; it may have 200, so shorten it"),
        Arguments.of("ä".repeat(101), "has 202 bytes; it may have 200, so shorten it"));
  }

  @ParameterizedTest(name = "{index}") // reports cannot have such characters
  @MethodSource("namesThatAreRefused")
  void aNameThatIsNotAllowedIsRefused(String name, String rule) {
    assertThatThrownBy(() -> Timer.of(name, DAILY))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("timer name '" + name + "' " + rule);
  }

  @Test
  void aNameMayHaveAsManyBytesAsAreAllowed() {
    String longest = "ä".repeat(Timer.MAX_NAME_BYTES / 2);

    assertThat(Timer.of(longest, DAILY).name()).isEqualTo(longest);
  }

  private static Arguments refused(String message, UnaryOperator<Timer> setting) {
    return Arguments.of(message, setting);
  }

  static Stream<Arguments> settingsThatAreRefused() {
    String window = "; it must be from 10 s to 100 years";
    String fromZero = "; it must be from zero to 100 years";
    String aboveZero = "; it must be above zero, up to 100 years";
    String atLeastOne = "; it must be 1 or more";
    Instant later = NEW_YEAR.plusNanos(1);
    return Stream.of(
        refused(
            "catch-up window is PT9.999999999S" + window,
            timer -> timer.catchUpWindow(Duration.ofSeconds(10).minusNanos(1))),
        refused("catch-up window is " + TOO_LONG + window, timer -> timer.catchUpWindow(TOO_LONG)),
        refused("on-time threshold is " + BELOW_ZERO + fromZero, timer -> timer.onTime(BELOW_ZERO)),
        refused("on-time threshold is " + TOO_LONG + fromZero, timer -> timer.onTime(TOO_LONG)),
        refused("jitter is " + BELOW_ZERO + fromZero, timer -> timer.jitter(BELOW_ZERO)),
        refused("jitter is " + TOO_LONG + fromZero, timer -> timer.jitter(TOO_LONG)),
        refused("failures is 0" + atLeastOne, timer -> timer.pauseAfterFailures(0)),
        refused("failures is -1" + atLeastOne, timer -> timer.pauseAfterFailures(-1)),
        refused("runs is 0" + atLeastOne, timer -> timer.limitedTo(0)),
        refused("runs is -1" + atLeastOne, timer -> timer.limitedTo(-1)),
        refused("grace is " + BELOW_ZERO + fromZero, timer -> timer.alertWhenMissedFor(BELOW_ZERO)),
        refused("grace is " + TOO_LONG + fromZero, timer -> timer.alertWhenMissedFor(TOO_LONG)),
        refused("time is PT0S" + aboveZero, timer -> timer.alertWithoutSuccessFor(Duration.ZERO)),
        refused("time is " + TOO_LONG + aboveZero, timer -> timer.alertWithoutSuccessFor(TOO_LONG)),
        refused("time is PT0S" + aboveZero, timer -> timer.alertWhenRunningFor(Duration.ZERO)),
        refused("time is " + TOO_LONG + aboveZero, timer -> timer.alertWhenRunningFor(TOO_LONG)),
        refused(
            startAndEnd(NEW_YEAR, NEW_YEAR),
            timer -> timer.startingAt(NEW_YEAR).endingAt(NEW_YEAR)),
        refused(startAndEnd(later, NEW_YEAR), timer -> timer.startingAt(later).endingAt(NEW_YEAR)),
        refused(startAndEnd(later, NEW_YEAR), timer -> timer.endingAt(NEW_YEAR).startingAt(later)));
  }

  private static String startAndEnd(Instant start, Instant end) {
    return "start is " + start + " and end is " + end + "; the start must be before the end";
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("settingsThatAreRefused")
  void aSettingOutOfRangeIsRefusedWithItsValueAndTheRule(
      String message, UnaryOperator<Timer> setting) {
    Timer timer = Timer.of("t", DAILY);

    assertThatThrownBy(() -> setting.apply(timer))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage(message);
  }

  @Test
  void theBoundsThemselvesAreAllowed() {
    Duration least = Duration.ofNanos(1);
    Timer lowest =
        Timer.of("t", DAILY)
            .catchUpWindow(Duration.ofSeconds(10))
            .onTime(Duration.ZERO)
            .jitter(Duration.ZERO)
            .pauseAfterFailures(1)
            .limitedTo(1)
            .alertWhenMissedFor(Duration.ZERO)
            .alertWithoutSuccessFor(least)
            .alertWhenRunningFor(least)
            .startingAt(NEW_YEAR)
            .endingAt(NEW_YEAR.plusNanos(1));
    Timer highest =
        Timer.of("t", DAILY)
            .catchUpWindow(A_CENTURY)
            .onTime(A_CENTURY)
            .jitter(A_CENTURY)
            .pauseAfterFailures(Integer.MAX_VALUE)
            .limitedTo(Long.MAX_VALUE)
            .alertWhenMissedFor(A_CENTURY)
            .alertWithoutSuccessFor(A_CENTURY)
            .alertWhenRunningFor(A_CENTURY);

    assertThat(lowest.catchUpWindow()).isEqualTo(Duration.ofSeconds(10));
    assertThat(lowest.pauseAfterFailures()).hasValue(1);
    assertThat(lowest.limit()).hasValue(1);
    assertThat(lowest.missedGrace()).contains(Duration.ZERO);
    assertThat(lowest.successWithin()).contains(least);
    assertThat(lowest.runningLimit()).isEqualTo(least);
    assertThat(lowest.start()).contains(NEW_YEAR);
    assertThat(lowest.end()).contains(NEW_YEAR.plusNanos(1));
    assertThat(highest.catchUpWindow()).isEqualTo(A_CENTURY);
    assertThat(highest.onTime()).isEqualTo(A_CENTURY);
    assertThat(highest.jitter()).isEqualTo(A_CENTURY);
    assertThat(highest.pauseAfterFailures()).hasValue(Integer.MAX_VALUE);
    assertThat(highest.limit()).hasValue(Long.MAX_VALUE);
  }

  /** All settings by their names. */
  private static Map<String, Object> settings(Timer timer) {
    Map<String, Object> settings = new LinkedHashMap<>();
    settings.put("catchUp", timer.catchUp());
    settings.put("catchUpWindow", timer.catchUpWindow());
    settings.put("onTime", timer.onTime());
    settings.put("overlap", timer.overlap());
    settings.put("jitter", timer.jitter());
    settings.put("onChange", timer.onChange());
    settings.put("runsOnStartup", timer.runsOnStartup());
    settings.put("keepsState", timer.keepsState());
    settings.put("retries", timer.retries());
    settings.put("retriesUntilNext", timer.retriesUntilNext());
    settings.put("pauseAfterFailures", timer.pauseAfterFailures());
    settings.put("limit", timer.limit());
    settings.put("start", timer.start());
    settings.put("end", timer.end());
    settings.put("missedGrace", timer.missedGrace());
    settings.put("successWithin", timer.successWithin());
    settings.put("runningLimit", timer.runningLimit());
    return settings;
  }

  @Test
  void theDefaults() {
    Map<String, Object> expected = new LinkedHashMap<>();
    expected.put("catchUp", CatchUp.ONE);
    expected.put("catchUpWindow", Duration.ofDays(365));
    expected.put("onTime", Duration.ofSeconds(60));
    expected.put("overlap", OverlapPolicy.BUFFER_ONE);
    expected.put("jitter", Duration.ZERO);
    expected.put("onChange", OnChange.RESET);
    expected.put("runsOnStartup", false);
    expected.put("keepsState", true);
    expected.put("retries", true);
    expected.put("retriesUntilNext", false);
    expected.put("pauseAfterFailures", OptionalInt.empty());
    expected.put("limit", OptionalLong.empty());
    expected.put("start", Optional.empty());
    expected.put("end", Optional.empty());
    expected.put("missedGrace", Optional.empty());
    expected.put("successWithin", Optional.empty());
    expected.put("runningLimit", Duration.ofHours(1));

    assertThat(settings(Timer.of("t", DAILY))).isEqualTo(expected);
  }

  static Stream<Arguments> schedulesAndWhetherStateIsKept() {
    return Stream.of(
        Arguments.of(Schedule.every(Duration.ofMillis(1)), false),
        Arguments.of(Schedule.every(Duration.ofSeconds(60).minusNanos(1_000)), false),
        Arguments.of(Schedule.every(Duration.ofSeconds(60)), true),
        Arguments.of(Schedule.every(Duration.ofDays(40)), true),
        Arguments.of(Schedule.cron("* * * * * *"), false),
        Arguments.of(Schedule.cron("0/30 * * * * *"), false),
        Arguments.of(Schedule.cron("59 * * * * *"), true),
        Arguments.of(Schedule.cron("* * * * *"), true),
        Arguments.of(Schedule.cron("*/5 0 * * * *"), true),
        Arguments.of(Schedule.cron("*/5 * * * * MON"), true),
        Arguments.of(Schedule.daily(LocalTime.NOON, LocalTime.NOON.plusSeconds(1)), true));
  }

  @ParameterizedTest
  @MethodSource("schedulesAndWhetherStateIsKept")
  void stateIsKeptFromAMinuteOnUnlessItIsSaid(Schedule schedule, boolean kept) {
    Timer timer = Timer.of("t", schedule);

    assertThat(timer.keepsState()).isEqualTo(kept);
    assertThat(timer.keepState(true).keepsState()).isTrue();
    assertThat(timer.keepState(false).keepsState()).isFalse();
  }

  @Test
  void withoutStateNothingIsCaughtUpWhateverThePolicy() {
    Timer timer = Timer.of("t", DAILY).catchUp(CatchUp.ALL).keepState(false);

    assertThat(timer.catchUp()).isEqualTo(CatchUp.NONE);
    assertThat(timer.keepState(true).catchUp()).isEqualTo(CatchUp.ALL);
  }

  @Test
  void aSettingChangesNoOtherDefinition() {
    Timer timer = Timer.of("t", DAILY);
    Map<String, Object> before = settings(timer);

    assertThat(settings(timer.overlap(OverlapPolicy.SKIP).limitedTo(2))).isNotEqualTo(before);
    assertThat(settings(timer)).isEqualTo(before);
  }

  @Test
  void asTimerTriggerSetsOneCatchUpOneWaitingRunAndNoRetriesAndNothingElse() {
    Map<String, Object> expected = settings(CHANGED);
    expected.put("catchUp", CatchUp.ONE);
    expected.put("overlap", OverlapPolicy.BUFFER_ONE);
    expected.put("retries", false);

    assertThat(settings(CHANGED.asTimerTrigger())).isEqualTo(expected);
  }

  @Test
  void withoutBackfillSetsNoCatchUpNoWaitingAndItsAlertsAndNothingElse() {
    Timer changed = CHANGED.catchUp(CatchUp.ALL);
    Map<String, Object> expected = settings(changed);
    expected.put("catchUp", CatchUp.NONE);
    expected.put("overlap", OverlapPolicy.SKIP);
    expected.put("missedGrace", Optional.of(Duration.ofHours(1)));
    expected.put("successWithin", Optional.of(Duration.ofHours(36)));

    assertThat(settings(changed.withoutBackfill())).isEqualTo(expected);
  }

  @Test
  void asTemporalSetsThatAllOfAYearIsCaughtUpAndNothingWaitsAndNothingElse() {
    Map<String, Object> expected = settings(CHANGED);
    expected.put("catchUp", CatchUp.ALL);
    expected.put("catchUpWindow", Duration.ofDays(365));
    expected.put("overlap", OverlapPolicy.SKIP);

    assertThat(settings(CHANGED.asTemporal())).isEqualTo(expected);
  }

  @Test
  void asQuartzSetsOneCatchUpAfterAMinuteRunsBesideOneAnotherAndNoRetriesAndNothingElse() {
    Map<String, Object> expected = settings(CHANGED);
    expected.put("catchUp", CatchUp.ONE);
    expected.put("onTime", Duration.ofSeconds(60));
    expected.put("overlap", OverlapPolicy.ALLOW_ALL);
    expected.put("retries", false);

    assertThat(settings(CHANGED.asQuartz())).isEqualTo(expected);
  }
}
