package dev.outbox4j.postgres;

/** What a database role is there for; each needs other grants. */
public enum OutboxRole {
  /** Inserts messages. */
  PUBLISHER,
  /** Claims, settles and dead-letters messages. */
  SUBSCRIBER,
  /** Looks at the queue; browses, redrives and purges dead letters. */
  OPERATOR
}
