package dev.outbox4j.examples.orders;

/** A business rule that may undo an order after its rows were written. */
@FunctionalInterface
public interface CreditCheck {

  /**
   * Checks the customer's credit.
   *
   * @param order the order, already in the database but not committed
   * @throws CreditRefused if it must not be
   */
  void check(Order order) throws CreditRefused;
}
