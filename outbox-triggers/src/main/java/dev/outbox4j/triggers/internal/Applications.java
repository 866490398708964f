package dev.outbox4j.triggers.internal;

import dev.outbox4j.OutboxMessage;
import java.nio.charset.StandardCharsets;

/** The names of applications, which keep those in one database apart. */
public final class Applications {
  private static final int MAX_BYTES = 200;

  private Applications() {}

  /**
   * Refuses what cannot be the name of an application.
   *
   * @param application the name
   * @return the name
   * @throws IllegalArgumentException if no queue can have it, or it is longer than 200 bytes
   */
  public static String require(String application) {
    try {
      OutboxMessage.to(application); // the rules for names
    } catch (IllegalArgumentException e) {
      throw new IllegalArgumentException(
          "application '%s' cannot be a part of a queue's name: %s"
              .formatted(application, e.getMessage()),
          e);
    }
    int bytes = application.getBytes(StandardCharsets.UTF_8).length;
    if (bytes > MAX_BYTES) {
      throw new IllegalArgumentException(
          "application '%s' has %d bytes; it may have %d, so shorten it"
              .formatted(application, bytes, MAX_BYTES));
    }
    return application;
  }
}
