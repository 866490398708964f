package dev.outbox4j.examples.jobs;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.Map;

/** Asks the analysis service. Thread-safe. */
final class TasteApi implements Analyst {
  private static final Duration TIMEOUT = Duration.ofSeconds(10);

  private final URI base;
  private final HttpClient client = HttpClient.newBuilder().connectTimeout(TIMEOUT).build();
  private final ObjectMapper json = new ObjectMapper();

  TasteApi(URI base) {
    this.base = base;
  }

  @Override
  public String taste(LikedItems liked) throws IOException, InterruptedException, RefusedItems {
    String body = json.writeValueAsString(Map.of("user", liked.user(), "items", liked.items()));
    HttpResponse<String> answer =
        send(HttpRequest.newBuilder(base.resolve("/tastes")).POST(BodyPublishers.ofString(body)));
    if (answer.statusCode() == 422) {
      throw new RefusedItems(answer.body());
    }
    JsonNode taste =
        answer.statusCode() == 200
            ? json.readTree(answer.body()).path("taste")
            : json.missingNode();
    if (!taste.isTextual()) {
      throw new IOException("the analysis service answered " + answer.statusCode());
    }
    return taste.textValue();
  }

  /**
   * Sees whether the service works.
   *
   * @throws IOException if it does not
   */
  void probe() throws IOException, InterruptedException {
    int status = send(HttpRequest.newBuilder(base.resolve("/health"))).statusCode();
    if (status != 200) {
      throw new IOException("the analysis service says that it does not work: " + status);
    }
  }

  private HttpResponse<String> send(HttpRequest.Builder request)
      throws IOException, InterruptedException {
    return client.send(request.timeout(TIMEOUT).build(), HttpResponse.BodyHandlers.ofString());
  }
}
