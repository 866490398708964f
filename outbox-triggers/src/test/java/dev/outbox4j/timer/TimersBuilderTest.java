package dev.outbox4j.timer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import java.time.Duration;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.postgresql.ds.PGSimpleDataSource;

/** What cannot be built is refused before anything is asked of a server; there is none here. */
class TimersBuilderTest {
  private static final Timer DAILY = Timer.of("daily", Schedule.every(Duration.ofDays(1)));
  private static final PostgresOutbox OUTBOX =
      PostgresOutbox.on(new PGSimpleDataSource(), OutboxTable.named("outbox"));

  private static Timers.Builder builder() {
    return Timers.builder(OUTBOX, "shop");
  }

  @Test
  void noTimerIsRefused() {
    assertThatThrownBy(() -> builder().build())
        .isInstanceOf(IllegalStateException.class)
        .hasMessage("there is no timer; add one by on(...)");
  }

  @Test
  void twoTimersOfANameAreRefused() {
    Timer other = Timer.of("daily", Schedule.every(Duration.ofHours(1)));

    assertThatThrownBy(() -> builder().on(DAILY, run -> {}).on(other, run -> {}))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("there are two timers of the name 'daily'; name each by what it does");
    assertThatThrownBy(() -> builder().on(DAILY, run -> {}).on(DAILY, (run, connection) -> {}))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("there are two timers of the name 'daily'; name each by what it does");
  }

  /** As it is told: in one line. */
  @ParameterizedTest
  @CsvSource({"'', ''", "' ', ' '", "'\t', '?'", "'v1\n', 'v1?'", "'v\u00011', 'v?1'"})
  void aDeploymentThatIsBlankOrHasControlCharactersIsRefused(String deployment, String told) {
    assertThatThrownBy(() -> builder().deployment(deployment))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage(
            "deployment '%s' is blank or has control characters; name a version or a build", told);
  }

  @Test
  void aDeploymentMayHave200BytesAndNoMore() {
    String longest = "ä".repeat(100);

    assertThat(builder().on(DAILY, run -> {}).deployment(longest).build()).isNotNull();
    assertThatThrownBy(() -> builder().deployment(longest + "x"))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("deployment '%sx' has 201 bytes; it may have 200, so shorten it", longest);
  }

  /** What people do to timers, with a text of theirs. */
  private interface Told {
    void by(String text);
  }

  static Stream<Arguments> textsOfPeople() {
    TimerControl control = TimerControl.of(OUTBOX, "shop");
    Told by = text -> control.pause("daily", text, "why");
    Told reason = text -> control.pause("daily", "ann", text);
    Told request = text -> control.trigger("daily", text);
    return Stream.of(
        Arguments.of("by", by), Arguments.of("reason", reason), Arguments.of("request", request));
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("textsOfPeople")
  void whatPeopleSayIsRefusedIfItIsBlankHasANulOrIsTooLong(String what, Told told) {
    for (String blank : List.of("", " ", "a\u0000b")) {
      assertThatThrownBy(() -> told.by(blank))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessage(
              "%s '%s' is blank or has a NUL; say it in words", what, blank.replace('\u0000', '?'));
    }
    assertThatThrownBy(() -> told.by("ä".repeat(1_000) + "x"))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage(what + " has 2001 bytes; it may have 2000, so shorten it");
  }

  @Test
  void aRunOnStartupNeedsADeployment() {
    Timers.Builder builder = builder().on(DAILY.runOnStartup(), run -> {});

    assertThatThrownBy(builder::build)
        .isInstanceOf(IllegalStateException.class)
        .hasMessage(
            "timer 'daily' runs on startup; name the deployment(...), or each node would ask for a"
                + " run whenever it starts");
    assertThat(builder.deployment("v1").build()).isNotNull();
  }

  static Stream<Arguments> namesOfQueuesThatAreRefused() {
    return Stream.of(
        Arguments.of("", "is blank; give it a name"),
        Arguments.of(" ", "is blank; give it a name"),
        Arguments.of("a\u0000", "has a NUL character at position 1"),
        Arguments.of("a\ud800", "has half of a surrogate pair at position 1"),
        Arguments.of("x".repeat(256), "is 256 bytes long; at most 255 are allowed"));
  }

  @ParameterizedTest(name = "{1}")
  @MethodSource("namesOfQueuesThatAreRefused")
  void aQueueThatCannotBeIsRefused(String queue, String rule) {
    assertThatThrownBy(() -> builder().queue(queue))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageStartingWith("queue " + rule);
  }

  @ParameterizedTest(name = "{1}")
  @MethodSource("namesOfQueuesThatAreRefused")
  void anApplicationThatNoQueueCanBeNamedAfterIsRefused(String application, String rule) {
    assertThatThrownBy(() -> Timers.builder(OUTBOX, application))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining(rule);
  }

  @Test
  void anApplicationMayHave200BytesAndNoMore() {
    String longest = "ä".repeat(100);

    assertThat(Timers.builder(OUTBOX, longest).on(DAILY, run -> {}).build()).isNotNull();
    assertThatThrownBy(() -> Timers.builder(OUTBOX, longest + "x"))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("application '" + longest + "x' has 201 bytes; it may have 200, so shorten it");
  }

  @ParameterizedTest(name = "{1}")
  @MethodSource("namesOfQueuesThatAreRefused")
  void anApplicationThatCannotBeCannotBeControlledEither(String application, String rule) {
    assertThatThrownBy(() -> TimerControl.of(OUTBOX, application))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining(rule);
  }
}
