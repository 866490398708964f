package dev.outbox4j.examples.monitor;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.OptionalInt;

/** Asks the API of whoever has the repositories. Thread-safe. */
final class IssuesApi {
  private static final Duration TIMEOUT = Duration.ofSeconds(10);

  private final URI base;
  private final HttpClient client = HttpClient.newBuilder().connectTimeout(TIMEOUT).build();
  private final ObjectMapper json = new ObjectMapper();

  IssuesApi(URI base) {
    this.base = base;
  }

  /**
   * Counts open issues.
   *
   * @param repository the repository
   * @return how many there are; empty if there is no such repository
   * @throws IOException if the API does not tell
   */
  OptionalInt openIssues(String repository) throws IOException, InterruptedException {
    HttpRequest request =
        HttpRequest.newBuilder(base.resolve("/repos/" + repository)).timeout(TIMEOUT).build();
    HttpResponse<String> answer = client.send(request, HttpResponse.BodyHandlers.ofString());
    if (answer.statusCode() == 404) {
      return OptionalInt.empty();
    }
    JsonNode count =
        answer.statusCode() == 200
            ? json.readTree(answer.body()).path("open_issues_count")
            : json.missingNode();
    if (!count.canConvertToInt()) {
      throw new IOException("the API answered " + answer.statusCode() + " without a count");
    }
    return OptionalInt.of(count.intValue());
  }
}
