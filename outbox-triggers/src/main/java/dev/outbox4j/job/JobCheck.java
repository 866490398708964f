package dev.outbox4j.job;

import java.util.Optional;

/**
 * Says whether the body of a job is as its handler needs it. Asked when a job is enqueued, and of a
 * dead letter before it is replayed. Must be thread-safe.
 *
 * @param <T> the body
 */
@FunctionalInterface
public interface JobCheck<T> {

  /**
   * Looks at a body.
   *
   * @param body the body
   * @return what is wrong with it, for people; empty if nothing is
   * @throws Exception if it cannot be told: the job is refused
   */
  Optional<String> refusal(T body) throws Exception;
}
