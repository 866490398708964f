package dev.outbox4j.poller;

/** At which step a tick failed. */
public enum PollerFailure {
  /** The poller's record could not be read or taken: the outbox's database is at fault. */
  LEASE("lease_acquire_failed"),

  /** The position on record is none. */
  CHECKPOINT("checkpoint_load_failed"),

  /** The source is not what the record says, or cannot be followed as the definition says. */
  SOURCE("source_descriptor_failed"),

  /** The rows could not be read, or up to where they may be read. */
  FETCH("fetch_failed"),

  /** A value of a row could not be read. */
  NORMALIZE("normalize_failed"),

  /** The handler threw. */
  HANDLER("handler_failed"),

  /** The position could not be written, or the lease was lost before it was. */
  COMMIT("commit_failed"),

  /** The lease could not be released; it ends by itself. */
  RELEASE("lease_release_failed");

  private final String event;

  PollerFailure(String event) {
    this.event = event;
  }

  /** {@return the name by which the log tells of it} */
  public String event() {
    return event;
  }
}
