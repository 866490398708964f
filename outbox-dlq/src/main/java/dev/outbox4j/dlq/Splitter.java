package dev.outbox4j.dlq;

import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.OutboxStoreException.Fault;
import dev.outbox4j.dlq.JdbcWorklist.Candidate;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Does something to letters by one statement, or by smaller ones if the server refuses that: so no
 * letter stops the others. Confined to the thread that acts.
 */
final class Splitter {
  private static final String QUERY_CANCELED = "57014";
  private static final String ROLLED_BACK = "40";
  private static final String DATA_CORRUPTED = "XX001";
  private static final int ATTEMPTS = 3;
  private static final int SUCCESSES_TO_GROW = 20;

  /** Classes of what is no letter's, and no trigger's of a user, who may name any other class. */
  private static final Set<String> OF_SERVER_OR_SESSION =
      Set.of("08", "25", "26", "28", "34", "3B", "3D", "53", "55", "57", "58", "72", "F0", "XX");

  private final int most;
  private int largest;
  private int successes;

  /** Sets how many letters a statement has at most. */
  Splitter(int largest) {
    this.most = largest;
    this.largest = largest;
  }

  /**
   * {@return how many letters a statement is to have at most: fewer once one took too long, and
   * more again once many have not}
   */
  int largest() {
    return largest;
  }

  /**
   * Does it, to the first letters first.
   *
   * @param letters at least one
   * @param step the statement; it changes nothing if it throws, unless its outcome is unknown
   * @param failed what becomes of a letter that the server refuses by itself
   */
  void run(
      List<Candidate> letters,
      Consumer<List<Candidate>> step,
      BiConsumer<Candidate, OutboxStoreException> failed) {
    @Nullable OutboxStoreException failure = null;
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
      try {
        step.accept(letters);
        succeeded(letters.size());
        return;
      } catch (OutboxStoreException e) {
        if (!isOfLetters(e)) {
          throw e;
        }
        failure = e;
        if (e.sqlState().filter(QUERY_CANCELED::equals).isPresent()) {
          largest = Math.min(largest, Math.max(1, letters.size() / 2));
          successes = 0;
        }
        if (letters.size() > 1 || !isLostRace(e)) {
          break;
        }
      }
    }
    if (letters.size() == 1) {
      failed.accept(letters.get(0), Objects.requireNonNull(failure));
      return;
    }
    int half = letters.size() / 2;
    run(letters.subList(0, half), step, failed);
    run(letters.subList(half, letters.size()), step, failed);
  }

  private void succeeded(int letters) {
    if (largest < most && letters >= largest && ++successes == SUCCESSES_TO_GROW) {
      largest = Math.min(most, largest * 2);
      successes = 0;
    }
  }

  /** What was rolled back for what the letters hold, or who has them in hand. */
  private static boolean isOfLetters(OutboxStoreException e) {
    return isUnreadable(e)
        || (!e.outcomeUnknown() && (e.fault() == Fault.ROW || isOfTheMoment(e) || isOfATrigger(e)));
  }

  /** Tells whether the server cannot read what it has stored, such as a payload. */
  static boolean isUnreadable(OutboxStoreException e) {
    return !e.outcomeUnknown() && e.sqlState().filter(DATA_CORRUPTED::equals).isPresent();
  }

  /** Tells whether the same may succeed as soon as others are ready. */
  static boolean isOfTheMoment(OutboxStoreException e) {
    return e.fault() == Fault.TIMEOUT || isLostRace(e);
  }

  private static boolean isOfATrigger(OutboxStoreException e) {
    return e.fault() == Fault.TRANSIENT
        && e.sqlState()
            .filter(state -> state.length() == 5)
            .filter(state -> !OF_SERVER_OR_SESSION.contains(state.substring(0, 2)))
            .isPresent();
  }

  private static boolean isLostRace(OutboxStoreException e) {
    return e.sqlState().filter(state -> state.startsWith(ROLLED_BACK)).isPresent();
  }
}
