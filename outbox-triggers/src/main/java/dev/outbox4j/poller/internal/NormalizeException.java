package dev.outbox4j.poller.internal;

import org.jspecify.annotations.Nullable;

/** A value of a row that has no place in Java, or in an order. */
final class NormalizeException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  NormalizeException(String message) {
    super(message);
  }

  NormalizeException(String message, @Nullable Throwable cause) {
    super(message, cause);
  }
}
