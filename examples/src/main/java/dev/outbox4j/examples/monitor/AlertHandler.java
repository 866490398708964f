package dev.outbox4j.examples.monitor;

import dev.outbox4j.Delivery;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;

/** Writes alerts down, each in the transaction of its message's ack: so once. */
final class AlertHandler {
  private static final String INSERT =
      """
      insert into issue_alerts (monitor, execution, repository, open_issues)
      values (?, ?, ?, ?)
      """;

  private AlertHandler() {}

  static void handle(IssueAlert alert, Delivery delivery, Connection transaction)
      throws SQLException {
    try (PreparedStatement insert = transaction.prepareStatement(INSERT)) {
      insert.setString(1, alert.monitor());
      insert.setLong(2, alert.execution());
      insert.setString(3, alert.repository());
      insert.setInt(4, alert.openIssues());
      insert.executeUpdate();
    }
  }
}
