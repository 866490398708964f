package dev.outbox4j.timer;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.function.Consumer;

/**
 * A timer's definition: its name, its schedule, and what is done about instants that were missed
 * and runs that last. Immutable; each setting returns a new definition.
 *
 * <p>Late is an instant at which no node looked for longer than the {@linkplain #onTime on-time
 * threshold}. All nodes should have the same definition. Of a definition that is on record with
 * another schedule only the nodes that registered last take care.
 */
public final class Timer {
  /** The bytes that a name may have in UTF-8: {@value}. */
  public static final int MAX_NAME_BYTES = 200;

  private static final Duration SHORTEST_WINDOW = Duration.ofSeconds(10);
  private static final Duration A_CENTURY = Duration.ofDays(36_525);

  private final String name;
  private final Schedule schedule;
  private final TimerSettings settings;

  private Timer(String name, Schedule schedule, TimerSettings settings) {
    this.name = name;
    this.schedule = schedule;
    this.settings = settings;
  }

  /**
   * Defines a timer with the default settings: one run for what was missed, one run waits while
   * another lasts, and the subscriber's retries.
   *
   * @param name unique in its application; not blank, without control characters, at most {@value
   *     #MAX_NAME_BYTES} bytes in UTF-8. It is the key of the timer's record: under another name it
   *     is another timer
   * @param schedule when it is due
   * @return the definition
   * @throws IllegalArgumentException if the name is not allowed
   */
  public static Timer of(String name, Schedule schedule) {
    requireName(name);
    Objects.requireNonNull(schedule, "schedule");
    return new Timer(name, schedule, TimerSettings.defaults(schedule));
  }

  private static void requireName(String name) {
    int bytes = name.getBytes(StandardCharsets.UTF_8).length;
    if (name.isBlank() || name.chars().anyMatch(Character::isISOControl)) {
      throw new IllegalArgumentException(
          "timer name '%s' is blank or has control characters; name it by what it does"
              .formatted(name));
    }
    if (bytes > MAX_NAME_BYTES) {
      throw new IllegalArgumentException(
          "timer name '%s' has %d bytes; it may have %d, so shorten it"
              .formatted(name, bytes, MAX_NAME_BYTES));
    }
  }

  /**
   * Sets what becomes of missed instants.
   *
   * @param catchUp the policy; default {@link CatchUp#ONE}
   * @return the definition
   */
  public Timer catchUp(CatchUp catchUp) {
    Objects.requireNonNull(catchUp, "catchUp");
    return with(to -> to.catchUp = catchUp);
  }

  /**
   * Sets how old a missed instant may be to be caught up; older ones are counted and not run.
   *
   * @param window at least 10 s, at most 100 years; default 365 days
   * @return the definition
   * @throws IllegalArgumentException if it is out of range
   */
  public Timer catchUpWindow(Duration window) {
    requireWithin("catch-up window", window, SHORTEST_WINDOW, A_CENTURY, "from 10 s to 100 years");
    return with(to -> to.catchUpWindow = window);
  }

  /**
   * Sets how late an instant may be noticed and still be on time. Such an instant is run even under
   * {@link CatchUp#NONE}; a run that begins later is past due.
   *
   * @param threshold at most 100 years; default 60 s
   * @return the definition
   * @throws IllegalArgumentException if it is out of range
   */
  public Timer onTime(Duration threshold) {
    requireWithin(
        "on-time threshold", threshold, Duration.ZERO, A_CENTURY, "from zero to 100 years");
    return with(to -> to.onTime = threshold);
  }

  /**
   * Sets what becomes of an instant while a run has not ended.
   *
   * @param policy the policy; default {@link OverlapPolicy#BUFFER_ONE}
   * @return the definition
   */
  public Timer overlap(OverlapPolicy policy) {
    Objects.requireNonNull(policy, "policy");
    return with(to -> to.overlap = policy);
  }

  /**
   * Sets by how much runs are spread: each begins up to that long after its instant, by a hash of
   * timer and instant, so that every node comes to the same. The run is still that of its instant.
   *
   * @param most at most 100 years; default zero
   * @return the definition
   * @throws IllegalArgumentException if it is out of range
   */
  public Timer jitter(Duration most) {
    requireWithin("jitter", most, Duration.ZERO, A_CENTURY, "from zero to 100 years");
    return with(to -> to.jitter = most);
  }

  /**
   * Sets what becomes of the past when the schedule on record is another one.
   *
   * @param rule the rule; default {@link OnChange#RESET}
   * @return the definition
   */
  public Timer onChange(OnChange rule) {
    Objects.requireNonNull(rule, "rule");
    return with(to -> to.onChange = rule);
  }

