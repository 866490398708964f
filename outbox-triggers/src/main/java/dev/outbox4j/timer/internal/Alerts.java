package dev.outbox4j.timer.internal;

import dev.outbox4j.timer.Timer;
import dev.outbox4j.timer.TimerAlert;
import dev.outbox4j.timer.TimerAlert.Rule;
import dev.outbox4j.timer.TimerStatus;
import dev.outbox4j.timer.TimerStatus.Started;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.stream.Collectors;

/**
 * The rules by which somebody is told to look at a timer. They depend on what is on record alone.
 */
public final class Alerts {
  private static final Duration OVERDUE = Duration.ofMinutes(1);

  /** Of all timers together: schedules may be many, and slow. */
  private static final int MOST_COUNTED = 10_000;

  private static final long LONGEST_COUNTING = TimeUnit.SECONDS.toNanos(1);

  private final Timer timer;
  private final TimerStatus status;
  private final Counting counting;
  private final List<TimerAlert> found = new ArrayList<>();

  private Alerts(Timer timer, TimerStatus status, Counting counting) {
    this.timer = timer;
    this.status = status;
    this.counting = counting;
  }

  /** How many instants may still be counted, and until when. For one thread. */
  private static final class Counting {
    private final long begun = System.nanoTime();
    private int left = MOST_COUNTED;

    boolean mayGoOn() {
      return left-- > 0 && System.nanoTime() - begun < LONGEST_COUNTING;
    }
  }

  /**
   * Asks all rules.
   *
   * @param timers the definitions
   * @param onRecord what is on record
   * @param now the server's clock when that was read
   * @return what was found, in the order of the timers
   */
  public static List<TimerAlert> of(
      Collection<Timer> timers, List<TimerStatus> onRecord, Instant now) {
    Map<String, TimerStatus> byName =
        onRecord.stream().collect(Collectors.toMap(TimerStatus::name, Function.identity()));
    List<TimerAlert> all = new ArrayList<>();
    Counting counting = new Counting();
    for (Timer timer : timers) {
      TimerStatus status = byName.get(timer.name());
      if (status == null) {
        all.add(
            new TimerAlert(
                Rule.NOT_ON_RECORD, timer.name(), now, Duration.ZERO, Optional.empty(), 0));
      } else {
        all.addAll(new Alerts(timer, status, counting).ask());
      }
    }
    return all;
  }

  private List<TimerAlert> ask() {
    if (status.overdue().compareTo(OVERDUE) > 0) {
      status.due().ifPresent(due -> add(Rule.OVERDUE, due, Optional.empty(), overdue(due)));
    }
    status
        .oldestStarted()
        .filter(started -> isOver(started.at(), timer.runningLimit()))
        .ifPresent(started -> add(Rule.HUNG, started.at(), Optional.of(started), 0));
    try {
      timer.missedGrace().map(grace -> grace.plus(timer.jitter())).ifPresent(this::addMissed);
    } catch (RuntimeException e) { // the user's own schedule; the tick has logged it
      add(Rule.SCHEDULE_FAILS, status.asOf());
    }
    timer
        .successWithin()
        .filter(within -> status.sinceSuccess().compareTo(within) > 0)
        .ifPresent(
            within -> add(Rule.NO_SUCCESS, status.lastSuccess().orElse(status.registered())));
    return found;
  }

  /** Of another schedule others take care. */
  private boolean isOnRecord() {
    return Instants.description(timer).equals(status.schedule());
  }

  private int overdue(Instant due) {
    try {
      return isOnRecord() ? count(due, instant -> !instant.isAfter(status.asOf())) : 0;
    } catch (RuntimeException e) { // the user's own schedule; the tick has logged it
      return 0;
    }
  }

  private void addMissed(Duration grace) {
    missed(grace)
        .ifPresent(
            first ->
                add(
                    Rule.MISSED,
                    first,
                    Optional.empty(),
                    count(first, instant -> isOver(instant, grace))));
  }

  /** Counts the instants from one on; zero if there are too many alerts for that. */
  private int count(Instant first, Predicate<Instant> counts) {
    int count = 0;
    if (!counting.mayGoOn()) {
      return 0;
    }
    Optional<Instant> next = Instants.next(timer, first.minusNanos(1));
    long most = Math.min(TimerAlert.MOST_INSTANTS, status.runsLeft().orElse(Long.MAX_VALUE));
    while (count < most && next.isPresent() && counts.test(next.get())) {
      if (!counting.mayGoOn()) {
        return 0;
      }
      count++;
      next = Instants.next(timer, next.get());
    }
    return count;
  }

  /** The first instant that should have a run, whether or not one can be made of it still. */
  private Optional<Instant> missed(Duration grace) {
    boolean usedUp = status.runsLeft().orElse(1) == 0;
    if (status.pause().isPresent() || usedUp || !isOnRecord()) {
      return Optional.empty();
    }
    Instant base =
        status
            .lastInstant()
            .filter(instant -> instant.isAfter(status.countsFrom()))
            .orElse(status.countsFrom());
    return Instants.next(timer, base).filter(instant -> isOver(instant, grace));
  }

  private boolean isOver(Instant since, Duration most) {
    return Duration.between(since, status.asOf()).compareTo(most) > 0;
  }

  private void add(Rule rule, Instant since) {
    add(rule, since, Optional.empty(), 0);
  }

  private void add(Rule rule, Instant since, Optional<Started> run, int instants) {
    Duration between = Duration.between(since, status.asOf());
    Duration lasting = between.isNegative() ? Duration.ZERO : between;
    found.add(new TimerAlert(rule, timer.name(), since, lasting, run, instants));
  }
}
