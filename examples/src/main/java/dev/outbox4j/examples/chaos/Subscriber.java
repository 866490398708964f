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
  static final String STOPPED = "STOPPED WITH ";
  static final String HEALTH = "HEALTH ";
  static final String CLOCK = "CLOCK ";

  static final int WORKERS = 8;
  static final int POOL = 3;

  /** Notes beside the effect whose the row is at this instant. */
  private static final String EFFECT =
      "insert into handled (no, outbox_id, token, owner, row_token, lease_until)"
          + " select ?, ?, ?, ?, o.lease_token, case when o.lease_token = ? then o.lease_until end"
          + " from (values (0)) one left join outbox o on o.id = ?";

  private final String name;
  private final HikariDataSource effects;

  private Subscriber(String name, HikariDataSource effects) {
    this.name = name;
    this.effects = effects;
  }

  /**
   * Arguments: name, ports of the pool, of LISTEN and of the effects, lease in seconds, whether the
   * pool's port is a pooler's, and who listens.
   */
  public static void main(String[] arguments) {
    log.info("{}{}", CLOCK, System.currentTimeMillis());
    String name = arguments[0];
    String listener = arguments[6];
    int listenPort = Integer.parseInt(arguments[2]);
    HikariDataSource pool =
        Database.pool(
            Integer.parseInt(arguments[1]), POOL, name, Boolean.parseBoolean(arguments[5]));
    HikariDataSource effects =
        Database.pool(Integer.parseInt(arguments[3]), WORKERS, name + "-effects", false);
    FlakyPool flaky = new FlakyPool(pool);
    OutboxSubscriber subscriber =
        new Subscriber(name, effects)
            .build(flaky, listenPort, listener, Duration.ofSeconds(Long.parseLong(arguments[4])));
    Runtime.getRuntime()
        .addShutdownHook(new Thread(() -> stop(subscriber, pool, effects, listener), "chaos-stop"));
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

  private OutboxSubscriber build(FlakyPool pool, int listenPort, String listener, Duration lease) {
    OutboxSubscriber.Builder builder =
        OutboxSubscriber.builder("chaos")
            .name(name)
            .store(
                PostgresOutbox.on(pool, OutboxTable.named("outbox")).store(Duration.ofSeconds(5)))
            .listen(
                R2dbcListen.on(
                        new PostgresqlConnectionFactory(
                            PostgresqlConnectionConfiguration.builder()
                                .host("localhost")
                                .port(listenPort)
                                .database("postgres")
                                .username(listener) // by which the server tells whose session it is
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
          (text, delivery) -> {
            handle(kind, Long.parseLong(text), delivery);
          });
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
        PreparedStatement insert = connection.prepareStatement(EFFECT)) {
      insert.setLong(1, no);
      insert.setLong(2, delivery.id());
      insert.setLong(3, delivery.leaseToken());
      insert.setString(4, name);
      insert.setLong(5, delivery.leaseToken());
      insert.setLong(6, delivery.id());
      insert.executeUpdate();
    }
  }

  private static void stop(
      OutboxSubscriber subscriber,
      HikariDataSource pool,
      HikariDataSource effects,
      String listener) {
    subscriber.stop();
    Leftovers left = Leftovers.find(pool, effects, listener); // before a pool ends what is borrowed
    pool.close();
    effects.close();
    log.info("{}{}", STOPPED, left);
  }

  /** What a message that can never be handled throws. */
  static final class Poison extends RuntimeException {
    private static final long serialVersionUID = 1L;

    Poison() {
      super("poison");
    }
  }
}
