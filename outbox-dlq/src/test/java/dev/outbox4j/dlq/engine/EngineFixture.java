package dev.outbox4j.dlq.engine;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.RetryPolicy;
import dev.outbox4j.dlq.DeadLetterQueue;
import dev.outbox4j.postgres.OutboxPublisher;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;

/**
 * What tests of the engine on PostgreSQL share: queues of their own, and subscribers that get
 * stopped.
 */
final class EngineFixture implements AutoCloseable {
  final TestDatabase database;
  final HikariDataSource pool;
  final OutboxPublisher publisher;
  final RecordedEvents events = new RecordedEvents();
  private final List<OutboxSubscriber> started = new ArrayList<>();

  EngineFixture(TestDatabase database, int poolSize) {
    this.database = database;
    this.pool = database.pool(poolSize);
    this.publisher = PostgresOutbox.publisher(database.table()).build();
  }

  /** A builder with short times, dead letters and recorded events. */
  OutboxSubscriber.Builder subscriber(String queue) {
    return OutboxSubscriber.builder(queue)
        .store(PostgresOutbox.on(pool, database.table()).store())
        .deadLetters(DeadLetterQueue.in("outbox_dlq"))
        .retry(RetryPolicy.constant(Duration.ofMillis(50)).attempts(3))
        .maxDeliveries(100)
        .poll(Duration.ofMillis(5), Duration.ofMillis(50))
        .gracefulTimeout(Duration.ofSeconds(5))
        .events(events);
  }

  /** Tells whether a subscriber has not claimed for so long: it may poll still at first. */
  static boolean sleepsFor(OutboxSubscriber subscriber, Duration duration) {
    return subscriber
        .health()
        .lastClaimAt()
        .filter(at -> at.isBefore(Instant.now().minus(duration)))
        .isPresent();
  }

  OutboxSubscriber start(OutboxSubscriber.Builder builder) {
    OutboxSubscriber subscriber = builder.build();
    started.add(subscriber);
    subscriber.start();
    return subscriber;
  }

  long publish(String queue, String type, String text) {
    return inTransaction(List.of(OutboxMessage.to(queue).type(type).body(text).build())).get(0);
  }

  List<Long> publish(String queue, String type, int count) {
    List<OutboxMessage> messages = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      messages.add(OutboxMessage.to(queue).type(type).body("m" + i).build());
    }
    return inTransaction(messages);
  }

  List<Long> inTransaction(Collection<OutboxMessage> messages) {
    return inTransactions(List.of(messages));
  }

  /** Publishes in one transaction after the other, of one session. */
  List<Long> inTransactions(List<? extends Collection<OutboxMessage>> transactions) {
    try (Connection connection = database.plain().getConnection()) {
      connection.setAutoCommit(false);
      List<Long> ids = new ArrayList<>();
      for (Collection<OutboxMessage> messages : transactions) {
        publisher
            .publish(connection, messages)
            .forEach(published -> ids.add(published.rowId().orElseThrow()));
        connection.commit();
      }
      return ids;
    } catch (SQLException e) {
      throw new IllegalStateException(e);
    }
  }

  long rows(String queue) {
    return database.one(Long.class, "select count(*) from outbox where queue = ?", queue);
  }

  long deadLetters(String queue) {
    return database.one(Long.class, "select count(*) from outbox_dlq where queue = ?", queue);
  }

  <T> T column(Class<T> type, String column, long id) {
    return database.one(type, "select " + column + " from outbox where id = ?", id);
  }

  <T> T deadLetter(Class<T> type, String column, long originalId) {
    return database.one(
        type, "select " + column + " from outbox_dlq where original_id = ?", originalId);
  }

  @Override
  public void close() {
    started.forEach(OutboxSubscriber::stop);
    pool.close();
  }
}
