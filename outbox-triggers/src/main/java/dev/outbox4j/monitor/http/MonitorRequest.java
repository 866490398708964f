package dev.outbox4j.monitor.http;

import dev.outbox4j.Payload;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * A request as an HTTP server has received it. Immutable.
 *
 * @param method its method, such as {@code POST}
 * @param path its path as in the request line, so percent-encoded, without what the server serves
 *     the monitors below: it begins with {@code /monitors} or {@code /instances}
 * @param query its query as in the request line, so percent-encoded, without the {@code ?}; empty
 *     if there is none
 * @param body its body. Of one that is larger than {@link MonitorHttp#MAX_BODY_BYTES} one byte more
 *     than that is enough, so a server need not read it to its end
 */
public record MonitorRequest(String method, String path, String query, Payload body) {

  /** Refuses nulls. */
  public MonitorRequest {
    Objects.requireNonNull(method, "method");
    Objects.requireNonNull(path, "path");
    Objects.requireNonNull(query, "query");
    Objects.requireNonNull(body, "body");
  }

  /**
   * Makes a request of what HTTP libraries give.
   *
   * @param method its method
   * @param path its path, percent-encoded
   * @param query its query, percent-encoded; null or empty if there is none
   * @param body the bytes of its body, which are not changed later; empty if there is none
   * @return the request
   */
  public static MonitorRequest of(String method, String path, @Nullable String query, byte[] body) {
    return new MonitorRequest(method, path, query == null ? "" : query, Payload.wrap(body));
  }
}
