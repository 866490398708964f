package dev.outbox4j.examples.orders;

/** An order with this id was placed before. */
public final class OrderExists extends Exception {
  private static final long serialVersionUID = 1L;

  OrderExists(Order order) {
    super("order " + order.id() + " was placed before");
  }
}
