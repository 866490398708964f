package dev.outbox4j.examples.monitor;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;

/** Starts and ends watches over HTTP, as another program does. Thread-safe. */
final class WatchClient {
  private static final Duration TIMEOUT = Duration.ofSeconds(30);

  private final URI service;
  private final HttpClient client = HttpClient.newHttpClient();
  private final ObjectMapper json = new ObjectMapper();

  WatchClient(URI service) {
    this.service = service;
  }

  void start(String id, IssueWatch watch) throws IOException, InterruptedException {
    post("/monitors/open-issues/" + id, json.writeValueAsString(watch));
  }

  void terminate(String id, String reason) throws IOException, InterruptedException {
    String words = URLEncoder.encode(reason, StandardCharsets.UTF_8);
    post("/instances/" + id + "/terminate?reason=" + words, "");
  }

  private void post(String target, String body) throws IOException, InterruptedException {
    HttpRequest request =
        HttpRequest.newBuilder(service.resolve(target))
            .timeout(TIMEOUT)
            .POST(HttpRequest.BodyPublishers.ofString(body))
            .build();
    HttpResponse<String> answer = client.send(request, HttpResponse.BodyHandlers.ofString());
    if (answer.statusCode() != 202) {
      throw new IOException(
          "POST %s was answered by %d: %s".formatted(target, answer.statusCode(), answer.body()));
    }
  }
}
