package dev.outbox4j.examples.shop;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.spring.OutboxHandler;
import dev.outbox4j.spring.OutboxTemplate;
import java.time.Instant;
import org.springframework.stereotype.Service;
import org.springframework.transaction.annotation.Transactional;

/** Places orders, and ships them once they are committed. */
@Service
public class OrderService {
  private final PurchaseOrders orders;
  private final OutboxTemplate outbox;

  OrderService(PurchaseOrders orders, OutboxTemplate outbox) {
    this.orders = orders;
    this.outbox = outbox;
  }

  // tag::place
  /** The order and its message are committed together, or not at all. */
  @Transactional
  public void place(String id, long cents) {
    orders.save(new PurchaseOrder(id, cents));
    outbox.publish(
        OutboxMessage.to("orders")
            .type("order.placed")
            .body(new OrderPlaced(id, cents, Instant.now()))
            .build());
  }

  // end::place

  // tag::ship
  @Transactional
  @OutboxHandler(queue = "orders", type = "order.placed")
  public void ship(OrderPlaced placed) {
    orders.findById(placed.id()).orElseThrow().ship();
  }
  // end::ship
}
