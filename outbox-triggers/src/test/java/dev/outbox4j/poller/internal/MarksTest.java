package dev.outbox4j.poller.internal;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.poller.HeldBack;
import java.time.Duration;
import java.time.Instant;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;

/** Up to which cursor all rows are there, by what was read of the open transactions. */
class MarksTest {
  private static final Instant START = Instant.parse("2026-01-01T00:00:00Z");
  private static final SourceServer SERVER = new SourceServer(false, START.minusSeconds(99));
  private static final Duration MARGIN = Duration.ofMillis(500);

  private final Marks marks = new Marks(SERVER);

  private static Instant at(int millis) {
    return START.plusMillis(millis);
  }

  private @Nullable String bound() {
    Bound bound = marks.bound();
    return bound == null ? null : bound.cursor();
  }

  private static OpenTransaction prepared(String id) {
    return new OpenTransaction(id, 0, null, START);
  }

  private static Reading reading(
      int millis, String cursor, List<Session> sessions, OpenTransaction... prepared) {
    return new Reading(SERVER, at(millis), cursor, sessions, List.of(prepared));
  }

  /** Numbers of a sequence. */
  @Nested
  class Numbers {
    private static Session open(String id) {
      return new Session(7, id, "app", START.minusSeconds(5), null, false);
    }

    private static List<Session> all(String... ids) {
      return Arrays.stream(ids).map(Numbers::open).toList();
    }

    /** Looks so many milliseconds after the start. */
    private void look(
        int millis, String cursor, List<Session> sessions, OpenTransaction... prepared) {
      Reading reading = reading(millis, cursor, sessions, prepared);
      marks.look(reading, new Mark.OfNumbers(reading.at(), cursor));
    }

    @Test
    void areSafeAtOnceWhenNothingIsOpen() {
      look(0, "10", List.of(new Session(7, null, "app", null, null, true)));
      assertThat(bound()).isEqualTo("10");
      assertThat(marks.isHeldBack()).isFalse();
    }

    @Test
    void waitForWhatWasOpenAndForNothingElse() {
      look(0, "10", all("1/1"));
      assertThat(bound()).isNull();
      assertThat(marks.isHeldBack()).isTrue();

      look(100, "20", all("1/1", "2/1"));
      assertThat(bound()).isNull();

      look(200, "30", all("2/1", "3/1"));
      assertThat(bound()).isEqualTo("10");

      look(300, "40", all("3/1"));
      assertThat(bound()).isEqualTo("20");

      look(400, "50", List.of());
      assertThat(bound()).isEqualTo("50");
    }

    @Test
    void waitForAPreparedOneThatMayHaveBeenOpen() {
      look(0, "10", all("1/1"));
      look(100, "20", List.of(), prepared("gid (5)"));
      assertThat(bound()).isNull();

      look(200, "30", List.of(), prepared("later (6)"));
      assertThat(bound()).isEqualTo("20"); // the marks at 10 and 20 waited for the first alone

      look(300, "40", List.of());
      assertThat(bound()).isEqualTo("40");
    }

    @Test
    void tellWhatTheOldestMarkWaitsFor() {
      look(0, "10", List.of(new Session(42, "1/1", "import", START.minusSeconds(60), null, false)));
      look(1000, "20", all("1/1"));
      assertThat(marks.heldBack(START.plusSeconds(3)))
          .hasValueSatisfying(
              held -> {
                assertThat(held.delay()).isEqualTo(Duration.ofSeconds(3));
                assertThat(held.process()).hasValue(42);
                assertThat(held.application()).hasValue("import");
                assertThat(held.since()).isEqualTo(START);
              })
          .map(HeldBack::toString)
          .hasValueSatisfying(
              words ->
                  assertThat(words)
                      .contains("transaction 1/1 of process 42 (import)", "2025-12-31T23:59:00Z"));
    }

    @Test
    void keepABoundedNumberOfMarksAndDelayByTheirDistance() {
      List<Session> first = all("1/1");
      for (int i = 0; i < 1_000; i++) {
        look(i * 100, String.valueOf(i), first);
      }
      look(100_000, "1000", all("2/1"));
      assertThat(bound()).isEqualTo("999"); // the newest is never thinned out
    }

    @Test
    void haveNoMarkWhereNoRowIs() {
      marks.look(reading(0, "none", all("1/1")), null);
      assertThat(bound()).isNull();
      assertThat(marks.isHeldBack()).isFalse();
    }
  }

