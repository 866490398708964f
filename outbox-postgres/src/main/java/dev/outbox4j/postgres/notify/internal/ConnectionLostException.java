package dev.outbox4j.postgres.notify.internal;

import dev.outbox4j.OutboxException;

/** The connection of a LISTEN has ended without the driver saying why. */
public final class ConnectionLostException extends OutboxException {
  private static final long serialVersionUID = 1L;

  /** Says how it was seen. */
  public ConnectionLostException(String message) {
    super(message);
  }
}
