package dev.outbox4j.postgres;

import dev.outbox4j.OutboxException;

/** What both publishers are built from. */
record PublisherSettings(
    OutboxTable table, NotifyMode notifyMode, BodyEncoder encoder, boolean autoCommitAllowed) {

  /** Tells whether the batch's statement wants to know what is due first. */
  boolean asksForFirstDue(PublishBatch batch) {
    return notifyMode != NotifyMode.NEVER && !batch.timed();
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
