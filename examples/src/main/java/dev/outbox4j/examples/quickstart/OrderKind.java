package dev.outbox4j.examples.quickstart;

/** What is to happen to an order; out of a hundred orders, each kind gets its share. */
enum OrderKind {
  /** The transaction is rolled back, after both rows were written. */
  ROLLED_BACK(5),
  /** No carrier takes the item: the handler rejects the message. */
  REJECTED(1),
  /** The carrier never answers: the handler fails until the retry policy gives up. */
  ALWAYS_FAILING(1),
  /** The carrier fails twice and then works. */
  FAILS_TWICE(3),
  /** Delivered later. */
  DELAYED(3),
  /** Nothing special. */
  PLAIN(87);

  private final int percent;

  OrderKind(int percent) {
    this.percent = percent;
  }

  /** The kind of the order with this number: all kinds come in turn. */
  static OrderKind ofNumber(int number) {
    // 37 and 100 have no common divisor, so each hundred is a shuffle of all places
    int place = Math.floorMod(number * 37L, 100);
    for (OrderKind kind : values()) {
      if (place < kind.percent) {
        return kind;
      }
      place -= kind.percent;
    }
    throw new AssertionError("the shares are less than a hundred");
  }

  /** Whether the message ends in the dead-letter table. */
  boolean poison() {
    return this == REJECTED || this == ALWAYS_FAILING;
  }
}
