package dev.outbox4j.postgres.internal.publish;

import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.postgres.NotifyMode;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.spi.PayloadCodec;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * What both publishers are built from.
 *
 * @param table where they publish
 * @param notifyMode when they notify
 * @param codec what encodes bodies; null if there is none
 * @param autoCommitAllowed whether the connection may be in autocommit mode
 */
public record PublisherSettings(
    OutboxTable table,
    NotifyMode notifyMode,
    @Nullable PayloadCodec codec,
    boolean autoCommitAllowed) {

  /** Whether a call is one plain message, which has a statement of its own. */
  static boolean isSingle(List<OutboxMessage> messages) {
    return messages.size() == 1 && isSingle(messages.get(0));
  }

  private static boolean isSingle(OutboxMessage message) {
    return message.timerId().isEmpty()
        && message.expiresIn().isEmpty()
        && message.expiresAt().isEmpty()
        && message.dedupKey().isEmpty();
  }

  /** Whether the batch's statement wants to know what is due first. */
  boolean asksForFirstDue(PublishBatch batch) {
    return notifyMode != NotifyMode.NEVER && !batch.hasTimers() && !batch.hasDedupKeys();
  }

  OutboxException autoCommitRefused(String operation) {
    return new OutboxException(
        operation
            + " on table "
            + table
            + " refused: the connection is in autocommit mode, so the outbox would commit without the domain write it belongs to;"
            + " begin a transaction first, or build the publisher with allowAutoCommit()");
  }
}
