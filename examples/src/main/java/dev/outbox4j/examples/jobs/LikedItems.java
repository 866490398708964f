package dev.outbox4j.examples.jobs;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.HexFormat;
import java.util.SortedSet;
import java.util.TreeSet;

/**
 * What a user likes.
 *
 * @param user who
 * @param items what
 */
record LikedItems(String user, SortedSet<String> items) {
  private static final String INSERT =
      "insert into liked_items (user_id, item) values (?, ?) on conflict do nothing";
  private static final String READ = "select item from liked_items where user_id = ?";

  /** Adds an item, in the transaction of the caller. */
  static void add(Connection transaction, String user, String item) throws SQLException {
    try (PreparedStatement insert = transaction.prepareStatement(INSERT)) {
      insert.setString(1, user);
      insert.setString(2, item);
      insert.executeUpdate();
    }
  }

  static LikedItems of(Connection connection, String user) throws SQLException {
    SortedSet<String> items = new TreeSet<>();
    try (PreparedStatement read = connection.prepareStatement(READ)) {
      read.setString(1, user);
      try (ResultSet rows = read.executeQuery()) {
        while (rows.next()) {
          items.add(rows.getString(1));
        }
      }
    }
    return new LikedItems(user, items);
  }

  /** {@return the same for the same items, and another one for others} */
  String contentHash() {
    MessageDigest digest = sha256();
    for (String item : items) {
      byte[] bytes = item.getBytes(StandardCharsets.UTF_8);
      digest.update(ByteBuffer.allocate(Integer.BYTES).putInt(bytes.length).flip());
      digest.update(bytes);
    }
    return HexFormat.of().formatHex(digest.digest());
  }

  private static MessageDigest sha256() {
    try {
      return MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException(e); // each Java platform has it
    }
  }
}
