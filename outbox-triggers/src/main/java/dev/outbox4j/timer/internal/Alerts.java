package dev.outbox4j.timer.internal;

import dev.outbox4j.timer.Timer;
import dev.outbox4j.timer.TimerAlert;
import dev.outbox4j.timer.TimerAlert.Rule;
import dev.outbox4j.timer.TimerStatus;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import java.util.stream.Collectors;

/**
 * The rules by which somebody is told to look at a timer. They depend on what is on record alone.
 */
public final class Alerts {
  private static final Duration OVERDUE = Duration.ofMinutes(1);

  private final Timer timer;
  private final TimerStatus status;
  private final List<TimerAlert> found = new ArrayList<>();

  private Alerts(Timer timer, TimerStatus status) {
    this.timer = timer;
    this.status = status;
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
    for (Timer timer : timers) {
      TimerStatus status = byName.get(timer.name());
      if (status == null) {
        all.add(new TimerAlert(Rule.NOT_ON_RECORD, timer.name(), now, Duration.ZERO));
      } else {
        all.addAll(new Alerts(timer, status).ask());
      }
    }
    return all;
  }

  private List<TimerAlert> ask() {
    if (status.overdue().compareTo(OVERDUE) > 0) {
      status.due().ifPresent(due -> add(Rule.OVERDUE, due));
    }
    status
        .oldestStarted()
        .filter(started -> isOver(started, timer.runningLimit()))
        .ifPresent(started -> add(Rule.HUNG, started));
    try {
      timer.missedGrace().flatMap(this::missed).ifPresent(instant -> add(Rule.MISSED, instant));
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

  /** The first instant that should have a run; a timer that is not due any more has none. */
  private Optional<Instant> missed(Duration grace) {
    boolean same = Instants.description(timer).equals(status.schedule());
    if (status.due().isEmpty() || !same) { // of another schedule others take care
      return Optional.empty();
    }
    Instant base =
        status
            .lastInstant()
            .filter(instant -> instant.isAfter(status.countsFrom()))
            .orElse(status.countsFrom());
    return Instants.next(timer, base)
        .filter(instant -> isOver(instant, grace.plus(timer.jitter())));
  }

  private boolean isOver(Instant since, Duration most) {
    return Duration.between(since, status.asOf()).compareTo(most) > 0;
  }

  private void add(Rule rule, Instant since) {
    Duration lasting = Duration.between(since, status.asOf());
    found.add(
        new TimerAlert(rule, timer.name(), since, lasting.isNegative() ? Duration.ZERO : lasting));
  }
}
