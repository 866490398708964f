package dev.outbox4j.poller.internal;

import dev.outbox4j.OutboxException;
import dev.outbox4j.internal.Causes;
import dev.outbox4j.internal.OneLine;
import dev.outbox4j.internal.Utf8;
import java.util.stream.Collectors;

/** Says failures in words, for records and logs. */
final class Failures {
  private static final int MOST_BYTES = 4_000;

  private Failures() {}

  /** The failure and its causes; of the library's own only what they say. */
  static String words(Throwable failure) {
    String words =
        failure instanceof OutboxException own
            ? String.valueOf(own.getMessage())
            : Causes.of(failure).stream()
                .map(Throwable::toString)
                .collect(Collectors.joining("; caused by "));
    return Utf8.bounded(OneLine.of(words), MOST_BYTES);
  }
}
