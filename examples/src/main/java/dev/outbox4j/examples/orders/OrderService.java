package dev.outbox4j.examples.orders;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.postgres.OutboxPublisher;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import javax.sql.DataSource;

/** Places orders: the order's row and its message, both or neither. */
public final class OrderService {
  private static final String INSERT_ORDER =
      """
      insert into orders (id, customer, item, quantity, not_before)
      values (?, ?, ?, ?, clock_timestamp() + make_interval(secs => ?))
      on conflict (id) do nothing
      """;

  private final DataSource dataSource;
  private final OutboxPublisher publisher;
  private final CreditCheck creditCheck;

  /**
   * Creates the service.
   *
   * @param dataSource where the orders are; the outbox is in the same database
   * @param publisher publishes to that outbox
   * @param creditCheck the rule that may refuse an order
   */
  public OrderService(DataSource dataSource, OutboxPublisher publisher, CreditCheck creditCheck) {
    this.dataSource = dataSource;
    this.publisher = publisher;
    this.creditCheck = creditCheck;
  }

  /**
   * Places an order.
   *
   * @param order the order
   * @throws OrderExists if there is one with that id
   * @throws CreditRefused if the rule refused it
   * @throws SQLException if the database failed; if that happened while committing, the order may
   *     be placed nevertheless
   */
  public void place(Order order) throws OrderExists, CreditRefused, SQLException {
    try (Connection transaction = dataSource.getConnection()) {
      transaction.setAutoCommit(false);
      try {
        insert(transaction, order);
        publisher.publish(
            transaction,
            OutboxMessage.to(OrdersConfig.QUEUE)
                .type(OrderPlaced.TYPE)
                .correlationId(order.id().toString())
                .deliverIn(order.shipIn())
                .body(OrderPlaced.of(order))
                .build());
        creditCheck.check(order);
        transaction.commit();
      } catch (Throwable failure) {
        rollBack(transaction, failure);
        throw failure;
      }
    }
  }

  private static void insert(Connection transaction, Order order) throws OrderExists, SQLException {
    try (PreparedStatement insert = transaction.prepareStatement(INSERT_ORDER)) {
      insert.setObject(1, order.id());
      insert.setString(2, order.customer());
      insert.setString(3, order.item());
      insert.setInt(4, order.quantity());
      insert.setDouble(5, order.shipIn().toMillis() / 1000.0);
      if (insert.executeUpdate() == 0) {
        throw new OrderExists(order);
      }
    }
  }

  private static void rollBack(Connection transaction, Throwable failure) {
    try {
      transaction.rollback();
    } catch (SQLException also) {
      failure.addSuppressed(also); // the connection is broken, so the server rolls back by itself
    }
  }
}