  /**
   * Adds a run for each new deployment, once over all its nodes; not if a run is caught up just
   * then. What a deployment is says {@code Timers.Builder.deployment}.
   *
   * @return the definition
   */
  public Timer runOnStartup() {
    return with(to -> to.runOnStartup = true);
  }

  /**
   * Sets whether runs are kept on record after they have ended, and missed instants are caught up.
   * Without it nothing is caught up, there is no history, and what no node was there for is as if
   * it had never been due.
   *
   * @param kept whether; default true, but false for a constant interval below a minute and for a
   *     cron expression of which more than one instant falls into each minute
   * @return the definition
   */
  public Timer keepState(boolean kept) {
    return with(to -> to.keepState = kept);
  }

  /**
   * Makes a dead letter of a run whose first attempt fails. By default the retries are those of the
   * subscriber.
   *
   * @return the definition
   */
  public Timer withoutRetries() {
    return with(to -> to.retries = false);
  }

  /**
   * Gives a run up when the next instant comes: no attempt begins then any more, and its message
   * becomes a dead letter.
   *
   * @return the definition
   */
  public Timer retryUntilNext() {
    return with(to -> to.retryUntilNext = true);
  }

  /**
   * Pauses the timer when so many runs in a row have become dead letters.
   *
   * @param failures at least 1; by default it is never paused
   * @return the definition
   * @throws IllegalArgumentException if it is below 1
   */
  public Timer pauseAfterFailures(int failures) {
    requirePositive("failures", failures);
    return with(to -> to.pauseAfterFailures = failures);
  }

  /**
   * Sets the first instant that counts.
   *
   * @param start instants before it are not due; default none
   * @return the definition
   * @throws IllegalArgumentException if it is not before the end
   */
  public Timer startingAt(Instant start) {
    Objects.requireNonNull(start, "start");
    return with(to -> to.start = start);
  }

  /**
   * Sets the last instant that counts.
   *
   * @param end instants after it are not due; default none
   * @return the definition
   * @throws IllegalArgumentException if the start is not before it
   */
  public Timer endingAt(Instant end) {
    Objects.requireNonNull(end, "end");
    return with(to -> to.end = end);
  }

  /**
   * Sets how many runs there are to be in all, beside those that somebody asks for.
   *
   * @param runs at least 1; by default there is no limit. It counts from when the timer is
   *     registered first, and again from when the limit is changed
   * @return the definition
   * @throws IllegalArgumentException if it is below 1
   */
  public Timer limitedTo(long runs) {
    requirePositive("runs", runs);
    return with(to -> to.runs = runs);
  }

  /**
   * Sets when an instant without a run is told as missed, by health and metrics.
   *
   * @param grace how long after the instant, at most 100 years; by default nothing is told
   * @return the definition
   * @throws IllegalArgumentException if it is out of range
   */
  public Timer alertWhenMissedFor(Duration grace) {
    requireWithin("grace", grace, Duration.ZERO, A_CENTURY, "from zero to 100 years");
    return with(to -> to.missedGrace = grace);
  }

  /**
   * Sets for how long there may be no success before health and metrics tell of it.
   *
   * @param time more than zero, at most 100 years; by default nothing is told
   * @return the definition
   * @throws IllegalArgumentException if it is out of range
   */
  public Timer alertWithoutSuccessFor(Duration time) {
    requireWithin("time", time, Duration.ofNanos(1), A_CENTURY, "above zero, up to 100 years");
    return with(to -> to.successWithin = time);
  }

  /**
   * Sets for how long a run may last before health and metrics tell of it: from when its first
   * attempt began to its end, with all its attempts.
   *
   * @param time more than zero, at most 100 years; default one hour
   * @return the definition
   * @throws IllegalArgumentException if it is out of range
   */
  public Timer alertWhenRunningFor(Duration time) {
    requireWithin("time", time, Duration.ofNanos(1), A_CENTURY, "above zero, up to 100 years");
    return with(to -> to.runningLimit = time);
  }

  /**
   * Sets what Azure's TimerTrigger does: one run for what was missed, one run waits while another
   * lasts, and a run that fails is not tried again.
   *
   * @return the definition, with everything else as it was
   */
  public Timer asTimerTrigger() {
    return catchUp(CatchUp.ONE).overlap(OverlapPolicy.BUFFER_ONE).withoutRetries();
  }

