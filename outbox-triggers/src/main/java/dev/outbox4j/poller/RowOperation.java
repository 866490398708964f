package dev.outbox4j.poller;

/** What happened to a row. */
public enum RowOperation {
  /** It was inserted or updated; which of both cannot be told. */
  UPSERT,

  /** It was deleted, as the poller's {@link Deletes} tell. */
  DELETE
}
