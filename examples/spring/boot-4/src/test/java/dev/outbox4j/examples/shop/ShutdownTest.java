package dev.outbox4j.examples.shop;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.spring.OutboxHandler;
import dev.outbox4j.spring.OutboxTemplate;
import dev.outbox4j.test.OutboxPostgres;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.SQLException;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.transaction.support.TransactionTemplate;

/** The service when it is shut down while a message is handled. */
@ExtendWith(OutboxPostgres.class)
class ShutdownTest {
  private static final HttpClient HTTP = HttpClient.newHttpClient();

  /** Begins before the shutdown, and does its work within it. */
  static class LastMessage {
    final CountDownLatch begun = new CountDownLatch(1);
    final CountDownLatch release = new CountDownLatch(1);
    final AtomicReference<String> shown = new AtomicReference<>();
    volatile String url = "";

    @OutboxHandler(queue = "last", type = "order.asked")
    void handle(String order) throws Exception {
      begun.countDown();
      release.await();
      shown.set(get(url + "/orders/" + order));
    }
  }

  private static ConfigurableApplicationContext start(DataSource database) throws SQLException {
    try (Connection connection = database.getConnection()) {
      DatabaseMetaData server = connection.getMetaData();
      return new SpringApplicationBuilder(ShopApplication.class, LastMessage.class)
          .run(
              "--server.port=0",
              "--spring.datasource.url=" + server.getURL(),
              "--spring.datasource.username=" + server.getUserName(),
              "--spring.flyway.baseline-on-migrate=true", // the outbox is there already
              "--spring.flyway.baseline-version=0");
    }
  }

  @Test
  void theLastMessageFindsTheWebServerAndTheDatabase(DataSource database) throws Exception {
    try (ConfigurableApplicationContext service = start(database)) {
      LastMessage last = service.getBean(LastMessage.class);
      last.url = "http://localhost:" + service.getEnvironment().getProperty("local.server.port");
      service.getBean(PurchaseOrders.class).save(new PurchaseOrder("o-last", 100));
      service
          .getBean(TransactionTemplate.class)
          .executeWithoutResult(
              status ->
                  service
                      .getBean(OutboxTemplate.class)
                      .publish(
                          OutboxMessage.to("last").type("order.asked").body("o-last").build()));
      assertThat(last.begun.await(30, TimeUnit.SECONDS)).as("handled within 30 s").isTrue();

      Thread closer = new Thread(service::close, "test-closer");
      closer.start();
      await()
          .atMost(Duration.ofSeconds(10))
          .until(() -> get(last.url + "/actuator/outbox").contains("DRAINING"));
      last.release.countDown();
      closer.join(30_000);

      assertThat(closer.isAlive()).isFalse();
      assertThat(last.shown.get()).contains("o-last");
      assertThatThrownBy(() -> get(last.url + "/actuator/outbox")).isInstanceOf(IOException.class);
    }
  }

  private static String get(String url) throws IOException, InterruptedException {
    return HTTP.send(
            HttpRequest.newBuilder(URI.create(url)).timeout(Duration.ofSeconds(10)).build(),
            HttpResponse.BodyHandlers.ofString())
        .body();
  }
}
