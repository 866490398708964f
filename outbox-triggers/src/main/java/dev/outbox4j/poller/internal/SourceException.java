package dev.outbox4j.poller.internal;

import dev.outbox4j.OutboxException;
import org.jspecify.annotations.Nullable;

/** A source that cannot be read, or may not be followed. */
final class SourceException extends OutboxException {
  private static final long serialVersionUID = 1L;

  SourceException(String message) {
    super(message);
  }

  SourceException(String message, @Nullable Throwable cause) {
    super(message, cause);
  }
}
