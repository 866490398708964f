package dev.outbox4j.postgres.internal.transactions;

import dev.outbox4j.postgres.internal.Redaction;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** What a connection lets its transactions do, whatever one of them has set for itself. */
enum Access {
  READ_WRITE,
  READ_ONLY,
  /** It does not answer. */
  UNKNOWN;

  private static final Logger log = LoggerFactory.getLogger(Access.class);

  /** Asks a connection that has no transaction open, nor has one afterwards. */
  static Access ask(Connection connection) {
    try (Statement statement = connection.createStatement();
        ResultSet row =
            statement.executeQuery("select current_setting('transaction_read_only') = 'on'")) {
      row.next();
      boolean readOnly = row.getBoolean(1);
      connection.rollback();
      return readOnly ? READ_ONLY : READ_WRITE;
    } catch (SQLException e) {
      log.debug("a connection does not tell whether it is read-only", Redaction.redact(e));
      return UNKNOWN;
    }
  }
}
