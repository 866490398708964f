package dev.outbox4j.examples.orders;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.outbox4j.SubscriberEvents;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.timer.TimerControl;
import java.io.IOException;
import java.net.ServerSocket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.UUID;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

@ExtendWith(PostgresExtension.class)
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
@Tag("once")
class OrdersHttpIT {
  private static final String BROKE = "broke";

  private final HttpClient client = HttpClient.newHttpClient();
  private final TestDatabase database;
  private OrdersApplication application;

  OrdersHttpIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeAll
  void start() {
    application = application(0);
    application.start();
  }

  @AfterAll
  void stop() {
    application.close();
  }

  @Test
  void placesAnOrderAndShipsIt() throws Exception {
    UUID id = UUID.randomUUID();

    HttpResponse<String> answer = post(order(id, "ann", "1"));

    assertThat(answer.statusCode()).isEqualTo(201);
    assertThat(answer.body()).contains(id.toString());
    await().untilAsserted(() -> assertThat(count("shipments", "order_id", id)).isEqualTo(1));
    assertThat(count("orders", "id", id)).isEqualTo(1);
  }

  @Test
  void keepsNothingOfAnOrderThatIsRefusedAfterItsRowsWereWritten() throws Exception {
    UUID id = UUID.randomUUID();

    assertThat(post(order(id, BROKE, "1")).statusCode()).isEqualTo(402);

    assertThat(count("orders", "id", id)).isZero();
    assertThat(count("outbox", "headers ->> 'correlation-id'", id.toString())).isZero();
    UUID later = UUID.randomUUID();
    assertThat(post(order(later, "ann", "1")).statusCode()).isEqualTo(201);
    await().untilAsserted(() -> assertThat(count("shipments", "order_id", later)).isEqualTo(1));
    assertThat(count("shipments", "order_id", id)).isZero();
  }

  @Test
  void placesARepeatedRequestOnce() throws Exception {
    UUID id = UUID.randomUUID();
    assertThat(post(order(id, "ann", "1")).statusCode()).isEqualTo(201);

    HttpResponse<String> again = post(order(id, "ann", "1"));

    assertThat(again.statusCode()).isEqualTo(409);
    assertThat(again.body()).contains("was placed before");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      value = {
        "not json | the body is not the JSON of an order",
        "`` | the body",
        "null | the body is null",
        "[] | the body is not the JSON of an order",
        "{} {} | the body is not the JSON of an order",
        "{} | id is missing; give a UUID; customer is missing; item is missing; quantity is null",
        "{\"id\":\"7\"} | the body is not the JSON of an order",
        "{\"price\":1} | price",
        "{\"quantity\":1.5} | the body is not the JSON of an order",
        "{\"quantity\":0} | quantity is 0; it must be 1 to 1000",
        "{\"shipInMillis\":-1} | shipInMillis is -1",
        "{\"customer\":\"a\\u0000b\"} | customer has control characters"
      })
  void refusesBadInputAndSaysWhy(String body, String why) throws Exception {
    long orders = database.count("orders");

    HttpResponse<String> answer = post(body == null ? "" : body);

    assertThat(answer.statusCode()).isEqualTo(400);
    assertThat(answer.body()).contains(why);
    assertThat(database.count("orders")).isEqualTo(orders);
  }

  @Test
  void healthNamesAMissingIndexUntilItIsBack() throws Exception {
    await().untilAsserted(() -> assertThat(get("/health").statusCode()).isEqualTo(200));

    database.update("drop index outbox_claim_idx");
    try {
      HttpResponse<String> ill = get("/health");
      assertThat(ill.statusCode()).isEqualTo(503);
      assertThat(ill.body())
          .contains("index (queue, available_at, id) of public.outbox", "\"healthy\":false");
    } finally {
      database.update(
          "create index outbox_claim_idx on outbox (queue, available_at, id) where available_at is not null");
    }

    HttpResponse<String> well = get("/health");
    assertThat(well.statusCode()).isEqualTo(200);
    assertThat(well.body())
        .contains("\"schemaFaults\":[]", "shipping-1", "shipping-2", "\"listener\":\"UP\"");
  }

  @Test
  void timersAreListedWithTheirLatestRuns() throws Exception {
    await()
        .untilAsserted(
            () -> assertThat(timer("heartbeat").findValuesAsText("status")).contains("SUCCEEDED"));

    assertThat(timer("heartbeat").path("schedule").asText()).isEqualTo("every PT2S");
    assertThat(timer("heartbeat").findValuesAsText("cause")).contains("SCHEDULED");
    for (String waiting : List.of("weekly-digest", "nightly-clean-up")) {
      assertThat(Instant.parse(timer(waiting).path("due").asText())).isAfter(Instant.now());
    }
    timers().pause("weekly-digest", "ann", "nobody reads it");
    assertThat(timer("weekly-digest").path("paused").asText()).endsWith("by ann: nobody reads it");
    timers().resume("weekly-digest");
  }

