package dev.outbox4j.internal;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Says in the log that a message has failed for good: which one, why, and where it is now. */
final class TerminalFailures {
  private static final Logger log = LoggerFactory.getLogger(TerminalFailures.class);

  private final Warnings warnings;

  TerminalFailures(Warnings warnings) {
    this.warnings = warnings;
  }

  void moved(InFlight row, Settlement.DeadLetter terminal) {
    warnings.warn(
        log,
        subject(row, terminal),
        "message {} of queue '{}', type {}, failed for good and is in the dead letters: {}, {} attempt(s), {} deliveries",
        row.id(),
        OneLine.of(row.queue()),
        OneLine.of(row.type()),
        terminal.reason().code(),
        terminal.attempts(),
        row.deliveries());
  }

  void deleted(InFlight row, Settlement.DeadLetter terminal) {
    warnings.error(
        log,
        subject(row, terminal),
        "message {} of queue '{}', type {}, failed for good and was DELETED, since there are no dead letters: {}, {} attempt(s), {} deliveries; set deadLetters(...)",
        row.id(),
        OneLine.of(row.queue()),
        OneLine.of(row.type()),
        terminal.reason().code(),
        terminal.attempts(),
        row.deliveries());
  }

  private static String subject(InFlight row, Settlement.DeadLetter terminal) {
    return "terminal " + terminal.reason().code() + " " + row.type();
  }
}
