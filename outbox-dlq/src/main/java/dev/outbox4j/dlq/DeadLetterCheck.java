package dev.outbox4j.dlq;

import java.util.Optional;

/**
 * Says whether a dead letter may be redriven. Called by the thread that redrives, for one letter
 * after the other, before anything is changed.
 */
@FunctionalInterface
public interface DeadLetterCheck {

  /**
   * Looks at a letter.
   *
   * @param letter the letter
   * @return why it is not to be redriven, of which 2,000 bytes are kept; empty if it may
   * @throws InterruptedException if the thread was interrupted: the run ends
   * @throws Exception if it cannot be told: the letter is refused with the name of the exception;
   *     an error is taken likewise, unless it is one of the virtual machine. If it is an {@code
   *     OutboxStoreException} of a lock, a time limit or a lost race, the letter is passed by: it
   *     may go as soon as others are ready
   */
  Optional<String> refusal(DeadLetter letter) throws Exception;
}
