package dev.outbox4j.examples.poller;

/**
 * The body of a message of a poller, as far as the directory needs it; the rest is ignored.
 *
 * @param after the row
 */
record CustomerChanged(Customer after) {

  /**
   * A customer, by the names of the columns.
   *
   * @param id who
   * @param name the name
   * @param city where
   * @param revision which version of the row this is
   */
  record Customer(long id, String name, String city, int revision) {}
}
