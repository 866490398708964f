package dev.outbox4j.postgres.internal;

import java.sql.SQLException;
import java.util.ArrayDeque;
import java.util.Collections;
import java.util.Deque;
import java.util.IdentityHashMap;
import java.util.LinkedHashSet;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** All that hangs together in a failure: causes and next exceptions, nearest first. */
final class SqlChain {
  private SqlChain() {}

  static Set<Throwable> of(Throwable e) {
    Set<Throwable> seen = Collections.newSetFromMap(new IdentityHashMap<>());
    Set<Throwable> links = new LinkedHashSet<>();
    Deque<Throwable> open = new ArrayDeque<>();
    push(open, seen, e);
    while (!open.isEmpty()) {
      Throwable link = open.removeFirst();
      links.add(link);
      if (link instanceof SQLException sql) {
        push(open, seen, sql.getNextException());
      }
      push(open, seen, link.getCause());
    }
    return links;
  }

  static boolean any(SQLException e, Class<? extends Throwable> type) {
    return of(e).stream().anyMatch(type::isInstance);
  }

  private static void push(Deque<Throwable> open, Set<Throwable> seen, @Nullable Throwable link) {
    if (link != null && seen.add(link)) {
      open.addLast(link);
    }
  }
}
