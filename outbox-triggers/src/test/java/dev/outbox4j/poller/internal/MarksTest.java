package dev.outbox4j.poller.internal;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.poller.HeldBack;
import java.time.Duration;
import java.time.Instant;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** Up to which cursor all rows are there, by what was read of the open transactions. */
class MarksTest {
  private static final Instant START = Instant.parse("2026-01-01T00:00:00Z");

  private final Marks marks = new Marks();

  private static OpenTransaction open(String id) {
    return new OpenTransaction(id, 7, "app", START.minusSeconds(5));
  }

  private static OpenTransaction prepared(String id) {
    return new OpenTransaction(id, 0, null, START);
  }

  private static List<OpenTransaction> all(String... ids) {
    return Arrays.stream(ids).map(MarksTest::open).toList();
  }

  /** Looks so many milliseconds after the start. */
  private void look(int millis, String cursor, List<OpenTransaction> open) {
    look(millis, cursor, open, List.of());
  }

  private void look(
      int millis, String cursor, List<OpenTransaction> open, List<OpenTransaction> prepared) {
    Instant at = START.plusMillis(millis);
    Reading reading = new Reading(at, cursor, open, prepared);
    marks.look(reading, cursor, true, at, open);
  }

  private @Nullable String bound() {
    Bound bound = marks.bound();
    return bound == null ? null : bound.cursor();
  }

  @Test
  void isSafeAtOnceWhenNothingIsOpen() {
    look(0, "10", List.of());
    assertThat(bound()).isEqualTo("10");
    assertThat(marks.isHeldBack()).isFalse();
  }

  @Test
  void waitsForWhatWasOpenAndForNothingElse() {
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
  void waitsForAPreparedOneThatMayHaveBeenOpen() {
    look(0, "10", all("1/1"));
    look(100, "20", List.of(), List.of(prepared("gid (5)")));
    assertThat(bound()).isNull();

    look(200, "30", List.of(), List.of(prepared("later (6)")));
    assertThat(bound()).isEqualTo("20"); // the marks at 10 and 20 waited for the first alone

    look(300, "40", List.of(), List.of());
    assertThat(bound()).isEqualTo("40");
  }

  @Test
  void tellsWhatTheOldestMarkWaitsFor() {
    look(0, "10", List.of(new OpenTransaction("1/1", 42, "import", START.minusSeconds(60))));
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
  void keepsABoundedNumberOfMarksAndDelaysByTheirDistance() {
    List<OpenTransaction> first = all("1/1");
    for (int i = 0; i < 1_000; i++) {
      look(i * 100, String.valueOf(i), first);
    }
    look(100_000, "1000", all("2/1"));
    assertThat(bound()).isEqualTo("999"); // the newest is never thinned out
  }

  @Test
  void setsNoMarkWhereNoRowIs() {
    Reading reading = new Reading(START, null, all("1/1"), List.of());
    marks.look(reading, null, true, START, reading.open());
    assertThat(bound()).isNull();
    assertThat(marks.isHeldBack()).isFalse();
  }
}
