package dev.outbox4j.examples.orders;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.OutboxSubscribers;
import dev.outbox4j.RetryPolicy;
import dev.outbox4j.SubscriberEvents;
import dev.outbox4j.codec.jackson2.Jackson2Codec;
import dev.outbox4j.dlq.DeadLetterQueue;
import dev.outbox4j.metrics.MicrometerMetrics;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.notify.r2dbc.R2dbcListen;
import dev.outbox4j.spi.NotificationSource;
import dev.outbox4j.timer.TimerControl;
import dev.outbox4j.timer.Timers;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import javax.sql.DataSource;

/**
 * The whole service: one HTTP server that places orders, two subscribers that ship them, and
 * timers. In production the subscribers would run in two processes; here each has its own pool.
 */
public final class OrdersApplication implements AutoCloseable {
  private static final int WEB_CONNECTIONS = 16;
  private static final int WORKERS = 8;
  // two for the subscriber itself, and one for each handler, since these use the same pool
  private static final int SHIPPING_CONNECTIONS = 2 + WORKERS;

  private final OrdersConfig config;
  private final PrometheusMeterRegistry metrics =
      new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
  private final List<HikariDataSource> pools = new ArrayList<>();
  private final OutboxSubscribers subscribers;
  private final Timers timers;
  private final OrdersApi api;

  /**
   * Opens the pools and migrates the database; nothing is served or handled yet.
   *
   * @param config where everything is
   * @param creditCheck may refuse orders
   * @param carrier takes parcels
   * @param observer told what the subscribers do, beside the metrics
   */
  public OrdersApplication(
      OrdersConfig config, CreditCheck creditCheck, Carrier carrier, SubscriberEvents observer) {
    this.config = config;
    OrdersDatabase database = new OrdersDatabase(config);
    OutboxTable table = config.table();
    try {
      DataSource web = pool(database, "web", WEB_CONNECTIONS);
      database.migrate(web);
      // one LISTEN connection for all subscribers, and one more for the timers
      NotificationSource notifications = R2dbcListen.on(database.listening());
      SubscriberEvents meters = MicrometerMetrics.on(metrics);
      List<OutboxSubscriber> shipping = new ArrayList<>();
      for (String name : List.of("shipping-1", "shipping-2")) {
        DataSource pool = pool(database, name, SHIPPING_CONNECTIONS);
        ShippingHandler handler = new ShippingHandler(name, pool, carrier);
        shipping.add(
            OutboxSubscriber.builder(OrdersConfig.QUEUE)
                .name(name)
                .store(PostgresOutbox.on(pool, table).store(Duration.ofSeconds(5)))
                .listen(notifications)
                .codec(Jackson2Codec.standard())
                .on(OrderPlaced.TYPE, OrderPlaced.class, handler)
                .workers(WORKERS)
                .lease(Duration.ofSeconds(30))
                .maxDeliveries(20)
                .retry(
                    RetryPolicy.exponential(Duration.ofMillis(100))
                        .max(Duration.ofSeconds(5))
                        .attempts(5)
                        .jitter(0.2))
                .deadLetters(DeadLetterQueue.in(OrdersConfig.DEAD_LETTERS))
                .events(meters)
                .events(observer)
                .build());
      }
      subscribers = OutboxSubscribers.of(shipping);
      DataSource timersPool = pool(database, "timers", OrdersTimers.CONNECTIONS);
      timers = new OrdersTimers(PostgresOutbox.on(timersPool, table)).build(notifications, meters);
      PostgresOutbox outbox = PostgresOutbox.on(web, table);
      api =
          new OrdersApi(
              new OrderService(
                  web,
                  PostgresOutbox.publisher(table).codec(Jackson2Codec.standard()).build(),
                  creditCheck),
              new TimerOverview(TimerControl.of(outbox, OrdersTimers.APPLICATION)),
              new HealthCheck(
                  outbox.validator().deadLetters(OrdersConfig.DEAD_LETTERS).timers(), subscribers),
              metrics);
    } catch (RuntimeException e) {
      closePools();
      throw e;
    }
  }

  private HikariDataSource pool(OrdersDatabase database, String name, int size) {
    HikariDataSource pool = database.pool(name, size);
    pools.add(pool);
    return pool;
  }

  /** Begins to handle, then to serve. */
  public void start() {
    subscribers.start();
    timers.start();
    api.start(config.port());
  }

  /** {@return where it serves} */
  public String url() {
    return "http://localhost:" + api.port();
  }

  /** Serves no more, drains timers and subscribers, and only then closes what they need. */
  @Override
  public void close() {
    try {
      api.stop();
    } finally {
      timers.stop();
      subscribers.stop();
      closePools();
      metrics.close();
    }
  }

  private void closePools() {
    pools.forEach(HikariDataSource::close);
  }
}
