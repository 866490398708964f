package dev.outbox4j.examples.orders;

/** The carrier did not answer; it may later. */
public final class CarrierUnavailable extends Exception {
  private static final long serialVersionUID = 1L;

  /**
   * Creates the exception.
   *
   * @param message what happened
   */
  public CarrierUnavailable(String message) {
    super(message);
  }
}
