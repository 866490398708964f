package dev.outbox4j.postgres;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.internal.schema.Names;
import dev.outbox4j.postgres.internal.JdbcPauses;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Objects;

/**
 * Pauses and resumes the queues of an outbox, for all processes. While a queue is paused, no
 * message of it begins in any {@link dev.outbox4j.OutboxSubscriber.Builder#pausable() pausable}
 * subscriber; publishers go on. A pause outlives every process, and stays on record with who paused
 * and resumed it. Immutable and thread-safe.
 *
 * <p>The outbox must be set up for it by {@code PauseMigrations}. Each call is one statement in a
 * transaction of its own, and may be repeated when its answer was lost.
 */
public final class QueuePauses {
  private static final int MAX_NAME_BYTES = 255;
  private static final int MAX_REASON_BYTES = 2_000;
  private static final int MOST = 10_000;

  private final JdbcPauses pauses;

  QueuePauses(JdbcPauses pauses) {
    this.pauses = pauses;
  }

  /**
   * Pauses a queue. Subscribers notice it within a second: then nothing new begins, and handlers
   * that run end as ever.
   *
   * <p>A pause is a row of the database, and nobody knows who heeds it: not whether the queue has
   * any subscriber, nor whether those that it has are {@link
   * dev.outbox4j.OutboxSubscriber.Builder#pausable() pausable}. Each one that heeds it says so, in
   * its log and in {@link dev.outbox4j.SubscriberHealth#pausedQueues()}.
   *
   * @param queue the queue; it need not have any message, nor a subscriber, so a name that is
   *     misspelt is paused as well
   * @param by who pauses it; not blank, at most 255 bytes in UTF-8
   * @param reason why; not blank, at most 2,000 bytes in UTF-8
   * @return true if the pause was written, which does not say that anybody heeds it; false if it
   *     was paused already, and then nothing has changed
   * @throws OutboxStoreException if the statement fails
   * @throws IllegalArgumentException if a text is blank or too long, or the queue's name is one
   *     that no message can have
   */
  public boolean pause(String queue, String by, String reason) {
    OutboxMessage.to(queue); // the rules for names
    require("by", by, MAX_NAME_BYTES);
    require("reason", reason, MAX_REASON_BYTES);
    return pauses.pause(queue, by, reason);
  }

  /**
   * Resumes a queue. Subscribers that listen notice it at once, others within a second.
   *
   * @param queue the queue
   * @param by who resumes it; not blank, at most 255 bytes in UTF-8
   * @return false if it was not paused, and then nothing has changed
   * @throws OutboxStoreException if the statement fails
   * @throws IllegalArgumentException if a text is blank or too long, or the queue's name is one
   *     that no message can have
   */
  public boolean resume(String queue, String by) {
    OutboxMessage.to(queue);
    require("by", by, MAX_NAME_BYTES);
    return pauses.resume(queue, by);
  }

  /**
   * Returns the pauses that last, of any queue.
   *
   * @return at most one of each queue, in the order of their names
   * @throws OutboxStoreException if the statement fails
   */
  public List<QueuePause> open() {
    return pauses.open();
  }

  /**
   * Returns the latest pauses of a queue, those that have ended as well.
   *
   * @param queue the queue
   * @param limit how many at most, 1 to 10,000
   * @return the pauses, the latest first
   * @throws OutboxStoreException if the statement fails
   * @throws IllegalArgumentException if the limit is out of range, or the queue's name is one that
   *     no message can have
   */
  public List<QueuePause> history(String queue, int limit) {
    OutboxMessage.to(queue);
    if (limit < 1 || limit > MOST) {
      throw new IllegalArgumentException("limit is " + limit + "; it must be 1 to " + MOST);
    }
    return pauses.history(queue, limit);
  }

  private static void require(String what, String text, int maxBytes) {
    Objects.requireNonNull(text, what);
    int bytes = text.getBytes(StandardCharsets.UTF_8).length;
    if (text.isBlank() || text.indexOf('\0') >= 0) {
      throw new IllegalArgumentException(what + " is blank or has a NUL; say it in words");
    }
    if (bytes > maxBytes) {
      throw new IllegalArgumentException(
          "%s has %d bytes; it may have %d, so shorten it".formatted(what, bytes, maxBytes));
    }
  }

  @Override
  public String toString() {
    return "QueuePauses[" + Names.plain(pauses.table()) + "]";
  }
}
