package dev.outbox4j.dlq;

import java.util.List;

/**
 * A condition on dead letters.
 *
 * @param kind what an index may know of it
 * @param words the condition, for people
 * @param sql the condition, on a letter {@code d}, with <code>{v}</code> for each value
 * @param values the values
 */
record Term(Kind kind, String words, String sql, List<Object> values) {
  /** What an index may know of a condition. */
  public enum Kind {
    /** The queue. */
    QUEUE,
    /** The ordering key. */
    KEY,
    /** That it failed at a time or later. */
    FROM,
    /** That it failed before a time. */
    BEFORE,
    /** The letters' own ids. */
    IDS,
    /** The id that it had as a message. */
    MESSAGE,
    /** Nobody has resolved it. */
    UNRESOLVED,
    /** Somebody has. */
    RESOLVED,
    /** Either. */
    ANY,
    /** No index knows it. */
    OTHER;

    /** Tells whether it is of resolution. */
    public boolean isOfResolution() {
      return this == UNRESOLVED || this == RESOLVED || this == ANY;
    }
  }

  /** Copies the list. */
  public Term {
    values = List.copyOf(values);
  }
}
