package dev.outbox4j;

import dev.outbox4j.internal.life.DefaultSubscriber;
import dev.outbox4j.spi.OutboxStore;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.OptionalInt;

/** Refuses pools that can be seen to be too small for the subscribers that share them. */
final class ConnectionNeeds {
  private ConnectionNeeds() {}

  static void check(List<OutboxSubscriber> subscribers) {
    IdentityHashMap<Object, Integer> users = new IdentityHashMap<>();
    IdentityHashMap<Object, Integer> connections = new IdentityHashMap<>();
    for (OutboxSubscriber subscriber : subscribers) {
      if (subscriber instanceof DefaultSubscriber own) {
        OutboxStore store = own.store();
        int count = users.merge(store.connectionSource(), 1, Integer::sum);
        OptionalInt limit = store.connectionLimit();
        int needed = connections.merge(store.connectionSource(), own.connections(), Integer::sum);
        if (limit.isPresent() && limit.getAsInt() < needed) {
          throw DefaultSubscriber.poolTooSmall(limit.getAsInt(), count, needed);
        }
      }
    }
  }
}
