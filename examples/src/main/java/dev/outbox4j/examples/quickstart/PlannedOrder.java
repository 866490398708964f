package dev.outbox4j.examples.quickstart;

import java.util.UUID;

/**
 * One order to be placed. The service knows nothing of kinds: they are in what is ordered and by
 * whom, which the simulated carrier and credit check understand.
 */
record PlannedOrder(UUID id, OrderKind kind, long shipInMillis) {
  static final String BROKE = "a customer without credit";
  static final String UNSHIPPABLE = "a live elephant";
  static final String CURSED = "a cursed mirror";
  static final String FLAKY = "a parcel for a remote island";

  static PlannedOrder ofNumber(int number) {
    OrderKind kind = OrderKind.ofNumber(number);
    long delay = kind == OrderKind.DELAYED ? 200 + number % 20 * 100L : 0;
    return new PlannedOrder(UUID.randomUUID(), kind, delay);
  }

  String customer() {
    return kind == OrderKind.ROLLED_BACK ? BROKE : "a good customer";
  }

  String item() {
    return switch (kind) {
      case REJECTED -> UNSHIPPABLE;
      case ALWAYS_FAILING -> CURSED;
      case FAILS_TWICE -> FLAKY;
      case ROLLED_BACK, DELAYED, PLAIN -> "a book";
    };
  }

  /** The body of the request; nothing in it needs escaping. */
  String json() {
    return """
        {"id":"%s","customer":"%s","item":"%s","quantity":1,"shipInMillis":%d}"""
        .formatted(id, customer(), item(), shipInMillis);
  }
}
