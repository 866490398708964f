package dev.outbox4j.test;

import java.util.List;

/**
 * What became of a queue that was {@linkplain InMemoryOutbox#drain drained}, in memory or by {@code
 * TestOutbox}.
 *
 * @param runs how many handler runs there were, those that failed included; messages that reached
 *     no handler, such as undecodable ones, are not counted
 * @param failures what handlers threw, or their stages failed with, oldest first
 * @param retried how often a message was put back for a retry, for whatever reason: its handler
 *     threw, ran too long or asked for it, there is none for its type, or the codec failed
 * @param deadLettered how many messages failed for good, such as rejected and undecodable ones
 */
public record Drained(int runs, List<Throwable> failures, int retried, int deadLettered) {
  private static final int MOST_SUPPRESSED = 20;

  /** Copies the list. */
  public Drained {
    failures = List.copyOf(failures);
  }

  /**
   * Asserts that nothing failed: no handler threw, and no message was put back for a retry or
   * failed for good.
   *
   * @return this
   * @throws AssertionError if something did. It says what and how often; the first of the {@link
   *     #failures} is its cause, others are suppressed
   */
  public Drained requireNoFailures() {
    if (failures.isEmpty() && retried == 0 && deadLettered == 0) {
      return this;
    }
    String why =
        failures.isEmpty()
            ? "No handler threw: look at the last error of what waits, and at the dead letters"
            : "The first failure: " + failures.get(0);
    AssertionError failure =
        new AssertionError(
            "Nothing should have failed in this drain; handlers threw in %d of %d runs, messages were retried %d times, and %d failed for good. %s"
                .formatted(failures.size(), runs, retried, deadLettered, why),
            failures.isEmpty() ? null : failures.get(0));
    failures.stream().skip(1).limit(MOST_SUPPRESSED).forEach(failure::addSuppressed);
    throw failure;
  }
}
