package dev.outbox4j.examples.docs;

import static dev.outbox4j.test.OutboxAssertions.assertThatOutbox;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.Transactional;
import dev.outbox4j.dlq.DeadLetterQueue;
import dev.outbox4j.migrations.InboxMigrations;
import dev.outbox4j.postgres.Inbox;
import dev.outbox4j.postgres.ManagedTransactions;
import dev.outbox4j.postgres.OutboxPublisher;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.ReactiveOutboxPublisher;
import dev.outbox4j.postgres.jooq.JooqOutboxPublisher;
import dev.outbox4j.postgres.jooq.JooqTransactions;
import dev.outbox4j.postgres.r2dbc.R2dbcTransactions;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.HandlerTransactions.Flush;
import io.r2dbc.spi.ConnectionFactory;
import io.r2dbc.spi.Result;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import javax.sql.DataSource;
import org.jooq.SQLDialect;
import org.jooq.impl.DSL;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

@ExtendWith(PostgresExtension.class)
@Tag("once")
class TransactionalSamplesIT {
  private final TestDatabase database;
  private final HikariDataSource dataSource;
  private final OutboxTable table = OutboxTable.named("outbox");
  private final OutboxPublisher publisher = PostgresOutbox.publisher(table).build();

  TransactionalSamplesIT(TestDatabase database) {
    this.database = database;
    this.dataSource = database.pool(20);
  }

  @BeforeEach
  void empty() {
    database.update("truncate outbox, outbox_dlq");
  }

  @Test
  void commitsWhatTheHandlerWritesWithTheEndOfTheMessage() throws SQLException {
    database.update("create table reservation (order_id text)");
    // tag::transactional
    PostgresOutbox outbox = PostgresOutbox.on(dataSource, table);
    OutboxSubscriber subscriber =
        OutboxSubscriber.builder("orders")
            .store(outbox.store())
            .deadLetters(DeadLetterQueue.in("outbox_dlq"))
            .on(
                "order.placed",
                String.class,
                outbox.transactional(
                    (order, delivery, connection) -> {
                      reserve(connection, order); // your SQL
                      publisher.publish(
                          connection,
                          OutboxMessage.to("invoices").type("invoice.due").body(order).build());
                    }))
            .build();
    // end::transactional

    try (Connection tx = database.plain().getConnection()) {
      tx.setAutoCommit(false);
      publisher.publish(tx, OutboxMessage.to("orders").type("order.placed").body("o-1").build());
      tx.commit();
    }
    try (subscriber) {
      subscriber.start();
      assertThatOutbox(dataSource, table)
          .awaitDrained("orders", Duration.ofSeconds(30))
          .hasPublished("invoices", "invoice.due");
    }
    assertThat(database.list(String.class, "select order_id from reservation"))
        .containsExactly("o-1");
  }

  @Test
  void writesWithJooqInTheTransactionOfTheAck() throws SQLException {
    database.update("create table booking (order_id text)");
    PostgresOutbox outbox = PostgresOutbox.on(dataSource, table);
    // tag::jooq
    JooqOutboxPublisher jooqPublisher = JooqOutboxPublisher.of(publisher);
    JooqTransactions jooq =
        JooqTransactions.of(outbox.transactions(), DSL.using(SQLDialect.POSTGRES).configuration());
    OutboxSubscriber subscriber =
        OutboxSubscriber.builder("bookings")
            .store(outbox.store())
            .deadLetters(DeadLetterQueue.in("outbox_dlq"))
            .on(
                "order.placed",
                String.class,
                jooq.transactional(
                    (order, delivery, tx) -> {
                      tx.dsl().insertInto(DSL.table("booking")).values(order).execute();
                      jooqPublisher.publish(
                          tx, OutboxMessage.to("mails").type("mail.due").body(order).build());
                    }))
            .build();
    // end::jooq

    try (Connection tx = database.plain().getConnection()) {
      tx.setAutoCommit(false);
      publisher.publish(tx, OutboxMessage.to("bookings").type("order.placed").body("o-3").build());
      tx.commit();
    }
    try (subscriber) {
      subscriber.start();
      assertThatOutbox(dataSource, table)
          .awaitDrained("bookings", Duration.ofSeconds(30))
          .hasPublished("mails", "mail.due");
    }
    assertThat(database.list(String.class, "select order_id from booking")).containsExactly("o-3");
  }

