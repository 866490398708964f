package dev.outbox4j.examples.shop;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.examples.shop.PurchaseOrder.State;
import dev.outbox4j.test.spring.OutboxTest;
import dev.outbox4j.test.spring.TestOutbox;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;

// tag::slice
@OutboxTest
class OrderShippingTest {
  @Autowired OrderService service;
  @Autowired PurchaseOrders orders;
  @Autowired TestOutbox outbox;

  @Test
  void shipsAnOrderThatWasPlaced() {
    service.place("o-1", 1250);
    outbox.assertThatOutbox().hasPublished("orders", "order.placed");

    outbox.drain("orders").requireNoFailures();
    assertThat(orders.findById("o-1").orElseThrow().getState()).isEqualTo(State.SHIPPED);
  }
}
// end::slice
