package dev.outbox4j.examples.chaos;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.Delivery;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.RetryPolicy;
import dev.outbox4j.SubscriberState;
import dev.outbox4j.dlq.DeadLetterQueue;
import dev.outbox4j.examples.chaos.Ledger.Kind;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.postgresql.ds.PGSimpleDataSource;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A process of the {@link OrderProof}: an ordered subscriber, until it is stopped or killed. */
final class OrderlyProcess {
  private static final Logger log = LoggerFactory.getLogger(OrderlyProcess.class);
  private static final int POOL = 3;
  private static final int WORKERS = 4;
  private static final int FAILURES = 2;
  private static final Duration SLOWNESS = Duration.ofMillis(2);

  private final String name;
  private final HikariDataSource effects;

  private OrderlyProcess(String name, HikariDataSource effects) {
    this.name = name;
    this.effects = effects;
  }

  /** Arguments: name, the server's ports, lease in seconds. */
  public static void main(String[] arguments) {
    String name = arguments[0];
    Duration lease = Duration.ofSeconds(Long.parseLong(arguments[2]));
    HikariDataSource pool = Database.pool(arguments[1], POOL, name, false);
    PGSimpleDataSource direct = Database.retrying(arguments[1]);
    direct.setOptions("-c synchronous_commit=off"); // nobody crashes the server here
    HikariDataSource effects = Database.pool(direct, WORKERS, name + "-effects");
    OutboxSubscriber subscriber = new OrderlyProcess(name, effects).subscriber(pool, lease);
    Runtime.getRuntime()
        .addShutdownHook(
            new Thread(
                () -> {
                  subscriber.stop();
                  Leftovers left = Leftovers.find(List.of(pool), effects, name);
                  pool.close();
                  effects.close();
                  log.info("{}{}", Subscriber.STOPPED, left);
                },
                "chaos-stop"));
    Orders.follow(order -> {});
    subscriber.start();
    String said = "";
    while (subscriber.health().state() == SubscriberState.RUNNING) {
      String health = subscriber.health().healthy() ? "up" : "down: " + subscriber.health();
      if (!health.equals(said)) {
        log.info("{}{}", Subscriber.HEALTH, health);
        said = health;
      }
      LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(200));
    }
  }

  private OutboxSubscriber subscriber(HikariDataSource pool, Duration lease) {
    OutboxSubscriber.Builder builder =
        OutboxSubscriber.builder(Subscriber.ORDERED_QUEUE)
            .name(name)
            .ordered()
            .store(
                PostgresOutbox.on(pool, OutboxTable.named("outbox")).store(Duration.ofSeconds(5)))
            .deadLetters(DeadLetterQueue.in("outbox_dlq"))
            .workers(WORKERS)
            .lease(lease)
            .poll(Duration.ofMillis(10), Duration.ofMillis(500))
            .pollWithoutListener(Duration.ofMillis(500))
            .retry(RetryPolicy.constant(Subscriber.RETRY_DELAY).attempts(1_000))
            .maxDeliveries(1_000_000)
            .gracefulTimeout(Duration.ofSeconds(10));
    for (Kind kind : OrderProof.KINDS) {
      builder.on(
          kind.name(),
          String.class,
          (text, delivery) -> {
            handle(kind, Long.parseLong(text), delivery);
          });
    }
    return builder.build();
  }

  private void handle(Kind kind, long no, Delivery delivery) throws SQLException {
    long begun = System.nanoTime();
    if (kind == Kind.SLOW) {
      LockSupport.parkNanos(SLOWNESS.toNanos());
    }
    boolean fails = kind == Kind.FLAKY && delivery.attempt() <= FAILURES;
    try (Connection connection = effects.getConnection();
        PreparedStatement insert =
            connection.prepareStatement(fails ? OrderLedger.FAILURE : OrderLedger.EFFECT)) {
      insert.setLong(1, no);
      insert.setString(2, name);
      insert.setDouble(3, (System.nanoTime() - begun) / 1e9);
      if (!fails) {
        insert.setLong(4, delivery.id());
        insert.setLong(5, delivery.leaseToken());
      }
      insert.executeUpdate();
    }
    if (fails) {
      throw new IllegalStateException("not yet");
    }
  }
}
