package dev.outbox4j.examples.orders;

import dev.outbox4j.Delivery;
import dev.outbox4j.Outcome;
import dev.outbox4j.OutcomeHandler;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import javax.sql.DataSource;

/**
 * Ships what was ordered. Delivery is at least once, so all it does may be done again without harm.
 */
final class ShippingHandler implements OutcomeHandler<OrderPlaced> {
  private static final String RECORD_SHIPMENT =
      """
      insert into shipments as s (order_id, shipped_by, attempt) values (?, ?, ?)
      on conflict (order_id) do update set deliveries = s.deliveries + 1
      """;

  private final String instance;
  private final DataSource dataSource;
  private final Carrier carrier;

  ShippingHandler(String instance, DataSource dataSource, Carrier carrier) {
    this.instance = instance;
    this.dataSource = dataSource;
    this.carrier = carrier;
  }

  @Override
  public Outcome handle(OrderPlaced order, Delivery delivery)
      throws CarrierUnavailable, SQLException {
    if (!carrier.takes(order.item())) {
      return Outcome.reject("no carrier takes this item"); // no attempt will ever succeed
    }
    carrier.book(order); // what it throws means: try again later
    recordShipment(order, delivery.attempt());
    return Outcome.ack();
  }

  private void recordShipment(OrderPlaced order, int attempt) throws SQLException {
    try (Connection connection = dataSource.getConnection();
        PreparedStatement insert = connection.prepareStatement(RECORD_SHIPMENT)) {
      insert.setObject(1, order.orderId());
      insert.setString(2, instance);
      insert.setInt(3, attempt);
      insert.executeUpdate();
    }
  }
}
