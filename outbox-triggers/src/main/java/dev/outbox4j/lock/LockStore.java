package dev.outbox4j.lock;

import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.internal.Jdbc;
import dev.outbox4j.postgres.internal.ServerTime;
import dev.outbox4j.postgres.internal.SqlFaults;
import dev.outbox4j.triggers.internal.Statements;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/** The record of an application's locks; each method is one statement. Thread-safe. */
final class LockStore {
  private final PostgresOutbox outbox;
  private final Jdbc jdbc;
  private final Statements statements;
  private final String application;

  LockStore(PostgresOutbox outbox, String application, Duration networkTimeout) {
    this.outbox = outbox;
    this.jdbc = new Jdbc(outbox.dataSource(), outbox.table(), networkTimeout);
    this.statements = new Statements(outbox.table(), application);
    this.application = application;
  }

  /**
   * What became of an attempt.
   *
   * @param sent when it was sent, by the clock that was given
   * @param token the token, if the lock was taken
   * @param holder who has it else, if that is known
   * @param remaining how long its lease lasts unless it is renewed
   */
  record Attempt(long sent, @Nullable Long token, @Nullable String holder, Duration remaining) {}

  /** Tries to acquire. A wait for a connection does not count as a part of the lease. */
  Attempt acquire(String name, String owner, Duration period, LongSupplier clock) {
    return jdbc.run(
        "acquire a lock",
        connection -> {
          long sent = clock.getAsLong();
          List<Attempt> attempts =
              statements.queryAlone(
                  jdbc,
                  connection,
                  LockSql.ACQUIRE,
                  Map.of("name", name, "owner", owner, "seconds", seconds(period)),
                  row -> attempt(sent, row));
          return attempts.isEmpty()
              ? new Attempt(sent, null, null, Duration.ZERO)
              : attempts.get(0);
        });
  }

  private static Attempt attempt(long sent, ResultSet row) throws SQLException {
    long token = row.getLong(1);
    return row.wasNull()
        ? new Attempt(sent, null, row.getString(2), duration(row.getDouble(3)))
        : new Attempt(sent, token, null, Duration.ZERO);
  }

  /** Returns when it was sent, by the clock that was given; empty if the lock is another's. */
  OptionalLong renew(String name, String owner, Duration period, LongSupplier clock) {
    return jdbc.run(
        "renew a lock",
        connection -> {
          long sent = clock.getAsLong();
          int rows =
              statements.updateAlone(
                  jdbc,
                  connection,
                  LockSql.RENEW,
                  Map.of("name", name, "owner", owner, "seconds", seconds(period)));
          return rows > 0 ? OptionalLong.of(sent) : OptionalLong.empty();
        });
  }

  /** Returns whether the lock was still this owner's. */
  boolean release(String name, String owner) {
    return !jdbc.run(
            "release a lock",
            connection ->
                statements.queryAlone(
                    jdbc, connection, LockSql.RELEASE, toRelease(name, owner), row -> true))
        .isEmpty();
  }

  /** Returns whether the lock is this owner's until the transaction's commit, which tells of it. */
  boolean releaseWith(Connection transaction, String name, String owner) {
    try {
      return !statements
          .query(transaction, LockSql.RELEASE, toRelease(name, owner), row -> true)
          .isEmpty();
    } catch (SQLException e) {
      throw SqlFaults.explainRolledBack("release a lock", outbox.table(), e);
    }
  }

  private Map<String, Object> toRelease(String name, String owner) {
    return Map.of("name", name, "owner", owner, "payload", Releases.payload(application, name));
  }

  /** Returns whether the lock is this owner's, and keeps it so until the transaction's end. */
  boolean guard(Connection transaction, String name, String owner) {
    try {
      return !statements
          .query(transaction, LockSql.GUARD, Map.of("name", name, "owner", owner), row -> true)
          .isEmpty();
    } catch (SQLException e) {
      throw SqlFaults.explainRolledBack("guard a write", outbox.table(), e);
    }
  }

  List<LockStatus> list() {
    return jdbc.run(
        "list locks",
        connection ->
            statements.queryAlone(
                jdbc,
                connection,
                LockSql.LIST,
                Map.of(),
                row -> {
                  Instant until = ServerTime.read(row, 4);
                  boolean held = row.getBoolean(7);
                  return new LockStatus(
                      row.getString(1),
                      row.getLong(2),
                      held ? Optional.of(row.getString(3)) : Optional.empty(),
                      held ? Optional.of(until) : Optional.empty(),
                      ServerTime.read(row, 5),
                      ServerTime.read(row, 6));
                }));
  }

  int purge(Instant before, int most) {
    return jdbc.run(
        "purge locks",
        connection ->
            statements.updateAlone(
                jdbc,
                connection,
                LockSql.PURGE,
                Map.of("before", before.toString(), "most", (long) most)));
  }

  /**
   * Releases what an attempt may have taken without hearing of it, or a transaction may not have
   * released; if that fails it runs out.
   *
   * @return false if it failed
   */
  boolean forget(String name, String owner) {
    try {
      release(name, owner);
      return true;
    } catch (OutboxStoreException e) {
      Locks.log.debug("lock {}: what may have been taken runs out by itself", name, e);
      return false;
    }
  }

  private static double seconds(Duration period) {
    return period.toMillis() / 1_000.0;
  }

  private static Duration duration(double seconds) {
    return Duration.ofMillis(Math.max(0, (long) Math.ceil(seconds * 1_000)));
  }
}
