package dev.outbox4j.examples.orders;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import io.javalin.Javalin;
import io.javalin.http.Context;
import io.javalin.http.HttpStatus;
import io.javalin.json.JavalinJackson;
import io.javalin.util.JavalinBindException;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import java.io.IOException;
import java.sql.SQLException;
import java.util.Map;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The service's HTTP endpoints. */
final class OrdersApi {
  private static final Logger LOG = LoggerFactory.getLogger(OrdersApi.class);
  private static final String PROMETHEUS_TEXT = "text/plain; version=0.0.4; charset=utf-8";

  private final OrderService orders;
  private final TimerOverview timers;
  private final HealthCheck health;
  private final PrometheusMeterRegistry metrics;
  private final ObjectMapper json =
      JsonMapper.builder()
          .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
          .disable(DeserializationFeature.ACCEPT_FLOAT_AS_INT)
          .build();
  private final Javalin http;

  OrdersApi(
      OrderService orders,
      TimerOverview timers,
      HealthCheck health,
      PrometheusMeterRegistry metrics) {
    this.orders = orders;
    this.timers = timers;
    this.health = health;
    this.metrics = metrics;
    this.http =
        Javalin.create(
            config -> {
              config.startup.showJavalinBanner = false;
              config.startup.showOldJavalinVersionWarning = false;
              config.jsonMapper(new JavalinJackson(json, false));
              config.routes.post("/orders", this::placeOrder);
              config.routes.get("/timers", this::timers);
              config.routes.get("/health", this::health);
              config.routes.get("/metrics", this::metrics);
              config.routes.exception(InvalidOrder.class, refuse(HttpStatus.BAD_REQUEST));
              config.routes.exception(OrderExists.class, refuse(HttpStatus.CONFLICT));
              config.routes.exception(CreditRefused.class, refuse(HttpStatus.PAYMENT_REQUIRED));
              config.routes.exception(SQLException.class, OrdersApi::failed);
              config.routes.exception(RuntimeException.class, OrdersApi::failed);
            });
  }

  void start(int port) {
    try {
      http.start(port);
    } catch (JavalinBindException e) {
      throw new PortTaken(port, e);
    }
  }

  int port() {
    return http.port();
  }

  void stop() {
    http.stop();
  }

  private void placeOrder(Context request)
      throws InvalidOrder, OrderExists, CreditRefused, SQLException {
    Order order = read(request).toOrder();
    orders.place(order);
    request.status(HttpStatus.CREATED).json(Map.of("id", order.id()));
  }

  private PlaceOrder read(Context request) throws InvalidOrder {
    PlaceOrder body;
    try {
      body = json.readValue(request.bodyAsBytes(), PlaceOrder.class);
    } catch (JsonProcessingException e) {
      throw new InvalidOrder("the body is not the JSON of an order: " + e.getOriginalMessage());
    } catch (IOException e) {
      throw new InvalidOrder("the body could not be read");
    }
    if (body == null) {
      throw new InvalidOrder("the body is null");
    }
    return body;
  }

  private void timers(Context request) {
    request.json(timers.list());
  }

  private void health(Context request) {
    HealthCheck.Health answer = health.check();
    request.status(answer.healthy() ? HttpStatus.OK : HttpStatus.SERVICE_UNAVAILABLE).json(answer);
  }

  private void metrics(Context request) {
    request.contentType(PROMETHEUS_TEXT).result(metrics.scrape(PROMETHEUS_TEXT));
  }

  private static <E extends Exception> io.javalin.http.ExceptionHandler<E> refuse(HttpStatus why) {
    return (e, request) -> request.status(why).json(Map.of("error", e.getMessage()));
  }

  private static void failed(Exception e, Context request) {
    LOG.warn("{} {} failed", request.method(), request.path(), e);
    request
        .status(HttpStatus.INTERNAL_SERVER_ERROR)
        .json(Map.of("error", "internal error; see the service's log"));
  }
}
