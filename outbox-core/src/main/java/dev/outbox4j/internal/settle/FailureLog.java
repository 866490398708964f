package dev.outbox4j.internal.settle;

import dev.outbox4j.internal.OneLine;
import dev.outbox4j.internal.RedactedThrowable;
import dev.outbox4j.internal.Warnings;
import dev.outbox4j.internal.state.HeldRow;
import dev.outbox4j.internal.state.LogContext;
import dev.outbox4j.internal.state.Settlement;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.slf4j.event.Level;

/**
 * Says in the log what a failure means for its message, in one line: which message, which attempt,
 * why, and what comes next. A line for each attempt, but of one type so many a minute. Each names
 * its message in the context of the log as well. Thread-safe.
 */
public final class FailureLog {
  private static final Logger log = LoggerFactory.getLogger(FailureLog.class);

  private static final String TERMINAL =
      "message {} of queue '{}', {}, failed for good {} ({}, {} attempt(s), {} deliveries): {}";

  private final Warnings warnings;

  public FailureLog(Warnings warnings) {
    this.warnings = warnings;
  }

  /** The attempt failed, or a batch did, and the message comes again: it has been written so. */
  void retried(HeldRow row, Settlement.Retry retry) {
    Settlement.FailedAttempt attempt = retry.attempt();
    if (attempt == null) {
      return;
    }
    if (!retry.counted()) {
      warn(
          row,
          "batch " + row.typeOrNull(),
          "message {} of queue '{}', {}: a batch with it failed, and it comes alone in {} ms: {}",
          row.id(),
          OneLine.of(row.queue()),
          row.typeInWords(),
          retry.delay().toMillis(),
          attempt.why());
      return;
    }
    warn(
        row,
        "attempt " + row.typeOrNull(),
        "message {} of queue '{}', {}: attempt {} of {} failed, the next comes in {} ms: {}",
        row.id(),
        OneLine.of(row.queue()),
        row.typeInWords(),
        row.attempt(),
        attempt.most() == Integer.MAX_VALUE ? "any number" : attempt.most(),
        retry.delay().toMillis(),
        attempt.why());
  }

  /** The message has left the outbox for the dead letters. */
  void moved(HeldRow row, Settlement.DeadLetter terminal, String place) {
    terminal(row, terminal, "and is in " + place);
  }

  /**
   * The message has left the outbox, and there are no dead letters. Each has a line: nothing else
   * is left of it.
   */
  void deleted(HeldRow row, Settlement.DeadLetter terminal) {
    String where =
        "and was DELETED with its " + row.bytes() + " bytes, as deleteTerminalFailures says";
    inContextOf(row, () -> warnings.each(log, TERMINAL, words(row, terminal, where)));
  }

  /** The message failed, or was to come again, and another has been published in its place. */
  void replaced(HeldRow row) {
    String why = "";
    if (row.settlement() instanceof Settlement.DeadLetter terminal) {
      why = ": " + terminal.why();
    } else if (row.settlement() instanceof Settlement.Retry retry) {
      why = ": " + (retry.attempt() == null ? retry.error() : retry.attempt().why());
    }
    if (why.isEmpty()) {
      return;
    }
    warn(
        row,
        "replaced " + row.typeOrNull(),
        "message {} of queue '{}', {}: failed, and neither comes again nor becomes a dead letter,"
            + " since another was published in its place while it was handled{}",
        row.id(),
        OneLine.of(row.queue()),
        row.typeInWords(),
        why);
  }

  /** Whatever was to be written most likely was, by a statement whose answer was lost. */
  void unanswered(HeldRow row) {
    if (row.settlement() instanceof Settlement.DeadLetter terminal) {
      terminal(row, terminal, "and has left the outbox, by a statement whose answer was lost");
    }
  }

  private void terminal(HeldRow row, Settlement.DeadLetter terminal, String where) {
    warnings.say(
        log,
        Level.ERROR,
        line -> inContextOf(row, line),
        "terminal " + terminal.reason().code() + " " + row.typeOrNull(),
        TERMINAL,
        words(row, terminal, where));
  }

  private static Object[] words(HeldRow row, Settlement.DeadLetter terminal, String where) {
    return new Object[] {
      row.id(),
      OneLine.of(row.queue()),
      row.typeInWords(),
      where,
      terminal.reason().code(),
      terminal.attempts(),
      row.deliveries(),
      terminal.why()
    };
  }

  private void warn(HeldRow row, String subject, String text, Object... arguments) {
    warnings.say(log, Level.WARN, line -> inContextOf(row, line), subject, text, arguments);
  }

  @SuppressWarnings("try") // the context is there to be closed
  private static void inContextOf(HeldRow row, Runnable line) {
    try (LogContext context = LogContext.of(row, true)) {
      line.run();
    }
  }

  /** A handler of several messages threw, and none of them comes again for it. */
  public void threwAfterAll(List<HeldRow> rows, String why) {
    HeldRow first = rows.get(0);
    warnings.warn(
        log,
        "decided " + first.typeOrNull(),
        "what a handler has decided of all its {} message(s), {}, stays, though it threw: {}",
        rows.size(),
        first.typeInWords(),
        why);
  }

  /** What the attempt threw, for those who look closer. */
  public void thrown(HeldRow row, @Nullable Throwable failure) {
    if (failure == null || !log.isDebugEnabled()) {
      return;
    }
    try {
      log.debug("{} failed", row, RedactedThrowable.of(failure));
    } catch (RuntimeException | Error unreadable) { // a class of the user's must not decide
      log.debug("{} failed with {}", row, failure.getClass().getName());
    }
  }
}
