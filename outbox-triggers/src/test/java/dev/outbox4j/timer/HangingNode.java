package dev.outbox4j.timer;

import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import org.postgresql.ds.PGSimpleDataSource;

/** A node in a process of its own, whose handler does not return. */
final class HangingNode {
  static final Timer DAILY = Timer.of("daily", Schedule.every(Duration.ofDays(1)));
  static final Duration LEASE = Duration.ofSeconds(30);

  private HangingNode() {}

  public static void main(String[] arguments) {
    PGSimpleDataSource source = new PGSimpleDataSource();
    source.setUrl(arguments[0]);
    source.setUser(arguments[1]);
    source.setPassword(arguments[2]);
    Timers.builder(PostgresOutbox.on(source, OutboxTable.named("outbox")), "shop")
        .on(DAILY, run -> new CountDownLatch(1).await())
        .subscriber(runs -> runs.lease(LEASE))
        .build()
        .start();
  }
}
