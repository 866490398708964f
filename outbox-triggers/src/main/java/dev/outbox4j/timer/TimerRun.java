package dev.outbox4j.timer;

import dev.outbox4j.Delivery;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Optional;

/** One attempt at a run, as a handler receives it. Thread-safe. Instants are the server's. */
public interface TimerRun {

  /** {@return the timer's definition} */
  Timer timer();

  /** {@return the instant that the run is for, whenever it begins} */
  Instant instant();

  /** {@return why the run was made} */
  Cause cause();

  /** {@return the first of the missed instants that it stands for; its own if there are none} */
  Instant firstMissed();

  /** {@return how many missed instants it stands for, its own included; 0 if it was not missed} */
  long missed();

  /** {@return how long after its instant this attempt begins} */
  Duration lateness();

  /**
   * {@return whether it begins later than the timer's {@linkplain Timer#onTime on-time threshold}}
   */
  boolean isPastDue();

  /**
   * {@return which attempt this is, counted from 1; one that a crash of the server undid is not}
   */
  int attempt();

  /**
   * {@return the fencing token of this attempt} It is greater than that of every earlier attempt at
   * this run; but it begins anew if a dead letter of the run is put back.
   */
  long token();

  /** {@return the last run of the timer that succeeded or failed before this one} */
  Optional<PastRun> previous();

  /**
   * Returns the next instants of the timer after this run's.
   *
   * @param most how many at most, 1 to 1,000
   * @return the instants, in their order
   * @throws IllegalArgumentException if the number is out of range
   */
  List<Instant> next(int most);

  /**
   * Tells whether the run is to stop: another one waits for its end ({@link
   * OverlapPolicy#CANCEL_OTHER}) or was started in its place, its lease is lost, or the node is
   * stopping. A handler that takes long should look and return.
   *
   * <p>In the last two cases the work is not done: once this has told so, the run comes again when
   * the handler returns, as another attempt, unless it decides otherwise by {@link #delivery()}
   * afterwards. In the first the run ends as the handler does.
   *
   * @return true if it should return
   */
  boolean isCancelled();

  /**
   * Tells whether the end of this attempt changes nothing any more: its run was terminated or has
   * ended otherwise, or its lease is lost. Such a run is {@link #isCancelled} as well.
   *
   * @return true if its result is dropped
   */
  boolean isFenced();

  /** {@return the message behind it} */
  Delivery delivery();
}
