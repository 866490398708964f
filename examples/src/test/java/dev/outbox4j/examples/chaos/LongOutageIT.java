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
import dev.outbox4j.postgres.testing.RestartableServer;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.DisabledIfSystemProperty;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.postgresql.ds.PGSimpleDataSource;

/** The server stays away until HikariCP's pauses are long. */
@EnabledOnOs({OS.LINUX, OS.MAC})
@DisabledIfSystemProperty(
    named = "outbox.test.postgres",
    matches = "container|url",
    disabledReason = "a server that is not ours cannot be crashed")
class LongOutageIT {
  private static final OutboxTable TABLE = OutboxTable.named("outbox");
  private static final Duration SOON = Duration.ofSeconds(3);

  /** After 10, 20, 40 ms and so on this failure is followed by a pause of 5 s. */
  private static final int FAILURES_BEFORE_THE_LONGEST_PAUSE = 10;

  private final AtomicInteger handled = new AtomicInteger();
  private final AtomicInteger failuresOfRetrying = new AtomicInteger();

  @Test
  void firstMessageComesWithinThreeSecondsAlsoOfALongOutage() throws Exception {
    try (RestartableServer server = RestartableServer.start()) {
      OutboxMigrations.standard().migrate(server.dataSource());
      RetryingDataSource retrying = new CountedRetries();
      CountingDataSource counted = new CountingDataSource();
      try (HikariDataSource pool = pool(at(server, retrying), 3);
          HikariDataSource plain = pool(at(server, counted), 1);
          OutboxSubscriber subscriber = subscriber(pool)) {
        subscriber.start();
        publish(server.dataSource());
        await().until(() -> handled.get() == 1);

        server.crash();
        plain.getHikariPoolMXBean().softEvictConnections();
        await().until(() -> counted.failures.get() == FAILURES_BEFORE_THE_LONGEST_PAUSE);
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
        .store(PostgresOutbox.store(pool, TABLE))
        .on("plain", delivery -> handled.incrementAndGet())
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

  /** Counts what the pool gets to see of an outage. */
  private final class CountedRetries extends RetryingDataSource {
    private static final long serialVersionUID = 1;

    @Override
    public Connection getConnection(@Nullable String user, @Nullable String password)
        throws SQLException {
      try {
        return super.getConnection(user, password);
      } catch (SQLException e) {
        failuresOfRetrying.incrementAndGet();
        throw e;
      }
    }
  }

  /** Tells by a pool's failures how long the outage is. */
  private static final class CountingDataSource extends PGSimpleDataSource {
    private static final long serialVersionUID = 1;

    private final transient AtomicInteger failures = new AtomicInteger();

    @Override
    public Connection getConnection(@Nullable String user, @Nullable String password)
        throws SQLException {
      try {
        return super.getConnection(user, password);
      } catch (SQLException e) {
        failures.incrementAndGet();
        throw e;
      }
    }
  }
}