  @Test
  void writesInTransactionsThatTheServiceBeginsAndCommits() throws SQLException {
    database.update("create table parcel (order_id text)");
    PostgresOutbox outbox = PostgresOutbox.on(dataSource, table);
    // tag::managed
    ManagedTransactions own =
        work -> {
          try (Connection connection = dataSource.getConnection()) {
            connection.setAutoCommit(false);
            boolean rolledBack = true;
            try {
              if (work.handle(connection, Flush.NOTHING)) {
                work.settle(); // the last statement
                rolledBack = false; // from here on nobody can be sure
                connection.commit();
              }
            } finally {
              connection.rollback(); // of what was not committed
              work.ended(rolledBack);
            }
          }
        };
    OutboxSubscriber subscriber =
        OutboxSubscriber.builder("parcels")
            .store(outbox.store())
            .deadLetters(DeadLetterQueue.in("outbox_dlq"))
            .on(
                "order.placed",
                String.class,
                Transactional.of(
                    outbox.transactions(own),
                    (order, delivery, connection) -> {
                      send(connection, order); // your SQL
                    }))
            .build();
    // end::managed

    try (Connection tx = database.plain().getConnection()) {
      tx.setAutoCommit(false);
      publisher.publish(tx, OutboxMessage.to("parcels").type("order.placed").body("o-4").build());
      tx.commit();
    }
    try (subscriber) {
      subscriber.start();
      assertThatOutbox(dataSource, table).awaitDrained("parcels", Duration.ofSeconds(30));
    }
    assertThat(database.list(String.class, "select order_id from parcel")).containsExactly("o-4");
  }

  private static void send(Connection connection, String order) throws SQLException {
    try (PreparedStatement insert = connection.prepareStatement("insert into parcel values (?)")) {
      insert.setString(1, order);
      insert.executeUpdate();
    }
  }

  @Test
  void writesOverR2dbcInTheTransactionOfTheAck() throws SQLException {
    database.update("create table seat (order_id text)");
    PostgresOutbox outbox = PostgresOutbox.on(dataSource, table);
    ConnectionFactory connections = SampleDatabase.r2dbc(database);
    // tag::r2dbc
    ReactiveOutboxPublisher reactivePublisher = PostgresOutbox.publisher(table).buildReactive();
    R2dbcTransactions reactive = R2dbcTransactions.of(connections, table);
    OutboxSubscriber subscriber =
        OutboxSubscriber.builder("seats")
            .store(outbox.store())
            .deadLetters(DeadLetterQueue.in("outbox_dlq"))
            .on(
                "order.placed",
                String.class,
                reactive.transactional(
                    (order, delivery, connection) ->
                        takeSeat(connection, order) // your SQL, as a Mono
                            .then(
                                Mono.from(
                                    reactivePublisher.publish(
                                        connection,
                                        OutboxMessage.to("tickets")
                                            .type("ticket.due")
                                            .body(order)
                                            .build())))))
            .build();
    // end::r2dbc

    try (Connection tx = database.plain().getConnection()) {
      tx.setAutoCommit(false);
      publisher.publish(tx, OutboxMessage.to("seats").type("order.placed").body("o-4").build());
      tx.commit();
    }
    try (subscriber) {
      subscriber.start();
      assertThatOutbox(dataSource, table)
          .awaitDrained("seats", Duration.ofSeconds(30))
          .hasPublished("tickets", "ticket.due");
    }
    assertThat(database.list(String.class, "select order_id from seat")).containsExactly("o-4");
  }

  private static Mono<Void> takeSeat(io.r2dbc.spi.Connection connection, String order) {
    return Flux.from(
            connection.createStatement("insert into seat values ($1)").bind(0, order).execute())
        .concatMap(Result::getRowsUpdated)
        .then();
  }

