package dev.outbox4j.poller.internal;

import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.util.Objects;

/**
 * Which server has answered. Which transactions are open is known of this one alone, and no longer
 * than it runs.
 *
 * @param standby whether it is a standby
 * @param started when it was started
 */
record SourceServer(boolean standby, Instant started) {
  /** Two columns that everybody may ask for. */
  static final String COLUMNS = "pg_is_in_recovery(), pg_postmaster_start_time()";

  /** Reads the two columns. */
  static SourceServer read(ResultSet row, int column) throws SQLException {
    OffsetDateTime started = row.getObject(column + 1, OffsetDateTime.class);
    return new SourceServer(row.getBoolean(column), Objects.requireNonNull(started).toInstant());
  }

  /** What was found on one server says nothing about another one. */
  void requireSame(SourceServer other) {
    if (!equals(other)) {
      throw new SourceException(
          "open transactions were looked for on %s, and the rows were read on %s: the pool leads to"
                  .formatted(this, other)
              + " several servers, or the server was started anew meanwhile. Let it lead to one");
    }
  }

  @Override
  public String toString() {
    return (standby ? "the standby" : "the primary") + " that was started at " + started;
  }
}
