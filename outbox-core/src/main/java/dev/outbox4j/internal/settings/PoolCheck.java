package dev.outbox4j.internal.settings;

import dev.outbox4j.OutboxException;
import dev.outbox4j.spi.SettlingTransactions;
import java.util.ArrayList;
import java.util.Collection;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.OptionalInt;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Refuses pools that can be seen to be too small for the subscribers that share them. */
public final class PoolCheck {
  private static final Logger log = LoggerFactory.getLogger(PoolCheck.class);

  private PoolCheck() {}

  /** What is asked of one pool by all its subscribers. */
  private static final class Need {
    private final List<String> subscribers = new ArrayList<>();
    private OptionalInt limit = OptionalInt.empty();
    private int connections;
    private int handlers;

    private void add(SubscriberSettings subscriber, Object pool, OptionalInt poolLimit) {
      int forHandlers = subscriber.connectionsForHandlers(pool);
      subscribers.add(subscriber.name());
      limit = poolLimit;
      connections += subscriber.connectionsForItself(pool) + forHandlers;
      handlers += forHandlers;
    }
  }

  /**
   * Checks the pools of subscribers that run beside one another, and warns of one that they use up.
   *
   * @throws OutboxException if one is too small
   */
  public static void check(List<SubscriberSettings> subscribers) {
    Collection<Need> needs = needs(subscribers);
    for (Need need : needs) {
      if (need.limit.isPresent() && need.limit.getAsInt() < need.connections) {
        throw tooSmall(need.limit.getAsInt(), need);
      }
    }
    for (Need need : needs) {
      if (need.limit.isPresent() && need.limit.getAsInt() == need.connections) {
        log.warn(
            "{} the pool has {} connection(s), and {} subscriber(s) may use them all at once: only"
                + " right for a pool that nothing else uses. If the service publishes, queries or"
                + " has a health check on it, enlarge it by what that uses (with Spring Boot:"
                + " spring.datasource.hikari.maximum-pool-size)",
            need.subscribers,
            need.limit.getAsInt(),
            need.subscribers.size());
      }
    }
  }

  private static Collection<Need> needs(List<SubscriberSettings> subscribers) {
    IdentityHashMap<Object, Need> needs = new IdentityHashMap<>();
    for (SubscriberSettings each : subscribers) {
      IdentityHashMap<Object, OptionalInt> pools = new IdentityHashMap<>();
      pools.put(each.store().connectionSource(), each.store().connectionLimit());
      for (SettlingTransactions of : each.handlers().transactions()) {
        pools.putIfAbsent(of.connectionSource(), of.connectionLimit());
      }
      pools.forEach(
          (pool, limit) -> needs.computeIfAbsent(pool, first -> new Need()).add(each, pool, limit));
    }
    return needs.values();
  }

  private static OutboxException tooSmall(int limit, Need need) {
    String what =
        need.handlers == 0
            ? "each needs "
                + need.connections / need.subscribers.size()
                + " (one to claim, one to settle), whatever its workers"
            : "they need one to claim and one to settle each, and one for each worker that may run"
                + " a transactional handler, "
                + need.handlers
                + " in all";
    return new OutboxException(
        "The pool has "
            + limit
            + " connection(s), too few for "
            + need.subscribers.size()
            + " subscriber(s): "
            + what
            + "; give the pool "
            + need.connections
            + " or more, plus what the service itself uses (with Spring Boot: spring.datasource.hikari.maximum-pool-size)");
  }
}
