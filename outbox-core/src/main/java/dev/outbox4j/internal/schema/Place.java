package dev.outbox4j.internal.schema;

/** One of the tables. */
public enum Place {
  /** The messages. */
  OUTBOX,
  /** The sleeping subscribers. */
  SLEEPERS,
  /** The dead letters. */
  DEAD_LETTERS,
  /** How often dead letters were redriven, and what they were before. */
  DEAD_LETTER_TRIPS,
  /** What was done to dead letters, and by whom. */
  DEAD_LETTER_AUDIT,
  /** The buckets of ordered queues. */
  BUCKETS,
  /** The owners of buckets. */
  BUCKET_OWNERS,
  /** The pauses of queues. */
  PAUSES,
  /** The dedup keys that were published. */
  DEDUP,
  /** The slots of queues whose concurrency is limited. */
  SLOTS,
  /** The timers. */
  TIMERS,
  /** The runs of timers. */
  TIMER_RUNS,
  /** The locks that one holder at a time has. */
  LOCKS,
  /** The instances of monitors. */
  MONITORS,
  /** What has happened to instances of monitors, and what they are to be told. */
  MONITOR_EVENTS,
  /** The jobs of job queues. */
  JOBS,
  /** How jobs ended. */
  JOB_ENDS,
  /** The table pollers. */
  POLLERS,
  /** What people did to table pollers. */
  POLLER_HISTORY,
  /** The rows that table pollers have put into quarantine. */
  POLLER_QUARANTINE,
  /** What was handled, of handlers that write to this database. */
  INBOX;

  /** Tells whether it is named by the table of dead letters, and not by the outbox. */
  public boolean isOfDeadLetters() {
    return this == DEAD_LETTERS || this == DEAD_LETTER_TRIPS || this == DEAD_LETTER_AUDIT;
  }
}
