package dev.outbox4j.timer.internal;

import dev.outbox4j.timer.Cause;
import java.time.Instant;
import java.time.format.DateTimeParseException;

/**
 * Which of a timer's runs it is, as its message says.
 *
 * @param instant the one it is for
 * @param cause why it was made
 * @param request what was asked for, or which deployment; empty for what came by itself
 */
record RunKey(Instant instant, Cause cause, String request) {
  /** The header of a message that has the key of its run. */
  static final String HEADER = "timer-run";

  /** The header of a message that has the application whose timer it is. */
  static final String APPLICATION = "timer-application";

  /** Parses what {@link #toString} gave. */
  static RunKey parse(String text) {
    String[] parts = text.split(" ", 3);
    if (parts.length == 3) {
      try {
        return new RunKey(Instant.parse(parts[0]), TimerRow.cause(parts[1]), parts[2]);
      } catch (DateTimeParseException e) {
        throw new IllegalArgumentException(of(text), e);
      }
    }
    throw new IllegalArgumentException(of(text));
  }

  private static String of(String text) {
    return "'" + text + "' names no run; only ticks publish messages of timers";
  }

  @Override
  public String toString() {
    return instant + " " + TimerRow.stored(cause) + " " + request;
  }
}
