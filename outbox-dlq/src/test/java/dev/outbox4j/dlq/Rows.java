package dev.outbox4j.dlq;

import dev.outbox4j.FailureReason;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.DeadLetterEntry;
import dev.outbox4j.spi.LeaseRef;
import java.util.ArrayList;
import java.util.List;

/** Leased rows of an outbox, written by plain SQL, and entries that dead-letter them. */
final class Rows {
  /** The token that {@link #lease} gives. */
  static final int TOKEN = 7;

  /** What no message and no log may hold. */
  static final String SECRET = "5ec4e7";

  private final TestDatabase database;
  private final String table;

  Rows(TestDatabase database, String table) {
    this.database = database;
    this.table = table;
  }

  /** Inserts a row under a lease and returns its id. */
  long lease(String queue) {
    return database.one(
        Long.class,
        "insert into "
            + table
            + " (queue, payload, headers, lease_until, lease_token, leased_by, deliveries_count)"
            + " values (?, decode('"
            + SECRET
            + "', 'hex'), '{\"h\":\""
            + SECRET
            + "\"}', now() + interval '1 hour', "
            + TOKEN
            + ", 'tester', 1) returning id",
        queue);
  }

  List<Long> lease(String queue, int count) {
    List<Long> ids = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      ids.add(lease(queue));
    }
    return ids;
  }

  /** Tells whether the row is there and leased as {@link #lease} left it. */
  boolean untouched(long id) {
    return database.one(
        Boolean.class,
        "select count(*) = 1 from "
            + table
            + " where id = ? and lease_token = "
            + TOKEN
            + " and lease_until > now() and leased_by = 'tester'",
        id);
  }

  boolean gone(long id) {
    return database.one(Boolean.class, "select count(*) = 0 from " + table + " where id = ?", id);
  }

  static DeadLetterEntry entry(String queue, long id) {
    return entry(queue, id, TOKEN);
  }

  static DeadLetterEntry entry(String queue, long id, int token) {
    return new DeadLetterEntry(
        new LeaseRef(queue, id, token), FailureReason.RETRY_TERMINAL, 3, "why it failed");
  }
}