  @Test
  void handlesOnceInAnotherDatabase() throws SQLException {
    String other = database.name() + "_billing";
    database.update("create database " + other); // with nothing of the outbox's in it
    try {
      handlesOnceIn(database.server().dataSource(other));
    } finally {
      database.update("drop database " + other + " with (force)");
    }
  }

  private void handlesOnceIn(DataSource billing) throws SQLException {
    try (Connection session = billing.getConnection();
        Statement create = session.createStatement()) {
      create.execute("create table bill (order_id text check (order_id <> ''))");
    }
    PostgresOutbox outbox = PostgresOutbox.on(dataSource, table);
    // tag::inbox
    InboxMigrations.of("public", "inbox").migrate(billing); // in the other database

    Inbox inbox = Inbox.in("inbox").timeToLive(Duration.ofDays(14));
    OutboxSubscriber subscriber =
        OutboxSubscriber.builder("invoices")
            .store(outbox.store())
            .deadLetters(DeadLetterQueue.in("outbox_dlq"))
            .on(
                "invoice.due",
                String.class,
                inbox.once(
                    billing,
                    (order, delivery, connection) -> {
                      bill(connection, order);
                    }))
            .build();
    // end::inbox

    try (Connection tx = database.plain().getConnection()) {
      tx.setAutoCommit(false);
      publisher.publish(tx, OutboxMessage.to("invoices").type("invoice.due").body("o-2").build());
      tx.commit();
    }
    try (subscriber) {
      subscriber.start();
      assertThatOutbox(dataSource, table).awaitDrained("invoices", Duration.ofSeconds(30));
    }
    try (Connection session = billing.getConnection();
        Statement look = session.createStatement();
        ResultSet row =
            look.executeQuery(
                "select string_agg(order_id, ','), (select count(*) from inbox),"
                    + " to_regclass('outbox') is null from bill")) {
      row.next();
      assertThat(row.getString(1)).isEqualTo("o-2");
      assertThat(row.getInt(2)).as("remembered").isEqualTo(1);
      assertThat(row.getBoolean(3)).as("the outbox is elsewhere").isTrue();
    }
  }

  @Test
  void handlesARecordOfABrokerOnce() throws SQLException {
    database.update("create table if not exists bill (order_id text check (order_id <> ''))");
    database.update("truncate bill");
    InboxMigrations.of("public", "broker_inbox").migrate(database.plain());
    Consumer consumer = new Consumer(database.plain(), Inbox.in("broker_inbox"));

    assertThat(consumer.consume("orders", "o-3-paid", "o-3")).isTrue();
    assertThat(consumer.consume("orders", "o-3-paid", "o-3")).isFalse();
    assertThatExceptionOfType(SQLException.class)
        .isThrownBy(() -> consumer.consume("orders", "o-4-paid", ""));
    assertThat(consumer.consume("orders", "o-4-paid", "o-4")).isTrue();

    assertThat(database.list(String.class, "select order_id from bill"))
        .containsExactlyInAnyOrder("o-3", "o-4");
  }

  private record Consumer(DataSource billing, Inbox inbox) {
    // tag::broker
    boolean consume(String topic, String key, String order) throws SQLException {
      try (Connection tx = billing.getConnection()) {
        tx.setAutoCommit(false);
        boolean isNew = inbox.add(tx, topic, key);
        if (isNew) {
          bill(tx, order);
        }
        tx.commit(); // then tell the broker that the record is done
        return isNew;
      }
    }
    // end::broker
  }

  private static void bill(Connection connection, String order) throws SQLException {
    try (PreparedStatement insert = connection.prepareStatement("insert into bill values (?)")) {
      insert.setString(1, order);
      insert.executeUpdate();
    }
  }

  private static void reserve(Connection connection, String order) throws SQLException {
    try (PreparedStatement insert =
        connection.prepareStatement("insert into reservation values (?)")) {
      insert.setString(1, order);
      insert.executeUpdate();
    }
  }
}
