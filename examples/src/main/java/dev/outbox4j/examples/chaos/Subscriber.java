package dev.outbox4j.examples.chaos;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.Delivery;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.RetryPolicy;
import dev.outbox4j.SubscriberHealth;
import dev.outbox4j.SubscriberState;
import dev.outbox4j.dlq.DeadLetterQueue;
import dev.outbox4j.examples.chaos.Ledger.Kind;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.notify.r2dbc.R2dbcListen;
import io.r2dbc.postgresql.PostgresqlConnectionConfiguration;
import io.r2dbc.postgresql.PostgresqlConnectionFactory;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A process that subscribes until it is told to stop or killed. The effect of a message is a row in
 * the ledger, written as the handler's last act on a connection of the service's own.
 */
final class Subscriber {
  private static final Logger log = LoggerFactory.getLogger(Subscriber.class);
  static final Duration HANDLER_TIMEOUT = Duration.ofSeconds(4);
  static final Duration RETRY_DELAY = Duration.ofMillis(200);
  static final String STOPPED_CLEAN = "STOPPED CLEAN";
  static final String HEALTH = "HEALTH ";

  private static final int WORKERS = 8;

  private final String name;
  private final HikariDataSource effects;

  private Subscriber(String name, HikariDataSource effects) {
    this.name = name;
    this.effects = effects;
  }

  /**
   * Arguments: name, ports of the pool, of LISTEN and of the effects, lease in seconds, whether the
   * pool's port is a pooler's.
   */
  public static void main(String[] arguments) {
    String name = arguments[0];
    int listenPort = Integer.parseInt(arguments[2]);
    HikariDataSource pool =
        Database.pool(Integer.parseInt(arguments[1]), 3, name, Boolean.parseBoolean(arguments[5]));
    HikariDataSource effects =
        Database.pool(Integer.parseInt(arguments[3]), WORKERS, name + "-effects", false);
    FlakyPool flaky = new FlakyPool(pool);
    OutboxSubscriber subscriber =
        new Subscriber(name, effects)
            .build(flaky, listenPort, Duration.ofSeconds(Long.parseLong(arguments[4])));
    Runtime.getRuntime()
        .addShutdownHook(new Thread(() -> stop(subscriber, pool, effects), "chaos-stop"));
    Orders.follow(order -> flaky.handOutDead(order.equals(Orders.DEAD_POOL)));
    subscriber.start();
    String said = "";
    while (subscriber.health().state() == SubscriberState.RUNNING) {
      String health = describe(subscriber.health());
      if (!health.equals(said)) {
        log.info("{}{}", HEALTH, health);
        said = health;
      }
      LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(500));
    }
  }

  private static String describe(SubscriberHealth health) {
    return health.healthy()
        ? "up"
        : "down: listener "
            + health.listener()
            + (health.deadLettersWaiting() > 0 ? ", dead letters wait" : "")
            + ", "
            + health.lastFailure().orElse("no failure");
  }

  private OutboxSubscriber build(FlakyPool pool, int listenPort, Duration lease) {
    OutboxSubscriber.Builder builder =
        OutboxSubscriber.builder("chaos")
            .name(name)
            .store(PostgresOutbox.store(pool, OutboxTable.named("outbox"), Duration.ofSeconds(5)))
            .listen(
                R2dbcListen.on(
                        new PostgresqlConnectionFactory(
                            PostgresqlConnectionConfiguration.builder()
                                .host("localhost")
                                .port(listenPort)
                                .database("postgres")
                                .username("postgres")
                                .connectTimeout(Duration.ofSeconds(5))
                                .applicationName(name + "-listen")
                                .build()))
                    .probe(Duration.ofSeconds(2), Duration.ofSeconds(2)))
            .deadLetters(DeadLetterQueue.in("outbox_dlq"))
            .workers(WORKERS)
            .lease(lease)
            .poll(Duration.ofMillis(10), Duration.ofSeconds(2))
            .handlerTimeout(HANDLER_TIMEOUT)
            .gracefulTimeout(Duration.ofSeconds(10))
            .maxDeliveries(1_000_000);
    for (Kind kind : Kind.values()) {
      builder.on(
          kind.name(),
          String.class,
          (text, delivery) -> handle(kind, Long.parseLong(text), delivery));
    }
    return builder
        .retry(RetryPolicy.constant(RETRY_DELAY).attempts(1_000_000).giveUpOn(Poison.class))
        .build();
  }

  private void handle(Kind kind, long no, Delivery delivery)
      throws SQLException, InterruptedException {
    boolean first = delivery.attempt() == 1;
    switch (kind) {
      case FLAKY -> {
        if (delivery.attempt() < 3) {
          throw new IllegalStateException("not yet");
        }
      }
      case POISON -> throw new Poison();
      case ERROR -> {
        if (first) {
          throw new StackOverflowError("once");
        }
      }
      case SLOW -> LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(50));
      case HANGING -> {
        if (first) {
          new CountDownLatch(1).await();
        }
      }
      case STUBBORN -> {
        if (first) {
          ignoreInterrupts(HANDLER_TIMEOUT.plusSeconds(1));
          throw new IllegalStateException("much too late");
        }
      }
      case NORMAL, DELAYED -> {}
    }
    effect(no, delivery);
  }

  private static void ignoreInterrupts(Duration time) {
    long until = System.nanoTime() + time.toNanos();
    for (long left = time.toNanos(); left > 0; left = until - System.nanoTime()) {
      LockSupport.parkNanos(left);
      Thread.interrupted();
    }
  }

  private void effect(long no, Delivery delivery) throws SQLException {
    try (Connection connection = effects.getConnection();
        PreparedStatement insert =
            connection.prepareStatement(
                "insert into handled (no, outbox_id, token, owner, lease_until)"
                    + " select ?, ?, ?, ?, (select lease_until from outbox where id = ? and lease_token = ?)")) {
      insert.setLong(1, no);
      insert.setLong(2, delivery.id());
      insert.setInt(3, delivery.leaseToken());
      insert.setString(4, name);
      insert.setLong(5, delivery.id());
      insert.setInt(6, delivery.leaseToken());
      insert.executeUpdate();
    }
  }

  private static void stop(
      OutboxSubscriber subscriber, HikariDataSource pool, HikariDataSource effects) {
    subscriber.stop();
    pool.close();
    effects.close();
    List<String> left = threads();
    long patience =
        System.nanoTime() + TimeUnit.SECONDS.toNanos(15); // a connect under way is bounded
    while (!left.isEmpty() && System.nanoTime() < patience) {
      LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(100));
      left = threads();
    }
    if (left.isEmpty()) {
      log.info(STOPPED_CLEAN);
    } else {
      log.error("STOPPED WITH THREADS {}", left);
    }
  }

  /** The framework's threads; workers end by themselves after a while. */
  private static List<String> threads() {
    return Thread.getAllStackTraces().keySet().stream()
        .map(Thread::getName)
        .filter(thread -> thread.startsWith("outbox-") && !thread.contains("-worker-"))
        .toList();
  }

  /** What a message that can never be handled throws. */
  static final class Poison extends RuntimeException {
    private static final long serialVersionUID = 1L;

    Poison() {
      super("poison");
    }
  }
}
