package dev.outbox4j.monitor.http;

import dev.outbox4j.internal.OneLine;
import dev.outbox4j.monitor.HistoryEntry;
import dev.outbox4j.monitor.Json;
import dev.outbox4j.monitor.MonitorInstance;
import dev.outbox4j.monitor.MonitorStatus;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/**
 * The responses.
 *
 * @param links where instances are
 */
record Replies(Links links) {
  static final String ERROR_ON_FAILURE = "returnInternalServerErrorOnFailure";

  private static final Map<String, String> JSON =
      Map.of("Content-Type", "application/json; charset=utf-8");

  static MonitorResponse refused(int status, String text) {
    return new MonitorResponse(status, JSON, Documents.error(OneLine.of(text)));
  }

  static MonitorResponse nothingHere() {
    return refused(404, "there is nothing here");
  }

  static MonitorResponse unknown(String id) {
    return refused(404, "there is no instance " + id);
  }

  static MonitorResponse notAllowed(Set<String> methods) {
    String listed = String.join(", ", methods.stream().sorted().toList());
    return with(refused(405, "use " + listed + " here"), Map.of("Allow", listed));
  }

  /** What went wrong is in the log, and not for everybody. */
  static MonitorResponse unavailable() {
    return with(
        refused(503, "it could not be done; ask for the status, or try again"),
        Map.of("Retry-After", "5"));
  }

  static MonitorResponse accepted() {
    return new MonitorResponse(202, Map.of(), "");
  }

  static MonitorResponse ok(String body) {
    return new MonitorResponse(200, JSON, body);
  }

  /** It was started. */
  MonitorResponse started(String id) {
    return with(
        new MonitorResponse(202, JSON, Documents.links(id, links)),
        Map.of("Location", links.status(id), "Retry-After", "10"));
  }

  /** The answer to its commit was lost. */
  MonitorResponse perhapsStarted(String id) {
    return with(
        refused(
            503,
            "whether instance %s was started is not known; ask for its status, or start it by its id"
                .formatted(id)),
        Map.of("Location", links.status(id), "Retry-After", "5"));
  }

  /** It was completed in time. */
  MonitorResponse output(MonitorInstance instance) {
    return with(
        ok(instance.output().orElse(Json.NULL).text()),
        Map.of("Location", links.status(instance.id())));
  }

  MonitorResponse status(
      MonitorInstance instance,
      boolean showsInput,
      Optional<List<HistoryEntry>> history,
      boolean errorOnFailure) {
    String body = Documents.instance(instance, showsInput, history);
    if (!instance.status().isFinished()) {
      return with(
          new MonitorResponse(202, JSON, body),
          Map.of("Location", links.status(instance.id()), "Retry-After", "5"));
    }
    boolean error = errorOnFailure && instance.status() == MonitorStatus.FAILED;
    return new MonitorResponse(error ? 500 : 200, JSON, body);
  }

  private static MonitorResponse with(MonitorResponse response, Map<String, String> headers) {
    Map<String, String> all = new HashMap<>(response.headers());
    all.putAll(headers);
    return new MonitorResponse(response.status(), all, response.body());
  }
}
