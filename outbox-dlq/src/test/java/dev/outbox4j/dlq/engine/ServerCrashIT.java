package dev.outbox4j.dlq.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.SubscriberHealth.Listener;
import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.notify.pgjdbc.PgjdbcListen;
import dev.outbox4j.postgres.testing.NeedsRestartableServer;
import dev.outbox4j.postgres.testing.RestartableServer;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.UnaryOperator;
import javax.sql.DataSource;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** The server crashes while handlers run, and comes back. */
@NeedsRestartableServer
@Tag("once")
class ServerCrashIT {
  private static final OutboxTable TABLE = OutboxTable.named("outbox");
  private static final Duration SOON = Duration.ofSeconds(3);

  /** HikariCP waits 10, 20, 40 ms and so on between its tries: 1.28 s at most until then. */
  private static final Duration SHORT_OUTAGE = Duration.ofMillis(2_500);

  private static final Duration LONGEST_PAUSE_OF_THE_POOL = Duration.ofSeconds(5);

  private final RecordedEvents events = new RecordedEvents();
  private final AtomicInteger handled = new AtomicInteger();

  @Test
  void firstMessageComesWithinThreeSecondsOfTheServersReturn() throws Exception {
    try (RestartableServer server = RestartableServer.start()) {
      OutboxMigrations.standard().migrate(server.dataSource());
      crashAndReturn(server, server.dataSource(), outage -> SOON);
    }
  }

  @Test
  void poolAddsItsOwnPausesAfterALongerOutageOnly() throws Exception {
    try (RestartableServer server = RestartableServer.start()) {
      OutboxMigrations.standard().migrate(server.dataSource());
      try (HikariDataSource pool = pool(server)) {
        crashAndReturn(server, pool, ServerCrashIT::soonWithPauses);
      }
    }
  }

  private void crashAndReturn(
      RestartableServer server, DataSource source, UnaryOperator<Duration> soonAfter)
      throws Exception {
    CountDownLatch running = new CountDownLatch(1);
    CountDownLatch crashed = new CountDownLatch(1);
    try (OutboxSubscriber subscriber =
        OutboxSubscriber.builder("crash")
            .deleteTerminalFailures()
            .store(PostgresOutbox.on(source, TABLE).store())
            .listen(PgjdbcListen.on(server.dataSource()))
            .events(events)
            .on(
                "plain",
                (payload, delivery) -> {
                  handled.incrementAndGet();
                })
            .on(
                "during",
                (payload, delivery) -> {
                  running.countDown();
                  crashed.await();
                })
            .build()) {
      subscriber.start();
      publish(server, "plain");
      await().untilAsserted(() -> assertThat(handled).hasValue(1));
      publish(server, "during");
      running.await();

      long gone = System.nanoTime();
      server.crash();
      crashed.countDown(); // its ack finds no server
      await().until(() -> subscriber.health().failing());
      await().until(() -> subscriber.health().listener() == Listener.DOWN);
      server.startAgain();
      Duration outage = Duration.ofNanos(System.nanoTime() - gone);
      Duration soon = soonAfter.apply(outage);
      long back = System.nanoTime();
      publish(server, "plain");
      await().atMost(soon).untilAsserted(() -> assertThat(handled).hasValue(2));
      assertThat(Duration.ofNanos(System.nanoTime() - back)).isLessThan(soon);

      await().untilAsserted(() -> assertThat(events.acked).hasValue(3));
      await().until(() -> subscriber.health().healthy());
    }
  }

  private static Duration soonWithPauses(Duration outage) {
    return outage.compareTo(SHORT_OUTAGE) <= 0 ? SOON : SOON.plus(LONGEST_PAUSE_OF_THE_POOL);
  }

  private static HikariDataSource pool(RestartableServer server) {
    HikariConfig config = new HikariConfig();
    config.setDataSource(server.dataSource());
    config.setMaximumPoolSize(3);
    config.setConnectionTimeout(1_000);
    return new HikariDataSource(config);
  }

  private static void publish(RestartableServer server, String type) throws SQLException {
    try (Connection connection = server.dataSource().getConnection()) {
      connection.setAutoCommit(false);
      PostgresOutbox.publisher(TABLE)
          .build()
          .publish(connection, OutboxMessage.to("crash").type(type).body("x").build());
      connection.commit();
    }
  }
}
