package dev.outbox4j.examples.jobs;

import dev.outbox4j.Delivery;
import dev.outbox4j.Outcome;
import java.io.IOException;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.util.Optional;

/**
 * Analyses tastes, each in the transaction that also ends its job. While the service is asked, that
 * transaction has written nothing: it has a connection and no lock. What fails is thrown and tried
 * again.
 */
final class TasteHandler {
  private static final String WRITE_PROFILE =
      """
      insert into taste_profiles (user_id, content_hash, taste) values (?, ?, ?)
      on conflict (user_id) do update
      set content_hash = excluded.content_hash, taste = excluded.taste, analysed_at = now()
      """;

  private static final String NOTE =
      "insert into taste_analyses (message_id, user_id, superseded) values (?, ?, ?)";

  private final Analyst analyst;

  TasteHandler(Analyst analyst) {
    this.analyst = analyst;
  }

  Outcome handle(TasteAnalysis job, Delivery delivery, Connection transaction)
      throws SQLException, IOException, InterruptedException {
    Optional<String> fault = job.fault();
    if (fault.isPresent()) {
      return Outcome.reject(fault.get());
    }
    LikedItems liked = LikedItems.of(transaction, job.user());
    String taste = null;
    if (isOf(job, liked)) {
      try {
        taste = analyst.taste(liked);
      } catch (RefusedItems e) {
        return Outcome.reject("the analysis service does not take the items: " + e.getMessage());
      }
      UserLock.take(transaction, job.user());
      liked = LikedItems.of(transaction, job.user());
    }
    // who likes more meanwhile enqueues another job, and a late profile must not replace its own
    boolean superseded = !isOf(job, liked);
    if (taste != null && !superseded) {
      writeProfile(transaction, job, taste);
    }
    note(transaction, delivery, job, superseded);
    return Outcome.ack();
  }

  private static boolean isOf(TasteAnalysis job, LikedItems liked) {
    return liked.contentHash().equals(job.contentHash());
  }

  private static void writeProfile(Connection transaction, TasteAnalysis job, String taste)
      throws SQLException {
    try (PreparedStatement write = transaction.prepareStatement(WRITE_PROFILE)) {
      write.setString(1, job.user());
      write.setString(2, job.contentHash());
      write.setString(3, taste);
      write.executeUpdate();
    }
  }

  private static void note(
      Connection transaction, Delivery delivery, TasteAnalysis job, boolean superseded)
      throws SQLException {
    try (PreparedStatement insert = transaction.prepareStatement(NOTE)) {
      insert.setLong(1, delivery.id());
      insert.setString(2, job.user());
      insert.setBoolean(3, superseded);
      insert.executeUpdate();
    }
  }
}
