package dev.outbox4j.postgres.internal;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;

/** The statements on an inbox. Immutable. */
public final class InboxSql {
  private final String add;
  private final String purge;

  /**
   * Renders them.
   *
   * @param table the inbox, qualified and quoted
   */
  public InboxSql(String table) {
    this.add =
        """
        insert into {inbox} as i (queue, message_key, expires_at)
        values (?, ?, now() + make_interval(secs => ?))
        on conflict (queue, message_key) do update
          set processed_at = now(), expires_at = excluded.expires_at
          where i.expires_at <= now()
        returning true
        """
            .replace("{inbox}", table);
    this.purge =
        """
        with over as materialized (
          select ctid, queue, message_key from {inbox}
          where expires_at <= now() order by expires_at limit ? for update skip locked)
        delete from {inbox} i
        using over
        where i.ctid = over.ctid and i.queue = over.queue and i.message_key = over.message_key
        """
            .replace("{inbox}", table);
  }

  /**
   * Notes a message.
   *
   * @param connection in a transaction
   * @param queue the queue
   * @param key the message's key
   * @param timeToLive for how long
   * @return false if it was there
   * @throws SQLException if it failed
   */
  public boolean add(Connection connection, String queue, String key, Duration timeToLive)
      throws SQLException {
    try (PreparedStatement statement = connection.prepareStatement(add)) {
      statement.setString(1, queue);
      statement.setString(2, key);
      statement.setDouble(3, ServerTime.seconds(timeToLive));
      try (ResultSet added = statement.executeQuery()) {
        return added.next();
      }
    }
  }

  /**
   * Deletes what has expired.
   *
   * @param connection to the database
   * @param limit how many at most
   * @return how many were deleted
   * @throws SQLException if it failed
   */
  public int purge(Connection connection, int limit) throws SQLException {
    try (PreparedStatement statement = connection.prepareStatement(purge)) {
      statement.setInt(1, limit);
      return statement.executeUpdate();
    }
  }
}
