package dev.outbox4j.timer;

import java.time.LocalDateTime;
import java.util.Optional;

/** Times as clocks on walls show them, in whole seconds, of no zone. */
interface CivilTimes {
  /**
   * Returns the first one after another.
   *
   * @param after the one before
   * @return one that is strictly later; empty if there is none any more
   */
  Optional<LocalDateTime> next(LocalDateTime after);

  /** {@return whether they are meant as a distance, so that an hour more has more of them} */
  boolean isInterval();

  /** {@return them in one line, which is the same for the same times} */
  String description();
}
