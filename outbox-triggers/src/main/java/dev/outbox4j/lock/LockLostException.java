package dev.outbox4j.lock;

import dev.outbox4j.OutboxException;
import org.jspecify.annotations.Nullable;

/** What a lock protects went on after it was lost, or was to go on. */
public final class LockLostException extends OutboxException {
  private static final long serialVersionUID = 1L;

  LockLostException(String message, @Nullable Throwable cause) {
    super(message, cause);
  }
}
