package dev.outbox4j.poller;

import java.util.List;

/** Handles rows that were changed. Called by one thread of one node at a time for each poller. */
@FunctionalInterface
public interface PollerHandler {
  /**
   * Handles a batch. When it returns, the poller's position moves behind the batch; when it throws,
   * the batch comes again. It may come again after a return, too: if the node dies, or has lost its
   * lease, before the position is written.
   *
   * @param rows one row or more, in the order of the cursor and then of the key
   * @param context about this batch
   * @throws Exception if it failed
   */
  void handle(List<RowChange> rows, PollContext context) throws Exception;
}
