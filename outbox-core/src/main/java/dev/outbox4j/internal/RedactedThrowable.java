package dev.outbox4j.internal;

import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Set;

/**
 * A throwable without its messages, for logs: classes and stack traces of what user code threw and
 * of its causes. The messages may quote a payload, so only the exception renderer sees them.
 */
public final class RedactedThrowable extends Throwable {
  private static final long serialVersionUID = 1L;
  private static final int MOST = 100;

  private RedactedThrowable(Throwable thrown, Set<Throwable> seen) {
    super(thrown.getClass().getName());
    setStackTrace(thrown.getStackTrace());
    Throwable cause = thrown.getCause();
    if (cause != null && seen.size() < MOST && seen.add(cause)) {
      initCause(new RedactedThrowable(cause, seen));
    }
    for (Throwable suppressed : thrown.getSuppressed()) {
      if (seen.size() < MOST && seen.add(suppressed)) {
        addSuppressed(new RedactedThrowable(suppressed, seen));
      }
    }
  }

  public static Throwable of(Throwable thrown) {
    Set<Throwable> seen = Collections.newSetFromMap(new IdentityHashMap<>());
    seen.add(thrown);
    return new RedactedThrowable(thrown, seen);
  }

  /** The class name alone, which begins the stack trace. */
  @Override
  @SuppressWarnings("OverrideThrowableToString") // the message is the class name of the original
  public String toString() {
    return String.valueOf(getMessage());
  }
}
