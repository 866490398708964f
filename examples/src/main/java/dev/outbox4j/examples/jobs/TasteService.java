package dev.outbox4j.examples.jobs;

import dev.outbox4j.job.EnqueueResult;
import dev.outbox4j.job.Job;
import dev.outbox4j.job.JobQueue;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.Optional;
import javax.sql.DataSource;

/**
 * Knows what users like, and has it analysed. What is liked and the job of its analysis are
 * committed together, or neither is. Thread-safe.
 */
final class TasteService {
  private static final String NOTE =
      """
      insert into taste_requests (user_id, content_hash, job_id, decision, message_id)
      values (?, ?, ?, ?, ?)
      """;

  private final DataSource dataSource;
  private final JobQueue queue;

  TasteService(DataSource dataSource, JobQueue queue) {
    this.dataSource = dataSource;
    this.queue = queue;
  }

  /** A part of a transaction. */
  @FunctionalInterface
  private interface Work {
    EnqueueResult in(Connection transaction) throws SQLException;
  }

  /** Notes that a user likes an item, and enqueues an analysis of what the user likes now. */
  EnqueueResult like(String user, String item) throws SQLException {
    return commit(transaction -> like(transaction, user, item));
  }

  /** In the caller's transaction. */
  EnqueueResult like(Connection transaction, String user, String item) throws SQLException {
    // of two at once neither would see the other's item, and nobody would analyse both
    UserLock.take(transaction, user);
    LikedItems.add(transaction, user, item);
    return analyse(transaction, user);
  }

  /**
   * Enqueues an analysis, as a page does that is shown to a user; as a rule it is one that is
   * enqueued or completed already.
   */
  EnqueueResult analyse(String user) throws SQLException {
    return commit(transaction -> analyse(transaction, user));
  }

  /** In the caller's transaction. */
  EnqueueResult analyse(Connection transaction, String user) throws SQLException {
    TasteAnalysis job = new TasteAnalysis(user, LikedItems.of(transaction, user).contentHash());
    EnqueueResult result = queue.enqueue(transaction, Job.of(TasteQueue.ANALYSIS, job));
    note(transaction, job, result);
    return result;
  }

  private EnqueueResult commit(Work work) throws SQLException {
    try (Connection connection = dataSource.getConnection()) {
      connection.setAutoCommit(false);
      try {
        EnqueueResult result = work.in(connection);
        connection.commit();
        return result;
      } catch (SQLException | RuntimeException e) {
        connection.rollback();
        throw e;
      }
    }
  }

  private static void note(Connection transaction, TasteAnalysis job, EnqueueResult result)
      throws SQLException {
    try (PreparedStatement insert = transaction.prepareStatement(NOTE)) {
      insert.setString(1, job.user());
      insert.setString(2, job.contentHash());
      insert.setString(3, result.jobId());
      insert.setString(4, result.decision().name());
      insert.setLong(5, result.messageId());
      insert.executeUpdate();
    }
  }

  /** {@return the taste of a user, if it was ever analysed} */
  Optional<String> taste(String user) throws SQLException {
    try (Connection connection = dataSource.getConnection();
        PreparedStatement read =
            connection.prepareStatement("select taste from taste_profiles where user_id = ?")) {
      read.setString(1, user);
      try (ResultSet row = read.executeQuery()) {
        return row.next() ? Optional.of(row.getString(1)) : Optional.empty();
      }
    }
  }
}
