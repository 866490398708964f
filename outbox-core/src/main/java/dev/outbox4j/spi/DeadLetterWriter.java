package dev.outbox4j.spi;

import dev.outbox4j.OutboxStoreException;
import java.util.List;
import java.util.Optional;

/** Moves rows of one store to its dead-letter table. Thread-safe. */
@FunctionalInterface
public interface DeadLetterWriter {

  /**
   * Moves rows in one atomic statement: each is deleted from the outbox and inserted as a dead
   * letter, or neither.
   *
   * @param entries the rows, at least one, all of one queue
   * @return what was moved
   * @throws OutboxStoreException if nothing was moved
   */
  Written write(List<DeadLetterEntry> entries);

  /**
   * {@return which ordering keys have dead letters that are not resolved, if that can be told; else
   * {@code holdKeyOnDeadLetter()} is refused}
   */
  default Optional<OpenDeadLetters> open() {
    return Optional.empty();
  }

  /** {@return where it moves them, for people} */
  default String place() {
    return "the dead letters";
  }
}
