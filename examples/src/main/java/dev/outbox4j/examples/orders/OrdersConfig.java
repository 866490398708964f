package dev.outbox4j.examples.orders;

import dev.outbox4j.postgres.OutboxTable;
import java.util.Objects;

/**
 * What the service must be told.
 *
 * @param jdbcUrl the database, such as {@code jdbc:postgresql://localhost:5432/shop}
 * @param user its user
 * @param password the user's password; may be empty
 * @param schema the schema of all its tables, the outbox included
 * @param port the HTTP port; 0 for any that is free
 */
public record OrdersConfig(String jdbcUrl, String user, String password, String schema, int port) {
  /** The queue of placed orders. */
  public static final String QUEUE = "orders";

  /** The outbox table. */
  public static final String OUTBOX = "outbox";

  /** The dead-letter table. */
  public static final String DEAD_LETTERS = "outbox_dlq";

  /** Checks the components. */
  public OrdersConfig {
    Objects.requireNonNull(jdbcUrl, "jdbcUrl");
    Objects.requireNonNull(user, "user");
    Objects.requireNonNull(password, "password");
    Objects.requireNonNull(schema, "schema");
  }

  /** {@return the outbox} */
  public OutboxTable table() {
    return OutboxTable.named(OUTBOX).inSchema(schema);
  }

  /** Keeps the password out of logs. */
  @Override
  public String toString() {
    return "OrdersConfig[schema=" + schema + ", port=" + port + "]";
  }
}
