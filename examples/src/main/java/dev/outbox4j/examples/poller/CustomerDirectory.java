package dev.outbox4j.examples.poller;

import dev.outbox4j.Delivery;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.SubscriberEvents;
import dev.outbox4j.codec.jackson2.Jackson2Codec;
import dev.outbox4j.dlq.DeadLetterQueue;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.notify.pgjdbc.PgjdbcListen;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;
import javax.sql.DataSource;

/**
 * The read model: the customers that there are. Messages of one customer are handled in their
 * order, and each in the transaction of its ack, so the last one that was published is what stays.
 */
final class CustomerDirectory implements AutoCloseable {
  private static final List<String> TABLES =
      List.of(
          "drop table if exists directory, received",
          """
          create table directory (
            id bigint primary key, name text not null, city text not null,
            revision integer not null)
          """,
          // what was received, for the reconciliation
          """
          create table received (
            number bigint generated always as identity primary key, id bigint not null,
            revision integer not null)
          """);

  private static final String UPSERT =
      """
      insert into directory (id, name, city, revision) values (?, ?, ?, ?)
      on conflict (id) do update
      set name = excluded.name, city = excluded.city, revision = excluded.revision
      """;

  private final OutboxSubscriber subscriber;

  /**
   * Creates the tables anew, and what is not started.
   *
   * @param outbox where the queue and the read model are
   * @param unpooled connections outside every pool, for LISTEN
   * @param handled told of messages that are handled
   */
  CustomerDirectory(PostgresOutbox outbox, DataSource unpooled, SubscriberEvents handled)
      throws SQLException {
    try (Connection connection = outbox.dataSource().getConnection();
        Statement statement = connection.createStatement()) {
      for (String each : TABLES) {
        statement.execute(each);
      }
    }
    subscriber =
        OutboxSubscriber.builder(CustomersPoller.QUEUE)
            .name("directory")
            .ordered()
            .store(outbox.store())
            .listen(PgjdbcListen.on(unpooled))
            .deadLetters(DeadLetterQueue.in("outbox_dlq"))
            .codec(Jackson2Codec.standard())
            .on("upsert", CustomerChanged.class, outbox.transactional(this::upsert))
            .on("delete", CustomerChanged.class, outbox.transactional(this::delete))
            .workers(4)
            .events(handled)
            .build();
  }

  void start() {
    subscriber.start();
  }

  private void upsert(CustomerChanged changed, Delivery delivery, Connection connection)
      throws SQLException {
    CustomerChanged.Customer customer = changed.after();
    received(connection, customer);
    try (PreparedStatement upsert = connection.prepareStatement(UPSERT)) {
      upsert.setLong(1, customer.id());
      upsert.setString(2, customer.name());
      upsert.setString(3, customer.city());
      upsert.setInt(4, customer.revision());
      upsert.executeUpdate();
    }
  }

  private void delete(CustomerChanged changed, Delivery delivery, Connection connection)
      throws SQLException {
    received(connection, changed.after());
    try (PreparedStatement delete =
        connection.prepareStatement("delete from directory where id = ?")) {
      delete.setLong(1, changed.after().id());
      delete.executeUpdate();
    }
  }

  private static void received(Connection connection, CustomerChanged.Customer customer)
      throws SQLException {
    try (PreparedStatement insert =
        connection.prepareStatement("insert into received (id, revision) values (?, ?)")) {
      insert.setLong(1, customer.id());
      insert.setInt(2, customer.revision());
      insert.executeUpdate();
    }
  }

  @Override
  public void close() {
    subscriber.stop();
  }
}
