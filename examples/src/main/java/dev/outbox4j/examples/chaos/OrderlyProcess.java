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
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
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
  private final RunLog runs;

  private OrderlyProcess(String name, RunLog runs) {
    this.name = name;
    this.runs = runs;
  }

  /** Arguments: name, the server's ports, lease in seconds, directory of what has run. */
  public static void main(String[] arguments) throws IOException {
    String name = arguments[0];
    Duration lease = Duration.ofSeconds(Long.parseLong(arguments[2]));
    HikariDataSource pool = Database.pool(arguments[1], POOL, name, false);
    RunLog runs = RunLog.of(Path.of(arguments[3]), name);
    OutboxSubscriber subscriber = new OrderlyProcess(name, runs).subscriber(pool, lease);
    Runtime.getRuntime()
        .addShutdownHook(
            new Thread(
                () -> {
                  subscriber.stop();
                  Leftovers left = Leftovers.find(List.of(pool), pool, name);
                  pool.close();
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

  private void handle(Kind kind, long no, Delivery delivery) throws IOException {
    long begun = RunLog.now();
    if (kind == Kind.SLOW) {
      LockSupport.parkNanos(SLOWNESS.toNanos());
    }
    boolean fails = kind == Kind.FLAKY && delivery.attempt() <= FAILURES;
    RunLog.Run run = new RunLog.Run(no, delivery.id(), delivery.leaseToken(), begun, RunLog.now());
    if (fails) {
      runs.failed(run);
      throw new IllegalStateException("not yet");
    }
    runs.done(run);
  }
}
