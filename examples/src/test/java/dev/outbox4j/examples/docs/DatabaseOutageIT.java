package dev.outbox4j.examples.docs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.SubscriberHealth;
import dev.outbox4j.SubscriberHealth.Listener;
import dev.outbox4j.dlq.DeadLetterQueue;
import dev.outbox4j.metrics.MicrometerMetrics;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.notify.pgjdbc.PgjdbcListen;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TcpProxy;
import dev.outbox4j.postgres.testing.TestDatabase;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.sql.Connection;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.postgresql.ds.PGSimpleDataSource;

/**
 * What docs/operations/troubleshooting.md says of a database that is away, of one that is full, and
 * of a pool that is used up: what is told, and that all goes on by itself.
 */
@ExtendWith(PostgresExtension.class)
@Tag("once")
class DatabaseOutageIT {
  private static final Duration LIMIT = Duration.ofSeconds(30);
  private static final int POOL = 3;

  private final TestDatabase database;
  private final SimpleMeterRegistry meters = new SimpleMeterRegistry();
  private final List<String> handled = new CopyOnWriteArrayList<>();

  DatabaseOutageIT(TestDatabase database) {
    this.database = database;
  }

  @AfterEach
  void closeMeters() {
    meters.close();
  }

  @Test
  void goesOnWhenTheServerIsBack() throws Exception {
    try (TcpProxy proxy = new TcpProxy(database.server().host(), database.server().port());
        HikariDataSource pool = pool(through(proxy));
        OutboxSubscriber subscriber = subscriber(pool, through(proxy))) {
      startAndHandle(subscriber, "before");

      proxy.cut();
      failure(subscriber, "[08001");
      await()
          .atMost(LIMIT)
          .untilAsserted(() -> assertThat(subscriber.health().listener()).isEqualTo(Listener.DOWN));
      assertThat(gauge("outbox.healthy")).isZero();
      assertThat(gauge("outbox.listener.up")).isZero();

      proxy.resume();
      goesOn(subscriber);
    }
  }

  @Test
  void goesOnWhenTheServerHasConnectionsAgain() throws Exception {
    String role = "crowd_" + database.name();
    database.update("create role \"" + role + "\" login password 'p'");
    database.update("grant all on all tables in schema public to \"" + role + "\"");
    PGSimpleDataSource full = database.plain();
    full.setUser(role);
    full.setPassword("p");
    try (HikariDataSource pool = pool(full);
        OutboxSubscriber subscriber = subscriber(pool, database.plain())) {
      startAndHandle(subscriber, "before");

      database.update("alter role \"" + role + "\" connection limit 0");
      pool.getHikariPoolMXBean().softEvictConnections();
      failure(subscriber, "[53300", "too many connections", "takes no more connections");
      assertThat(subscriber.health().listener()).isEqualTo(Listener.UP); // it has a connection
      assertThat(gauge("outbox.healthy")).isZero();

      database.update("alter role \"" + role + "\" connection limit -1");
      goesOn(subscriber);
    } finally {
      database.update("drop owned by \"" + role + "\"");
      database.update("drop role \"" + role + "\"");
    }
  }

  @Test
  void goesOnWhenThePoolHasConnectionsAgain() throws Exception {
    try (HikariDataSource pool = pool(database.plain());
        OutboxSubscriber subscriber = subscriber(pool, database.plain())) {
      startAndHandle(subscriber, "before");

      List<Connection> borrowed = new ArrayList<>();
      for (int i = 0; i < POOL; i++) {
        borrowed.add(pool.getConnection());
      }
      failure(subscriber, "[no SQLSTATE: ", "request timed out after");
      assertThat(subscriber.health().listener()).isEqualTo(Listener.UP);
      assertThat(gauge("outbox.healthy")).isZero();

      for (Connection connection : borrowed) {
        connection.close();
      }
      goesOn(subscriber);
    }
  }

  private PGSimpleDataSource through(TcpProxy proxy) {
    PGSimpleDataSource source = database.plain();
    source.setServerNames(new String[] {proxy.host()});
    source.setPortNumbers(new int[] {proxy.port()});
    return source;
  }

  private static HikariDataSource pool(PGSimpleDataSource source) {
    HikariConfig config = new HikariConfig();
    config.setDataSource(source);
    config.setMaximumPoolSize(POOL);
    config.setConnectionTimeout(Duration.ofSeconds(1).toMillis());
    return new HikariDataSource(config);
  }

  private OutboxSubscriber subscriber(HikariDataSource pool, PGSimpleDataSource listening) {
    return OutboxSubscriber.builder("orders")
        .store(PostgresOutbox.on(pool, database.table()).store())
        .listen(PgjdbcListen.on(listening))
        .on(
            "order.placed",
            String.class,
            (order, delivery) -> {
              handled.add(order);
            })
        .deadLetters(DeadLetterQueue.in("outbox_dlq"))
        .events(MicrometerMetrics.on(meters))
        .build();
  }

  private void startAndHandle(OutboxSubscriber subscriber, String order) throws Exception {
    subscriber.start();
    publish(order);
    await().atMost(LIMIT).until(() -> handled.contains(order));
    await().atMost(LIMIT).until(() -> subscriber.health().healthy());
    assertThat(gauge("outbox.healthy")).isEqualTo(1);
  }

  private void goesOn(OutboxSubscriber subscriber) throws Exception {
    publish("after");
    await().atMost(LIMIT).until(() -> handled.contains("after"));
    await().atMost(LIMIT).until(() -> subscriber.health().healthy());
    assertThat(gauge("outbox.healthy")).isEqualTo(1);
    assertThat(meters.get("outbox.store.failures").tag("operation", "claim").counter().count())
        .isPositive();
  }

  private void publish(String order) throws Exception {
    try (Connection tx = database.plain().getConnection()) {
      tx.setAutoCommit(false);
      PostgresOutbox.publisher(database.table())
          .build()
          .publish(tx, OutboxMessage.to("orders").type("order.placed").body(order).build());
      tx.commit();
    }
  }

  private static void failure(OutboxSubscriber subscriber, String... parts) {
    await()
        .atMost(LIMIT)
        .untilAsserted(
            () -> {
              SubscriberHealth health = subscriber.health();
              assertThat(health.healthy()).isFalse();
              assertThat(health.failing()).isTrue();
              assertThat(health.lastFailure().orElse(""))
                  .startsWith("claim: ")
                  .contains("no connection could be had")
                  .contains(parts);
            });
  }

  private double gauge(String name) {
    return meters.get(name).gauge().value();
  }
}
