package dev.outbox4j.examples.shop;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.test.spring.AutoConfigureOutboxTest;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.core.env.Environment;
import org.springframework.jdbc.core.JdbcTemplate;

/** The service whole, from its HTTP port to its database. */
@SpringBootTest(
    webEnvironment = SpringBootTest.WebEnvironment.RANDOM_PORT,
    properties = "management.prometheus.metrics.export.enabled=true") // which tests switch off
@AutoConfigureOutboxTest(autoStart = true)
class ShopTest {
  private final HttpClient http = HttpClient.newHttpClient();
  @Autowired private Environment environment;
  @Autowired private JdbcTemplate jdbc;

  @Test
  void shipsAnOrderOnceItIsCommitted() throws Exception {
    assertThat(send("PUT", "/orders/o-1?cents=1250").statusCode()).isEqualTo(202);
    await()
        .atMost(Duration.ofSeconds(30))
        .untilAsserted(() -> assertThat(send("GET", "/orders/o-1").body()).contains("SHIPPED"));
    await().until(() -> outboxRows() == 0);
  }

  @Test
  void sendsNoMessageOfAnOrderThatTheDatabaseRefuses() throws Exception {
    assertThat(send("PUT", "/orders/o-bad?cents=-5").statusCode()).isEqualTo(500);
    assertThat(send("GET", "/orders/o-bad").statusCode()).isEqualTo(404);
    // the message was written before the entity, at whose flush the transaction failed
    assertThat(outboxRows()).isZero();
  }

  @Test
  void tellsItsHealthAndLeavesLivenessToTheProcess() throws Exception {
    await()
        .atMost(Duration.ofSeconds(30))
        .untilAsserted(
            () ->
                assertThat(send("GET", "/actuator/health").body())
                    .contains("\"outbox\":{", "\"schema\":\"valid\"", "\"listener\":\"UP\""));
    assertThat(send("GET", "/actuator/health/liveness").body()).doesNotContain("outbox");
    assertThat(send("GET", "/actuator/health/readiness").body()).doesNotContain("outbox");
  }

  @Test
  void showsQueuesAndMetrics() throws Exception {
    send("PUT", "/orders/o-2?cents=99");
    await()
        .atMost(Duration.ofSeconds(30))
        .untilAsserted(
            () ->
                assertThat(send("GET", "/actuator/metrics/outbox.acked").body())
                    .contains("order.placed"));
    assertThat(send("GET", "/actuator/outbox").body())
        .contains("\"subscribers\":{\"orders\":", "\"deadLetters\":[");
    assertThat(send("GET", "/actuator/prometheus").body())
        .contains("outbox_acked_total{", "outbox_healthy{subscriber=\"orders\"} 1");
  }

  private long outboxRows() {
    return jdbc.queryForObject("select count(*) from outbox where queue = 'orders'", Long.class);
  }

  private HttpResponse<String> send(String method, String path)
      throws IOException, InterruptedException {
    return http.send(
        HttpRequest.newBuilder(
                URI.create(
                    "http://localhost:" + environment.getProperty("local.server.port") + path))
            .method(method, HttpRequest.BodyPublishers.noBody())
            .build(),
        HttpResponse.BodyHandlers.ofString());
  }
}
