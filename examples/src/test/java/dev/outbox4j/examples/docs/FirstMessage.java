package dev.outbox4j.examples.docs;

import dev.outbox4j.Delivery;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.dlq.DeadLetterQueue;
import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.postgres.OutboxPublisher;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.notify.pgjdbc.PgjdbcListen;
import java.sql.Connection;
import org.postgresql.ds.PGSimpleDataSource;

/** The README's example, as a program. */
final class FirstMessage {
  private FirstMessage() {}

  // tag::main
  public static void main(String[] args) throws Exception {
    PGSimpleDataSource dataSource = new PGSimpleDataSource();
    dataSource.setURL(args[0]); // jdbc:postgresql://localhost/shop?user=shop&password=secret
    OutboxTable table = OutboxTable.named("outbox");
    OutboxMigrations.standard().migrate(dataSource); // creates the tables

    OutboxPublisher publisher = PostgresOutbox.publisher(table).build();
    OutboxSubscriber subscriber =
        OutboxSubscriber.builder("orders")
            .store(PostgresOutbox.on(dataSource, table).store())
            .listen(PgjdbcListen.on(dataSource)) // wakes it at once; without, it polls
            .deadLetters(DeadLetterQueue.in("outbox_dlq"))
            .on("order.placed", String.class, FirstMessage::ship)
            .build();

    try (subscriber;
        Connection tx = dataSource.getConnection()) {
      subscriber.start();
      tx.setAutoCommit(false); // write your own rows in the same transaction
      publisher.publish(tx, OutboxMessage.to("orders").type("order.placed").body("o-1").build());
      tx.commit(); // both, or neither
      System.in.read(); // handles messages until Enter is pressed
    }
  }

  static void ship(String order, Delivery delivery) {
    System.out.println("ships " + order);
  }
  // end::main
}
