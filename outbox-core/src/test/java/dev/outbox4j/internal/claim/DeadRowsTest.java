package dev.outbox4j.internal.claim;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.spi.ClaimRequest.Range;
import dev.outbox4j.spi.ClaimResult;
import dev.outbox4j.spi.ScanBound;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/**
 * How a scan gets along above dead rows, reckoned: each costs what the server takes to pass it, and
 * no clock runs but the one that is counted here.
 */
class DeadRowsTest {
  private static final Instant START = Instant.parse("2026-01-01T00:00:00Z");
  private static final long NANOS_A_ROW = 1_700;
  private static final long NANOS_A_CLAIM = 300_000;

  private final QueueScan scan = new QueueScan(Duration.ofSeconds(15));
  private final TreeMap<Instant, Long> deadUpTo = new TreeMap<>();
  private long now = 1;

  private @Nullable Instant late;

  @Test
  void aRowThatCommitsLateIsFoundInSecondsWhileOldDeadRowsAreLookedThrough() {
    deadRows(3_000_000, Duration.ofHours(2), Duration.ofHours(1));
    runUntil(20);
    for (int second = 20; second < 200; second += 10) {
      runUntil(second);
      assertThat(secondsUntilFound(Duration.ofSeconds(15))).isLessThan(3);
    }
  }

  @Test
  void aBacklogThatCommitsLateIsFoundInSecondsThoughItsRowsWereLookedAtBefore() {
    deadRows(3_000_000, Duration.ofHours(2), Duration.ofHours(1));
    runUntil(20);
    deadUpTo.put(START.plusSeconds(20), 4_000_000L); // as dear to pass as dead ones
    for (int second = 32; second < 70; second++) {
      runUntil(second);
      assertThat(secondsUntilFound(Duration.ofNanos(now).minusSeconds(20))).isLessThan(4);
    }
  }

  @Test
  void aRowOfAnyAgeIsFoundWithinTwoMinutes() {
    deadRows(3_000_000, Duration.ofHours(2), Duration.ofHours(1));
    runUntil(20);
    for (int minutes : new int[] {1, 5, 60, 90, 119, 600}) {
      assertThat(secondsUntilFound(Duration.ofMinutes(minutes))).isLessThan(120);
    }
  }

  @Test
  void aRowBelowAMillionDeadOnesOfOneInstantIsFoundWithinTwoMinutes() {
    deadRows(3_000_000, Duration.ofHours(2), Duration.ofHours(1));
    deadUpTo.put(START, 4_000_000L);
    runUntil(20);
    assertThat(secondsUntilFound(Duration.ofMillis(20_050))).isLessThan(120);
  }

  @Test
  void slicesTakeLessThanAQuarterOfTheTime() {
    deadRows(3_000_000, Duration.ofHours(2), Duration.ofSeconds(5));
    runUntil(20);
    long begun = now;
    long below = 0;
    while (now - begun < Duration.ofMinutes(5).toNanos()) {
      below += step();
    }
    assertThat((double) below / (now - begun)).isBetween(0.05, 0.25);
  }

  private void deadRows(int count, Duration oldest, Duration youngest) {
    Instant first = START.minus(oldest);
    long instants = oldest.minus(youngest).toMillis() / 20;
    for (long at = 0; at < instants; at++) {
      deadUpTo.put(first.plusMillis(20 * at), (at + 1) * count / instants);
    }
  }

  private long deadUpTo(Instant instant) {
    Map.Entry<Instant, Long> last = deadUpTo.floorEntry(instant);
    return last == null ? 0 : last.getValue();
  }

  private void runUntil(int second) {
    while (now < Duration.ofSeconds(second).toNanos()) {
      step();
    }
  }

  private double secondsUntilFound(Duration age) {
    late = server().minus(age);
    long begun = now;
    while (late != null) {
      step();
    }
    return (now - begun) / 1e9;
  }

  private Instant server() {
    return START.plusNanos(now);
  }

  /** One claim; returns what it cost below the bound, in nanoseconds. */
  private long step() {
    now += Math.min(scan.untilSweep(now), 10_000_000); // new messages come all the time
    QueueScan.Plan plan = scan.next(now, false);
    Range range = plan.range();
    Instant from = range.above() == null ? Instant.EPOCH : range.above().availableAt();
    Instant to = range.upTo() == null ? server() : range.upTo().availableAt();
    boolean found = late != null && late.isAfter(from) && !late.isAfter(to);
    long passed = deadUpTo(found ? late.minusNanos(1) : to) - deadUpTo(from);
    long cost = NANOS_A_CLAIM + NANOS_A_ROW * Math.max(0, passed);
    long limit = plan.timeLimit() == null ? Long.MAX_VALUE : plan.timeLimit().toNanos();
    long sentAt = now;
    now += Math.min(cost, limit);
    if (cost > limit) {
      assertThat(scan.timedOut(sentAt, now)).isTrue();
    } else {
      late = found ? null : late;
      scan.claimed(new ClaimResult(List.of(), false, null, server()), sentAt, now);
    }
    ScanBound upTo = range.upTo();
    return upTo == null ? 0 : now - sentAt;
  }
}
