package dev.outbox4j.monitor.http;

import java.util.Map;
import java.util.Objects;

/**
 * A response for an HTTP server to send. Immutable.
 *
 * @param status its status code
 * @param headers its headers, each with one value. {@code Content-Type} is among them exactly if
 *     there is a body
 * @param body its body, to be sent in UTF-8: JSON, or empty
 */
public record MonitorResponse(int status, Map<String, String> headers, String body) {

  /** Copies the headers. */
  public MonitorResponse {
    headers = Map.copyOf(headers);
    Objects.requireNonNull(body, "body");
  }

  /** {@return the status and the length of the body: what is in it is in no log by accident} */
  @Override
  public String toString() {
    return "MonitorResponse[" + status + ", " + body.length() + " characters]";
  }
}
