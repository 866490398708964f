package dev.outbox4j.examples.quickstart;

import dev.outbox4j.examples.orders.Carrier;
import dev.outbox4j.examples.orders.CarrierUnavailable;
import dev.outbox4j.examples.orders.CreditCheck;
import dev.outbox4j.examples.orders.CreditRefused;
import dev.outbox4j.examples.orders.Order;
import dev.outbox4j.examples.orders.OrderPlaced;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;

/** The systems around the service, which misbehave as planned. */
final class SimulatedWorld implements CreditCheck, Carrier {
  static final String CURSE = "the carrier's driver refuses to touch it";
  private static final int FAILURES_OF_FLAKY = 2;

  private final Map<UUID, Integer> bookings = new ConcurrentHashMap<>();

  @Override
  public void check(Order order) throws CreditRefused {
    if (order.customer().equals(PlannedOrder.BROKE)) {
      throw new CreditRefused();
    }
  }

  @Override
  public boolean takes(String item) {
    return !item.equals(PlannedOrder.UNSHIPPABLE);
  }

  @Override
  public void book(OrderPlaced order) throws CarrierUnavailable {
    if (order.item().equals(PlannedOrder.CURSED)) {
      throw new CarrierUnavailable(CURSE);
    }
    if (order.item().equals(PlannedOrder.FLAKY)
        && bookings.merge(order.orderId(), 1, Integer::sum) <= FAILURES_OF_FLAKY) {
      throw new CarrierUnavailable("the ferry did not sail");
    }
  }
}
