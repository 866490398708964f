package dev.outbox4j.test;

import java.util.List;

/**
 * What became of a queue that was {@linkplain InMemoryOutbox#drain drained}, in memory or by {@code
 * TestOutbox}.
 *
 * @param runs how many handler runs there were, those that failed included; messages that reached
 *     no handler, such as undecodable ones, are not counted
 * @param failures what handlers threw, or their stages failed with, oldest first
 */
public record Drained(int runs, List<Throwable> failures) {
  /** Copies the list. */
  public Drained {
    failures = List.copyOf(failures);
  }
}
