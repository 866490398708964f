package dev.outbox4j.monitor.http;

import dev.outbox4j.monitor.Json;
import java.nio.charset.CharacterCodingException;

/** Reads the bodies of requests. */
final class Bodies {
  private Bodies() {}

  /** {@return the body, of which the database tells whether it is JSON; null if it is empty} */
  static Json json(MonitorRequest request) {
    try {
      String text = request.body().text();
      return text.isBlank() ? Json.NULL : Json.of(text);
    } catch (CharacterCodingException e) {
      throw new IllegalArgumentException("the body is not UTF-8; encode it so", e);
    }
  }
}
