package dev.outbox4j.timer.internal;

import dev.outbox4j.timer.CatchUp;
import dev.outbox4j.timer.Cause;
import dev.outbox4j.timer.OverlapPolicy;
import dev.outbox4j.timer.Timer;
import dev.outbox4j.timer.internal.RunInTick.State;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.IntPredicate;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * Decides what a tick does to one timer: which instants have come, which of them are run, and what
 * becomes of runs that wait. Does no I/O and asks no clock. For one plan and one thread.
 */
public final class TickPlanner {
  /** How many instants are gone through at once, so that no transaction lasts long. */
  static final int MOST_INSTANTS = 10_000;

  /** How many runs of a timer may wait. */
  static final int MOST_WAITING = 1_000;

  private final Timer timer;
  private final TimerRecord record;
  private final Instant now;
  private final IntPredicate mayGoOn;

  private final List<RunInTick> runs = new ArrayList<>();
  private Instant cursor;
  private @Nullable Missed missed;
  private long notRun;
  private @Nullable Instant startup;

  private TickPlanner(Timer timer, TimerRecord record, Instant now, IntPredicate mayGoOn) {
    this.mayGoOn = mayGoOn;
    this.timer = timer;
    this.record = record;
    this.now = now;
    this.cursor = record.cursor();
    this.missed = record.missed();
    this.startup = record.startup();
    record.open().forEach(run -> runs.add(RunInTick.open(run)));
  }

  /**
   * Plans a tick.
   *
   * @param timer the definition, which is the one on record
   * @param record what is on record
   * @param now the server's clock
   * @return the plan
   */
  public static TickPlan plan(Timer timer, TimerRecord record, Instant now) {
    return plan(timer, record, now, gone -> gone < MOST_INSTANTS);
  }

  /**
   * Plans a part of a tick.
   *
   * @param timer the definition, which is the one on record
   * @param record what is on record
   * @param now the server's clock
   * @param mayGoOn told how many instants were gone through, whether there is to be one more
   * @return the plan
   */
  static TickPlan plan(Timer timer, TimerRecord record, Instant now, IntPredicate mayGoOn) {
    return new TickPlanner(timer, record, now, mayGoOn).plan();
  }

  /**
   * Plans a tick of a timer whose schedule cannot be asked: runs that wait begin all the same, and
   * what is known to have been missed is caught up, and the run for a deployment made.
   *
   * @param timer the definition
   * @param record what is on record
   * @param now the server's clock
   * @param next when to ask the schedule again
   * @return the plan
   */
  static TickPlan planWithoutInstants(Timer timer, TimerRecord record, Instant now, Instant next) {
    TickPlanner planner = new TickPlanner(timer, record, now, gone -> false);
    planner.beginWaiting();
    planner.catchUp();
    planner.runForDeployment();
    return planner.planned(Optional.of(next));
  }

  private TickPlan plan() {
    beginWaiting();
    return planned(record.paused() ? Optional.empty() : decideInstants());
  }

  private TickPlan planned(Optional<Instant> next) {
    TickPlan.Runs fates = TickPlan.Runs.none();
    runs.forEach(run -> run.addTo(fates));
    return new TickPlan(cursor, missed, notRun, runsLeft(), startup, fates.copy(), next);
  }

  private void beginWaiting() {
    boolean beside = timer.overlap() == OverlapPolicy.ALLOW_ALL;
    boolean free = !isAny(RunInTick::isBegun);
    Set<Cause> begun = EnumSet.noneOf(Cause.class);
    runs.stream().filter(RunInTick::isBegun).map(RunInTick::cause).forEach(begun::add);
    for (RunInTick run : runs) {
      boolean stands = record.paused() && run.cause() != Cause.MANUAL;
      boolean may = beside ? isBesideOthers(run.cause()) || !begun.contains(run.cause()) : free;
      if (run.isWaiting() && !stands && may) {
        run.begin();
        begun.add(run.cause());
        free = false;
      }
    }
  }

  /** Returns when to look again. */
  private Optional<Instant> decideInstants() {
    int gone = 0;
    boolean known = true;
    Optional<Instant> next = next(cursor);
    while (known && next.isPresent() && !next.get().isAfter(now) && !isUsedUp()) {
      if (!mayGoOn.test(gone++)) {
        return Optional.of(now);
      }
      Instant instant = next.get();
      if (isLate(instant) && isCaughtUpByItself(instant)) {
        if (waiting(Cause.CATCH_UP) >= MOST_WAITING) {
          return Optional.empty(); // the end of one of them makes room
        }
        add(instant, Cause.CATCH_UP, new Missed(instant, instant, 1));
      } else if (isLate(instant)) {
        miss(instant);
      } else {
        catchUp();
        add(instant, Cause.SCHEDULED, null);
      }
      cursor = instant;
      try {
        next = next(cursor);
      } catch (RuntimeException e) { // the next tick begins with it, and says so
        known = false;
      }
    }
    if (!known && !isUsedUp()) {
      return Optional.of(now);
    }
    catchUp();
    runForDeployment();
    return isUsedUp() ? Optional.empty() : next;
  }

