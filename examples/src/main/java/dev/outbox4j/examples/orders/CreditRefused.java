package dev.outbox4j.examples.orders;

/** The customer's credit does not cover the order, so nothing of it is kept. */
public final class CreditRefused extends Exception {
  private static final long serialVersionUID = 1L;

  /** Creates the exception. */
  public CreditRefused() {
    super("credit refused; the order was rolled back");
  }
}
