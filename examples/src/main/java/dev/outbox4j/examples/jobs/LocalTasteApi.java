package dev.outbox4j.examples.jobs;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.javalin.Javalin;
import io.javalin.http.Context;
import io.javalin.http.HttpStatus;
import java.io.IOException;
import java.net.URI;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Plays the analysis service. */
final class LocalTasteApi implements AutoCloseable {
  /** An item that it does not take. */
  static final String REFUSED = "a stolen coat";

  private final ObjectMapper json = new ObjectMapper();
  private final Map<String, Integer> failures = new ConcurrentHashMap<>();
  private final Map<String, Integer> calls = new ConcurrentHashMap<>();
  private volatile boolean down;
  private final Javalin http =
      Javalin.create(
          config -> {
            config.startup.showJavalinBanner = false;
            config.startup.showOldJavalinVersionWarning = false;
            config.routes.get("/health", this::health);
            config.routes.post("/tastes", this::taste);
          });

  void start() {
    http.start(0);
  }

  URI url() {
    return URI.create("http://localhost:" + http.port());
  }

  /** Says whether it answers nobody from now on. */
  void setDown(boolean down) {
    this.down = down;
  }

  /** Fails the next requests for a user. */
  void failNext(String user, int requests) {
    failures.put(user, requests);
  }

  /** {@return how often it was asked for a user} */
  int calls(String user) {
    return calls.getOrDefault(user, 0);
  }

  private void health(Context request) {
    request.status(down ? HttpStatus.SERVICE_UNAVAILABLE : HttpStatus.OK);
  }

  private void taste(Context request) throws IOException {
    JsonNode asked = json.readTree(request.bodyAsBytes());
    String user = asked.path("user").asText();
    calls.merge(user, 1, Integer::sum);
    Integer left = failures.computeIfPresent(user, (name, before) -> before - 1);
    boolean fails = left != null && left >= 0;
    JsonNode items = asked.path("items");
    if (down || fails) {
      request.status(HttpStatus.SERVICE_UNAVAILABLE);
    } else if (has(items, REFUSED)) {
      request.status(HttpStatus.UNPROCESSABLE_CONTENT).result("it takes no stolen goods");
    } else {
      request.json(Map.of("taste", "likes " + items.size() + " things"));
    }
  }

  private static boolean has(JsonNode items, String wanted) {
    for (JsonNode item : items) {
      if (item.asText().equals(wanted)) {
        return true;
      }
    }
    return false;
  }

  @Override
  public void close() {
    http.stop();
  }
}
