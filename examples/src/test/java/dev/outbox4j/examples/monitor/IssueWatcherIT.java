package dev.outbox4j.examples.monitor;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.RetryPolicy;
import dev.outbox4j.monitor.MonitorType;
import dev.outbox4j.monitor.http.MonitorHttp;
import dev.outbox4j.postgres.notify.pgjdbc.PgjdbcListen;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.io.IOException;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.function.Predicate;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** The issue watcher, with shorter times. */
@ExtendWith(PostgresExtension.class)
@Tag("once")
class IssueWatcherIT {
  private static final Duration SOON = Duration.ofMinutes(1);
  private static final MonitorType<IssueWatch> TYPE =
      OpenIssuesCheck.TYPE
          .every(Duration.ofMillis(200))
          .retry(RetryPolicy.constant(Duration.ofMillis(50)).attempts(10));

  private final HttpClient client = HttpClient.newHttpClient();
  private final ObjectMapper json = new ObjectMapper();
  private final LocalIssuesApi api = new LocalIssuesApi();
  private final TestDatabase database;
  private final HikariDataSource pool;

  IssueWatcherIT(TestDatabase database) {
    this.database = database;
    this.pool = database.pool(IssueWatcher.CONNECTIONS);
  }

  @BeforeEach
  void setUp() {
    IssueWatcher.migrate(pool, "public");
    database.update(
        "truncate outbox, outbox_dlq, outbox_monitor, outbox_monitor_event, issue_alerts");
    api.start();
  }

  @AfterEach
  void stop() {
    api.close();
  }

  private IssueWatcher start(MonitorType<IssueWatch> type) {
    IssueWatcher watcher =
        new IssueWatcher(pool, PgjdbcListen.on(database.plain()), type, api.url());
    watcher.start(0);
    return watcher;
  }

  @Test
  void watchesUntilThereAreTooManyOrTimeIsOverOrSomebodyEndsIt() throws Exception {
    api.setOpenIssues("acme/quiet", 2);
    api.setOpenIssues("acme/busy", 1);
    api.setOpenIssues("acme/old", 0);
    try (IssueWatcher first = start(TYPE.expiresAfter(Duration.ofSeconds(2)))) {
      assertThat(watch(first, "quiet").statusCode()).isEqualTo(202);
    }

    // the expiry is on record with the instance, whatever process goes on with it
    try (IssueWatcher watcher = start(TYPE)) {
      HttpResponse<String> started = watch(watcher, "busy");
      assertThat(started.statusCode()).isEqualTo(202);
      assertThat(started.headers().firstValue("Location")).contains("/instances/busy");
      assertThat(watch(watcher, "busy").statusCode()).as("it is alive").isEqualTo(409);
      assertThat(watch(watcher, "old").statusCode()).isEqualTo(202);
      awaitStatus(watcher, "busy", status -> status.at("/customStatus/openIssues").asInt() == 1);

      api.failNext(3);
      api.setOpenIssues("acme/busy", 3);
      JsonNode busy = awaitEnd(watcher, "busy");
      assertThat(busy.path("runtimeStatus").asText()).isEqualTo("Completed");
      assertThat(busy.path("outcome").asText()).isEqualTo("CONDITION_MET");
      assertThat(busy.at("/output/openIssues").asInt()).isEqualTo(3);

      JsonNode quiet = awaitEnd(watcher, "quiet");
      assertThat(quiet.path("runtimeStatus").asText()).isEqualTo("Completed");
      assertThat(quiet.path("outcome").asText()).isEqualTo("EXPIRED");

      String terminate = "/instances/old/terminate?reason=the+project+is+over";
      assertThat(post(watcher, terminate, "").statusCode()).isEqualTo(202);
      assertThat(post(watcher, terminate, "").statusCode()).as("it has ended").isEqualTo(410);
      JsonNode old = awaitEnd(watcher, "old");
      assertThat(old.path("runtimeStatus").asText()).isEqualTo("Terminated");
      assertThat(old.path("output").asText()).isEqualTo("the project is over");

      await()
          .atMost(SOON)
          .untilAsserted(() -> assertThat(Reconciliation.compare(pool).faults()).isEmpty());
      assertThat(Reconciliation.compare(pool).met()).isEqualTo(1);
    }
    assertThat(
            database.list(
                String.class,
                "select monitor || ' ' || repository || ' ' || open_issues" + " from issue_alerts"))
        .containsExactly("busy acme/busy 3");
  }

  @Test
  void failsForARepositoryThatDoesNotExist() throws Exception {
    try (IssueWatcher watcher = start(TYPE)) {
      HttpResponse<String> waited =
          post(
              watcher,
              "/monitors/open-issues/gone?timeout=60&pollingInterval=0.1"
                  + "&returnInternalServerErrorOnFailure=true",
              body("acme/gone"));
      assertThat(waited.statusCode()).isEqualTo(500);
      assertThat(json.readTree(waited.body()).at("/failure/message").asText())
          .isEqualTo("there is no repository acme/gone");
      assertThat(get(watcher, "/instances/gone").statusCode()).isEqualTo(200);
      assertThat(Reconciliation.compare(pool).faults()).isEmpty();
    }
  }

