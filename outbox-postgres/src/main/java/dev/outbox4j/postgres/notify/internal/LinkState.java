package dev.outbox4j.postgres.notify.internal;

import dev.outbox4j.spi.NotificationSource.Listener;
import org.jspecify.annotations.Nullable;

/** What is known of a channel's connection. Compared by identity: each change is news. */
final class LinkState {
  static final LinkState UNKNOWN = new LinkState(false, null);

  private final boolean up;
  private final @Nullable Throwable cause;

  private LinkState(boolean up, @Nullable Throwable cause) {
    this.up = up;
    this.cause = cause;
  }

  static LinkState up() {
    return new LinkState(true, null);
  }

  static LinkState down(Throwable cause) {
    return new LinkState(false, cause);
  }

  void tell(Listener listener) {
    if (up) {
      listener.connected();
    } else if (cause != null) {
      listener.disconnected(cause);
    }
  }
}
