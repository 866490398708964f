package dev.outbox4j.examples.docs;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.postgres.OutboxPublisher;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import org.jspecify.annotations.Nullable;

/** A service whose tests are samples: it stores orders and publishes them. */
final class Checkout {
  private final Orders orders;
  private final OutboxPublisher publisher;

  Checkout(Orders orders, OutboxPublisher publisher) {
    this.orders = orders;
    this.publisher = publisher;
  }

  record Order(String id, String item) {}

  /** Where orders are stored. */
  @FunctionalInterface
  interface Orders {
    void insert(@Nullable Connection tx, Order order) throws SQLException;
  }

  static void insert(Connection tx, Order order) throws SQLException {
    try (PreparedStatement insert = tx.prepareStatement("insert into orders values (?, ?)")) {
      insert.setString(1, order.id());
      insert.setString(2, order.item());
      insert.executeUpdate();
    }
  }

  void place(@Nullable Connection tx, Order order) throws SQLException {
    orders.insert(tx, order);
    publisher.publish(tx, OutboxMessage.to("orders").type("order.placed").body(order).build());
  }
}
