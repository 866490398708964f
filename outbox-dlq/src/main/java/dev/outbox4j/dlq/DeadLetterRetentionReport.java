package dev.outbox4j.dlq;

import java.util.ArrayList;
import java.util.List;

/**
 * What a run of the retention has done.
 *
 * @param partitioned whether the table is partitioned
 * @param deleted how many letters it deleted one by one, in batches
 * @param leftAlone how many it did not delete, although they were due: their messages are in the
 *     outbox, somebody had them in hand, or the server refused
 * @param created the partitions that it created
 * @param dropped the partitions that it dropped
 * @param held the partitions that are old enough to be dropped, and have letters that nobody has
 *     resolved
 * @param postponed what is to be done to partitions and was not, since others had them in use; the
 *     next run tries again
 * @param ended what is to be done to partitions and was not, since the server ended the statement,
 *     which took longer than it may, or was cancelled by somebody; the next run tries again
 * @param caught how many letters are in the default partition, since there was no other one for
 *     them; at most 10,000 are counted
 * @param partitions how many partitions there are now, that of all other letters included; 0 of a
 *     plain table
 * @param finished whether it came to its end; false if its thread was interrupted
 */
public record DeadLetterRetentionReport(
    boolean partitioned,
    long deleted,
    long leftAlone,
    List<String> created,
    List<String> dropped,
    List<String> held,
    List<String> postponed,
    List<String> ended,
    long caught,
    int partitions,
    boolean finished) {
  private static final int MANY = 20;

  /** Copies the lists. */
  public DeadLetterRetentionReport {
    created = List.copyOf(created);
    dropped = List.copyOf(dropped);
    held = List.copyOf(held);
    postponed = List.copyOf(postponed);
    ended = List.copyOf(ended);
  }

  /** Tells whether the next run need not come sooner than it would. */
  boolean nothingIsLeft() {
    return postponed.isEmpty() && ended.isEmpty();
  }

  /** {@return what somebody should look at; empty if all is as it should be} */
  public List<String> problems() {
    List<String> problems = new ArrayList<>();
    if (caught > 0) {
      problems.add(
          "Letters in the default partition, since there was no other one for them: " + caught);
    }
    postponed.forEach(what -> problems.add(what + " has to wait, since others have it in use"));
    ended.forEach(
        what ->
            problems.add(
                what
                    + " has to wait, since the server ended a statement on it, which took too long or"
                    + " was cancelled"));
    if (!held.isEmpty() && partitions > MANY) {
      problems.add(
          "Letters that nobody has resolved hold %d of %d partitions, the oldest of which is %s; each statement on dead letters plans for all of them: resolve these letters, or set keepAll"
              .formatted(held.size(), partitions, held.get(0)));
    }
    return problems;
  }
}
