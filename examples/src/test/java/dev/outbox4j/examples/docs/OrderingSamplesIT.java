package dev.outbox4j.examples.docs;

import static dev.outbox4j.test.OutboxAssertions.assertThatOutbox;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.Delivery;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.dlq.DeadLetterKey;
import dev.outbox4j.dlq.DeadLetterQueue;
import dev.outbox4j.dlq.DeadLetterWorklist;
import dev.outbox4j.migrations.OrderedMigrations;
import dev.outbox4j.postgres.OutboxPublisher;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.OutboxStore;
import java.io.IOException;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

@ExtendWith(PostgresExtension.class)
class OrderingSamplesIT {
  private final TestDatabase database;
  private final HikariDataSource dataSource;
  private final OutboxTable table = OutboxTable.named("outbox");
  private final Map<String, List<Integer>> applied = new ConcurrentHashMap<>();

  OrderingSamplesIT(TestDatabase database) {
    this.database = database;
    this.dataSource = database.pool(4);
  }

  @Test
  void keepsTheOrderOfEachKey() throws SQLException {
    // tag::migrate
    OrderedMigrations.of("public", "outbox", "orders").migrate(dataSource);
    // end::migrate
    OutboxStore store = PostgresOutbox.on(dataSource, table).store();
    // tag::subscriber
    OutboxSubscriber subscriber =
        OutboxSubscriber.builder("orders")
            .ordered()
            .store(store)
            .deadLetters(DeadLetterQueue.in("outbox_dlq"))
            .on("order.changed", String.class, this::apply)
            .build();
    // end::subscriber

    OutboxPublisher publisher = PostgresOutbox.publisher(table).build();
    List<OutboxMessage> messages = new ArrayList<>();
    for (int change = 0; change < 50; change++) {
      for (int order = 0; order < 10; order++) {
        messages.add(
            OutboxMessage.to("orders")
                .type("order.changed")
                .orderingKey("order-" + order)
                .body(String.valueOf(change))
                .build());
      }
    }
    try (Connection tx = database.plain().getConnection()) {
      tx.setAutoCommit(false);
      publisher.publish(tx, messages);
      tx.commit();
    }
    try (subscriber) {
      subscriber.start();
      assertThatOutbox(dataSource, table).awaitDrained("orders", Duration.ofSeconds(30));
    }
    assertThat(applied).hasSize(10);
    assertThat(applied.values())
        .allSatisfy(
            changes -> assertThat(changes).isEqualTo(IntStream.range(0, 50).boxed().toList()));
  }

  @Test
  void letsKeysWaitForTheirDeadLetters() throws IOException {
    OrderedMigrations.of("public", "outbox", "orders").migrate(dataSource);
    OutboxStore store = PostgresOutbox.on(dataSource, table).store();
    // tag::hold
    OutboxSubscriber subscriber =
        OutboxSubscriber.builder("orders")
            .ordered()
            .holdKeyOnDeadLetter()
            .store(store)
            .deadLetters(DeadLetterQueue.in("outbox_dlq"))
            .on("order.changed", String.class, this::apply)
            .build();
    // end::hold
    database.update(
        """
        insert into outbox_dlq (outbox, original_id, lease_token, queue, type, ordering_key, payload,
          deliveries_count, attempts_count, created_at, available_at, failure_reason)
        values ('public.outbox', 1000, 5, 'orders', 'order.changed', 'order-7', '41', 3, 2, now(), now(),
          'rejected')
        """);
    database.one(
        Long.class,
        "select outbox_publish('orders', '42', type => 'order.changed', ordering_key => 'order-7')");

    try (subscriber) {
      subscriber.start();
      await().until(() -> subscriber.health().order().orElseThrow().keysOnHold() == 1);
      assertThat(database.one(String.class, DocumentedSql.of("ordering.md", "keys-on-hold")))
          .isEqualTo("order-7");
      assertThat(onHold()).containsExactly("order-7: 1");
      assertThat(applied).isEmpty();

      database.update("delete from outbox_dlq");
      await().until(() -> applied.containsKey("order-7"));
    }
    assertThat(applied.get("order-7")).containsExactly(42);
  }

  private List<String> onHold() {
    // tag::keys
    DeadLetterWorklist deadLetters =
        DeadLetterWorklist.of(
            PostgresOutbox.on(dataSource, table), DeadLetterQueue.in("outbox_dlq"));
    List<DeadLetterKey> keys = deadLetters.keysOnHold("orders", 100);
    // end::keys
    return keys.stream().map(key -> key.orderingKey() + ": " + key.letters()).toList();
  }

  private void apply(String change, Delivery delivery) {
    applied
        .computeIfAbsent(delivery.orderingKey().orElseThrow(), each -> new CopyOnWriteArrayList<>())
        .add(Integer.valueOf(change));
  }
}