  private Optional<Instant> next(Instant after) {
    return Instants.next(timer, after);
  }

  private boolean isUsedUp() {
    return record.limit().isPresent() && runsLeft() == 0;
  }

  private boolean isLate(Instant instant) {
    return Duration.between(instant, now).compareTo(timer.onTime()) > 0;
  }

  private boolean isWithinWindow(Instant instant) {
    return Duration.between(instant, now).compareTo(timer.catchUpWindow()) <= 0;
  }

  private boolean isCaughtUpByItself(Instant instant) {
    return timer.catchUp() == CatchUp.ALL && isWithinWindow(instant);
  }

  private void miss(Instant instant) {
    if (timer.catchUp() == CatchUp.ONE) {
      missed = Missed.with(missed, instant);
    } else {
      notRun++;
    }
  }

  /** One run for all that was missed, once it is known which is the latest. */
  private void catchUp() {
    Missed all = missed;
    missed = null;
    if (all == null) {
      return;
    }
    if (isWithinWindow(all.latest())) {
      add(all.latest(), Cause.CATCH_UP, all);
    } else {
      notRun += all.count();
    }
  }

  private void runForDeployment() {
    Instant asked = startup;
    startup = null;
    boolean caughtUp =
        runs.stream().anyMatch(run -> run.isAdded() && run.cause() == Cause.CATCH_UP);
    if (asked != null && !caughtUp) {
      add(asked, Cause.STARTUP, null);
    }
  }

  private void add(Instant instant, Cause cause, @Nullable Missed missed) {
    if (isUsedUp()) {
      return;
    }
    runs.add(RunInTick.added(instant, cause, missed, isInTurn(cause) ? inTurn(cause) : state()));
  }

  private State inTurn(Cause cause) {
    return isHeldUp(cause) ? State.WAITS : State.BEGUN;
  }

  private State state() {
    return switch (timer.overlap()) {
      case ALLOW_ALL -> State.BEGUN;
      case SKIP -> isAny(run -> run.isBegun() || run.isWaiting()) ? State.SKIPPED : State.BEGUN;
      case BUFFER_ONE -> behindAtMost(1);
      case BUFFER_ALL -> behindAtMost(MOST_WAITING);
      case CANCEL_OTHER -> {
        skipWaiting();
        each(RunInTick::isBegun, run -> run.cancel(isInTurn(run.cause())));
        yield isAny(RunInTick::isBegun) ? State.WAITS : State.BEGUN;
      }
      case TERMINATE_OTHER -> {
        skipWaiting();
        each(RunInTick::isBegun, run -> run.terminate(isInTurn(run.cause())));
        yield State.BEGUN;
      }
    };
  }

  private State behindAtMost(int waiting) {
    if (!isAny(RunInTick::isBegun)) {
      return State.BEGUN;
    }
    boolean full = runs.stream().filter(this::isWaitingForRoom).count() >= waiting;
    return full ? State.SKIPPED : State.WAITS;
  }

  private void skipWaiting() {
    each(this::isWaitingForRoom, RunInTick::skip);
  }

  private boolean isWaitingForRoom(RunInTick run) {
    return run.isWaiting() && !isInTurn(run.cause());
  }

  /** Whether runs of a cause wait for one another, and are not skipped. */
  private boolean isInTurn(Cause cause) {
    return switch (cause) {
      case CATCH_UP -> timer.catchUp() == CatchUp.ALL;
      case MANUAL, BACKFILL -> true;
      case SCHEDULED, STARTUP -> false;
    };
  }

  private boolean isHeldUp(Cause cause) {
    if (timer.overlap() != OverlapPolicy.ALLOW_ALL) {
      return isAny(RunInTick::isBegun);
    }
    return !isBesideOthers(cause) && isAny(run -> run.isBegun() && run.cause() == cause);
  }

  private boolean isBesideOthers(Cause cause) {
    return !isInTurn(cause) || cause == Cause.MANUAL;
  }

  private long waiting(Cause cause) {
    return runs.stream().filter(run -> run.isWaiting() && run.cause() == cause).count();
  }

  private long runsLeft() {
    return record.limit().isEmpty()
        ? 0
        : record.runsLeft() - runs.stream().mapToInt(RunInTick::counts).sum();
  }

  private boolean isAny(Predicate<RunInTick> which) {
    return runs.stream().anyMatch(which);
  }

  private void each(Predicate<RunInTick> which, Consumer<RunInTick> what) {
    runs.stream().filter(which).toList().forEach(what);
  }
}