  /** Times of the server's clock. */
  @Nested
  class Times {
    /** Looks so many milliseconds after the start; the mark is a margin before. */
    private void look(int millis, Session... sessions) {
      Instant before = at(millis).minus(MARGIN);
      marks.look(
          reading(millis, "any", List.of(sessions)),
          new Mark.OfTimes(at(millis), before, String.valueOf(millis), true, before, MARGIN));
    }

    private static Session visible(String transaction, int began) {
      return new Session(7, transaction, "app", at(began), at(began), false);
    }

    private static Session hidden(@Nullable String transaction) {
      return new Session(8, transaction, "app", null, null, true);
    }

    @Test
    void doNotWaitForWhatBeganLater() {
      look(1000, visible("1/1", 501));
      assertThat(bound()).isEqualTo("1000");
    }

    @Test
    void waitForEachTransactionOfAMessageThatCameBefore() {
      look(1000, visible("1/1", 500));
      assertThat(bound()).isNull();
      look(1100, visible("1/2", 500));
      assertThat(bound()).isNull();
      look(1200, new Session(7, null, "app", null, at(500), false)); // between two
      assertThat(bound()).isNull();
      assertThat(marks.isHeldBack()).isFalse();
      assertThat(marks.next()).isPresent();
      look(1300, visible("1/3", 500));
      assertThat(bound()).isNull();
      look(1400, visible("1/4", 1390)); // of the next message
      assertThat(bound()).isEqualTo("1400");
    }

    @Test
    void waitForATransactionWhoseBeginIsNotKnownYet() {
      look(1000, new Session(7, "1/1", "app", null, at(400), false));
      assertThat(bound()).isNull();
      assertThat(marks.isHeldBack()).isTrue();
    }

    @Test
    void waitForAHiddenSessionUntilItWasTwiceSeenWithoutATransaction() {
      look(1000, hidden("1/1"));
      look(1100, hidden("1/2"));
      look(1200, hidden(null));
      assertThat(bound()).isNull();
      look(1300, hidden("1/3"));
      assertThat(bound()).isNull();
      assertThat(marks.isHeldBack()).isTrue();
      look(1500, hidden(null));
      assertThat(bound()).isNull(); // it may be the same moment between two transactions
      assertThat(marks.isHeldBack()).isFalse();
      assertThat(marks.next()).hasValue(at(1700));
      look(1700, hidden(null));
      assertThat(bound())
          .isEqualTo("1200"); // the later ones saw it without one for the first time at 1500
    }

    @Test
    void waitAMarginMoreForHiddenSessionsWithoutATransaction() {
      look(1000, hidden(null));
      assertThat(bound()).isNull();
      assertThat(marks.isHeldBack()).isFalse();
      assertThat(marks.next()).hasValue(at(1500));
      look(1500, hidden(null));
      assertThat(bound()).isEqualTo("1000");
    }

    @Test
    void doNotWaitForHiddenSessionsThatEndOrComeLater() {
      look(1000, hidden("1/1"));
      look(1100);
      assertThat(bound()).isEqualTo("1100");
      look(1200, hidden("1/1"));
      look(1300, new Session(9, "9/1", "app", null, null, true));
      assertThat(bound()).isEqualTo("1200");
    }
  }

  /** Values that ascend by another rule. */
  @Nested
  class Ascending {
    private void look(int millis, String greatest, Session... sessions) {
      marks.look(
          reading(millis, greatest, List.of(sessions)),
          new Mark.OfTimes(at(millis), at(millis), greatest, false, at(millis), MARGIN));
    }

    private static Session visible(int began) {
      return new Session(7, "1/1", "app", at(began), null, false);
    }

    @Test
    void areSafeAMarginLaterIfNothingIsOpenByThen() {
      look(0, "10");
      assertThat(bound()).isNull();
      assertThat(marks.isHeldBack()).isFalse();
      assertThat(marks.next()).hasValue(at(500));
      look(499, "20");
      assertThat(bound()).isNull();
      look(500, "30");
      assertThat(bound()).isEqualTo("10");
    }

    @Test
    void waitForWhoeverTookItsTimeBeforeAndIsSeenLater() {
      look(0, "10"); // a process has taken its time, and cannot be seen
      look(100, "20", visible(0));
      look(500, "30", visible(0));
      assertThat(bound()).isNull();
      assertThat(marks.isHeldBack()).isTrue();
      look(600, "40", visible(550)); // began behind both
      assertThat(bound()).isEqualTo("20");
    }
  }
}
