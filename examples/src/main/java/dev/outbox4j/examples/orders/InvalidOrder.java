package dev.outbox4j.examples.orders;

/** The request is not an order; its message tells the client why. */
final class InvalidOrder extends Exception {
  private static final long serialVersionUID = 1L;

  InvalidOrder(String message) {
    super(message);
  }
}
