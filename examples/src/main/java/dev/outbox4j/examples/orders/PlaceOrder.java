package dev.outbox4j.examples.orders;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/** The body of {@code POST /orders}, as it came: anything may be missing or wrong. */
record PlaceOrder(
    @Nullable UUID id,
    @Nullable String customer,
    @Nullable String item,
    @Nullable Integer quantity,
    @Nullable Long shipInMillis) {
  private static final int MAX_TEXT = 100;
  private static final int MAX_QUANTITY = 1_000;
  private static final Duration MAX_SHIP_IN = Duration.ofDays(30);

  /** Says all that is wrong at once, so that a client need not try again and again. */
  Order toOrder() throws InvalidOrder {
    List<String> faults = new ArrayList<>();
    if (id == null) {
      faults.add("id is missing; give a UUID");
    }
    checkText("customer", customer, faults);
    checkText("item", item, faults);
    if (quantity == null || quantity < 1 || quantity > MAX_QUANTITY) {
      faults.add("quantity is " + quantity + "; it must be 1 to " + MAX_QUANTITY);
    }
    long shipIn = shipInMillis == null ? 0 : shipInMillis;
    if (shipIn < 0 || shipIn > MAX_SHIP_IN.toMillis()) {
      faults.add("shipInMillis is " + shipIn + "; it must be 0 to " + MAX_SHIP_IN.toMillis());
    }
    if (id == null || customer == null || item == null || quantity == null || !faults.isEmpty()) {
      throw new InvalidOrder(String.join("; ", faults));
    }
    return new Order(id, customer, item, quantity, Duration.ofMillis(shipIn));
  }

  private static void checkText(String field, @Nullable String text, List<String> faults) {
    if (text == null || text.isBlank()) {
      faults.add(field + " is missing");
    } else if (text.length() > MAX_TEXT) {
      faults.add(field + " has " + text.length() + " characters; at most " + MAX_TEXT);
    } else if (text.chars().anyMatch(Character::isISOControl)) {
      faults.add(field + " has control characters");
    }
  }
}
