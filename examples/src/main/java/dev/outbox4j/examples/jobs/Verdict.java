package dev.outbox4j.examples.jobs;

import dev.outbox4j.FailureReason;
import dev.outbox4j.dlq.DeadLetterSummary;

/** What is to be done with a dead letter. */
enum Verdict {
  /** It may work now, which is to be validated. */
  REPLAY,
  /** It never will, and nobody misses it: the user's next item makes another job. */
  DISCARD,
  /** A person is to look at it. */
  KEEP;

  /** A letter that comes back so often is a person's matter. */
  static final int MOST_REPLAYS = 2;

  static Verdict of(DeadLetterSummary letter) {
    return switch (FailureReason.ofCode(letter.reason())) {
      case REJECTED -> isMovedByHand(letter) ? KEEP : DISCARD;
      // processes died that had it in hand: it may kill the next one, or have been beside what does
      case MAX_DELIVERIES, EXPIRED -> KEEP;
      case RETRY_TERMINAL, UNDECODABLE -> letter.redrives() < MOST_REPLAYS ? REPLAY : KEEP;
    };
  }

  /** By the statement of docs/dead-letters.md: whoever did that wants it back. */
  private static boolean isMovedByHand(DeadLetterSummary letter) {
    return letter.exception().filter(text -> text.startsWith("moved by hand")).isPresent();
  }
}
