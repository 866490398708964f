package dev.outbox4j.examples.docs;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.dlq.DeadLetterQueue;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresServer;
import dev.outbox4j.test.OutboxPostgres;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

class TestingOwnServerSamplesIT {
  // tag::own-server
  @RegisterExtension
  static final OutboxPostgres postgres =
      OutboxPostgres.on(() -> yourDataSource()).outbox("sample_shop", "outbox");

  // end::own-server

  private static DataSource yourDataSource() {
    return PostgresServer.shared().dataSource("postgres");
  }

  @AfterAll
  static void drop() throws SQLException {
    try (Connection connection = yourDataSource().getConnection();
        Statement statement = connection.createStatement()) {
      statement.execute("drop schema sample_shop cascade");
    }
  }

  @Test
  void awaitsASubscriberOnATable() throws SQLException {
    DataSource dataSource = postgres.dataSource();
    try (Connection tx = dataSource.getConnection()) {
      tx.setAutoCommit(false);
      PostgresOutbox.publisher(postgres.table())
          .build()
          .publish(tx, OutboxMessage.to("orders").body("o-1").build());
      tx.commit();
    }
    OutboxSubscriber subscriber =
        OutboxSubscriber.builder("orders")
            .store(PostgresOutbox.on(dataSource, postgres.table()).store())
            .deadLetters(DeadLetterQueue.in("outbox_dlq"))
            .otherwise((payload, delivery) -> {})
            .build();
    // tag::await
    try (subscriber) {
      subscriber.start();
      postgres
          .assertThatOutbox()
          .awaitEmpty("orders", Duration.ofSeconds(30))
          .hasNoDeadLetters("orders");
    }
    // end::await
  }
}