  /**
   * Runs an instant when it comes or not at all: nothing is caught up, nothing waits, and it is
   * told when an instant had no run for an hour, and when there was no success for 36 hours.
   *
   * @return the definition, with everything else as it was
   */
  public Timer withoutBackfill() {
    return catchUp(CatchUp.NONE)
        .overlap(OverlapPolicy.SKIP)
        .alertWhenMissedFor(Duration.ofHours(1))
        .alertWithoutSuccessFor(Duration.ofHours(36));
  }

  /**
   * Sets the defaults of Temporal's schedules: all that was missed within a year is caught up, and
   * what comes while a run lasts is skipped.
   *
   * @return the definition, with everything else as it was
   */
  public Timer asTemporal() {
    return catchUp(CatchUp.ALL).catchUpWindow(Duration.ofDays(365)).overlap(OverlapPolicy.SKIP);
  }

  /**
   * Sets what Quartz does with its smart misfire policy and a cron trigger: one run for what was
   * missed by more than a minute, runs beside one another, and a run that fails is not tried again.
   *
   * @return the definition, with everything else as it was
   */
  public Timer asQuartz() {
    return catchUp(CatchUp.ONE)
        .onTime(Duration.ofSeconds(60))
        .overlap(OverlapPolicy.ALLOW_ALL)
        .withoutRetries();
  }

  private Timer with(Consumer<TimerSettings> change) {
    TimerSettings changed = settings.copy();
    change.accept(changed);
    changed.requireStartBeforeEnd();
    return new Timer(name, schedule, changed);
  }

  private static void requireWithin(
      String what, Duration value, Duration least, Duration most, String range) {
    if (value.compareTo(least) < 0 || value.compareTo(most) > 0) {
      throw new IllegalArgumentException(what + " is " + value + "; it must be " + range);
    }
  }

  private static void requirePositive(String what, long value) {
    if (value < 1) {
      throw new IllegalArgumentException(what + " is " + value + "; it must be 1 or more");
    }
  }

  /** {@return its name} */
  public String name() {
    return name;
  }

  /** {@return when it is due, whatever its start and end} */
  public Schedule schedule() {
    return schedule;
  }

  /** {@return what becomes of missed instants; {@link CatchUp#NONE} if no state is kept} */
  public CatchUp catchUp() {
    return settings.keepState ? settings.catchUp : CatchUp.NONE;
  }

  /** {@return how old a missed instant may be to be caught up} */
  public Duration catchUpWindow() {
    return settings.catchUpWindow;
  }

  /** {@return how late an instant may be noticed and still be on time} */
  public Duration onTime() {
    return settings.onTime;
  }

  /** {@return what becomes of an instant while a run has not ended} */
  public OverlapPolicy overlap() {
    return settings.overlap;
  }

  /** {@return by how much runs are spread} */
  public Duration jitter() {
    return settings.jitter;
  }

  /** {@return what becomes of the past when the schedule on record is another one} */
  public OnChange onChange() {
    return settings.onChange;
  }

  /** {@return whether each new deployment has a run} */
  public boolean runsOnStartup() {
    return settings.runOnStartup;
  }

  /** {@return whether runs are kept on record, and missed instants caught up} */
  public boolean keepsState() {
    return settings.keepState;
  }

  /** {@return whether a failed attempt may be followed by another} */
  public boolean retries() {
    return settings.retries;
  }

  /** {@return whether a run is given up when the next instant comes} */
  public boolean retriesUntilNext() {
    return settings.retryUntilNext;
  }

  /** {@return after how many dead letters in a row it is paused; empty if never} */
  public OptionalInt pauseAfterFailures() {
    return settings.pauseAfterFailures == 0
        ? OptionalInt.empty()
        : OptionalInt.of(settings.pauseAfterFailures);
  }

  /** {@return the first instant that counts} */
  public Optional<Instant> start() {
    return Optional.ofNullable(settings.start);
  }

  /** {@return the last instant that counts} */
  public Optional<Instant> end() {
    return Optional.ofNullable(settings.end);
  }

  /** {@return how many runs there are to be in all; empty if there is no limit} */
  public OptionalLong limit() {
    return settings.runs == 0 ? OptionalLong.empty() : OptionalLong.of(settings.runs);
  }

  /** {@return how long after its instant a missing run is told of} */
  public Optional<Duration> missedGrace() {
    return Optional.ofNullable(settings.missedGrace);
  }

  /** {@return for how long there may be no success} */
  public Optional<Duration> successWithin() {
    return Optional.ofNullable(settings.successWithin);
  }

  /** {@return for how long a run may last} */
  public Duration runningLimit() {
    return settings.runningLimit;
  }

  @Override
  public String toString() {
    return "Timer[" + name + ", " + schedule.description() + "]";
  }
}
