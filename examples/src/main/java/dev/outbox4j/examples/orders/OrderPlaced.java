package dev.outbox4j.examples.orders;

import java.util.UUID;

/**
 * The message that an order was placed. Other services depend on its JSON, so it is a type of its
 * own and not the order itself.
 *
 * @param orderId the order's id
 * @param item what to ship
 * @param quantity how many
 */
public record OrderPlaced(UUID orderId, String item, int quantity) {
  /** The stable message type: never a class name, which may be changed. */
  public static final String TYPE = "order.placed";

  static OrderPlaced of(Order order) {
    return new OrderPlaced(order.id(), order.item(), order.quantity());
  }
}
