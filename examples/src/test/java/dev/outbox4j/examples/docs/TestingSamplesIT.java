package dev.outbox4j.examples.docs;

import static dev.outbox4j.test.OutboxAssertions.assertThatOutbox;

import dev.outbox4j.codec.jackson2.Jackson2Codec;
import dev.outbox4j.examples.docs.Checkout.Order;
import dev.outbox4j.postgres.OutboxPublisher;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.test.OutboxPostgres;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import javax.sql.DataSource;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

// tag::postgres
@ExtendWith(OutboxPostgres.class)
class TestingSamplesIT {
  @BeforeAll
  static void createTheTablesOfTheService(DataSource dataSource) throws SQLException {
    try (Connection connection = dataSource.getConnection();
        Statement statement = connection.createStatement()) {
      statement.execute("create table orders (id text primary key, item text)");
    }
  }

  @Test
  void publishesInTheTransactionOfTheOrder(DataSource dataSource, OutboxTable table)
      throws SQLException {
    OutboxPublisher publisher =
        PostgresOutbox.publisher(table).codec(Jackson2Codec.standard()).build();
    Checkout checkout = new Checkout(Checkout::insert, publisher);

    try (Connection tx = dataSource.getConnection()) {
      tx.setAutoCommit(false);
      checkout.place(tx, new Order("o-1", "a book"));
      assertThatOutbox(dataSource, table).hasPublishedNothing("orders"); // not committed yet
      tx.commit();
    }

    assertThatOutbox(dataSource, table)
        .codec(Jackson2Codec.standard())
        .hasPublished("orders", "order.placed", new Order("o-1", "a book"));
  }
}
// end::postgres
