package dev.outbox4j.examples.docs;

import static dev.outbox4j.test.OutboxAssertions.assertThatOutbox;
import static org.assertj.core.api.Assertions.assertThat;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.Batch;
import dev.outbox4j.BatchMessage;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.dlq.DeadLetterQueue;
import dev.outbox4j.postgres.OutboxPublisher;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.OutboxStore;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

@ExtendWith(PostgresExtension.class)
@Tag("once")
class BatchSamplesIT {
  private final TestDatabase database;
  private final HikariDataSource dataSource;
  private final List<String> sent = new CopyOnWriteArrayList<>();
  private final OutboxTable table = OutboxTable.named("outbox");

  BatchSamplesIT(TestDatabase database) {
    this.database = database;
    this.dataSource = database.pool(4);
  }

  @Test
  void insertsManyAtOnce() throws SQLException {
    database.update("create table sale (line text)");
    OutboxStore store = PostgresOutbox.on(dataSource, table).store();
    // tag::batch
    OutboxSubscriber subscriber =
        OutboxSubscriber.builder("sales")
            .store(store)
            .deadLetters(DeadLetterQueue.in("outbox_dlq"))
            .onBatch("line.sold", String.class, Batch.of(100), this::insertAll)
            .build();
    // end::batch

    List<OutboxMessage> messages = new ArrayList<>();
    for (int i = 0; i < 500; i++) {
      messages.add(OutboxMessage.to("sales").type("line.sold").body("line " + i).build());
    }
    OutboxPublisher publisher = PostgresOutbox.publisher(table).build();
    try (Connection tx = database.plain().getConnection()) {
      tx.setAutoCommit(false);
      publisher.publish(tx, messages);
      tx.commit();
    }
    try (subscriber) {
      subscriber.start();
      assertThatOutbox(dataSource, table).awaitDrained("sales", Duration.ofSeconds(30));
    }
    assertThat(database.one(Long.class, "select count(distinct line) from sale")).isEqualTo(500);
    assertThat(database.count("sale")).isEqualTo(500);
  }

  @Test
  void handlesABatchWhenItsStageCompletes() throws SQLException {
    OutboxStore store = PostgresOutbox.on(dataSource, table).store();
    // tag::pending
    OutboxSubscriber subscriber =
        OutboxSubscriber.builder("sales")
            .store(store)
            .deadLetters(DeadLetterQueue.in("outbox_dlq"))
            .onBatch("line.sold", String.class, Batch.of(100), this::sendAll)
            .build();
    // end::pending

    OutboxPublisher publisher = PostgresOutbox.publisher(table).build();
    try (Connection tx = database.plain().getConnection()) {
      tx.setAutoCommit(false);
      publisher.publish(
          tx, List.of(OutboxMessage.to("sales").type("line.sold").body("one").build()));
      tx.commit();
    }
    try (subscriber) {
      subscriber.start();
      assertThatOutbox(dataSource, table).awaitDrained("sales", Duration.ofSeconds(30));
    }
    assertThat(sent).containsExactly("one");
  }

  private CompletableFuture<Void> sendAll(List<BatchMessage<String>> lines) {
    return CompletableFuture.runAsync(() -> lines.forEach(line -> sent.add(line.body())));
  }

  private void insertAll(List<BatchMessage<String>> lines) throws SQLException {
    try (Connection connection = dataSource.getConnection();
        PreparedStatement insert =
            connection.prepareStatement("insert into sale select unnest(?::text[])")) {
      insert.setArray(
          1,
          connection.createArrayOf(
              "text", lines.stream().map(BatchMessage::body).toArray(String[]::new)));
      insert.executeUpdate();
    }
  }
}