  @Test
  void whoWaitsIsGivenTheOutput() throws Exception {
    api.setOpenIssues("acme/shop", 7);
    try (IssueWatcher watcher = start(TYPE)) {
      HttpResponse<String> waited =
          post(watcher, "/monitors/open-issues?timeout=60&pollingInterval=0.1", body("acme/shop"));
      assertThat(waited.statusCode()).isEqualTo(200);
      assertThat(waited.body()).isEqualTo("{\"openIssues\":7}");
      await()
          .atMost(SOON)
          .untilAsserted(() -> assertThat(Reconciliation.compare(pool).faults()).isEmpty());
    }
  }

  @Test
  void theServerGivesWhatItWasAskedAsItWas() throws Exception {
    api.setOpenIssues("acme/shop", 0);
    try (IssueWatcher watcher = start(TYPE)) {
      String path = "/monitors/open-issues/";
      assertThat(post(watcher, path + "50%25%20of%20%C3%BC", body("acme/shop")).statusCode())
          .isEqualTo(202);
      HttpResponse<String> found = get(watcher, "/instances/50%25%20of%20%C3%BC");
      assertThat(json.readTree(found.body()).path("instanceId").asText()).isEqualTo("50% of ü");
      assertThat(get(watcher, "/instances?instanceIdPrefix=50%25+of").body()).contains("50% of ü");
      for (String bad : new String[] {"a%2Fb", "a%5Cb", "a%23b", "@a", "%zz"}) {
        assertThat(sendRaw(watcher, "POST", path + bad)).as(bad).isEqualTo(400);
      }
      String large = "\"" + "a".repeat(MonitorHttp.MAX_BODY_BYTES) + "\"";
      assertThat(post(watcher, path + "large", large).statusCode()).isEqualTo(413);
      for (String bad :
          List.of("{", "[]", "null", "", body("acme"), body("../a"), "{\"threshold\":3}")) {
        assertThat(post(watcher, path + "bad", bad).statusCode()).as(bad).isEqualTo(400);
      }
      assertThat(post(watcher, "/monitors/other", "1").statusCode()).isEqualTo(404);
      HttpResponse<String> list = get(watcher, "/instances");
      assertThat(json.readTree(list.body()).path("instances")).hasSize(1);
      HttpResponse<String> purge = send(watcher, "DELETE", "/instances", "");
      assertThat(purge.statusCode()).isEqualTo(400);
    }
  }

  /** Java's client refuses to send what is no URI. */
  private static int sendRaw(IssueWatcher watcher, String method, String target)
      throws IOException {
    try (Socket socket = new Socket("localhost", watcher.url().getPort())) {
      socket
          .getOutputStream()
          .write(
              (method + " " + target + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
                  .getBytes(StandardCharsets.US_ASCII));
      byte[] line = socket.getInputStream().readNBytes("HTTP/1.1 400".length());
      return Integer.parseInt(new String(line, StandardCharsets.US_ASCII).split(" ", -1)[1]);
    }
  }

  private static String body(String repository) {
    return "{\"repository\":\"" + repository + "\",\"threshold\":3}";
  }

  private HttpResponse<String> watch(IssueWatcher watcher, String name) throws Exception {
    return post(watcher, "/monitors/open-issues/" + name, body("acme/" + name));
  }

  private JsonNode awaitEnd(IssueWatcher watcher, String id) {
    return awaitStatus(watcher, id, status -> status.hasNonNull("endedTime"));
  }

  private JsonNode awaitStatus(IssueWatcher watcher, String id, Predicate<JsonNode> condition) {
    return await()
        .atMost(SOON)
        .until(
            () -> {
              HttpResponse<String> answer = get(watcher, "/instances/" + id);
              JsonNode status = json.readTree(answer.body());
              assertThat(answer.statusCode()).isEqualTo(status.hasNonNull("endedTime") ? 200 : 202);
              return status;
            },
            condition);
  }

  private HttpResponse<String> get(IssueWatcher watcher, String target) throws Exception {
    return send(watcher, "GET", target, "");
  }

  private HttpResponse<String> post(IssueWatcher watcher, String target, String body)
      throws Exception {
    return send(watcher, "POST", target, body);
  }

  private HttpResponse<String> send(IssueWatcher watcher, String method, String target, String body)
      throws Exception {
    HttpRequest request =
        HttpRequest.newBuilder(URI.create(watcher.url() + target))
            .timeout(Duration.ofMinutes(2))
            .method(method, HttpRequest.BodyPublishers.ofString(body))
            .build();
    return client.send(request, HttpResponse.BodyHandlers.ofString());
  }
}
