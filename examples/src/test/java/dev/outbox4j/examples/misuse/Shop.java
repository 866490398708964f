package dev.outbox4j.examples.misuse;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.RetryPolicy;
import dev.outbox4j.dlq.DeadLetterQueue;
import dev.outbox4j.postgres.OutboxPublisher;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.UUID;
import org.postgresql.ds.PGSimpleDataSource;

/** A service on a test's database, in which all is right but for what a test does wrong. */
final class Shop {
  static final OutboxTable TABLE = OutboxTable.named("outbox");

  record Order(String id) {}

  private final TestDatabase database;
  private final HikariDataSource pool;

  Shop(TestDatabase database) {
    this.database = database;
    this.pool = database.pool(4);
  }

  HikariDataSource pool() {
    return pool;
  }

  /** A subscriber that gives up at the second failure. */
  OutboxSubscriber.Builder subscriber(String queue) {
    return OutboxSubscriber.builder(queue)
        .store(PostgresOutbox.on(pool, TABLE).store())
        .deadLetters(DeadLetterQueue.in("outbox_dlq"))
        .retry(RetryPolicy.constant(Duration.ofMillis(1)).attempts(2));
  }

  OutboxPublisher publisher() {
    return PostgresOutbox.publisher(TABLE).build();
  }

  void publish(String queue, String type, Object body) throws SQLException {
    publish(OutboxMessage.to(queue).type(type).body(body).build());
  }

  void publish(OutboxMessage message) throws SQLException {
    try (Connection tx = pool.getConnection()) {
      tx.setAutoCommit(false);
      publisher().publish(tx, message);
      tx.commit();
    }
  }

  /** A role that may log in, and nothing else. */
  PGSimpleDataSource stranger() {
    String role = "stranger_" + UUID.randomUUID().toString().substring(0, 8);
    database.update("create role " + role + " login password 'secret'");
    PGSimpleDataSource source = database.plain();
    source.setUser(role);
    source.setPassword("secret");
    return source;
  }

  void forget(PGSimpleDataSource stranger) {
    database.update("drop role " + stranger.getUser());
  }
}
