package dev.outbox4j.poller;

import java.util.List;

/**
 * Handles rows that were changed, in the transaction that moves the poller's position: what it
 * writes and the position are both there or neither, so each row counts once.
 *
 * @param <C> the connection, to the outbox's database
 */
@FunctionalInterface
public interface TransactionalPollerHandler<C> {
  /**
   * Handles a batch, as {@link PollerHandler#handle} does.
   *
   * @param rows one row or more, in the order of the cursor and then of the key
   * @param context about this batch
   * @param connection in a transaction, which is committed with the position after a return and
   *     rolled back after an exception. Not to be committed, rolled back, closed or kept
   * @throws Exception if it failed
   */
  void handle(List<RowChange> rows, PollContext context, C connection) throws Exception;
}