  @Test
  void theWeeklyDigestCountsOrdersOfTheWeekBeforeIt() throws Exception {
    assertThat(post(order(UUID.randomUUID(), "ann", "1")).statusCode()).isEqualTo(201);
    await().until(() -> database.count("shipments") == database.count("orders"));
    insertOrderPlacedBefore("6 days 20 hours");
    insertOrderPlacedBefore("7 days 4 hours"); // even if the clocks have been changed meanwhile

    trigger("weekly-digest");

    await().until(() -> database.count("digests") == 1);
    long shipped = database.count("shipments");
    assertThat(database.one(Long.class, "select placed from digests")).isEqualTo(shipped + 1);
    assertThat(database.one(Long.class, "select shipped from digests")).isEqualTo(shipped);
  }

  @Test
  void theNightlyCleanUpDeletesWhatIsOlderThanTwoWeeks() {
    for (int days : List.of(13, 15)) {
      database.update(
          "insert into heartbeats (instant) values (now() - make_interval(days => ?))", days);
      database.update(
          """
          insert into outbox_timer_run (application, name, instant, cause, status, ended_at)
          select 'orders', 'heartbeat', run, 'scheduled', 'succeeded', run
          from (select now() - make_interval(days => ?)) as ended (run)
          """,
          days);
    }

    trigger("nightly-clean-up");

    for (String table : List.of("heartbeats", "outbox_timer_run")) {
      String old = "select count(*) from " + table + " where instant < now() - interval '%d days'";
      await().untilAsserted(() -> assertThat(database.one(Long.class, old.formatted(14))).isZero());
      assertThat(database.one(Long.class, old.formatted(12))).isEqualTo(1);
    }
  }

  @Test
  void metricsTellOfAckedMessages() throws Exception {
    UUID id = UUID.randomUUID();
    assertThat(post(order(id, "ann", "1")).statusCode()).isEqualTo(201);

    await()
        .untilAsserted(
            () -> assertThat(get("/metrics").body()).containsPattern("(?m)^outbox_acked_total"));
    assertThat(get("/metrics").headers().firstValue("content-type"))
        .hasValueSatisfying(type -> assertThat(type).startsWith("text/plain"));
  }

  @Test
  void saysThatItsPortIsTaken() throws IOException {
    try (ServerSocket taken = new ServerSocket(0);
        OrdersApplication second = application(taken.getLocalPort())) {
      assertThatThrownBy(second::start)
          .isInstanceOf(PortTaken.class)
          .hasMessageContainingAll("Port " + taken.getLocalPort(), "choose another one");
    }
  }

  private OrdersApplication application(int port) {
    OrdersConfig config =
        new OrdersConfig(
            "jdbc:postgresql://%s:%d/%s"
                .formatted(database.server().host(), database.server().port(), database.name()),
            database.server().user(),
            database.server().password(),
            "public",
            port);
    return new OrdersApplication(
        config, OrdersHttpIT::refuseTheBroke, new TakesAll(), new SubscriberEvents() {});
  }

  private static void refuseTheBroke(Order order) throws CreditRefused {
    if (order.customer().equals(BROKE)) {
      throw new CreditRefused();
    }
  }

  private static final class TakesAll implements Carrier {
    @Override
    public boolean takes(String item) {
      return true;
    }

    @Override
    public void book(OrderPlaced order) {}
  }

  private void insertOrderPlacedBefore(String interval) {
    database.update(
        """
        insert into orders (id, customer, item, quantity, placed_at, not_before)
        values (?, 'ann', 'a book', 1, now() - ?::interval, now())
        """,
        UUID.randomUUID(),
        interval);
  }

  private TimerControl timers() {
    return TimerControl.of(
        PostgresOutbox.on(database.plain(), database.table()), OrdersTimers.APPLICATION);
  }

  private void trigger(String timer) {
    await().until(() -> database.count("outbox_timer") == 3); // they are on record
    assertThat(timers().trigger(timer, "by a test")).isTrue();
  }

  private JsonNode timer(String name) throws Exception {
    for (JsonNode timer : new ObjectMapper().readTree(get("/timers").body())) {
      if (timer.path("name").asText().equals(name)) {
        return timer;
      }
    }
    throw new AssertionError("no timer " + name);
  }

  private long count(String table, String column, Object value) {
    return database.one(
        Long.class, "select count(*) from " + table + " where " + column + " = ?", value);
  }

  private static String order(UUID id, String customer, String quantity) {
    return """
        {"id":"%s","customer":"%s","item":"a book","quantity":%s}"""
        .formatted(id, customer, quantity);
  }

  private HttpResponse<String> post(String body) throws Exception {
    return send(
        HttpRequest.newBuilder().POST(HttpRequest.BodyPublishers.ofString(body)), "/orders");
  }

  private HttpResponse<String> get(String path) throws Exception {
    return send(HttpRequest.newBuilder(), path);
  }

  private HttpResponse<String> send(HttpRequest.Builder request, String path) throws Exception {
    return client.send(
        request.uri(URI.create(application.url() + path)).timeout(Duration.ofSeconds(30)).build(),
        HttpResponse.BodyHandlers.ofString());
  }
}
