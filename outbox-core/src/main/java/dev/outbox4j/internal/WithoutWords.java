package dev.outbox4j.internal;

import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Set;

/**
 * Stands in a log for what user code threw: the classes and stack traces of it and its causes,
 * without their messages, which may quote a payload. The words are kept where the rows are, by the
 * exception renderer.
 */
final class WithoutWords extends Throwable {
  private static final long serialVersionUID = 1L;

  private WithoutWords(Throwable thrown, Set<Throwable> seen) {
    super(thrown.getClass().getName());
    setStackTrace(thrown.getStackTrace());
    Throwable cause = thrown.getCause();
    if (cause != null && seen.add(cause)) {
      initCause(new WithoutWords(cause, seen));
    }
    for (Throwable suppressed : thrown.getSuppressed()) {
      if (seen.add(suppressed)) {
        addSuppressed(new WithoutWords(suppressed, seen));
      }
    }
  }

  static Throwable of(Throwable thrown) {
    Set<Throwable> seen = Collections.newSetFromMap(new IdentityHashMap<>());
    seen.add(thrown);
    return new WithoutWords(thrown, seen);
  }

  /** The class alone, as the first line of a stack trace. */
  @Override
  @SuppressWarnings("OverrideThrowableToString") // the message is the other's class, not a message
  public String toString() {
    return String.valueOf(getMessage());
  }
}
