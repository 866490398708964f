package dev.outbox4j.dlq;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.postgres.PostgresOutbox;
import java.util.List;
import java.util.Objects;
import java.util.Optional;

/**
 * The dead letters of one outbox, as a list of what is to be done: look at them, mend the cause,
 * put back what can work, discard the rest, and see who did what.
 *
 * <p>It sees the letters of its own outbox only, also where several outboxes share the table. Every
 * action is in the audit, and what is done to a letter is one transaction: two operators may act at
 * once, and each letter is put back or discarded once. Immutable and thread-safe; its connections
 * need the rights of an operator ({@code OutboxMigrations.grantsSql}).
 */
public final class DeadLetterWorklist {
  private static final int MOST = 10_000;

  private final JdbcWorklist jdbc;

  private DeadLetterWorklist(JdbcWorklist jdbc) {
    this.jdbc = jdbc;
  }

  /**
   * Names the dead letters of an outbox. Does no I/O.
   *
   * @param outbox the outbox, and where to reach it
   * @param deadLetters the table to which its subscribers move what failed
   * @return the worklist
   */
  public static DeadLetterWorklist of(PostgresOutbox outbox, DeadLetterQueue deadLetters) {
    Objects.requireNonNull(outbox, "outbox");
    return new DeadLetterWorklist(
        new JdbcWorklist(outbox, Objects.requireNonNull(deadLetters, "deadLetters")));
  }

  /**
   * Selects letters. Does no I/O.
   *
   * @param filter which
   * @return what can be done with them
   */
  public DeadLetterSelection where(DeadLetterFilter filter) {
    return new DeadLetterSelection(jdbc, Objects.requireNonNull(filter, "filter"));
  }

  /**
   * Returns a letter, whole.
   *
   * @param id its own id
   * @return the letter; empty if there is none
   * @throws OutboxStoreException if the statement fails
   */
  public Optional<DeadLetter> find(long id) {
    return jdbc.letters(new long[] {id}).stream().findFirst();
  }

  /**
   * Returns the redrives of a letter.
   *
   * @param id its own id
   * @return the redrives, the first one first; empty if there was none, or there is no such letter
   * @throws OutboxStoreException if the statement fails
   */
  public List<DeadLetterTrip> history(long id) {
    return jdbc.trips(id);
  }

  /**
   * Puts a letter back with changes. What it had been stays in its {@link #history}; the letter
   * itself stays as it was until the message fails again.
   *
   * @param id its own id
   * @param edit the changes
   * @param redrive who and why, and what is to be checked of the changed letter; its rate does not
   *     matter
   * @return what became of it: one is done, refused, or passed by, as when somebody else was faster
   * @throws IllegalArgumentException if there is no such letter, or it is resolved
   * @throws OutboxStoreException if a statement fails
   */
  public DeadLetterReport redrive(long id, DeadLetterEdit edit, Redrive redrive) {
    Objects.requireNonNull(edit, "edit");
    Objects.requireNonNull(redrive, "redrive");
    DeadLetter letter =
        find(id)
            .orElseThrow(
                () ->
                    new IllegalArgumentException(
                        "There is no dead letter " + id + " of this outbox in " + jdbc.name()));
    letter
        .summary()
        .resolution()
        .ifPresent(
            resolution -> {
              throw new IllegalArgumentException(
                  "Dead letter %d was resolved by %s: %s"
                      .formatted(id, resolution.by(), resolution.what()));
            });
    return new RedriveRun(jdbc, redrive, "edit", "id " + id).edited(letter, edit);
  }

  /**
   * Returns the ordering keys of a queue that have unresolved letters, in the order of the keys by
   * their bytes in UTF-8: those that an ordered queue holds, if its subscribers do so.
   *
   * @param queue the queue
   * @param size how many at most, 1 to 1,000; each costs what its unresolved letters cost
   * @return the first keys
   * @throws IllegalArgumentException if the size is out of range, or no queue can have that name
   * @throws OutboxStoreException if the statement fails
   */
  public List<DeadLetterKey> keysOnHold(String queue, int size) {
    return keysOnHold(queue, size, "");
  }

  /**
   * Returns the ordering keys of a queue that have unresolved letters and come after a key.
   *
   * @param queue the queue
   * @param size how many at most, 1 to 1,000
   * @param after the last key of the page before, whether or not it is still on hold
   * @return the next keys; fewer than {@code size} if there are no more
   * @throws IllegalArgumentException if the size is out of range, or no queue can have that name
   * @throws OutboxStoreException if the statement fails
   */
  public List<DeadLetterKey> keysOnHold(String queue, int size, String after) {
    OutboxMessage.to(queue); // the rules for names
    Objects.requireNonNull(after, "after");
    return jdbc.keys(queue, DeadLetterSelection.requireSize(size), after);
  }

  /**
   * Returns what was done to dead letters of this outbox.
   *
   * @param limit how many entries at most, 1 to 10,000
   * @return the entries, the latest first
   * @throws IllegalArgumentException if the limit is out of range
   * @throws OutboxStoreException if the statement fails
   */
  public List<DeadLetterAction> audit(int limit) {
    if (limit < 1 || limit > MOST) {
      throw new IllegalArgumentException("limit is " + limit + "; it must be 1 to " + MOST);
    }
    return jdbc.audit(limit);
  }

  @Override
  public String toString() {
    return "DeadLetterWorklist[" + jdbc.name() + "]";
  }
}
