package dev.outbox4j.timer.internal;

import dev.outbox4j.timer.OnChange;
import dev.outbox4j.timer.Timer;
import java.time.Instant;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;

/**
 * What is on record of a timer.
 *
 * @param schedule the description of its instants
 * @param cursor up to here, this one included, all instants are decided
 * @param missed those before the cursor that are still to be caught up, by one run
 * @param paused whether it stands still
 * @param limit how many runs there are to be in all
 * @param runsLeft how many of them there are still to be
 * @param deployment the last one that asked for a run of its own
 * @param startup when it asked, if that run is still to be made
 * @param open its runs that have not ended, in the order of their instants
 */
public record TimerRecord(
    String schedule,
    Instant cursor,
    @Nullable Missed missed,
    boolean paused,
    OptionalLong limit,
    long runsLeft,
    @Nullable String deployment,
    @Nullable Instant startup,
    List<OpenRun> open) {

  /** Copies the list. */
  public TimerRecord {
    open = List.copyOf(open);
  }

  /** Returns what is to be on record of a timer that is registered first. */
  public static TimerRecord first(Timer timer, @Nullable String deployment, Instant now) {
    return new TimerRecord(
            Instants.description(timer),
            now,
            null,
            false,
            timer.limit(),
            timer.limit().orElse(0),
            null,
            null,
            List.of())
        .asked(timer, deployment, now);
  }

  /**
   * Returns what is to be on record of a timer that is registered again.
   *
   * @param timer its definition
   * @param deployment what the node belongs to, if it was told
   * @param now the server's clock
   * @return the same, if nothing has changed
   */
  public TimerRecord registered(Timer timer, @Nullable String deployment, Instant now) {
    boolean changed = !schedule.equals(Instants.description(timer));
    boolean reset = changed && timer.onChange() == OnChange.RESET;
    boolean limited = !limit.equals(timer.limit());
    // nothing was due any more, so nothing was missed
    boolean resumed = limited && limit.isPresent() && runsLeft == 0;
    return new TimerRecord(
            Instants.description(timer),
            (reset || resumed) && now.isAfter(cursor) ? now : cursor,
            reset ? null : missed,
            paused,
            timer.limit(),
            limited ? timer.limit().orElse(0) : runsLeft,
            this.deployment,
            startup,
            open)
        .asked(timer, deployment, now);
  }

  private TimerRecord asked(Timer timer, @Nullable String by, Instant now) {
    if (by == null || !timer.runsOnStartup() || Objects.equals(by, deployment)) {
      return this;
    }
    return new TimerRecord(schedule, cursor, missed, paused, limit, runsLeft, by, now, open);
  }

  /**
   * Returns when to look at the timer next, unless the end of a run, or somebody, changes
   * something.
   *
   * @param timer its definition
   * @return the instant; empty if there is none
   */
  public Optional<Instant> due(Timer timer) {
    if (paused) {
      return Optional.empty();
    }
    if (startup != null) {
      return Optional.of(startup);
    }
    boolean usedUp = limit.isPresent() && runsLeft == 0;
    return usedUp ? Optional.empty() : Instants.next(timer, cursor);
  }
}
