package dev.outbox4j.postgres.internal.transactions;

import dev.outbox4j.postgres.OutboxTable;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import org.jspecify.annotations.Nullable;

/**
 * What a pool's connections have in common, before a handler has set anything. Immutable.
 *
 * @param readCommitted whether their transactions are READ COMMITTED
 * @param schema where they find the outbox; null if they do not, or it has a strange name
 */
record PoolFacts(boolean readCommitted, @Nullable String schema) {
  private static final String ASK =
      """
      select current_setting('transaction_isolation'), (
        select n.nspname
        from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
        where c.oid = to_regclass(cast(? as text)))\
      """;

  /** Asks a connection; the next statement begins a transaction again. */
  static PoolFacts ask(Connection connection, OutboxTable table) throws SQLException {
    try (PreparedStatement statement = connection.prepareStatement(ASK)) {
      statement.setString(1, table.qualifiedName());
      try (ResultSet row = statement.executeQuery()) {
        row.next();
        String schema = row.getString(2);
        boolean nameable = schema != null && schema.matches("[^:{}]*"); // by a template
        return new PoolFacts("read committed".equals(row.getString(1)), nameable ? schema : null);
      }
    } finally {
      connection.rollback();
    }
  }
}
