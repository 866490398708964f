package dev.outbox4j.examples.chaos;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.NeedsRestartableServer;
import dev.outbox4j.postgres.testing.RestartableServer;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;
import javax.sql.DataSource;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.postgresql.ds.PGSimpleDataSource;

/** The server stays away until HikariCP's pauses are long. */
@NeedsRestartableServer
@Tag("once")
class LongOutageIT {
  private static final OutboxTable TABLE = OutboxTable.named("outbox");
  private static final Duration SOON = Duration.ofSeconds(3);

  /** After 10, 20, 40 ms and so on this failure is followed by a pause of 5 s. */
  private static final int FAILURES_BEFORE_THE_LONGEST_PAUSE = 10;

  private final AtomicInteger handled = new AtomicInteger();
  private final AtomicInteger failures = new AtomicInteger();
  private final AtomicInteger failuresOfRetrying = new AtomicInteger();

  @Test
  void firstMessageComesWithinThreeSecondsAlsoOfALongOutage() throws Exception {
    try (RestartableServer server = RestartableServer.start()) {
      OutboxMigrations.standard().migrate(server.dataSource());
      DataSource retrying = counted(at(server, new RetryingDataSource()), failuresOfRetrying);
      try (HikariDataSource pool = pool(retrying, 3);
          HikariDataSource plain = pool(counted(server.dataSource(), failures), 1);
          OutboxSubscriber subscriber = subscriber(pool)) {
        subscriber.start();
        publish(server.dataSource());
        await().until(() -> handled.get() == 1);

        server.crash();
        plain.getHikariPoolMXBean().softEvictConnections();
        await().until(() -> failures.get() == FAILURES_BEFORE_THE_LONGEST_PAUSE);
        server.startAgain();
        publish(server.dataSource());

        await().atMost(SOON).until(() -> handled.get() == 2);
        assertThat(failuresOfRetrying).as("failures that made the pool pause").hasValueLessThan(2);
        await().until(() -> subscriber.health().healthy());
      }
    }
  }

  private OutboxSubscriber subscriber(DataSource pool) {
    return OutboxSubscriber.builder("outage")
        .deleteTerminalFailures()
        .store(PostgresOutbox.on(pool, TABLE).store())
        .on(
            "plain",
            (payload, delivery) -> {
              handled.incrementAndGet();
            })
        .build();
  }

  private static PGSimpleDataSource at(RestartableServer server, PGSimpleDataSource source) {
    PGSimpleDataSource there = server.dataSource();
    source.setServerNames(there.getServerNames());
    source.setPortNumbers(there.getPortNumbers());
    source.setDatabaseName(there.getDatabaseName());
    source.setUser(there.getUser());
    return source;
  }

  /** Counts how often a pool gets no connection of its source. */
  private static DataSource counted(DataSource source, AtomicInteger failures) {
    InvocationHandler handler =
        (proxy, method, arguments) -> {
          try {
            return method.invoke(source, arguments);
          } catch (InvocationTargetException e) {
            failures.incrementAndGet();
            throw e.getCause();
          }
        };
    return (DataSource)
        Proxy.newProxyInstance(
            DataSource.class.getClassLoader(), new Class<?>[] {DataSource.class}, handler);
  }

  private static HikariDataSource pool(DataSource source, int size) {
    HikariConfig config = new HikariConfig();
    config.setDataSource(source);
    config.setMaximumPoolSize(size);
    config.setConnectionTimeout(1_000);
    return new HikariDataSource(config);
  }

  private static void publish(DataSource source) throws SQLException {
    try (Connection connection = source.getConnection()) {
      connection.setAutoCommit(false);
      PostgresOutbox.publisher(TABLE)
          .build()
          .publish(connection, OutboxMessage.to("outage").type("plain").body("x").build());
      connection.commit();
    }
  }
}
