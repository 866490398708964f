package dev.outbox4j.examples.orders;

/** Who takes the parcels: a system outside this one, which is sometimes not there. Thread-safe. */
public interface Carrier {

  /**
   * Tells whether an item can be shipped at all.
   *
   * @param item the item
   * @return false if it never will be
   */
  boolean takes(String item);

  /**
   * Books a parcel; booking one order twice is harmless.
   *
   * @param order the order
   * @throws CarrierUnavailable if it may work later
   */
  void book(OrderPlaced order) throws CarrierUnavailable;
}
