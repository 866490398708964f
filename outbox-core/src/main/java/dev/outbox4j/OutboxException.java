package dev.outbox4j;

import org.jspecify.annotations.Nullable;

/**
 * The root of what Outbox4j throws. Messages name the value at fault, the rule and what to do; they
 * never hold payloads, headers or credentials.
 */
public class OutboxException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  /**
   * Creates an exception with a message.
   *
   * @param message what failed and what to do
   */
  public OutboxException(String message) {
    super(message);
  }

  /**
   * Creates an exception with a message and a cause.
   *
   * @param message what failed and what to do
   * @param cause why, or null
   */
  public OutboxException(String message, @Nullable Throwable cause) {
    super(message, cause);
  }
}
