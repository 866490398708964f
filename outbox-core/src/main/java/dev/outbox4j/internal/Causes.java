package dev.outbox4j.internal;

import java.util.ArrayList;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Set;

/** Walks the causes of exceptions, which may form a circle. */
public final class Causes {
  private static final int MOST = 100;

  private Causes() {}

  /** {@return the exception and its causes in order, each once, at most 100} */
  public static List<Throwable> of(Throwable thrown) {
    Set<Throwable> seen = Collections.newSetFromMap(new IdentityHashMap<>());
    List<Throwable> all = new ArrayList<>();
    for (Throwable next = thrown;
        next != null && all.size() < MOST && seen.add(next);
        next = next.getCause()) {
      all.add(next);
    }
    return all;
  }
}
