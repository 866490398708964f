package dev.outbox4j.spi;

import dev.outbox4j.OutboxException;
import org.jspecify.annotations.Nullable;

/**
 * Thrown by a {@link PayloadCodec} when the bytes of a message are at fault, so that no further
 * attempt can decode them. Only this exception dead-letters a message as {@code undecodable}. Its
 * text is kept with the dead letter and must not quote the payload.
 */
public class UndecodableException extends OutboxException {
  private static final long serialVersionUID = 1L;

  /**
   * Creates an exception with a message.
   *
   * @param message what is wrong with the bytes
   */
  public UndecodableException(String message) {
    super(message);
  }

  /**
   * Creates an exception with a message and a cause.
   *
   * @param message what is wrong with the bytes
   * @param cause why, or null
   */
  public UndecodableException(String message, @Nullable Throwable cause) {
    super(message, cause);
  }
}
