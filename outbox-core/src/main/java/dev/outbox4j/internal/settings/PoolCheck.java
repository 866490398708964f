package dev.outbox4j.internal.settings;

import dev.outbox4j.OutboxException;
import dev.outbox4j.spi.SettlingTransactions;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.OptionalInt;

/** Refuses pools that can be seen to be too small for the subscribers that share them. */
public final class PoolCheck {
  private PoolCheck() {}

  /** What is asked of one pool. */
  private static final class Need {
    private int subscribers;
    private int connections;
    private int handlers;

    private void add(int more, int ofThemForHandlers) {
      subscribers++;
      connections += more;
      handlers += ofThemForHandlers;
    }
  }

  /**
   * Checks the pools of subscribers that run beside one another.
   *
   * @throws OutboxException if one is too small
   */
  public static void check(List<SubscriberSettings> subscribers) {
    IdentityHashMap<Object, Need> needs = new IdentityHashMap<>();
    for (SubscriberSettings each : subscribers) {
      IdentityHashMap<Object, OptionalInt> pools = new IdentityHashMap<>();
      pools.put(each.store().connectionSource(), each.store().connectionLimit());
      for (SettlingTransactions of : each.handlers().transactions()) {
        pools.putIfAbsent(of.connectionSource(), of.connectionLimit());
      }
      pools.forEach(
          (pool, limit) -> {
            Need need = needs.computeIfAbsent(pool, first -> new Need());
            int forHandlers = each.connectionsForHandlers(pool);
            need.add(each.connectionsForItself(pool) + forHandlers, forHandlers);
            if (limit.isPresent() && limit.getAsInt() < need.connections) {
              throw tooSmall(limit.getAsInt(), need);
            }
          });
    }
  }

  private static OutboxException tooSmall(int limit, Need need) {
    String what =
        need.handlers == 0
            ? "each needs "
                + need.connections / need.subscribers
                + " (one to claim, one to settle), whatever its workers"
            : "they need one to claim and one to settle each, and one for each worker that may run"
                + " a transactional handler, "
                + need.handlers
                + " in all";
    return new OutboxException(
        "The pool has "
            + limit
            + " connection(s), too few for "
            + need.subscribers
            + " subscriber(s): "
            + what
            + "; give the pool "
            + need.connections
            + " or more, plus what the service itself uses (with Spring Boot: spring.datasource.hikari.maximum-pool-size)");
  }
}
