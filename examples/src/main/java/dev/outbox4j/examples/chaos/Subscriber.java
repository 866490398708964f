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
import dev.outbox4j.postgres.notify.r2dbc.R2dbcListen;
import io.r2dbc.postgresql.PostgresqlConnectionConfiguration;
import io.r2dbc.postgresql.PostgresqlConnectionFactory;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
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

  private final String name;
  private final HikariDataSource effects;

  private Subscriber(String name, HikariDataSource effects) {
    this.name = name;
    this.effects = effects;
  }

  /**
   * Arguments: name, port of the pool, port of LISTEN, lease in seconds, whether the pool is a
   * pooler's.
   */
  public static void main(String[] arguments) {
    String name = arguments[0];
    int poolPort = Integer.parseInt(arguments[1]);
    int listenPort = Integer.parseInt(arguments[2]);
    boolean pooler = Boolean.parseBoolean(arguments[4]);
    HikariDataSource pool = Database.pool(poolPort, 3, name, pooler);
    HikariDataSource effects = Database.pool(listenPort, 8, name + "-effects", false);
    OutboxSubscriber subscriber =
        new Subscriber(name, effects)
            .build(pool, listenPort, Duration.ofSeconds(Long.parseLong(arguments[3])));
    Runtime.getRuntime()
        .addShutdownHook(new Thread(() -> stop(subscriber, pool, effects), "chaos-stop"));
    subscriber.start();
    while (subscriber.health().state() == SubscriberState.RUNNING) {
      LockSupport.parkNanos(TimeUnit.SECONDS.toNanos(1));
    }
  }

  private OutboxSubscriber build(HikariDataSource pool, int listenPort, Duration lease) {
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
            .workers(8)
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
        .retry(
            RetryPolicy.constant(Duration.ofMillis(200)).attempts(1_000_000).giveUpOn(Poison.class))
        .build();
  }

  private void handle(Kind kind, long no, Delivery delivery) throws SQLException {
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
      log.info("STOPPED CLEAN");
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
