package dev.outbox4j.lock;

import dev.outbox4j.OutboxException;

/** A lock was not acquired within its acquisition timeout. */
public final class LockTimeoutException extends OutboxException {
  private static final long serialVersionUID = 1L;

  LockTimeoutException(String message) {
    super(message);
  }
}
