package dev.outbox4j.timer;

import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.internal.OneLine;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.timer.internal.ControlStore;
import dev.outbox4j.triggers.internal.Applications;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.Collection;
import java.util.List;

/**
 * Looks at the timers of an application, and does to them what people do: from any process, also
 * while no node runs. Each call is one transaction, and may be repeated when its answer was lost.
 * Immutable and thread-safe.
 *
 * <p>All methods throw {@link OutboxStoreException} if a statement fails, and {@link
 * IllegalArgumentException} for a text that is blank or longer than 2,000 bytes in UTF-8.
 */
public final class TimerControl {
  private static final int MAX_BYTES = 2_000;
  private static final int MOST = 100_000;
  private static final int MOST_BACKFILLED = 10_000;

  private final ControlStore store;

  private TimerControl(ControlStore store) {
    this.store = store;
  }

  /**
   * Returns the control of an application's timers; does no I/O.
   *
   * @param outbox where they are on record
   * @param application whose timers
   * @return the control
   * @throws IllegalArgumentException if no application can have the name
   */
  public static TimerControl of(PostgresOutbox outbox, String application) {
    return new TimerControl(new ControlStore(outbox, Applications.require(application)));
  }

  /** {@return the timers on record, by their names} */
  public List<TimerStatus> timers() {
    return store.timers();
  }

  /**
   * Asks what somebody is to look at, by the rules of {@link TimerAlert.Rule}: also while no node
   * runs, which is when it matters most.
   *
   * @param timers the definitions
   * @return what was found, in the order of the definitions
   */
  public List<TimerAlert> alerts(Collection<Timer> timers) {
    return store.alerts(timers);
  }

  /**
   * Returns the next instants of a timer by the server's clock, whether or not it is on record.
   *
   * @param timer the definition
   * @param most how many at most, 1 to 100,000
   * @return the instants, in their order
   * @throws IllegalArgumentException if the number is out of range
   */
  public List<Instant> next(Timer timer, int most) {
    requireMost(most);
    return store.next(timer, most);
  }

  /**
   * Returns the latest runs of a timer.
   *
   * @param timer its name
   * @param most how many at most, 1 to 100,000
   * @return the runs, that of the latest instant first; none if there is no such timer
   * @throws IllegalArgumentException if the number is out of range
   */
  public List<RecordedRun> history(String timer, int most) {
    requireMost(most);
    return store.history(timer, most);
  }

  /**
   * Pauses a timer: its instants are not due any more, and what waits does not begin, but for what
   * is {@linkplain #trigger asked for}. Runs that have begun go on.
   *
   * @param timer its name
   * @param by who pauses it
   * @param reason why
   * @return false if there is no such timer or it is paused already, and then nothing has changed
   */
  public boolean pause(String timer, String by, String reason) {
    return store.pause(timer, require("by", by), require("reason", reason));
  }

  /**
   * Resumes a timer. What it would have been due at meanwhile counts as decided: it is neither run
   * nor counted as missed.
   *
   * @param timer its name
   * @return false if there is no such timer or it is not paused, and then nothing has changed
   */
  public boolean resume(String timer) {
    return store.resume(timer);
  }

  /**
   * Asks for a run now, also of a timer that is paused. It waits until no other run of the timer
   * has begun, unless the timer allows runs beside one another.
   *
   * @param timer its name
   * @param request a name for what is asked for; asking twice by the same one is asking once
   * @return false if it was asked for by that name before
   * @throws IllegalArgumentException if there is no such timer
   */
  public boolean trigger(String timer, String request) {
    return store.trigger(timer, require("request", request));
  }

  /**
   * Asks for a run for each instant of a schedule in a time that is over, the earliest first and
   * one at a time.
   *
   * @param timer the timer's definition
   * @param from the first instant that counts
   * @param to the last instant that counts
   * @param request a name for what is asked for: by the same one an instant has one run
   * @return how many runs were made
   * @throws IllegalArgumentException if there is no such timer, the time is not over or ends before
   *     it begins, or has more than 10,000 instants
   */
  public int backfill(Timer timer, Instant from, Instant to, String request) {
    return store.backfill(timer, from, to, require("request", request), MOST_BACKFILLED);
  }

  /**
   * Removes a timer with its runs, also those that have not ended. Nodes that have it go on without
   * it until they are started anew.
   *
   * @param timer its name
   * @return false if there is no such timer
   */
  public boolean remove(String timer) {
    return store.remove(timer);
  }

  /**
   * Deletes runs that have ended, but for each timer's latest one of its schedule and its latest
   * success. What was asked for by a name is forgotten with its run: by the same name it is run
   * once more, and a dead letter that is put back fails. To be called now and then, by any number
   * of processes.
   *
   * @param before only those of earlier instants
   * @param most how many at most, 1 to 100,000
   * @return how many were deleted; call again if it is as many as were asked for
   * @throws IllegalArgumentException if the number is out of range
   */
  public int purge(Instant before, int most) {
    requireMost(most);
    return store.purge(before, most);
  }

  private static void requireMost(int most) {
    if (most < 1 || most > MOST) {
      throw new IllegalArgumentException("most is " + most + "; it must be 1 to 100,000");
    }
  }

  private static String require(String what, String text) {
    int bytes = text.getBytes(StandardCharsets.UTF_8).length;
    if (text.isBlank() || text.indexOf('\0') >= 0) {
      throw new IllegalArgumentException(
          "%s '%s' is blank or has a NUL; say it in words".formatted(what, OneLine.of(text)));
    }
    if (bytes > MAX_BYTES) {
      throw new IllegalArgumentException(
          "%s has %d bytes; it may have %d, so shorten it".formatted(what, bytes, MAX_BYTES));
    }
    return text;
  }
}
