package dev.outbox4j.dlq;

import java.time.Instant;
import java.util.List;
import java.util.Optional;

/**
 * Some dead letters, those that failed last first.
 *
 * @param letters at most as many as were asked for
 * @param next where to go on; empty if there are no more. It may lead to nothing, and a page that
 *     has one may have fewer letters than were asked for, or none: a page looks at 10,000 letters
 *     at most
 */
public record DeadLetterPage(List<DeadLetterSummary> letters, Optional<Position> next) {
  /** Copies the list. */
  public DeadLetterPage {
    letters = List.copyOf(letters);
  }

  /**
   * A place between two letters.
   *
   * @param failedAt when the letter before it failed
   * @param id the id of that letter
   */
  public record Position(Instant failedAt, long id) {}
}
