package dev.outbox4j.examples.jobs;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;

/**
 * Lets one transaction at a time write what a user likes, or the profile of that: until its end.
 * What it reads behind the lock is what the one before has committed, at isolation read committed.
 */
final class UserLock {
  private static final String TAKE =
      "select pg_advisory_xact_lock(hashtextextended('taste of ' || ?, 0))";

  private UserLock() {}

  static void take(Connection transaction, String user) throws SQLException {
    try (PreparedStatement take = transaction.prepareStatement(TAKE)) {
      take.setString(1, user);
      take.execute();
    }
  }
}
