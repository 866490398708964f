package dev.outbox4j.poller.internal;

import java.time.Instant;
import org.jspecify.annotations.Nullable;

/**
 * A session of the source's database.
 *
 * @param process the server's process
 * @param transaction the virtual id of the transaction that is open; null if none is
 * @param application the application's name
 * @param began what {@code now()} is in its transaction, where that may be seen
 * @param asked when the message came that it is at work on, where that may be seen; null if it is
 *     at work on none
 * @param hidden whether its times may not be seen
 */
record Session(
    int process,
    @Nullable String transaction,
    @Nullable String application,
    @Nullable Instant began,
    @Nullable Instant asked,
    boolean hidden) {

  /**
   * Whether it may yet write a time up to this one; of those whose times may be seen.
   *
   * <p>{@code now()} is the time of the message that a transaction begins in, and of all that begin
   * in the same message. Between two of them nothing is open, but the message is the same.
   */
  boolean mayWrite(Instant upTo) {
    if (began != null) {
      return !began.isAfter(upTo);
    }
    return transaction != null || (asked != null && !asked.isAfter(upTo));
  }

  /** Its transaction, for people. */
  @Nullable OpenTransaction open() {
    return transaction == null
        ? null
        : new OpenTransaction(transaction, process, application, hidden ? null : began);
  }
}
